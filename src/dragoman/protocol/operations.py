"""Every name that a version puts on a wire, as one table.

Rules of this module:

- ``WIRE[version][operation]`` is everything a codec has to know about an operation; no row = the version lacks it.
- Operations are called by their 1.0 names, whatever the version calls them.
- Path variables end up in the message: in 1.0 ``{id}`` is the field ``id`` itself, in 0.3 the field ``name`` holds
  ``tasks/{id}``.
- Server half and client half of the codecs read the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Version = Literal["0.3", "1.0"]
Kind = Literal["str", "int", "bool"]
Binding = Literal["JSONRPC", "GRPC", "HTTP+JSON"]

VERSIONS: tuple[Version, ...] = ("1.0", "0.3")
BINDINGS: tuple[Binding, ...] = ("JSONRPC", "GRPC", "HTTP+JSON")

#: Full names of the gRPC services (1.0 §10.1, 0.3 §3.2.2).
GRPC_SERVICE: dict[Version, str] = {"1.0": "lf.a2a.v1.A2AService", "0.3": "a2a.v1.A2AService"}
#: Name of the header that carries extension URIs; both are read on both versions.
EXTENSIONS_HEADER: dict[Version, str] = {"1.0": "a2a-extensions", "0.3": "x-a2a-extensions"}
VERSION_HEADER = "a2a-version"


class Param(NamedTuple):
    """A message key made of path variables: ``shape`` is its text, variables in braces, one segment each."""

    key: str
    shape: str


class Names(NamedTuple):
    """One operation on the wires of one version.

    ``verbs``: HTTP verbs that a server takes; a client sends the first and falls back to the next.
    ``paths``: route templates that a server takes; a client uses the first. ``params``: the message keys that the
    path variables make. ``query``: message key -> kind of its text. ``body``: the message
    travels as HTTP body. ``rpc_aliases``: other JSON-RPC names that are read.
    """

    rpc: str
    grpc: str
    verbs: tuple[str, ...]
    paths: tuple[str, ...]
    streaming: bool = False
    body: bool = False
    params: tuple[Param, ...] = ()
    query: Mapping[str, Kind] = MappingProxyType({})
    rpc_aliases: tuple[str, ...] = ()


_ID = (Param("id", "{id}"),)
_TASK_ID = (Param("taskId", "{taskId}"),)
_TASK_AND_CONFIG = (Param("taskId", "{taskId}"), Param("id", "{id}"))
_NAME = (Param("name", "tasks/{id}"),)
_PARENT = (Param("parent", "tasks/{id}"),)
_CONFIG_NAME = (Param("name", "tasks/{id}/pushNotificationConfigs/{configId}"),)

_CONFIGS_03 = ("/v1/tasks/{id}/pushNotificationConfigs", "/v1/task/{id}/pushNotificationConfigs")
_CONFIG_03 = tuple(path + "/{configId}" for path in _CONFIGS_03)

WIRE: dict[Version, dict[str, Names]] = {
    "1.0": {
        "SendMessage": Names("SendMessage", "SendMessage", ("POST",), ("/message:send",), body=True),
        "SendStreamingMessage": Names(
            "SendStreamingMessage",
            "SendStreamingMessage",
            ("POST",),
            ("/message:stream",),
            streaming=True,
            body=True,
        ),
        "GetTask": Names(
            "GetTask",
            "GetTask",
            ("GET",),
            ("/tasks/{id}",),
            params=_ID,
            query={"historyLength": "int", "tenant": "str"},
        ),
        "ListTasks": Names(
            "ListTasks",
            "ListTasks",
            ("GET",),
            ("/tasks",),
            query={
                "tenant": "str",
                "contextId": "str",
                "status": "str",
                "pageSize": "int",
                "pageToken": "str",
                "historyLength": "int",
                "statusTimestampAfter": "str",
                "includeArtifacts": "bool",
            },
        ),
        "CancelTask": Names("CancelTask", "CancelTask", ("POST",), ("/tasks/{id}:cancel",), body=True, params=_ID),
        "SubscribeToTask": Names(
            "SubscribeToTask",
            "SubscribeToTask",
            ("GET", "POST"),
            ("/tasks/{id}:subscribe",),
            streaming=True,
            params=_ID,
            query={"tenant": "str"},
        ),
        "CreateTaskPushNotificationConfig": Names(
            "CreateTaskPushNotificationConfig",
            "CreateTaskPushNotificationConfig",
            ("POST",),
            ("/tasks/{taskId}/pushNotificationConfigs",),
            body=True,
            params=_TASK_ID,
        ),
        "GetTaskPushNotificationConfig": Names(
            "GetTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            ("GET",),
            ("/tasks/{taskId}/pushNotificationConfigs/{id}",),
            params=_TASK_AND_CONFIG,
            query={"tenant": "str"},
        ),
        "ListTaskPushNotificationConfigs": Names(
            "ListTaskPushNotificationConfigs",
            "ListTaskPushNotificationConfigs",
            ("GET",),
            ("/tasks/{taskId}/pushNotificationConfigs",),
            params=_TASK_ID,
            query={"pageSize": "int", "pageToken": "str", "tenant": "str"},
        ),
        "DeleteTaskPushNotificationConfig": Names(
            "DeleteTaskPushNotificationConfig",
            "DeleteTaskPushNotificationConfig",
            ("DELETE",),
            ("/tasks/{taskId}/pushNotificationConfigs/{id}",),
            params=_TASK_AND_CONFIG,
            query={"tenant": "str"},
        ),
        "GetExtendedAgentCard": Names(
            "GetExtendedAgentCard",
            "GetExtendedAgentCard",
            ("GET",),
            ("/extendedAgentCard",),
            query={"tenant": "str"},
        ),
    },
    "0.3": {
        "SendMessage": Names("message/send", "SendMessage", ("POST",), ("/v1/message:send",), body=True),
        "SendStreamingMessage": Names(
            "message/stream",
            "SendStreamingMessage",
            ("POST",),
            ("/v1/message:stream",),
            streaming=True,
            body=True,
        ),
        "GetTask": Names(
            "tasks/get",
            "GetTask",
            ("GET",),
            ("/v1/tasks/{id}",),
            params=_NAME,
            query={"historyLength": "int"},
        ),
        "CancelTask": Names(
            "tasks/cancel", "CancelTask", ("POST",), ("/v1/tasks/{id}:cancel",), body=True, params=_NAME
        ),
        "SubscribeToTask": Names(
            "tasks/resubscribe",
            "TaskSubscription",
            ("GET", "POST"),
            ("/v1/tasks/{id}:subscribe",),
            streaming=True,
            params=_NAME,
        ),
        "CreateTaskPushNotificationConfig": Names(
            "tasks/pushNotificationConfig/set",
            "CreateTaskPushNotificationConfig",
            ("POST",),
            _CONFIGS_03,
            body=True,
            params=_PARENT,
        ),
        "GetTaskPushNotificationConfig": Names(
            "tasks/pushNotificationConfig/get",
            "GetTaskPushNotificationConfig",
            ("GET",),
            _CONFIG_03,
            params=_CONFIG_NAME,
        ),
        "ListTaskPushNotificationConfigs": Names(
            "tasks/pushNotificationConfig/list",
            "ListTaskPushNotificationConfig",
            ("GET",),
            _CONFIGS_03,
            params=_PARENT,
            query={"pageSize": "int", "pageToken": "str"},
        ),
        "DeleteTaskPushNotificationConfig": Names(
            "tasks/pushNotificationConfig/delete",
            "DeleteTaskPushNotificationConfig",
            ("DELETE",),
            _CONFIG_03,
            params=_CONFIG_NAME,
        ),
        "GetExtendedAgentCard": Names(
            "agent/getAuthenticatedExtendedCard",
            "GetAgentCard",
            ("GET",),
            ("/v1/card",),
            rpc_aliases=("agent/authenticatedExtendedCard",),
        ),
    },
}
