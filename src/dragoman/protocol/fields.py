"""Every protobuf field of every message that travels, as one table per schema.

Rules of this module:

- One line a message: ``Name: number field type, ...``; ``Name:`` alone is a message without fields.
- Behind a type: ``*`` repeated, ``?`` explicit presence, ``!`` REQUIRED by the specification, ``+`` added after the
  0.3.0 tag (peers built from the tag do not know it). ``in x``: member of the oneof x. ``as x``: the JSON name, where
  it is not the camelCase of the field's name.
- Types are bare names, unique within a schema. ``Struct``, ``Value`` and ``Timestamp`` are those of google.protobuf,
  whose own rows are there to be told by reflection, not to be read by.
- A table is parsed when it is first asked for: importing this module costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

from .operations import Version

#: A2A versions, the messages of ``grpc-status-details-bin``, those of the gRPC health and reflection services (whose
#: versions differ in name only), and what reflection tells: files of google.protobuf, and descriptors of files.
Schema = (
    Version
    | Literal["google.rpc", "grpc.health.v1", "grpc.reflection"]
    | Literal["google.protobuf.struct", "google.protobuf.timestamp", "google.protobuf.empty"]
    | Literal["google.protobuf.descriptor"]
)
Cardinality = Literal["singular", "optional", "repeated", "map", "oneof"]


class Field(NamedTuple):
    """One field. ``type`` of a map is the type of its values (keys are strings); ``oneof``: its group or ``""``."""

    number: int
    name: str
    json: str
    type: str
    cardinality: Cardinality
    oneof: str = ""
    required: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One schema: message name -> fields in order of declaration, enum name -> value name -> number."""

    messages: Mapping[str, tuple[Field, ...]]
    enums: Mapping[str, Mapping[str, int]]


@cache
def table(schema: Schema) -> Table:
    """The table of ``schema``, parsed once."""
    messages: dict[str, tuple[Field, ...]] = {}
    enums: dict[str, Mapping[str, int]] = {}
    for kind, name, items in _blocks(_TEXT[schema]):
        if kind == "enum":
            enums[name] = {value: int(number) for number, value in map(str.split, items)}
        else:
            messages[name] = tuple(map(_field, items))
    return Table(messages, enums)


