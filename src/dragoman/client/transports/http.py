"""The HTTP transport: both JSON bindings of both versions, over pyreqwest.

Rules of this module:

- A request is repeated on its other verb (SubscribeToTask, 1.0 §11.3 against its proto) or on the route without
  tenant only when the answer says that no route took it; what worked is remembered for this peer.
- Every body that is read is bounded, and so is every event of a stream.
- A stream is read without a buffer: pyreqwest fills its own (64 KiB) before it even gives the head of a reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...errors import A2AError, ConfigError, DragomanError, TransportError
from ...faces import Face
from ...heeding import Heeding
from ...protocol.codec import Codec
from ...protocol.messages import Header, Headers, HttpRequest, HttpResponse
from ...protocol.operations import WIRE
from ...protocol.replies import retry_after
from ...service import ByteStream, Context
from ..options import Limits, Timeouts
from . import refusals
from .base import activated
from .bodies import EventBody, LineBody, StreamBody, WholeBody
from .connection import HeaderMap, PyreqwestError, parse_url, read_body, transport_error

if TYPE_CHECKING:
    from pyreqwest.client import Client
    from pyreqwest.http import Url
    from pyreqwest.request import StreamRequest
    from pyreqwest.response import Response

_BLANK = b"\xef\xbb\xbf \t\r\n"
_EVENT_STARTS = frozenset((b"d", b"e", b"i", b"r", b":"))  # data, event, id, retry, a comment
_LINES = frozenset(("application/x-ndjson", "application/jsonl", "application/x-jsonlines"))
_EXTENSIONS = ("a2a-extensions", "x-a2a-extensions")


class HttpTransport:
    """One interface of a peer over HTTP.

    ``url``: the interface's. ``headers``: fields of every request. ``tenant``: for the routes of HTTP+JSON, empty
    for none. ``paths``: where calls of an operation go, below ``url``, for peers that have a place for each.
    ``stream_query``: what calls that open a stream have to say besides, for peers that stream only when asked to.
    """

    def __init__(
        self,
        url: str,
        face: Face,
        codec: Codec,
        client: Client,
        *,
        headers: Iterable[Header] = (),
        tenant: str = "",
        timeouts: Timeouts,
        limits: Limits,
        paths: Mapping[str, str] = MappingProxyType({}),
        stream_query: str = "",
    ) -> None:
        self._codec = codec
        self._paths = paths
        self._stream_query = stream_query
        self._client = client
        self._url = url
        self._base, _, self._query = url.partition("?")
        self._root = parse_url(url)
        self._headers = _texts(headers)
        self._timeouts = timeouts
        self._reply_time = timedelta(seconds=timeouts.reply)
        self._limits = limits
        self._prepared: dict[tuple[str, str], HeaderMap] = {}
        self._names = WIRE[face.version]
        self._routed = face.binding == "HTTP+JSON"
        self._tenants = (tenant, "") if tenant and self._routed else ("",)
        self._routes: dict[str, tuple[tuple[str, str], ...]] = {}

    async def unary(self, op: str, body: bytes, headers: Sequence[Header], timeout: float, ctx: Context) -> bytes:
        time = self._reply_time if timeout == self._timeouts.reply else timedelta(seconds=timeout)
        try:
            with Heeding():
                exchange, reply = await self._open(op, body, headers, time, ctx)
                try:
                    response = await self._read(reply)
                finally:
                    await exchange.__aexit__(None, None, None)
        except PyreqwestError as error:
            raise transport_error(error, self._url) from error
        if refusals.is_page(response.body):
            raise refusals.unexpected(response, self._url, "a JSON message")
        return self._codec.read_result(op, response)

    async def stream(self, op: str, body: bytes, headers: Sequence[Header], timeout: float, ctx: Context) -> ByteStream:
        try:
            async with asyncio.timeout(timeout):
                with Heeding():
                    exchange, reply = await self._open(op, body, headers, None, ctx)
        except TimeoutError as error:
            raise TransportError(
                f"{self._url} did not open the stream within {timeout:g} seconds", timed_out=True
            ) from error
        except PyreqwestError as error:
            raise transport_error(error, self._url) from error
        try:
            async with asyncio.timeout(timeout):
                with Heeding():
                    return await self._events(op, exchange, reply)
        except TimeoutError as error:
            await exchange.__aexit__(None, None, None)
            raise TransportError(f"{self._url} did not answer within {timeout:g} seconds", timed_out=True) from error
        except PyreqwestError as error:
            await exchange.__aexit__(None, None, None)
            raise transport_error(error, self._url) from error
        except BaseException:
            await exchange.__aexit__(None, None, None)
            raise

    async def aclose(self) -> None:
        await self._client.close()

    # -- one exchange

    async def _open(
        self, op: str, body: bytes, headers: Sequence[Header], time: timedelta | None, ctx: Context
    ) -> tuple[StreamRequest, Response]:
        """Send, and give the exchange whose reply is a success. Raises what any other reply means."""
        refused: HttpResponse | None = None
        routes = self._routes.get(op) or self._possible(op)
        for place, route in enumerate(routes):
            exchange = self._build(op, body, route, headers, time)
            reply = await exchange.__aenter__()
            if 200 <= reply.status < 300:
                if len(routes) > 1:
                    self._routes[op] = (route,)
                if headers:
                    _facts(reply, ctx)
                return exchange, reply
            try:
                response = await self._read(reply)
            finally:
                await exchange.__aexit__(None, None, None)
            if not refusals.no_route(response):
                refused = response
                break
            refused = refused or response
            if response.status != 404 and place + 1 < len(routes) and routes[place + 1][0] != route[0]:
                break
        assert refused is not None  # there is at least one route
        raise refusals.refusal(refused, lambda response: self._codec.read_result(op, response), self._url)

    def _possible(self, op: str) -> tuple[tuple[str, str], ...]:
        """Pairs of tenant route and verb to try, in order; an empty verb is the first one of the table."""
        names = self._names.get(op)
        verbs = ("", "POST") if self._routed and names is not None and names.verbs == ("GET", "POST") else ("",)
        routes = tuple((tenant, verb) for tenant in self._tenants for verb in verbs)
        self._routes[op] = routes
        return routes

    def _build(
        self, op: str, body: bytes, route: tuple[str, str], headers: Sequence[Header], time: timedelta | None
    ) -> StreamRequest:
        tenant, verb = route
        request = self._codec.write_call(op, body, tenant=tenant)
        if self._paths:
            request = HttpRequest(request.method, self._paths.get(op, ""), "", request.headers, request.body)
        if verb:
            request = HttpRequest(verb, request.path, request.query, _WITH_BODY, b"{}")
        fields = self._prepared.get((op, request.method))
        if fields is None:
            fields = HeaderMap(self._headers | _texts(request.headers.raw))
            self._prepared[op, request.method] = fields
        if headers:
            fields = fields.copy()
            fields.update(_texts(headers))
        try:
            url = self._where(request, self._stream_query if time is None else "")
            builder = self._client.request(request.method, url).headers(fields)
        except (ValueError, PyreqwestError) as error:
            raise ConfigError(f"A request to {self._url} cannot be built: {error}") from error
        if request.body:
            builder.body_bytes(request.body)
        if time is not None:
            builder.timeout(time)
        else:
            builder.streamed_read_buffer_limit(0)
        return builder.build_streamed()

    def _where(self, request: HttpRequest, more: str) -> Url | str:
        if not request.path and not request.query and not more:
            return self._root
        base = self._base.rstrip("/") if request.path else self._base
        query = "&".join(part for part in (self._query, request.query, more) if part)
        return f"{base}{request.path}?{query}" if query else base + request.path

    async def _read(self, reply: Response) -> HttpResponse:
        body = await read_body(reply, self._limits.body, self._url)
        return HttpResponse(reply.status, _raw(reply), body)

    # -- streams

    async def _events(self, op: str, exchange: StreamRequest, reply: Response) -> ByteStream:
        """The stream in a successful reply; it owns the exchange from then on. Raises what is no stream."""
        kind = (reply.get_header("content-type") or "").partition(";")[0].strip().lower()
        first = b""
        if not kind:  # taken for what its first bytes look like
            first = bytes(await reply.body_reader.read_chunk() or b"")
            kind = "text/event-stream" if first.lstrip(_BLANK)[:1] in _EVENT_STARTS else ""
        if kind == "text/event-stream":
            return HttpStream(self, op, exchange, reply, EventBody(self._limits.event), first)
        if kind in _LINES:
            return HttpStream(self, op, exchange, reply, LineBody(self._limits.event))
        response = await self._read(reply)
        response.body = first + response.body
        if refusals.is_page(response.body) or not response.body.strip():
            raise refusals.unexpected(response, self._url, "an event stream")
        return HttpStream(self, op, exchange, None, WholeBody(self._codec, op, response))


class HttpStream(ByteStream):
    """The messages of one streamed reply."""

    def __init__(
        self,
        transport: HttpTransport,
        op: str,
        exchange: StreamRequest,
        reply: Response | None,
        body: StreamBody,
        first: bytes = b"",
    ) -> None:
        self._op = op
        self._codec = transport._codec
        self._silence = transport._timeouts.silence
        self._url = transport._url
        self._retry_after = retry_after(Headers(_raw(reply))) if reply is not None else None
        self._exchange: StreamRequest | None = exchange
        self._reader = reply.body_reader if reply is not None else None
        self._body = body
        self._ready: list[bytes] = list(body.ready)
        self._error: DragomanError | None = None
        self._since = 0.0  # when the line began that has not ended
        if first:
            self._take(first)

    async def batch(self) -> Sequence[bytes]:
        while True:
            if self._ready:
                ready, self._ready = self._ready, []
                return ready
            if self._error is not None:
                raise self._error
            if self._reader is None:
                return ()
            await self._fill()

    async def _fill(self) -> None:
        assert self._reader is not None
        try:
            async with asyncio.timeout(self._silence):
                with Heeding():
                    chunk = await self._reader.read_chunk()
        except TimeoutError:
            said = f"{self._url} sent nothing for {self._silence:g} seconds on an open stream"
            self._error = TransportError(said, timed_out=True)
        except PyreqwestError as error:
            self._error = transport_error(error, self._url)
        else:
            self._take(bytes(chunk) if chunk is not None else None)
            self._watch()

    def _watch(self) -> None:
        """A line that does not end is silence too, however fast it comes."""
        if not self._body.amid:
            self._since = 0.0
            return
        now = asyncio.get_running_loop().time()
        self._since = self._since or now
        if now - self._since > self._silence and self._error is None:
            said = f"{self._url} did not end a line of its stream within {self._silence:g} seconds"
            self._error = TransportError(said, timed_out=True)

    def _take(self, chunk: bytes | None) -> None:
        """Read the messages that ``chunk`` completes; None is the end of the body."""
        try:
            if chunk is None:
                self._reader = None
            for data in self._body.feed(chunk):
                self._ready.append(self._codec.read_event(self._op, data))
        except DragomanError as error:
            if isinstance(error, A2AError) and error.retry_after is None:
                error.retry_after = self._retry_after
            self._error = error

    async def aclose(self) -> None:
        exchange, self._exchange, self._reader = self._exchange, None, None
        if exchange is not None:
            await exchange.__aexit__(None, None, None)


_WITH_BODY = Headers(((b"content-type", b"application/json"), (b"accept", b"text/event-stream, application/json")))


def _texts(headers: Iterable[Header]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}


def _raw(reply: Response) -> list[Header]:
    """Header fields as the codecs read them; of a success only those that they look at."""
    if reply.status == 200 and not reply.get_header("retry-after"):
        kind = reply.get_header("content-type")
        return [(b"content-type", kind.encode("latin-1", "replace"))] if kind else []
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in reply.headers.items()]


def _facts(reply: Response, ctx: Context) -> None:
    for name in _EXTENSIONS:
        values = reply.get_header_all(name)
        if values:
            ctx.activated = activated(",".join(values))
