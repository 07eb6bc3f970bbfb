"""The canonical model: A2A 1.0 messages as frozen structs, and the eleven operations over them.

Rules of this module:

- One class per protobuf message of ``lf.a2a.v1``; Python names are the proto names, JSON names their camelCase.
- A field that the specification marks REQUIRED has no default, so reading without it fails and writing always
  has it. Every other field has its default and is left out of JSON while it holds it.
- Values are immutable and hold no cycles, so the garbage collector does not track them.
- Importing this module costs msgspec and nothing else. 0.3 has no classes: the dialects reshape into these.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

JsonObject: TypeAlias = dict[str, Any]
Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class Model(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """Base of every message. Copy with a change by ``msgspec.structs.replace``."""


class TaskState(enum.Enum):
    """Where a task stands (1.0 §4.1). UNSPECIFIED is held when a peer sent something unknown."""

    UNSPECIFIED = "TASK_STATE_UNSPECIFIED"
    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    REJECTED = "TASK_STATE_REJECTED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"

    __hash__ = object.__hash__  # members are equal only to themselves; enum's own hash is slow


#: A task in one of these never changes again (1.0 §3.1.1).
TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
#: A task in one of these waits for somebody else; a blocking send returns here (1.0 §3.2.2).
INTERRUPTED = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


class Role(enum.Enum):
    """Who sent a message (1.0 §4.1). UNSPECIFIED is invalid in a request."""

    UNSPECIFIED = "ROLE_UNSPECIFIED"
    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"

    __hash__ = object.__hash__  # as above


class Part(Model, frozen=True, kw_only=True):
    """One piece of content: exactly one of ``text``, ``raw``, ``url``, ``data`` is set (1.0 §4.1).

    ``data=None`` is a set JSON null; an unset member is ``UNSET``. ``media_type`` unset means text/plain for text
    and application/json for data.
    """

    text: str | UnsetType = UNSET
    raw: bytes | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: JsonObject | None = None
    filename: str = ""
    media_type: str = ""


class Message(Model, frozen=True, kw_only=True):
    """One turn of a conversation (1.0 §4.1). At least one part; ``task_id`` names an existing task."""

    message_id: str
    context_id: str = ""
    task_id: str = ""
    role: Role
    parts: tuple[Part, ...]
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class Artifact(Model, frozen=True, kw_only=True):
    """An output of a task (1.0 §4.1). ``artifact_id`` is unique within its task; chunks are joined on it."""

    artifact_id: str
    name: str = ""
    description: str = ""
    parts: tuple[Part, ...]
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()


class TaskStatus(Model, frozen=True, kw_only=True):
    """State of a task at one instant, with an optional agent message (1.0 §4.1).

    ``timestamp``: RFC 3339 UTC text with three fraction digits and ``Z``; see :func:`canonical_time`.
    """

    state: TaskState
    message: Message | None = None
    timestamp: str | None = None


class Task(Model, frozen=True, kw_only=True):
    """A unit of work and everything it produced so far (1.0 §4.1).

    ``id`` and ``context_id`` are made by the server; ``history`` is oldest first.
    """

    id: str
    context_id: str = ""
    status: TaskStatus
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: JsonObject | None = None


class TaskStatusUpdateEvent(Model, frozen=True, kw_only=True):
    """Stream event: the task has a new status (1.0 §4.2)."""

    task_id: str
    context_id: str
    status: TaskStatus
    metadata: JsonObject | None = None


class TaskArtifactUpdateEvent(Model, frozen=True, kw_only=True):
    """Stream event: a whole artifact or a chunk of it (1.0 §4.2).

    ``append``: add the parts to the artifact already sent under this id, else create or replace it.
    ``last_chunk``: nothing more follows for this artifact.
    """

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | None = None


class AuthenticationInfo(Model, frozen=True, kw_only=True):
    """How to authenticate to a webhook (1.0 §4.3). ``credentials`` is a secret."""

    scheme: str
    credentials: str = ""


class TaskPushNotificationConfig(Model, frozen=True, kw_only=True):
    """A webhook registered for a task (1.0 §4.3). ``token`` is a secret; ``id`` is given by the server if absent."""

    tenant: str = ""
    id: str = ""
    task_id: str = ""
    url: str
    token: str = ""
    authentication: AuthenticationInfo | None = None


class SendMessageConfiguration(Model, frozen=True, kw_only=True):
    """How the caller wants a send answered (1.0 §3.2.2).

    ``history_length``: unset = no limit, 0 = no history. ``return_immediately``: False waits for a terminal or
    interrupted state. ``task_push_notification_config``: inline webhook; its ``task_id`` stays empty.
    """

    accepted_output_modes: tuple[str, ...] = ()
    task_push_notification_config: TaskPushNotificationConfig | None = None
    history_length: Int32 | None = None
    return_immediately: bool = False


class SendMessageRequest(Model, frozen=True, kw_only=True):
    """Request of SendMessage and SendStreamingMessage (1.0 §3.1.1)."""

    tenant: str = ""
    message: Message
    configuration: SendMessageConfiguration | None = None
    metadata: JsonObject | None = None


class SendMessageResponse(Model, frozen=True, kw_only=True):
    """Reply of SendMessage: exactly one of a task or a direct message (1.0 §3.1.1)."""

    task: Task | None = None
    message: Message | None = None


class StreamResponse(Model, frozen=True, kw_only=True):
    """One event of a stream: exactly one member is set (1.0 §4.2)."""

    task: Task | None = None
    message: Message | None = None
    status_update: TaskStatusUpdateEvent | None = None
    artifact_update: TaskArtifactUpdateEvent | None = None


class GetTaskRequest(Model, frozen=True, kw_only=True):
    """Request of GetTask (1.0 §3.1.3). ``history_length``: unset = no limit, 0 = none."""

    tenant: str = ""
    id: str
    history_length: Int32 | None = None


class ListTasksRequest(Model, frozen=True, kw_only=True):
    """Request of ListTasks (1.0 §3.1.4). ``page_size``: 1 to 100, default 50; the time filter is inclusive."""

    tenant: str = ""
    context_id: str = ""
    status: TaskState = TaskState.UNSPECIFIED
    page_size: Int32 | None = None
    page_token: str = ""
    history_length: Int32 | None = None
    status_timestamp_after: str | None = None
    include_artifacts: bool | None = None


class ListTasksResponse(Model, frozen=True, kw_only=True):
    """One page of tasks; ``next_page_token`` is empty on the last one (1.0 §3.1.4)."""

    tasks: tuple[Task, ...]
    next_page_token: str
    page_size: Int32
    total_size: Int32


class CancelTaskRequest(Model, frozen=True, kw_only=True):
    """Request of CancelTask (1.0 §3.1.5)."""

    tenant: str = ""
    id: str
    metadata: JsonObject | None = None


class SubscribeToTaskRequest(Model, frozen=True, kw_only=True):
    """Request of SubscribeToTask (1.0 §3.1.6)."""

    tenant: str = ""
    id: str


class GetTaskPushNotificationConfigRequest(Model, frozen=True, kw_only=True):
    """Request of GetTaskPushNotificationConfig (1.0 §3.1.8).

    ``id`` is the id of the config. A 0.3 caller may leave it out: it is then empty and means the first one.
    """

    tenant: str = ""
    task_id: str
    id: str


class DeleteTaskPushNotificationConfigRequest(Model, frozen=True, kw_only=True):
    """Request of DeleteTaskPushNotificationConfig (1.0 §3.1.10)."""

    tenant: str = ""
    task_id: str
    id: str


class ListTaskPushNotificationConfigsRequest(Model, frozen=True, kw_only=True):
    """Request of ListTaskPushNotificationConfigs (1.0 §3.1.9)."""

    tenant: str = ""
    task_id: str
    page_size: Int32 = 0
    page_token: str = ""


class ListTaskPushNotificationConfigsResponse(Model, frozen=True, kw_only=True):
    """One page of webhook configs (1.0 §3.1.9)."""

    configs: tuple[TaskPushNotificationConfig, ...] = ()
    next_page_token: str = ""


class GetExtendedAgentCardRequest(Model, frozen=True, kw_only=True):
    """Request of GetExtendedAgentCard (1.0 §3.1.11)."""

    tenant: str = ""


class AgentInterface(Model, frozen=True, kw_only=True):
    """One way to reach an agent: url, binding and version (1.0 §4.4).

    ``tenant``, when set, is copied into every request made on this interface.
    """

    url: str
    protocol_binding: str
    tenant: str = ""
    protocol_version: str


class AgentProvider(Model, frozen=True, kw_only=True):
    """Who runs the agent (1.0 §4.4)."""

    url: str
    organization: str


class AgentExtension(Model, frozen=True, kw_only=True):
    """An extension that the agent knows; ``required`` ones must be activated by the caller (1.0 §4.4)."""

    uri: str = ""
    description: str = ""
    required: bool = False
    params: JsonObject | None = None


class AgentCapabilities(Model, frozen=True, kw_only=True):
    """Optional features of an agent; unset or False refuses the calls that need them (1.0 §4.4)."""

    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: tuple[AgentExtension, ...] = ()
    extended_agent_card: bool | None = None


class StringList(Model, frozen=True, kw_only=True):
    """A list of scopes."""

    list: tuple[str, ...] = ()


class SecurityRequirement(Model, frozen=True, kw_only=True):
    """Schemes that must hold together; a list of these is a choice (1.0 §4.5)."""

    schemes: dict[str, StringList] = {}


class AuthorizationCodeOAuthFlow(Model, frozen=True, kw_only=True):
    """Authorization code flow (RFC 6749 §4.1)."""

    authorization_url: str
    token_url: str
    refresh_url: str = ""
    scopes: dict[str, str]
    pkce_required: bool = False


class ClientCredentialsOAuthFlow(Model, frozen=True, kw_only=True):
    """Client credentials flow (RFC 6749 §4.4)."""

    token_url: str
    refresh_url: str = ""
    scopes: dict[str, str]


class ImplicitOAuthFlow(Model, frozen=True, kw_only=True):
    """Implicit flow, deprecated (RFC 6749 §4.2)."""

    authorization_url: str = ""
    refresh_url: str = ""
    scopes: dict[str, str] = {}


class PasswordOAuthFlow(Model, frozen=True, kw_only=True):
    """Password flow, deprecated (RFC 6749 §4.3)."""

    token_url: str = ""
    refresh_url: str = ""
    scopes: dict[str, str] = {}


class DeviceCodeOAuthFlow(Model, frozen=True, kw_only=True):
    """Device authorization flow (RFC 8628)."""

    device_authorization_url: str
    token_url: str
    refresh_url: str = ""
    scopes: dict[str, str]


class OAuthFlows(Model, frozen=True, kw_only=True):
    """Exactly one OAuth 2.0 flow (1.0 §4.5)."""

    authorization_code: AuthorizationCodeOAuthFlow | None = None
    client_credentials: ClientCredentialsOAuthFlow | None = None
    implicit: ImplicitOAuthFlow | None = None
    password: PasswordOAuthFlow | None = None
    device_code: DeviceCodeOAuthFlow | None = None


class APIKeySecurityScheme(Model, frozen=True, kw_only=True):
    """A key in a header, query parameter or cookie (1.0 §4.5)."""

    description: str = ""
    location: str
    name: str


class HTTPAuthSecurityScheme(Model, frozen=True, kw_only=True):
    """An HTTP authentication scheme such as Bearer or Basic (1.0 §4.5)."""

    description: str = ""
    scheme: str
    bearer_format: str = ""


class OAuth2SecurityScheme(Model, frozen=True, kw_only=True):
    """OAuth 2.0 with exactly one flow (1.0 §4.5)."""

    description: str = ""
    flows: OAuthFlows
    oauth2_metadata_url: str = ""


class OpenIdConnectSecurityScheme(Model, frozen=True, kw_only=True):
    """OpenID Connect discovery (1.0 §4.5)."""

    description: str = ""
    open_id_connect_url: str


class MutualTlsSecurityScheme(Model, frozen=True, kw_only=True):
    """A client certificate (1.0 §4.5)."""

    description: str = ""


class SecurityScheme(Model, frozen=True, kw_only=True):
    """Exactly one kind of authentication (1.0 §4.5)."""

    api_key_security_scheme: APIKeySecurityScheme | None = None
    http_auth_security_scheme: HTTPAuthSecurityScheme | None = None
    oauth2_security_scheme: OAuth2SecurityScheme | None = None
    open_id_connect_security_scheme: OpenIdConnectSecurityScheme | None = None
    mtls_security_scheme: MutualTlsSecurityScheme | None = None


class AgentSkill(Model, frozen=True, kw_only=True):
    """One ability of an agent; modes override those of the card (1.0 §4.4)."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    security_requirements: tuple[SecurityRequirement, ...] = ()


