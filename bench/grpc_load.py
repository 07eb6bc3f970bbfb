"""gRPC load: unary calls as raw HTTP/2 frames (RFC 9113), a few in flight on one connection.

grpcio's client costs several times what the server under test does, so it would leave that server mostly asleep.

Rules of this module:

- Header fields go out as literals without a dynamic table; those that come in are not read: a good reply has the
  marker in its one message and ends its stream with trailers, an error has no message.
- The windows that we grant never run out within a run; the one granted to us is watched.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import cast
from urllib.parse import urlsplit

from .load import DRAIN_SECONDS, BadReply, Tally

_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_MOST = 2**31 - 1
_DEFAULT_WINDOW = 65_535


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return b"%b%c%c%b%b" % (len(payload).to_bytes(3, "big"), kind, flags, stream.to_bytes(4, "big"), payload)


def _literal(name: bytes, value: bytes) -> bytes:
    """A field without indexing, not Huffman coded (RFC 7541 §6.2.2); lengths here fit seven bits."""
    return b"\0%c%b%c%b" % (len(name), name, len(value), value)


class GrpcLoad:
    """``flights`` unary calls in flight on one connection; see :class:`bench.load.Load`."""

    def __init__(self, target: str, method: str, request: bytes, marker: bytes, flights: int = 16) -> None:
        where = urlsplit(target if "//" in target else f"//{target}")
        self._host, self._port = where.hostname or "127.0.0.1", where.port or 80
        fields = {
            b":method": b"POST",
            b":scheme": b"http",
            b":path": method.encode(),
            b":authority": f"{self._host}:{self._port}".encode(),
            b"te": b"trailers",
            b"content-type": b"application/grpc",
            b"a2a-version": b"1.0",
        }
        headers = b"".join(_literal(name, value) for name, value in fields.items())
        message = b"\0" + len(request).to_bytes(4, "big") + request
        self._make = lambda: _Connection(headers, message, marker)
        self._flights = flights
        self._open: _Connection | None = None

    async def run(self, seconds: float) -> Tally:
        """See :class:`bench.load.Load`."""
        loop = asyncio.get_running_loop()
        if self._open is None or not self._open.alive:
            _, self._open = await loop.create_connection(self._make, self._host, self._port)
        tally = Tally()
        idle = self._open.start(tally, loop.time() + seconds, self._flights, loop)
        await asyncio.wait_for(idle, seconds + DRAIN_SECONDS)
        return tally

    async def close(self) -> None:
        """See :class:`bench.load.Load`."""
        if self._open is not None:
            self._open.close()


class _Connection(asyncio.Protocol):
    """One HTTP/2 connection, as much of it as unary calls need."""

    _transport: asyncio.Transport
    _idle: asyncio.Future[None]

    def __init__(self, headers: bytes, message: bytes, marker: bytes) -> None:
        self._headers, self._message, self._marker = headers, message, marker
        self._streams = itertools.count(1, 2)
        self._replies: dict[int, bytes] = {}  # open streams and what has come of their messages
        self._buffer = b""
        self._window = _DEFAULT_WINDOW

    def start(self, tally: Tally, until: float, flights: int, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Call until ``until`` on the loop's clock; the future is done when the last reply is in."""
        self._tally, self._until, self._time = tally, until, loop.time
        self._idle = loop.create_future()
        self._transport.write(b"".join(self._call() for _ in range(flights)))
        return self._idle

    @property
    def alive(self) -> bool:
        return not self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        settings = b"\0\1" + bytes(4) + b"\0\4" + _MOST.to_bytes(4, "big")  # no dynamic table; stream windows
        wide = _frame(_WINDOW, 0, 0, (_MOST - _DEFAULT_WINDOW).to_bytes(4, "big"))
        self._transport.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(_SETTINGS, 0, 0, settings) + wide)

    def connection_lost(self, exc: Exception | None) -> None:
        if hasattr(self, "_idle"):
            self._fail(f"the server closed the connection: {exc or 'end of stream'}")

    def data_received(self, data: bytes) -> None:
        buffer, at, answers = self._buffer + data, 0, []
        while len(buffer) - at >= 9:
            end = at + 9 + int.from_bytes(buffer[at : at + 3], "big")
            if end > len(buffer):
                break
            stream = int.from_bytes(buffer[at + 5 : at + 9], "big")
            answers.append(self._answer(buffer[at + 3], buffer[at + 4], stream, buffer[at + 9 : end]))
            at = end
        self._buffer = buffer[at:]
        if out := b"".join(answers):
            self._transport.write(out)

    def _answer(self, kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        """Take in one frame; what to write because of it."""
        if kind == _DATA:
            self._replies[stream] += payload
        elif kind == _HEADERS and flags & _END_STREAM:
            return self._ended(self._replies.pop(stream))
        elif kind in (_SETTINGS, _PING) and not flags & _ACK:
            return _frame(kind, _ACK, 0, payload if kind == _PING else b"")
        elif kind == _WINDOW and stream == 0:
            self._window += int.from_bytes(payload, "big")
        elif kind in (_RST, _GOAWAY):
            self._fail(f"the server gave up: frame {kind}, {payload!r}")
        return b""

    def _ended(self, reply: bytes) -> bytes:
        if self._marker not in reply:
            self._fail(f"bad reply: {reply[:300]!r}")
            return b""
        self._tally.units += 1
        self._tally.replies += 1
        self._tally.size += len(reply)
        if self._time() < self._until:
            return self._call()
        if not self._replies and not self._idle.done():
            self._idle.set_result(None)
        return b""

    def _call(self) -> bytes:
        stream = next(self._streams)
        self._replies[stream] = b""
        self._window -= len(self._message)
        if self._window < 0:
            self._fail("the server grants no more flow control window")
        return _frame(_HEADERS, _END_HEADERS, stream, self._headers) + _frame(_DATA, _END_STREAM, stream, self._message)

    def _fail(self, why: str) -> None:
        if not self._idle.done():
            self._idle.set_exception(BadReply(why))
        self._transport.abort()
