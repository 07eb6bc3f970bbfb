"""A remote agent behind one of its interfaces, as an ``A2AService``.

Rules of this module:

- The version and the tenant are those of the interface, whatever the caller's own headers or request say
  (1.0 §3.6.1, §8.3.2). A request's own tenant stands only where the interface has none.
- ``ctx.headers`` are sent: they are what the caller of a client wants to be sent. Who puts a client behind a server
  gives it a context with those that may go on, not the one that came in (``gateway.forwarding``).
- Fields that belong to the protocol or the connection are never taken from there. To an interface that may not have
  credentials, only trace context goes.
- Nothing is sent twice, but what the agent refused for its shape, where peers do not agree on that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ..dialects.base import Dialect, Notes
from ..dialects.v03_proto import ProtoJsonDialect, ProtoShape
from ..errors import ConfigError, InvalidParamsError, MethodNotFoundError, PeerError, UnsupportedOperationError
from ..faces import Face
from ..ledger import Ledger
from ..model import Req, Res, Streaming, Unary
from ..protocol.messages import Header
from ..protocol.operations import EXTENSIONS_HEADER, VERSIONS, WIRE, Version
from ..service import AnyOperation, ByteStream, Context, EventStream
from .events import RemoteStream
from .history import wants_none, without_history
from .options import Resume
from .transports.base import Transport

#: Fields that belong to us or to the connection, whatever a caller passes.
_OURS = frozenset(
    b"a2a-version a2a-extensions x-a2a-extensions accept accept-encoding connection content-length content-type "
    b"expect host keep-alive proxy-authorization proxy-connection te trailer transfer-encoding upgrade user-agent "
    b"grpc-timeout grpc-encoding grpc-accept-encoding".split()
)
#: What travels to an interface that may not have credentials.
_TRACE = frozenset((b"traceparent", b"tracestate", b"baggage"))


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a client reads and waits. ``note`` is told, in words, what was forgiven and what was decided.
    ``refuse_losses``: names of losses that no message may meet."""

    reply: float = 60.0
    lenient: bool = True
    resume: Resume = field(default_factory=Resume)
    note: Callable[[str], None] | None = None
    refuse_losses: frozenset[str] = frozenset()