def _blocks(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for line in text.replace(",\n    ", ", ").strip().splitlines():
        head, _, body = line.partition(":")
        kind, _, name = head.rpartition(" ")
        yield kind, name, body.strip().split(", ") if body else []


def _field(item: str) -> Field:
    number, name, spelled, *rest = item.split()
    words = dict(zip(rest[::2], rest[1::2], strict=True))
    type_ = spelled.rstrip("*?!+")
    cardinality: Cardinality = "singular"
    if type_.startswith("map<"):
        cardinality, type_ = "map", type_.removeprefix("map<string,").rstrip(">")
    elif "in" in words:
        cardinality = "oneof"
    elif "*" in spelled:
        cardinality = "repeated"
    elif "?" in spelled:
        cardinality = "optional"
    json = words.get("as") or camel(name)
    return Field(int(number), name, json, type_, cardinality, words.get("in", ""), "!" in spelled, "+" in spelled)


def camel(name: str) -> str:
    """The JSON name that protobuf gives to a field name (``task_id`` -> ``taskId``)."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


_TEXT: dict[Schema, str] = {}

_TEXT["1.0"] = """
enum TaskState: 0 TASK_STATE_UNSPECIFIED, 1 TASK_STATE_SUBMITTED, 2 TASK_STATE_WORKING, 3 TASK_STATE_COMPLETED,
    4 TASK_STATE_FAILED, 5 TASK_STATE_CANCELED, 6 TASK_STATE_INPUT_REQUIRED, 7 TASK_STATE_REJECTED,
    8 TASK_STATE_AUTH_REQUIRED
enum Role: 0 ROLE_UNSPECIFIED, 1 ROLE_USER, 2 ROLE_AGENT
SendMessageConfiguration: 1 accepted_output_modes string*,
    2 task_push_notification_config TaskPushNotificationConfig, 3 history_length int32?, 4 return_immediately bool
Task: 1 id string!, 2 context_id string, 3 status TaskStatus!, 4 artifacts Artifact*, 5 history Message*,
    6 metadata Struct
TaskStatus: 1 state TaskState!, 2 message Message, 3 timestamp Timestamp
Part: 1 text string in content, 2 raw bytes in content, 3 url string in content, 4 data Value in content,
    5 metadata Struct, 6 filename string, 7 media_type string
Message: 1 message_id string!, 2 context_id string, 3 task_id string, 4 role Role!, 5 parts Part*!,
    6 metadata Struct, 7 extensions string*, 8 reference_task_ids string*
Artifact: 1 artifact_id string!, 2 name string, 3 description string, 4 parts Part*!, 5 metadata Struct,
    6 extensions string*
TaskStatusUpdateEvent: 1 task_id string!, 2 context_id string!, 3 status TaskStatus!, 4 metadata Struct
TaskArtifactUpdateEvent: 1 task_id string!, 2 context_id string!, 3 artifact Artifact!, 4 append bool,
    5 last_chunk bool, 6 metadata Struct
AuthenticationInfo: 1 scheme string!, 2 credentials string
AgentInterface: 1 url string!, 2 protocol_binding string!, 3 tenant string, 4 protocol_version string!
AgentCard: 1 name string!, 2 description string!, 3 supported_interfaces AgentInterface*!, 4 provider AgentProvider,
    5 version string!, 6 documentation_url string?, 7 capabilities AgentCapabilities!,
    8 security_schemes map<string,SecurityScheme>, 9 security_requirements SecurityRequirement*,
    10 default_input_modes string*!, 11 default_output_modes string*!, 12 skills AgentSkill*!,
    13 signatures AgentCardSignature*, 14 icon_url string?
AgentProvider: 1 url string!, 2 organization string!
AgentCapabilities: 1 streaming bool?, 2 push_notifications bool?, 3 extensions AgentExtension*,
    4 extended_agent_card bool?
AgentExtension: 1 uri string, 2 description string, 3 required bool, 4 params Struct
AgentSkill: 1 id string!, 2 name string!, 3 description string!, 4 tags string*!, 5 examples string*,
    6 input_modes string*, 7 output_modes string*, 8 security_requirements SecurityRequirement*
AgentCardSignature: 1 protected string!, 2 signature string!, 3 header Struct
TaskPushNotificationConfig: 1 tenant string, 2 id string, 3 task_id string, 4 url string!, 5 token string,
    6 authentication AuthenticationInfo
StringList: 1 list string*
SecurityRequirement: 1 schemes map<string,StringList>
SecurityScheme: 1 api_key_security_scheme APIKeySecurityScheme in scheme,
    2 http_auth_security_scheme HTTPAuthSecurityScheme in scheme,
    3 oauth2_security_scheme OAuth2SecurityScheme in scheme,
    4 open_id_connect_security_scheme OpenIdConnectSecurityScheme in scheme,
    5 mtls_security_scheme MutualTlsSecurityScheme in scheme
APIKeySecurityScheme: 1 description string, 2 location string!, 3 name string!
HTTPAuthSecurityScheme: 1 description string, 2 scheme string!, 3 bearer_format string
OAuth2SecurityScheme: 1 description string, 2 flows OAuthFlows!, 3 oauth2_metadata_url string
OpenIdConnectSecurityScheme: 1 description string, 2 open_id_connect_url string!
MutualTlsSecurityScheme: 1 description string
OAuthFlows: 1 authorization_code AuthorizationCodeOAuthFlow in flow,
    2 client_credentials ClientCredentialsOAuthFlow in flow, 3 implicit ImplicitOAuthFlow in flow,
    4 password PasswordOAuthFlow in flow, 5 device_code DeviceCodeOAuthFlow in flow
AuthorizationCodeOAuthFlow: 1 authorization_url string!, 2 token_url string!, 3 refresh_url string,
    4 scopes map<string,string>!, 5 pkce_required bool
ClientCredentialsOAuthFlow: 1 token_url string!, 2 refresh_url string, 3 scopes map<string,string>!
ImplicitOAuthFlow: 1 authorization_url string, 2 refresh_url string, 3 scopes map<string,string>
PasswordOAuthFlow: 1 token_url string, 2 refresh_url string, 3 scopes map<string,string>
DeviceCodeOAuthFlow: 1 device_authorization_url string!, 2 token_url string!, 3 refresh_url string,
    4 scopes map<string,string>!
SendMessageRequest: 1 tenant string, 2 message Message!, 3 configuration SendMessageConfiguration, 4 metadata Struct
GetTaskRequest: 1 tenant string, 2 id string!, 3 history_length int32?
ListTasksRequest: 1 tenant string, 2 context_id string, 3 status TaskState, 4 page_size int32?, 5 page_token string,
    6 history_length int32?, 7 status_timestamp_after Timestamp, 8 include_artifacts bool?
ListTasksResponse: 1 tasks Task*!, 2 next_page_token string!, 3 page_size int32!, 4 total_size int32!
CancelTaskRequest: 1 tenant string, 2 id string!, 3 metadata Struct
GetTaskPushNotificationConfigRequest: 1 tenant string, 2 task_id string!, 3 id string!
DeleteTaskPushNotificationConfigRequest: 1 tenant string, 2 task_id string!, 3 id string!
SubscribeToTaskRequest: 1 tenant string, 2 id string!
ListTaskPushNotificationConfigsRequest: 4 tenant string, 1 task_id string!, 2 page_size int32, 3 page_token string
GetExtendedAgentCardRequest: 1 tenant string
SendMessageResponse: 1 task Task in payload, 2 message Message in payload
StreamResponse: 1 task Task in payload, 2 message Message in payload,
    3 status_update TaskStatusUpdateEvent in payload, 4 artifact_update TaskArtifactUpdateEvent in payload
ListTaskPushNotificationConfigsResponse: 1 configs TaskPushNotificationConfig*, 2 next_page_token string
"""

_TEXT["0.3"] = """
enum TaskState: 0 TASK_STATE_UNSPECIFIED, 1 TASK_STATE_SUBMITTED, 2 TASK_STATE_WORKING, 3 TASK_STATE_COMPLETED,
    4 TASK_STATE_FAILED, 5 TASK_STATE_CANCELLED, 6 TASK_STATE_INPUT_REQUIRED, 7 TASK_STATE_REJECTED,
    8 TASK_STATE_AUTH_REQUIRED
enum Role: 0 ROLE_UNSPECIFIED, 1 ROLE_USER, 2 ROLE_AGENT
SendMessageConfiguration: 1 accepted_output_modes string*, 2 push_notification PushNotificationConfig,
    3 history_length int32, 4 blocking bool
Task: 1 id string, 2 context_id string, 3 status TaskStatus, 4 artifacts Artifact*, 5 history Message*,
    6 metadata Struct
TaskStatus: 1 state TaskState, 2 update Message as message, 3 timestamp Timestamp
Part: 1 text string in part, 2 file FilePart in part, 3 data DataPart in part, 4 metadata Struct+
FilePart: 1 file_with_uri string in file, 2 file_with_bytes bytes in file, 3 mime_type string, 4 name string+
DataPart: 1 data Struct
Message: 1 message_id string, 2 context_id string, 3 task_id string, 4 role Role, 5 content Part*,
    6 metadata Struct, 7 extensions string*
Artifact: 1 artifact_id string, 3 name string, 4 description string, 5 parts Part*, 6 metadata Struct,
    7 extensions string*
TaskStatusUpdateEvent: 1 task_id string, 2 context_id string, 3 status TaskStatus, 4 final bool, 5 metadata Struct
TaskArtifactUpdateEvent: 1 task_id string, 2 context_id string, 3 artifact Artifact, 4 append bool,
    5 last_chunk bool, 6 metadata Struct
PushNotificationConfig: 1 id string, 2 url string, 3 token string, 4 authentication AuthenticationInfo
AuthenticationInfo: 1 schemes string*, 2 credentials string
AgentInterface: 1 url string, 2 transport string
AgentCard: 16 protocol_version string, 1 name string, 2 description string, 3 url string,
    14 preferred_transport string, 15 additional_interfaces AgentInterface*, 4 provider AgentProvider,
    5 version string, 6 documentation_url string, 7 capabilities AgentCapabilities,
    8 security_schemes map<string,SecurityScheme>, 9 security Security*, 10 default_input_modes string*,
    11 default_output_modes string*, 12 skills AgentSkill*, 13 supports_authenticated_extended_card bool,
    17 signatures AgentCardSignature*, 18 icon_url string+
AgentProvider: 1 url string, 2 organization string
AgentCapabilities: 1 streaming bool, 2 push_notifications bool, 3 extensions AgentExtension*
AgentExtension: 1 uri string, 2 description string, 3 required bool, 4 params Struct
AgentSkill: 1 id string, 2 name string, 3 description string, 4 tags string*, 5 examples string*,
    6 input_modes string*, 7 output_modes string*, 8 security Security*
AgentCardSignature: 1 protected string!, 2 signature string!, 3 header Struct
TaskPushNotificationConfig: 1 name string, 2 push_notification_config PushNotificationConfig
StringList: 1 list string*
Security: 1 schemes map<string,StringList>
SecurityScheme: 1 api_key_security_scheme APIKeySecurityScheme in scheme,
    2 http_auth_security_scheme HTTPAuthSecurityScheme in scheme,
    3 oauth2_security_scheme OAuth2SecurityScheme in scheme,
    4 open_id_connect_security_scheme OpenIdConnectSecurityScheme in scheme,
    5 mtls_security_scheme MutualTlsSecurityScheme in scheme
APIKeySecurityScheme: 1 description string, 2 location string, 3 name string
HTTPAuthSecurityScheme: 1 description string, 2 scheme string, 3 bearer_format string
OAuth2SecurityScheme: 1 description string, 2 flows OAuthFlows, 3 oauth2_metadata_url string
OpenIdConnectSecurityScheme: 1 description string, 2 open_id_connect_url string
MutualTlsSecurityScheme: 1 description string
OAuthFlows: 1 authorization_code AuthorizationCodeOAuthFlow in flow,
    2 client_credentials ClientCredentialsOAuthFlow in flow, 3 implicit ImplicitOAuthFlow in flow,
    4 password PasswordOAuthFlow in flow
AuthorizationCodeOAuthFlow: 1 authorization_url string, 2 token_url string, 3 refresh_url string,
    4 scopes map<string,string>
ClientCredentialsOAuthFlow: 1 token_url string, 2 refresh_url string, 3 scopes map<string,string>
ImplicitOAuthFlow: 1 authorization_url string, 2 refresh_url string, 3 scopes map<string,string>
PasswordOAuthFlow: 1 token_url string, 2 refresh_url string, 3 scopes map<string,string>
SendMessageRequest: 1 request Message! as message, 2 configuration SendMessageConfiguration, 3 metadata Struct
GetTaskRequest: 1 name string!, 2 history_length int32
CancelTaskRequest: 1 name string
GetTaskPushNotificationConfigRequest: 1 name string
DeleteTaskPushNotificationConfigRequest: 1 name string
CreateTaskPushNotificationConfigRequest: 1 parent string!, 2 config_id string!, 3 config TaskPushNotificationConfig!
TaskSubscriptionRequest: 1 name string
ListTaskPushNotificationConfigRequest: 1 parent string, 2 page_size int32, 3 page_token string
SendMessageResponse: 1 task Task in payload, 2 msg Message in payload as message
StreamResponse: 1 task Task in payload, 2 msg Message in payload as message,
    3 status_update TaskStatusUpdateEvent in payload, 4 artifact_update TaskArtifactUpdateEvent in payload
ListTaskPushNotificationConfigResponse: 1 configs TaskPushNotificationConfig*, 2 next_page_token string
GetAgentCardRequest:
"""

_TEXT["google.rpc"] = """
Status: 1 code int32, 2 message string, 3 details Any*
Any: 1 type_url string, 2 value bytes
ErrorInfo: 1 reason string, 2 domain string, 3 metadata map<string,string>
BadRequest: 1 field_violations FieldViolation*
FieldViolation: 1 field string, 2 description string, 3 reason string, 4 localized_message LocalizedMessage
LocalizedMessage: 1 locale string, 2 message string
"""

_TEXT["grpc.health.v1"] = """
enum ServingStatus: 0 UNKNOWN, 1 SERVING, 2 NOT_SERVING, 3 SERVICE_UNKNOWN
HealthCheckRequest: 1 service string
HealthCheckResponse: 1 status ServingStatus
HealthListRequest:
HealthListResponse: 1 statuses map<string,HealthCheckResponse>
"""

_TEXT["grpc.reflection"] = """
ServerReflectionRequest: 1 host string, 3 file_by_filename string in message_request,
    4 file_containing_symbol string in message_request,
    5 file_containing_extension ExtensionRequest in message_request,
    6 all_extension_numbers_of_type string in message_request, 7 list_services string in message_request
ExtensionRequest: 1 containing_type string, 2 extension_number int32
ServerReflectionResponse: 1 valid_host string, 2 original_request ServerReflectionRequest,
    4 file_descriptor_response FileDescriptorResponse in message_response,
    5 all_extension_numbers_response ExtensionNumberResponse in message_response,
    6 list_services_response ListServiceResponse in message_response,
    7 error_response ErrorResponse in message_response
FileDescriptorResponse: 1 file_descriptor_proto bytes*
ExtensionNumberResponse: 1 base_type_name string, 2 extension_number int32*
ListServiceResponse: 1 service ServiceResponse*
ServiceResponse: 1 name string
ErrorResponse: 1 error_code int32, 2 error_message string
"""

_TEXT["google.protobuf.struct"] = """
enum NullValue: 0 NULL_VALUE
Struct: 1 fields map<string,Value>
Value: 1 null_value NullValue in kind, 2 number_value double in kind, 3 string_value string in kind,
    4 bool_value bool in kind, 5 struct_value Struct in kind, 6 list_value ListValue in kind
ListValue: 1 values Value*
"""

_TEXT["google.protobuf.timestamp"] = """
Timestamp: 1 seconds int64, 2 nanos int32
"""

_TEXT["google.protobuf.empty"] = """
Empty:
"""

# The part of descriptor.proto that files of messages and services need. Enums are their numbers.
_TEXT["google.protobuf.descriptor"] = """
FileDescriptorProto: 1 name string, 2 package string, 3 dependency string*, 4 message_type DescriptorProto*,
    5 enum_type EnumDescriptorProto*, 6 service ServiceDescriptorProto*, 12 syntax string
DescriptorProto: 1 name string, 2 field FieldDescriptorProto*, 3 nested_type DescriptorProto*,
    4 enum_type EnumDescriptorProto*, 7 options MessageOptions, 8 oneof_decl OneofDescriptorProto*
MessageOptions: 7 map_entry bool
FieldDescriptorProto: 1 name string, 3 number int32, 4 label int32, 5 type int32, 6 type_name string,
    9 oneof_index int32?, 10 json_name string, 17 proto3_optional bool
OneofDescriptorProto: 1 name string
EnumDescriptorProto: 1 name string, 2 value EnumValueDescriptorProto*
EnumValueDescriptorProto: 1 name string, 2 number int32?
ServiceDescriptorProto: 1 name string, 2 method MethodDescriptorProto*
MethodDescriptorProto: 1 name string, 2 input_type string, 3 output_type string, 5 client_streaming bool,
    6 server_streaming bool
"""