class AgentCardSignature(Model, frozen=True, kw_only=True):
    """A detached JWS over the canonical card (1.0 §8.4, RFC 7515). Both texts are base64url."""

    protected: str
    signature: str
    header: JsonObject | None = None


class AgentCard(Model, frozen=True, kw_only=True):
    """What an agent is, can do and where it is reached (1.0 §4.4). Interfaces stand in order of preference."""

    name: str
    description: str
    supported_interfaces: tuple[AgentInterface, ...]
    provider: AgentProvider | None = None
    version: str
    documentation_url: str | None = None
    capabilities: AgentCapabilities
    security_schemes: dict[str, SecurityScheme] = {}
    security_requirements: tuple[SecurityRequirement, ...] = ()
    default_input_modes: tuple[str, ...]
    default_output_modes: tuple[str, ...]
    skills: tuple[AgentSkill, ...]
    signatures: tuple[AgentCardSignature, ...] = ()
    icon_url: str | None = None


Req = TypeVar("Req")
Res = TypeVar("Res")


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[Req, Res]):
    """One of the eleven operations of 1.0: its name and the types it takes and gives.

    ``response`` of a streaming operation is the type of one event. ``None`` stands for an empty reply.
    """

    name: str
    request: type[Req]
    response: type[Res]

    streaming = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Unary(Operation[Req, Res]):
    """An operation with one reply."""

    __slots__ = ()


