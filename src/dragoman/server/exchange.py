"""One request after its framing is off: dialect in, service, dialect out, framing on.

Rules of this module:

- What a service raises becomes an A2A error of the caller's face; what nobody expected becomes InternalError and a
  traceback in our log, never in a reply.
- A stream that breaks ends with an error event, or trailers on gRPC; never with a clean end.
- A 0.3 stream ends with the event that its dialect marks final.
- What a translation lost is logged and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from traceback import clear_frames
from typing import Any, NamedTuple

import msgspec

from ..dialects.base import Dialect, Notes
from ..errors import (
    A2AError,
    DeadlineExceededError,
    ExtensionSupportRequiredError,
    InternalError,
    InvalidAgentResponseError,
    PeerError,
    TransportError,
    UnavailableError,
)
from ..faces import Face
from ..ledger import Ledger
from ..model import GET_EXTENDED_AGENT_CARD, AgentCard, Streaming, Unary
from ..protocol.codec import Codec
from ..protocol.messages import Call, HttpResponse
from ..protocol.operations import EXTENSIONS_HEADER
from ..service import A2AService, AnyOperation, Context, PassThrough, Stream
from .asgi import ClientDisconnectedError, Send, StreamBody, send_response
from .observing import Observer

log = logging.getLogger(__name__)


class Desk:
    """What every exchange of one app shares: the service behind it, its rules and its counters.

    ``losses`` counts what translations lost, by name of the loss. ``required``: extension URIs without which a
    request is refused. ``refuse_losses``: names of losses that no message may meet. ``publish``: makes a card of
    the service name our interfaces, given a base URL. ``observer``: who watches every call.
    """

    def __init__(
        self,
        service: A2AService,
        *,
        publish: Callable[[AgentCard, str], AgentCard],
        required: frozenset[str] = frozenset(),
        keep_alive: float = 15.0,
        observer: Observer | None = None,
        refuse_losses: Collection[str] = (),
    ) -> None:
        self.service = service
        self.observer = observer
        self.publish = publish
        self.passing = service if isinstance(service, PassThrough) else None
        self.required = required
        self.keep_alive = keep_alive
        self.losses = Ledger("toward callers", "caller", refuse_losses)
        self.streams: set[asyncio.Task[Any]] = set()
        self.closing = False

    async def close_streams(self) -> None:
        """End every open stream with an error event that says so, and wait until they are written."""
        self.closing = True
        streams = list(self.streams)
        for task in streams:
            task.cancel()
        await asyncio.gather(*streams, return_exceptions=True)


class Route(NamedTuple):
    """A face that is served, and what it is made of here. ``noted``: it is not the canonical face, so that writing
    is a translation, about which something may have to be noted."""

    face: Face
    codec: Codec
    dialect: Dialect
    noted: bool


class Exchange(msgspec.Struct, eq=False):
    """One call of one face on its way through the service. (A struct because it is made fast.)

    ``notes``: where its dialect may write, None if nothing can be to note. ``failure``: the kind of error that the
    caller was told. ``events``: how many of a stream were written.
    """

    desk: Desk
    route: Route
    call: Call
    ctx: Context
    op: AnyOperation
    notes: Notes | None
    failure: type[BaseException] | None = None
    events: int = 0

    async def run(self, send: Send) -> None:
        """Answer the call."""
        observer = self.desk.observer
        if observer is None:
            return await self._run(send)
        observed = observer.begin(self.op, self.ctx)
        try:
            await self._run(send)
        except BaseException as error:
            self.failure = type(error)
            raise
        finally:
            observed.end(self.failure, self.events)

    async def _run(self, send: Send) -> None:
        op = self.op
        if isinstance(op, Unary):
            await send_response(send, await self._run_unary(op))
        elif isinstance(op, Streaming):
            await self._run_stream(send, op)

    async def _run_unary(self, op: Unary[Any, Any]) -> HttpResponse:
        ctx, call, codec = self.ctx, self.call, self.route.codec
        try:
            if self.desk.required:
                self._enforce_extensions()
            if ctx.deadline is None:
                body = await self._reply(op)
            else:
                async with asyncio.timeout_at(ctx.deadline):
                    body = await self._reply(op)
            response = codec.write_result(call, body)
        except Exception as error:  # the boundary: whatever it was becomes an error of the face
            response = codec.write_error(self._failed(error), call.id or b"null")
        return self._add_headers(response) if ctx.activated else response

    async def _reply(self, op: Unary[Any, Any]) -> bytes:
        desk = self.desk
        passing = self._passing(op) if desk.passing else None
        if passing is not None:
            return await passing.exchange(op, self.call.body, self.ctx)
        request, dialect = self._load()
        reply = await desk.service.call(op, request, self.ctx)
        if op is GET_EXTENDED_AGENT_CARD:
            reply = desk.publish(reply, self.ctx.base_url)
        body = dialect.dump_reply(op, reply, self.notes)
        if self.notes is not None:
            self._count_losses(self.notes)
        return body

    def _passing(self, op: AnyOperation) -> PassThrough | None:
        """The service, if it takes this call's bytes undecoded; a variant of the dialect is always decoded."""
        passing, dialect = self.desk.passing, self.route.dialect
        if passing is None or not passing.passes(dialect, op):
            return None
        return passing if dialect.answering(self.call.body) is dialect else None

    def _load(self) -> tuple[Any, Dialect]:
        """The request, and the dialect to answer it in."""
        body, ctx, dialect = self.call.body, self.ctx, self.route.dialect
        notes = self.notes if self.notes is not None else Notes()
        request = dialect.load_request(self.op, body, notes)
        self._count_losses(notes)
        if not ctx.tenant:
            ctx.tenant = request.tenant  # every request has one, empty if none is meant
        return request, dialect.answering(body)

    async def _run_stream(self, send: Send, op: Streaming[Any]) -> None:
        try:
            if self.desk.required:
                self._enforce_extensions()
            async with asyncio.timeout_at(self.ctx.deadline):
                stream, dump = await self._open(op)
        except Exception as error:  # as above
            refusal = self.route.codec.refuse_stream(self.call, self._failed(error))
            return await send_response(send, self._add_headers(refusal))
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in one
        self.desk.streams.add(task)
        try:
            await self._write_stream(send, stream, dump)
        finally:
            self.desk.streams.discard(task)
            await stream.aclose()

    async def _open(self, op: Streaming[Any]) -> tuple[Stream[Any], Callable[[Any], bytes]]:
        passing = self._passing(op)
        if passing is not None:
            return await passing.exchange_stream(op, self.call.body, self.ctx), bytes
        request, dialect = self._load()
        stream = await self.desk.service.stream(op, request, self.ctx)
        dump, notes = dialect.dump_reply, self.notes
        return stream, lambda event: dump(op, event, notes)

    async def _write_stream(self, send: Send, stream: Stream[Any], dump: Callable[[Any], bytes]) -> None:
        codec = self.route.codec
        body = StreamBody(send, codec.keep_alive, self.desk.keep_alive)
        await body.open(self._add_headers(codec.stream_head(self.call)), codec.trailers() is not None)
        failure: A2AError | None = None
        try:
            async with asyncio.timeout_at(self.ctx.deadline):
                await self._copy(stream, dump, body)
        except asyncio.CancelledError:
            if not self.desk.closing:
                body.abandon()
                raise
            failure = self._failed(UnavailableError("This server is shutting down: subscribe again elsewhere"))
        except ClientDisconnectedError:  # nobody is left to be told
            body.abandon()
            raise
        except Exception as error:  # as above
            failure = self._failed(error)
        if failure is not None and (frame := codec.write_stream_error(self.call, failure)):
            await body.write(frame)
        await body.close(codec.trailers(failure))

    async def _copy(self, stream: Stream[Any], dump: Callable[[Any], bytes], body: StreamBody) -> None:
        write, call = self.route.codec.write_event, self.call
        while events := await stream.batch():
            if self.notes is None:
                self.events += len(events)
                await body.write(b"".join([write(call, dump(event)) for event in events]))
            elif await self._copy_final(events, dump, body):
                return

    async def _copy_final(self, events: Sequence[Any], dump: Callable[[Any], bytes], body: StreamBody) -> bool:
        """Write events up to the final one; whether that was among them."""
        assert self.notes is not None
        frames: list[bytes] = []
        try:
            for event in events:
                frame = self.route.codec.write_event(self.call, dump(event))
                self._count_losses(self.notes)
                frames.append(frame)
                if self.notes.final:
                    break
        finally:  # those before one that is refused
            self.events += len(frames)
            await body.write(b"".join(frames))
        return self.notes.final

    # -- what goes with it

    def _failed(self, error: Exception) -> A2AError:
        """The error that the caller gets. Its kind is all that is kept: an error holds the frames it came through."""
        found = as_a2a(error, self.op)
        self.failure = type(found)
        return found

    def _enforce_extensions(self) -> None:
        missing = self.desk.required.difference(self.ctx.extensions)
        if missing:
            uris = ",".join(sorted(missing))
            header = EXTENSIONS_HEADER[self.route.face.version]
            raise ExtensionSupportRequiredError(
                f"This agent requires {uris}: list it in the {header} header", metadata={"extensions": uris}
            )

    def _add_headers(self, response: HttpResponse) -> HttpResponse:
        if self.ctx.activated:
            name = EXTENSIONS_HEADER[self.route.face.version].encode()
            response.headers.append((name, ", ".join(self.ctx.activated).encode("latin-1", "ignore")))
        return response

    def _count_losses(self, notes: Notes) -> None:
        if notes.lost:
            lost, notes.lost = notes.lost, []
            self.desk.losses.enter(self.op.name, lost)


