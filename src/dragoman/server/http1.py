"""HTTP/1.1 (RFC 9112) for a plain ASGI app: one protocol object per connection, one task per request, one at a time.

Rules of this module:

- llhttp parses (through httptools); what it refuses is answered 400 and the connection closed.
- A reply that is ready leaves in one write, head and body together.
- A body without a length is chunked; one that its app never ended aborts the connection, so that no reader takes it
  for complete.
- A refusal waits for the answers that are due before it, and for the client to take it: what still comes is read and
  dropped for a while, as a reset would take the refusal with it.
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
_VERSIONS = ("1.1", "1.0")
_FRAMING = (b"content-length", b"transfer-encoding")
_READ_AHEAD = 1 << 20  # octets of a request's body held before reading pauses
_CRUMB = 1_024  # octets of a body below which pieces are put together: an object costs more memory than it has
_PIPELINE = 16  # requests that may wait on one connection


class Request:
    """One request and its response; ``receive`` and ``send`` are what the app is given."""

    __slots__ = (
        "_bodiless",
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
        "held",
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
        self.held = 0  # octets of it
        self.complete = self.told = False
        self.started = self.finished = False
        self._head: list[bytes] | None = None
        self._bodiless = scope["method"] == "HEAD"
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
        while not (conn.gone or conn.closing):
            if self.body or (self.complete and not self.told):
                body = self.body[0] if len(self.body) == 1 else b"".join(self.body)
                self.body.clear()
                self.held = 0
                conn.resume_reading()
                self.told = self.complete
                return {"type": "http.request", "body": body, "more_body": not self.complete}
            if self.finished:
                break
            conn.since = conn.host.now
            self._waiter = conn.loop.create_future()
            await self._waiter
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        conn = self._conn
        if conn.gone or conn.closing:
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
        head = [_STATUS.get(status) or b"HTTP/1.1 %d \r\n" % status, self._conn.host.date_line]
        self._bodiless = sized = self._bodiless or status in _BODILESS
        for name, value in headers:
            if name == b"content-length":
                sized, self._left = True, -1 if self._bodiless else int(value)
            elif name == b"connection" or name == b"transfer-encoding":  # ours to say
                self.closes = self.closes or value.lower() == b"close"
                continue
            head += (name, b": ", value, b"\r\n")
        lines = b"".join(head)
        if not lines.count(b"\n") == lines.count(b"\r") == 2 + (len(head) - 2) // 4:
            raise ValueError("a header field with a line break")  # it would split the response
        self.started = True
        self._head = [lines]
        if self.expects and not self.complete:  # whether its body comes is now open, so nothing can follow it
            self.closes = True
        self._chunked = not sized

    def _send_body(self, body: bytes, more: bool) -> None:
        if self._bodiless:
            body = b""
        head, self._head = self._head, None
        if head is None:
            self._conn.transport.write(self._framed(body, more))
        else:
            if self._chunked and not more:  # all of it is here: say its size
                self._chunked = False
                head += (b"content-length: ", b"%d" % len(body), b"\r\n")
            elif self._chunked:
                self._chunked = self.scope["http_version"] == "1.1"  # or else the connection's end is the body's
                if self._chunked:
                    head.append(b"transfer-encoding: chunked\r\n")
            if self.closes or self._conn.draining:
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

    def release_head(self) -> None:
        """Send the head of a body that lets wait for itself."""
        if self._head is not None:
            self._send_body(b"", True)

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
        self.gone = self.paused = False
        self.draining = False  # no new request is taken
        self.closing = False  # nothing at all is taken
        self._extensions = extensions
        self._scope: dict[str, Any] = {}
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_size = 0  # octets since the last head or the last of a body: of a head, chunk sizes or trailers
        self._in_head = True
        self._expect = False
        self._hosts = 0
        self._refusal = 0  # status of a refusal that waits for the answers before it
        self._reading: Request | None = None  # the request whose body comes in
        self._declined: Request | None = None  # the request whose upgrade was not taken
        self._current: Request | None = None  # the request that is answered
        self._waiting: deque[Request] = deque()
        self._drain: asyncio.Future[None] | None = None
        self._reading_paused = False
        self.since = host.now  # of the state that a limit counts for: silence, a head, an unread reply

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
        self.host.release(self)
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)
        for request in filter(None, (self._current, self._reading)):
            request.wake()
            if request.task is not None and not request.finished:
                request.task.cancel()
        self._waiting.clear()
        del self._parser  # which holds us: without it, nobody has to look for circles

    def data_received(self, data: bytes) -> None:
        if self.gone or self.closing or self._refusal:
            return
        if self._in_head and not self._head_size:
            self.since = self.host.now
        self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._reading is None:  # HTTP/2's preface, after the start
                self._fault(400)
            else:
                self._decline_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._fault(400)
        if self._head_size > self.host.limits.head_size:
            self._fault(431)

    def _decline_upgrade(self, rest: bytes) -> None:
        """Go on as if no upgrade was asked for (RFC 9110 §7.8); the parser has stopped before the request's body.

        Java's HTTP client asks for h2c by default, so this is an everyday request. A new parser is given a head with
        nothing but the framing of the body.
        """
        request, self._reading = self._reading, None
        assert request is not None  # as data_received saw
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
        self.since = self.host.now

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
        if not self._head_size:  # it came with the request before
            self._head_size = len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: nothing in it is wanted
        name = name.lower()
        if value[-1:] <= b" ":  # llhttp leaves what follows it
            value = value.rstrip(b" \t")
        self._headers.append((name, value))
        if name == b"host":
            self._hosts += 1
        elif name == b"expect":
            self._expect = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        if self._declined is not None:
            self._reading, self._declined = self._declined, None
            self._url, self._headers = b"", []
            return
        if self._head_size > self.host.limits.head_size and self._measured() > self.host.limits.head_size:
            self._fault(431)
        version = self._parser.get_http_version()
        if version not in _VERSIONS:
            self._fault(505)
        if self._hosts != 1 and (self._hosts or version == "1.1"):  # RFC 9112 §3.2
            self._fault(400)
        if self.closing or self.draining or self._refusal:
            self._url, self._headers = b"", []
            return
        raw, _, query = self._target()
        path = raw.decode("latin-1")
        scope = self._scope.copy()
        scope["http_version"] = version
        scope["method"] = self._parser.get_method().decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = raw
        scope["query_string"] = query
        scope["headers"] = self._headers
        old = version == "1.0"  # it does not know 100, and would have to be told that the connection stays
        request = Request(self, scope, old or not self._parser.should_keep_alive(), self._expect and not old)
        self._url, self._headers, self._expect, self._hosts = b"", [], False, 0
        self._in_head, self._head_size = False, 0
        self.since = self.host.now
        self._reading = request
        if self._current is None:
            self._begin(request)
        else:
            self._waiting.append(request)
            if len(self._waiting) >= _PIPELINE:
                self._pause_reading()
            if len(self._waiting) > 16 * _PIPELINE:  # in what was read at once
                self._fault(503)

    def _measured(self) -> int:
        """Octets of a head that came together with its body, or with more than that."""
        return len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers)

    def _target(self) -> tuple[bytes, bytes, bytes]:
        if self._url[:1] in (b"/", b"*"):
            return self._url.partition(b"?")
        parsed = httptools.parse_url(self._url)  # absolute form, as proxies send it: its host counts
        authority = self._url.split(b"/", 3)[2].partition(b"?")[0].rpartition(b"@")[2]
        self._headers = [(b"host", authority), *(field for field in self._headers if field[0] != b"host")]
        return parsed.path or b"/", b"?", parsed.query or b""

    def on_body(self, body: bytes) -> None:
        request = self._reading
        self._head_size = 0
        if request is None or request.finished:
            return  # answered already: the rest is not wanted
        chunks = request.body
        if chunks and len(chunks[-1]) < _CRUMB:
            chunks[-1] += body
        else:
            chunks.append(body)
        request.held += len(body)
        request.wake()
        self.since = self.host.now
        if request.held > _READ_AHEAD:
            self._pause_reading()

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return  # the body is still to come, see _decline_upgrade
        request, self._reading = self._reading, None
        self._in_head, self._head_size = True, 0
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
            request.finished = True
            self._refuse(status)

    def finish(self, request: Request) -> None:
        """The response of ``request`` is complete."""
        if request.complete:
            self._next(request)
        elif request.closes or self.draining:
            self._linger()
        else:
            self.resume_reading()  # the rest of its body is read and dropped
            self.since = self.host.now

    def _next(self, request: Request) -> None:
        self._current = None
        self.since = self.host.now
        if request.closes or self.draining:
            self._end()
        elif self._waiting:
            self._begin(self._waiting.popleft())
            self.resume_reading()
        elif self._refusal:
            self._refuse(self._refusal)

    def _fault(self, status: int) -> None:
        """What comes in is no request: refuse it, after the answers to those before it."""
        if self._current is None or self._current is self._reading:
            self._refuse(status)
        elif not self._refusal:
            if self._reading is not None:
                self._waiting.pop()
            self._reading, self._refusal = None, status

    def _refuse(self, status: int) -> None:
        """Answer for the app, and end the connection."""
        if self.gone or self.closing:
            return
        current = self._current
        if current is not None and current.task is not None and not current.finished:
            current.task.cancel()
            if current.started:
                self.transport.abort()
                return
        if current is None or not current.started:
            self.transport.write(_STATUS[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self._linger()

    def _linger(self) -> None:
        """End, but take what the client is still sending."""
        if self.transport.can_write_eof():
            self.closing = True
            self.since = self.host.now
            self.resume_reading()
            self.transport.write_eof()
        else:
            self._end()

    def _end(self) -> None:
        self.closing = True
        self.since = self.host.now
        self.transport.close()

    # -- endings

    def tick(self, now: float) -> None:
        """Every second: what has waited too long."""
        limits, waited = self.host.limits, now - self.since
        if self._current is not None:
            self._current.release_head()
        if self.paused or self.closing:
            if waited > limits.write_stall:
                self.transport.abort()
            elif self.closing and waited > limits.head_timeout:
                self.transport.close()
        elif self._current is None and waited > (limits.head_timeout if self._head_size else limits.idle_timeout):
            self._end()
        elif self._reading is not None and waited > limits.body_stall:
            if self._reading.finished:
                self.transport.abort()
            elif self._reading.starved:
                self._refuse(408)

    def shutdown(self) -> None:
        """Take no new request; end when the current one is answered."""
        self.draining = True
        if self.closing or self._current is None or self._current.finished:
            self._end()

    def abort(self) -> None:
        """At once, whatever is lost."""
        self.transport.abort()