class Streaming(Operation[Req, StreamResponse]):
    """An operation answered by a stream of :class:`StreamResponse`."""

    __slots__ = ()

    streaming = True


SEND_MESSAGE = Unary("SendMessage", SendMessageRequest, SendMessageResponse)
SEND_STREAMING_MESSAGE = Streaming("SendStreamingMessage", SendMessageRequest, StreamResponse)
GET_TASK = Unary("GetTask", GetTaskRequest, Task)
LIST_TASKS = Unary("ListTasks", ListTasksRequest, ListTasksResponse)
CANCEL_TASK = Unary("CancelTask", CancelTaskRequest, Task)
SUBSCRIBE_TO_TASK = Streaming("SubscribeToTask", SubscribeToTaskRequest, StreamResponse)
CREATE_PUSH_CONFIG = Unary("CreateTaskPushNotificationConfig", TaskPushNotificationConfig, TaskPushNotificationConfig)
GET_PUSH_CONFIG = Unary(
    "GetTaskPushNotificationConfig", GetTaskPushNotificationConfigRequest, TaskPushNotificationConfig
)
LIST_PUSH_CONFIGS = Unary(
    "ListTaskPushNotificationConfigs",
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
)
DELETE_PUSH_CONFIG = Unary("DeleteTaskPushNotificationConfig", DeleteTaskPushNotificationConfigRequest, type(None))
GET_EXTENDED_AGENT_CARD = Unary("GetExtendedAgentCard", GetExtendedAgentCardRequest, AgentCard)

#: Every operation by its 1.0 name.
OPERATIONS: dict[str, Operation[Any, Any]] = {
    op.name: op
    for op in (
        SEND_MESSAGE,
        SEND_STREAMING_MESSAGE,
        GET_TASK,
        LIST_TASKS,
        CANCEL_TASK,
        SUBSCRIBE_TO_TASK,
        CREATE_PUSH_CONFIG,
        GET_PUSH_CONFIG,
        LIST_PUSH_CONFIGS,
        DELETE_PUSH_CONFIG,
        GET_EXTENDED_AGENT_CARD,
    )
}


def canonical_time(text: str) -> str:
    """RFC 3339 text in any offset, precision or letter case, as UTC with three fraction digits and ``Z``.

    Text without a zone is taken as UTC (0.3 peers write it). Digits below a millisecond are cut off (1.0 §5.6.1).
    Raises ``ValueError`` if it is no date and time.
    """
    if len(text) == 24 and text[23] == "Z" and text[19] == ".":
        datetime.fromisoformat(text)
        return text
    moment = datetime.fromisoformat(text.strip().upper())
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
