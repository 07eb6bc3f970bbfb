"""HTTP/1.1 (RFC 9112) for a plain ASGI app: one protocol object per connection, one task per request, one at a time.

Rules of this module:

- llhttp parses (through httptools); what it refuses is answered 400 and the connection closed.
- A reply that is ready leaves in one write, head and body together.
- A body without a length is chunked; one that its app never ended aborts the connection, so that no reader takes it
  for complete.
- A client that closes, or half-closes, has left: ``receive()`` answers ``http.disconnect``, the task is cancelled.
- Times are looked at once a second by the host (``tick``), so a request costs no timer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools

from .asgi import ClientDisconnectedError, Message, Scope

if TYPE_CHECKING:
    from .host import Host

log = logging.getLogger(__name__)

_STATUS = {one.value: f"HTTP/1.1 {one.value} {one.phrase}\r\n".encode() for one in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_BODILESS = frozenset({204, 304})
_FRAMING = (b"content-length", b"transfer-encoding")
_READ_AHEAD = 1 << 20  # octets of a request's body held before reading pauses
_PIPELINE = 16  # requests that may wait on one connection


class Request:
    """One request and its response; ``receive`` and ``send`` are what the app is given."""

    __slots__ = (
        "_chunked",
        "_conn",
        "_head",
        "_left",
        "_waiter",
        "body",
        "closes",
        "complete",
        "expects",
        "finished",
        "scope",
        "started",
        "task",
        "told",
    )

    def __init__(self, conn: Http1Protocol, scope: Scope, closes: bool, expects: bool) -> None:
        self._conn = conn
        self.scope = scope
        self.closes = closes  # the connection ends with the response
        self.expects = expects  # a 100 is waited for
        self.task: asyncio.Task[None] | None = None
        self.body: list[bytes] = []
        self.complete = self.told = False
        self.started = self.finished = False
        self._head: list[bytes] | None = None
        self._chunked = False
        self._left = -1  # octets that content-length still promises, -1 if it promised none
        self._waiter: asyncio.Future[None] | None = None

    @property
    def starved(self) -> bool:
        """Whether the app waits for more of the body."""
        return self._waiter is not None and not self._waiter.done()

    async def receive(self) -> dict[str, Any]:
        conn = self._conn
        if self.expects and not self.started and not self.complete:
            self.expects = False
            conn.transport.write(_CONTINUE)
        while not conn.gone:
            if self.body or (self.complete and not self.told):
                body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
                self.body.clear()
                conn.resume_reading()
                self.told = self.complete
                return {"type": "http.request", "body": body, "more_body": not self.complete}
            if self.finished:
                break
            self._waiter = conn.loop.create_future()
            await self._waiter
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        conn = self._conn
        if conn.gone:
            raise ClientDisconnectedError("the client has left")
        kind = message["type"]
        if kind == "http.response.body" and self.started and not self.finished:
            self._send_body(message.get("body", b""), message.get("more_body", False))
        elif kind == "http.response.start" and not self.started:
            self._start(message["status"], message.get("headers", ()))
        elif kind != "http.response.trailers":  # HTTP/1.1 has none to send
            raise RuntimeError(f"{kind} out of turn")
        if conn.paused:
            await conn.drained()

    def _start(self, status: int, headers: Any) -> None:
        self.started = True
        head = [_STATUS.get(status) or b"HTTP/1.1 %d \r\n" % status, self._conn.host.date_line]
        bodiless = status in _BODILESS or self.scope["method"] == "HEAD"
        sized = bodiless
        for name, value in headers:
            head += (name, b": ", value, b"\r\n")
            if name == b"content-length":
                sized, self._left = True, -1 if bodiless else int(value)
            elif name == b"connection" and value.lower() == b"close":
                self.closes = True
        self._head = head
        if not sized:
            self._chunked = self.scope["http_version"] == "1.1"
            self.closes = self.closes or not self._chunked

    def _send_body(self, body: bytes, more: bool) -> None:
        if self.scope["method"] == "HEAD":
            body = b""
        head, self._head = self._head, None
        if head is None:
            self._conn.transport.write(self._framed(body, more))
        else:
            if self._chunked and not more:  # all of it is here: say its size
                self._chunked = False
                head += (b"content-length: ", b"%d" % len(body), b"\r\n")
            elif self._chunked:
                head.append(b"transfer-encoding: chunked\r\n")
            if self.closes:
                head.append(b"connection: close\r\n")
            head.append(b"\r\n")
            head.append(self._framed(body, more))
            self._conn.transport.write(b"".join(head))
        if not more:
            self.finished = True
            self._conn.finish(self)

    def _framed(self, body: bytes, more: bool) -> bytes:
        if self._left >= 0:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the body is not as long as its content-length")
            return body
        if not self._chunked:
            return body
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return chunk if more else chunk + b"0\r\n\r\n"

    def wake(self) -> None:
        """Something changed that ``receive`` may wait for."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Http1Protocol(asyncio.Protocol):
    """One connection; ``host`` owns the app, the limits and the clock."""

    def __init__(self, host: Host, extensions: dict[str, Any]) -> None:
        self.host = host
        self.loop = host.loop
        self.transport: asyncio.Transport
        self.gone = self.paused = self.closing = False
        self._extensions = extensions
        self._scope: dict[str, Any] = {}
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0
        self._in_head = True
        self._close = self._expect = False
        self._reading: Request | None = None  # the request whose body comes in
        self._declined: Request | None = None  # the request whose upgrade was not taken
        self._current: Request | None = None  # the request that is answered
        self._waiting: deque[Request] = deque()
        self._drain: asyncio.Future[None] | None = None
        self._reading_paused = False
        self._since = host.now  # of the state that a limit counts for: silence, a head, an unread reply

    # -- the transport's side

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio has it
        self.transport = transport
        self.host.connections.add(self)
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "scheme": "https" if transport.get_extra_info("ssl_object") else "http",
            "root_path": "",
            "client": tuple(peer[:2]) if isinstance(peer, tuple) else None,
            "server": tuple(local[:2]) if isinstance(local, tuple) else (local or "", None),
            "extensions": self._extensions,
            "state": self.host.state,
        }

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self.host.connections.discard(self)
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)
        for request in filter(None, (self._current, self._reading)):
            request.wake()
            if request.task is not None and not request.finished:
                request.task.cancel()
        self._waiting.clear()

    def data_received(self, data: bytes) -> None:
        if self.gone or self.closing:
            return
        if self._in_head:
            if not self._head_size:
                self._since = self.host.now
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(400)
        if self._in_head and self._head_size > self.host.limits.head_size:
            self._refuse(431)

    def _decline_upgrade(self, rest: bytes) -> None:
        """Go on as if no upgrade was asked for (RFC 9110 §7.8); the parser has stopped before the request's body.

        Java's HTTP client asks for h2c by default, so this is an everyday request. A new parser is given a head with
        nothing but the framing of the body.
        """
        request, self._reading = self._reading, None
        assert request is not None
        framing = [field for field in request.scope["headers"] if field[0] in _FRAMING]
        head = b"".join(b"%b: %b\r\n" % field for field in framing)
        self._parser = httptools.HttpRequestParser(self)
        self._declined = request
        self._parser.feed_data(b"POST / HTTP/1.1\r\n" + head + b"\r\n")
        if rest:
            self.data_received(rest)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.paused = True
        self._since = self.host.now

    def resume_writing(self) -> None:
        self.paused = False
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)

    async def drained(self) -> None:
        """Until the client has read enough. Raises ``ClientDisconnectedError`` if it leaves."""
        while self.paused and not self.gone:
            if self._drain is None or self._drain.done():
                self._drain = self.loop.create_future()
            await self._drain
        if self.gone:
            raise ClientDisconnectedError("the client has left")

    def resume_reading(self) -> None:
        if self._reading_paused and not self.gone:
            self._reading_paused = False
            self.transport.resume_reading()

    # -- the parser's side

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._headers.append((name, value))
        if name == b"expect":
            self._expect = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        if self._declined is not None:
            self._reading, self._declined = self._declined, None
            self._url, self._headers = b"", []
            return
        if self._head_size > self.host.limits.head_size and self._measured() > self.host.limits.head_size:
            self._refuse(431)
        if self.closing:
            self._url, self._headers = b"", []
            return
        version = self._parser.get_http_version()
        raw, _, query = self._target()
        path = raw.decode("latin-1")
        scope = self._scope.copy()
        scope["http_version"] = version
        scope["method"] = self._parser.get_method().decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = raw
        scope["query_string"] = query
        scope["headers"] = self._headers
        request = Request(self, scope, not self._parser.should_keep_alive(), self._expect)
        self._url, self._headers, self._expect = b"", [], False
        self._in_head, self._head_size = False, 0
        self._since = self.host.now
        self._reading = request
        if self._current is None:
            self._begin(request)
        else:
            self._waiting.append(request)
            if len(self._waiting) >= _PIPELINE:
                self._pause_reading()

    def _measured(self) -> int:
        """Octets of a head that came together with its body, or with more than that."""
        return len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers)

    def _target(self) -> tuple[bytes, bytes, bytes]:
        if self._url[:1] in (b"/", b"*"):
            return self._url.partition(b"?")
        parsed = httptools.parse_url(self._url)  # absolute form, as proxies send it
        return parsed.path or b"/", b"?", parsed.query or b""

    def on_body(self, body: bytes) -> None:
        request = self._reading
        if request is None or request.finished:
            return  # answered already: the rest is not wanted
        request.body.append(body)
        request.wake()
        self._since = self.host.now
        if sum(map(len, request.body)) > _READ_AHEAD:
            self._pause_reading()

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return  # the body is still to come, see _decline_upgrade
        request, self._reading = self._reading, None
        self._in_head = True
        if request is not None:
            request.complete = True
            request.wake()
            if request.finished:
                self._next(request)

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    # -- requests

    def _begin(self, request: Request) -> None:
        self._current = request
        task = request.task = self.loop.create_task(self._run(request))
        self.host.tasks.add(task)
        task.add_done_callback(self.host.tasks.discard)

    async def _run(self, request: Request) -> None:
        status = 500
        try:
            await self.host.app(request.scope, request.receive, request.send)
        except asyncio.CancelledError:
            status = 503
        except ClientDisconnectedError:
            pass
        except Exception:
            log.exception("the app failed on %s", request.scope["path"])
        if self.gone or request.finished:
            return
        if request.started:
            self.transport.abort()
        else:
            self._refuse(status)

    def finish(self, request: Request) -> None:
        """The response of ``request`` is complete."""
        if request.complete:
            self._next(request)
        elif request.closes or self.closing:
            self._end()
        else:
            self.resume_reading()  # the rest of its body is read and dropped
            self._since = self.host.now

    def _next(self, request: Request) -> None:
        self._current = None
        self._since = self.host.now
        if request.closes or self.closing:
            self._end()
        elif self._waiting:
            self._begin(self._waiting.popleft())
            self.resume_reading()

    def _refuse(self, status: int) -> None:
        """Answer for the app, and end the connection."""
        if not self.gone and not self.transport.is_closing():
            if self._current is None or not self._current.started:
                self.transport.write(_STATUS[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            self._end()

    def _end(self) -> None:
        self.closing = True
        self.transport.close()

    # -- endings

    def tick(self, now: float) -> None:
        """Every second: what has waited too long."""
        limits, waited = self.host.limits, now - self._since
        if self.paused:
            if waited > limits.write_stall:
                self.transport.abort()
        elif self._current is None and waited > (limits.head_timeout if self._head_size else limits.idle_timeout):
            self._end()
        elif self._reading is not None and waited > limits.body_stall:
            if self._reading.finished:
                self.transport.abort()
            elif self._reading.starved:
                self._refuse(408)

    def shutdown(self) -> None:
        """Take no new request; end when the current one is answered."""
        self.closing = True
        if self._current is None:
            self.transport.close()
