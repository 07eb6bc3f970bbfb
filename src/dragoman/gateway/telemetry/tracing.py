"""OpenTelemetry: a SERVER span for each call, a CLIENT span for each that goes on to the agent.

Rules of this module:

- The trace of the caller is taken up (W3C Trace Context), and the agent is told our span instead of the caller's.
- Attributes are those of the conventions for RPC spans, plus ``dragoman.*``; no payloads, no credentials.
- A span of a stream lasts until the stream ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace
from opentelemetry import context as current
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ...errors import GRPC_CODES, A2AError
from ...faces import Face
from ...model import Req, Res, Streaming, Unary
from ...protocol.messages import Headers
from ...protocol.operations import GRPC_SERVICE, WIRE, Binding, Version
from ...service import A2AService, AnyOperation, ByteStream, Context, EventStream, Item, Stream
from ..gateway import Connected
from ..layer import Layer
from .watch import Watched

_PARENT, _STATE = b"traceparent", b"tracestate"
_W3C = TraceContextTextMapPropagator()
_SYSTEMS: dict[Binding | None, str] = {"JSONRPC": "jsonrpc", "GRPC": "grpc", "HTTP+JSON": "http"}
#: gRPC codes of which the server is to blame; others are no errors of a SERVER span.
_OURS = frozenset({"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"})


class Tracing:
    """Makes the spans of calls with ``tracer``."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer

    def begin(self, call: Watched, upstream: str) -> tuple[Span, Any]:
        """Start the span of a call, and make it the current one; :meth:`end` takes what this gives from the call."""
        op, ctx = call.op, call.ctx
        span = self.tracer.start_span(
            op.name,
            context=_parent(ctx.headers),
            kind=SpanKind.SERVER,
            attributes={"dragoman.upstream": upstream, **_attributes(op, ctx.binding, ctx.version)},
        )
        known = span.get_span_context()
        if known.is_valid:
            call.trace = f"{known.trace_id:032x}"
        return span, current.attach(set_span_in_context(span))

    def end(
        self, call: Watched, failure: type[BaseException] | None, outcome: str, labels: tuple[str, ...], events: int
    ) -> None:
        """The call is over."""
        span, token = call.span
        current.detach(token)
        if span.is_recording():
            span.set_attributes({"dragoman.face_in": labels[2], "dragoman.face_out": labels[3]})
            span.set_attributes(_of_call(call, outcome, events))
            _settle(span, failure, call.ctx.binding, server=True)
        span.end()


def _parent(headers: Headers) -> Any:
    if not headers.get(_PARENT):
        return None
    carrier = {name.decode(): headers.get(name).decode("latin-1") for name in (_PARENT, _STATE)}
    return _W3C.extract(carrier)


def _attributes(op: AnyOperation, binding: Binding | None, version: Version) -> dict[str, Any]:
    names = WIRE[version].get(op.name)
    method = op.name if names is None else names.rpc if binding == "JSONRPC" else names.grpc
    found = {"rpc.system": _SYSTEMS.get(binding, "a2a"), "rpc.service": GRPC_SERVICE[version], "rpc.method": method}
    if binding == "JSONRPC":
        found["rpc.jsonrpc.version"] = "2.0"
    return found


def _of_call(call: Watched, outcome: str, events: int) -> dict[str, Any]:
    found: dict[str, Any] = {"dragoman.outcome": outcome}
    if call.task:
        found["dragoman.task_id"] = call.task
    if call.context:
        found["dragoman.context_id"] = call.context
    if call.losses:
        found["dragoman.losses"] = tuple(call.losses)
    if call.op.streaming:
        found["dragoman.stream.events"] = events
    return found


