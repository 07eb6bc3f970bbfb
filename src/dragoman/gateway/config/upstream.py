"""What an operator writes about one agent behind the gateway."""

from __future__ import annotations

from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from ...dialects.losses import DROPPED
from ...faces import ALL_FACES, Face, read_binding, read_version
from .values import Count, FilePath, NoSeconds, OwnPort, Seconds, Secret, Size

#: What the gateway can make up for: ``streaming`` and ``subscribe`` by asking again and again, ``blocking`` for an
#: agent that always returns at once, ``return-at-once`` for one that never does.
Capability: TypeAlias = Literal["streaming", "subscribe", "blocking", "return-at-once"]


class UpstreamTimeouts(Struct, frozen=True, kw_only=True):
    """Seconds, as in ``dragoman.client.options.Timeouts``."""

    connect: Seconds = 5.0
    reply: Seconds = 60.0
    silence: Seconds = 60.0


class UpstreamTls(Struct, frozen=True, kw_only=True):
    """PEM files: roots to trust besides the usual ones, our own certificate and its key."""

    ca: FilePath | None = None
    cert: FilePath | None = None
    key: FilePath | None = None
    verify: bool = True


class UpstreamLimits(Struct, frozen=True, kw_only=True):
    """What one agent is given at a time. ``calls`` and ``streams`` at once over all replicas; ``queue``: seconds that
    a call waits for its turn before it is refused with *unavailable*. ``streams_per_connection``: calls and streams on
    one gRPC connection; further ones get another. ``reply`` and ``event``: bytes of a whole reply, and of one event of
    a stream, which is what a call and a stream can cost."""

    calls: Count = 256
    streams: Count = 2_000
    queue: NoSeconds = 5.0
    streams_per_connection: Count = 100
    reply: Size = 16 * 1024 * 1024
    event: Size = 16 * 1024 * 1024


class Breaker(Struct, frozen=True, kw_only=True):
    """When a replica is left alone: after ``failures`` in a row, for ``first`` seconds, doubled each time up to
    ``most``; then one call tries it."""

    failures: Count = 5
    first: Seconds = 1.0
    most: Seconds = 60.0


class Polling(Struct, frozen=True, kw_only=True):
    """How an agent is asked for tasks again and again where that makes up for something: seconds between two questions
    about one task, from ``first`` up to ``most``, and questions ``at_once``."""

    first: Seconds = 0.25
    most: Seconds = 5.0
    at_once: Count = 64


class Upstream(Struct, frozen=True, kw_only=True):
    """One agent behind the gateway.

    ``url``: its base, or that of its card. ``name``: default told from the url. ``path``: where its HTTP faces are
    served, default ``/`` if it is the only one, else ``/name``. ``face``: the one to call, such as ``0.3/JSONRPC``,
    else the best of its card. ``versions``, ``bindings``: what is served, default all. ``authority``: host name under
    which its gRPC is served on the shared port. ``port``: a port that serves it alone. ``forward``: further header
    fields of callers that go on. ``headers``, ``bearer``: sent with every call. ``base64_files``: callers keep base64
    text in the bytes of a 0.3 file; ``upstream_base64_files``: the agent does; each is learnt where nothing is said.
    ``lenient``: read replies that break
    the specification but can be understood. ``strict``: a request that names no version is 0.3, whatever its method.
    ``tenant``: what 1.0 calls over gRPC on the shared port name to be for this agent, default its name where there
    is no ``authority`` and no ``port`` and it is not at ``/``. ``replicas``: further base urls of the same agent.
    ``refresh``: seconds between looks at its card, else what the card's cache headers say. ``forward_credentials``:
    what a caller was verified by goes on too. ``isolate``: verified callers are kept apart where it does not: each has
    its own tasks and contexts only. ``push``: webhooks are served by the gateway, registered with the
    agent as they are, or refused. ``index``: ListTasks of an agent without it is answered from the tasks that were
    seen. ``emulate``: capabilities that the gateway makes up for, and ``polling``: how often it asks for that.
    ``losses``: what becomes of a message that a translation would rob of something; ``refuse_losses``: names of
    losses that are refused in any case. ``dialect``: the hybrid that it speaks, by name, else told from its card
    and replies.
    """

    url: str
    name: str = ""
    path: str = ""
    public_url: str = ""
    authority: str = ""
    port: OwnPort | None = None
    tenant: str = ""
    face: str = ""
    versions: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ()
    forward: tuple[str, ...] = ()
    headers: dict[str, Secret] = {}
    bearer: Secret | None = None
    timeouts: UpstreamTimeouts = UpstreamTimeouts()
    tls: UpstreamTls = UpstreamTls()
    base64_files: bool | None = None
    upstream_base64_files: bool | None = None
    lenient: bool = True
    strict: bool = False
    replicas: tuple[str, ...] = ()
    limits: UpstreamLimits = UpstreamLimits()
    breaker: Breaker = Breaker()
    refresh: Seconds | None = None
    forward_credentials: bool = False
    isolate: bool = True
    push: Literal["relay", "direct", "off"] = "relay"
    index: bool = True
    emulate: tuple[Capability, ...] = ()
    polling: Polling = Polling()
    losses: Literal["carry", "refuse"] = "carry"
    refuse_losses: tuple[str, ...] = ()
    dialect: str = ""

    @property
    def pin(self) -> Face | None:
        """The face to call, None if the card decides."""
        return Face.parse(self.face) if self.face else None

    @property
    def refused(self) -> frozenset[str]:
        """Names of the losses that no message may meet."""
        return (DROPPED if self.losses == "refuse" else frozenset()) | frozenset(self.refuse_losses)

    @property
    def grpc_has_place(self) -> bool:
        """Whether gRPC can tell this agent from others: it has no paths, so only by host, by port, or at the root."""
        return bool(self.authority or self.port or self.path == "/")

    @property
    def faces(self) -> tuple[Face, ...]:
        """The faces that are served."""
        versions = {read_version(text) for text in self.versions} or {face.version for face in ALL_FACES}
        bindings = {read_binding(text) for text in self.bindings} or {face.binding for face in ALL_FACES}
        served = (face for face in ALL_FACES if face.version in versions and face.binding in bindings)
        return tuple(face for face in served if face.binding != "GRPC" or self._is_found(face))

    def _is_found(self, face: Face) -> bool:
        """Whether a gRPC call can be told to be for it. A tenant is named by 1.0 only."""
        return self.grpc_has_place or (bool(self.tenant) and face.version == "1.0")

    def grpc_target(self, base: str) -> str:
        """``host:port`` of its gRPC for a caller who reaches its other faces at ``base``."""
        parts = urlsplit(base)
        port = self.port or parts.port or (443 if parts.scheme == "https" else 80)
        host = self.authority or parts.netloc.rpartition("@")[2].removesuffix(f":{parts.port}")
        return host if _has_port(host) else f"{host}:{port}"


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
