"""The protobuf files of our gRPC services: what stands in which, as one table.

Rules of this module:

- A file is a row: its package, the table of its messages, its services and the files that it needs.
- A method takes the message called ``<Method>Request`` and gives ``<Method>Response`` where the table has such ones;
  the others are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from .fields import Schema, table
from .operations import GRPC_SERVICE, VERSIONS, WIRE, Version

HEALTH_SERVICE = "grpc.health.v1.Health"
#: The two versions of the reflection service: one protocol under two names.
REFLECTION_SERVICES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")


class Method(NamedTuple):
    """One method of a service. ``request`` and ``reply``: names of messages, with a package if it is another's."""

    name: str
    request: str
    reply: str
    client_streaming: bool = False
    server_streaming: bool = False


class ProtoFile(NamedTuple):
    """One file. ``services``: methods by the service's bare name. ``nested``: enum -> message that it stands in."""

    package: str
    schema: Schema
    services: Mapping[str, tuple[Method, ...]] = MappingProxyType({})
    needs: tuple[str, ...] = ()
    nested: Mapping[str, str] = MappingProxyType({})


_EMPTY = "google.protobuf.Empty"
#: Replies that are not called after their method, by operation; all other streams give a StreamResponse.
_REPLIES = {
    "GetTask": "Task",
    "CancelTask": "Task",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "GetTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "DeleteTaskPushNotificationConfig": _EMPTY,
    "GetExtendedAgentCard": "AgentCard",
}
#: Requests that are not called after their method: one for two ways to send, and 1.0 takes a webhook's config bare.
_REQUESTS = {
    "SendStreamingMessage": "SendMessageRequest",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
}


def _a2a_methods(version: Version) -> Iterator[Method]:
    known = table(version).messages
    for op, names in WIRE[version].items():
        request, reply = f"{names.grpc}Request", f"{names.grpc}Response"
        yield Method(
            names.grpc,
            request if request in known else _REQUESTS[op],
            reply if reply in known else _REPLIES.get(op, "StreamResponse"),
            server_streaming=names.streaming,
        )


def _a2a_file(version: Version) -> ProtoFile:
    package, _, service = GRPC_SERVICE[version].rpartition(".")
    return ProtoFile(package, version, {service: tuple(_a2a_methods(version))}, tuple(_GOOGLE))


def _reflection_file(service: str) -> ProtoFile:
    package, _, name = service.rpartition(".")
    info = Method("ServerReflectionInfo", "ServerReflectionRequest", "ServerReflectionResponse", True, True)
    return ProtoFile(package, "grpc.reflection", {name: (info,)})


def _file_name(service: str, stem: str) -> str:
    return service.rpartition(".")[0].replace(".", "/") + f"/{stem}.proto"


_GOOGLE: dict[str, ProtoFile] = {
    "google/protobuf/struct.proto": ProtoFile("google.protobuf", "google.protobuf.struct"),
    "google/protobuf/timestamp.proto": ProtoFile("google.protobuf", "google.protobuf.timestamp"),
    "google/protobuf/empty.proto": ProtoFile("google.protobuf", "google.protobuf.empty"),
}
_HEALTH = ProtoFile(
    "grpc.health.v1",
    "grpc.health.v1",
    {
        "Health": (
            Method("Check", "HealthCheckRequest", "HealthCheckResponse"),
            Method("List", "HealthListRequest", "HealthListResponse"),
            Method("Watch", "HealthCheckRequest", "HealthCheckResponse", server_streaming=True),
        )
    },
    nested={"ServingStatus": "HealthCheckResponse"},
)


@cache
def files() -> Mapping[str, ProtoFile]:
    """Every file by its name."""
    return {
        **_GOOGLE,
        _file_name(HEALTH_SERVICE, "health"): _HEALTH,
        **{_file_name(GRPC_SERVICE[version], "a2a"): _a2a_file(version) for version in VERSIONS},
        **{_file_name(service, "reflection"): _reflection_file(service) for service in REFLECTION_SERVICES},
    }


def needed(name: str) -> tuple[str, ...]:
    """Names of the file and of those that it needs, itself first. Raises ``KeyError``."""
    return (name, *files()[name].needs)