def _settle(span: Span, failure: type[BaseException] | None, binding: Binding | None, *, server: bool) -> None:
    """Write down how it ended, in the codes of its binding."""
    row = failure.row if failure is not None and issubclass(failure, A2AError) else None
    if binding == "GRPC":
        span.set_attribute("rpc.grpc.status_code", GRPC_CODES[row.grpc] if row else 0 if failure is None else 1)
    elif binding == "JSONRPC" and row:
        span.set_attribute("rpc.jsonrpc.error_code", row.code)
    elif binding == "HTTP+JSON" and (row or failure is None):
        span.set_attribute("http.response.status_code", row.http if row else 200)
    if failure is None:
        return
    span.set_attribute("error.type", failure.__name__)
    if not server or row is None or row.grpc in _OURS:
        span.set_status(StatusCode.ERROR)


class Traced(Layer):
    """What goes on to an agent, each call with a span of its own, which the agent is told."""

    def __init__(self, inner: A2AService, tracing: Tracing, client: Connected, upstream: str) -> None:
        super().__init__(inner)
        self._tracer = tracing.tracer
        self._client = client
        self._upstream = upstream

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """As ``A2AService.call``."""
        with self._span(op, ctx) as (outward, call):
            reply = await self.inner.call(op, request, outward)
        call.end()
        return reply

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """As ``PassThrough.exchange``."""
        with self._span(op, ctx) as (outward, call):
            reply = await self._through.exchange(op, body, outward)
        call.end()
        return reply

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        with self._span(op, ctx) as (outward, call):
            return _Spanned(await self.inner.stream(op, request, outward), call)

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """As ``PassThrough.exchange_stream``."""
        with self._span(op, ctx) as (outward, call):
            return _Spanned(await self._through.exchange_stream(op, body, outward), call)

    @contextmanager
    def _span(self, op: AnyOperation, ctx: Context) -> Iterator[tuple[Context, _Outgoing]]:
        face = self._client.face
        call = _Outgoing(self._tracer.start_span(op.name, kind=SpanKind.CLIENT, attributes=self._about(op, face)), face)
        outward = replace(ctx, headers=_told(ctx.headers, call.span))
        try:
            yield outward, call
        except BaseException as error:
            call.end(type(error))
            raise
        ctx.activated, ctx.retry_after = outward.activated, outward.retry_after

    def _about(self, op: AnyOperation, face: Face) -> Mapping[str, Any]:
        found = {"dragoman.upstream": self._upstream, **_attributes(op, face.binding, face.version)}
        url = self._client.interface.url
        where = urlsplit(url if "//" in url else f"//{url}")
        if where.hostname:
            found["server.address"] = where.hostname
            found["server.port"] = where.port or (443 if where.scheme == "https" else 80)
        return found


class _Outgoing:
    """One call on its way to the agent."""

    __slots__ = ("_face", "_open", "span")

    def __init__(self, span: Span, face: Face) -> None:
        self.span = span
        self._face = face
        self._open = True

    def end(self, failure: type[BaseException] | None = None, events: int | None = None) -> None:
        """It is over; only the first time counts."""
        if not self._open:
            return
        self._open = False
        if self.span.is_recording():
            _settle(self.span, failure, self._face.binding, server=False)
            if events is not None:
                self.span.set_attribute("dragoman.stream.events", events)
        self.span.end()


class _Spanned(Stream[Item]):
    """A stream whose span ends with it."""

    def __init__(self, inner: Stream[Item], call: _Outgoing) -> None:
        self._inner = inner
        self._call = call
        self._events = 0

    async def batch(self) -> Sequence[Item]:
        try:
            items = await self._inner.batch()
        except BaseException as error:
            self._call.end(type(error), self._events)
            raise
        self._events += len(items)
        return items

    async def aclose(self) -> None:
        self._call.end(None, self._events)
        await self._inner.aclose()


def _told(headers: Headers, span: Span) -> Headers:
    """The fields, with the span's trace context instead of the caller's."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, set_span_in_context(span))
    if not carrier:
        return headers
    kept = [field for field in headers.raw if field[0] not in (_PARENT, _STATE)]
    return Headers([*kept, *((name.encode(), value.encode("latin-1")) for name, value in carrier.items())])