class Remote:
    """One interface of a remote agent. ``trusted``: whether it may have the caller's headers."""

    def __init__(
        self,
        face: Face,
        dialect: Dialect,
        transport: Transport,
        *,
        tenant: str = "",
        extensions: tuple[str, ...] = (),
        trusted: bool = True,
        behaviour: Behaviour = Behaviour(),
    ) -> None:
        self.face = face
        self.behaviour = behaviour
        self.dialect = dialect
        self._found: dict[str, Dialect] = {}
        self._files = dialect if isinstance(dialect, ProtoShape) else None
        self._transport = transport
        self.tenant = tenant if face.version == "1.0" else ""
        self._extensions = extensions
        self._asking = (extensions_header(face.version, extensions),) if extensions else ()
        self._trusted = trusted
        self._wire = WIRE[face.version]
        self._translates = face.version != "1.0" or face.binding == "GRPC"
        self._reading = self._translates or behaviour.note is not None or not behaviour.lenient
        self.losses = Ledger(f"toward the agent over {face}", refuse=behaviour.refuse_losses)

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """See ``A2AService.call``. Raises ``UnsupportedOperationError`` without a call if the version has no such
        operation."""
        dialect = self._found.get(op.name) or self.speaking(ctx)
        body = self._body(op, request, dialect)
        try:
            raw = await self.exchange(op, body, ctx)
        except MethodNotFoundError as error:
            self._doubt(op, error)
            raise
        except InvalidParamsError:
            other = dialect.otherwise(op) if isinstance(dialect, ProtoJsonDialect) else None
            if other is None:
                raise
            raw = await self._again(op, request, other, ctx)
        if not self._reading:
            reply: Res = dialect.load_reply(op, raw)
        else:
            notes = Notes()
            reply = dialect.load_reply(op, raw, notes)
            self.read(op, notes)
        return without_history(reply) if self.cuts_history(request) else reply

    async def _again(self, op: AnyOperation, request: Any, other: Dialect, ctx: Context) -> bytes:
        """Say in another way what the agent did not understand, and go on so if it understands that."""
        raw = await self.exchange(op, self._body(op, request, other), ctx)
        self._found[op.name] = other
        return raw

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """See ``A2AService.stream``. The stream begins with a Task or a Message whatever the peer began with."""
        stream = RemoteStream(self, op, request, ctx)
        await stream.open()
        return stream

    def cuts_history(self, request: Any) -> bool:
        """Whether the request asks for no history and the agent cannot be told so."""
        return self.face.version == "0.3" and wants_none(request)

    def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, bytes]:
        """One call with the message bytes as they are, in this interface's own dialect."""
        return self._transport.unary(op.name, body, self._headers(ctx), self._time(ctx), ctx)

    def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, ByteStream]:
        """One stream with the message bytes as they are."""
        return self._transport.stream(op.name, body, self._headers(ctx), self._time(ctx), ctx)

    async def open(self, op: Streaming[Req], request: Req, ctx: Context) -> ByteStream:
        """Open the stream that a request asks for, its messages still undecoded."""
        return await self.exchange_stream(op, self._body(op, request, self.speaking(ctx)), ctx)

    def speaking(self, ctx: Context) -> Dialect:
        """The dialect of one call and its replies."""
        if ctx.files is None or self._files is None:
            return self.dialect
        return self._files.beside(ctx.files)

    def read(self, op: AnyOperation, notes: Notes) -> None:
        """Count what was lost and say what was forgiven. Raises ``PeerError`` for that if this client is strict."""
        if notes.lost:
            lost, notes.lost = notes.lost, []
            self.losses.enter(op.name, lost)
        if not notes.forgiven:
            return
        said = f"{op.name} over {self.face}: {'; '.join(notes.forgiven)}"
        if not self.behaviour.lenient:
            raise PeerError(f"The reply to {said}")
        if self.behaviour.note is not None:
            self.behaviour.note(said)
        notes.forgiven.clear()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _doubt(self, op: AnyOperation, error: MethodNotFoundError) -> None:
        """Say that a peer which does not know a name of its card's version may speak the other one."""
        other = next(version for version in VERSIONS if version != self.face.version)
        hint = (
            f"{op.name} is unknown to the peer over {self.face}; if all are, it speaks {other}: pin version={other!r}"
        )
        error.add_note(hint)
        if self.behaviour.note is not None:
            self.behaviour.note(hint)

    def _body(self, op: AnyOperation, request: Any, dialect: Dialect) -> bytes:
        if op.name not in self._wire:
            raise UnsupportedOperationError(
                f"{op.name} does not exist in {self.face.version}, which this interface speaks"
            )
        if self.tenant and request.tenant != self.tenant:
            request = msgspec.structs.replace(request, tenant=self.tenant)
        if not self._translates:
            return dialect.dump_request(op, request)
        notes = Notes()
        body = dialect.dump_request(op, request, notes)
        self.losses.enter(op.name, notes.lost)
        return body

    def _time(self, ctx: Context) -> float:
        if ctx.deadline is None:
            return self.behaviour.reply
        return max(min(self.behaviour.reply, ctx.deadline - asyncio.get_running_loop().time()), 0.001)

    def _headers(self, ctx: Context) -> Sequence[Header]:
        sent, uris = ctx.headers.raw, ctx.extensions
        if not sent and not uris:
            return self._asking
        fields = [(name, value) for name, value in sent if self._sends(name.lower())] if sent else ()
        if uris:
            every = tuple(dict.fromkeys(self._extensions + uris))
            return (*fields, extensions_header(self.face.version, every))
        return (*fields, *self._asking)

    def _sends(self, name: bytes) -> bool:
        return name not in _OURS and (self._trusted or name in _TRACE)


def extensions_header(version: Version, uris: Iterable[str]) -> Header:
    """The field that asks for extensions, under the version's own name (1.0 §3.2.6, quirk Q97)."""
    return EXTENSIONS_HEADER[version].encode(), ", ".join(uris).encode("latin-1")


def sendable(headers: Mapping[str, str]) -> list[Header]:
    """What a caller gave by name and value, less the fields that are ours, names in lower case (cases 7 and 11).

    Raises ``ConfigError`` for a value that is no text of one line.
    """
    fields: list[Header] = []
    for name, value in headers.items():
        key = name.strip().lower().encode("latin-1", "replace")
        if not value.isprintable() or not value.isascii():
            raise ConfigError(f"The header {name!r} has a value that cannot be sent: it must be one line of ASCII")
        if key not in _OURS:
            fields.append((key, value.encode()))
    return fields