def as_a2a(error: Exception, op: AnyOperation) -> A2AError:
    """The error that a caller gets for whatever a service raised, of which nothing else is kept."""
    found = _as_a2a(error, op)
    _let_go(error)
    return found


def _let_go(error: BaseException | None) -> None:
    """Empty the frames that an error came through: they hold what was read so far, and may hold the error itself,
    and such a circle would stay until the garbage collector comes by."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _as_a2a(error: Exception, op: AnyOperation) -> A2AError:
    match error:
        case A2AError():
            if notes := getattr(error, "__notes__", ()):  # for us: where the agent is, say
                log.info("%s: %s: %s", op.name, type(error).__name__, "; ".join(notes))
            return error
        case TimeoutError():
            return DeadlineExceededError(f"{op.name} took longer than the caller's deadline")
        case PeerError():
            log.warning("%s: the agent behind us broke the protocol: %s", op.name, error)
            return InvalidAgentResponseError(
                f"The agent's reply to {op.name} breaks the protocol; its operator can tell how"
            )
        case TransportError():
            log.warning("%s: the agent behind us gave no answer: %s", op.name, error)
            return UnavailableError("The agent behind this address cannot be reached")  # not where it is: that is ours
    log.error("%s failed", op.name, exc_info=error)
    return InternalError()
