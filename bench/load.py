"""Load: closed loops over kept-alive connections, counting only replies that hold what a good reply holds.

HTTP/1.1 is written and read raw, so that the load costs little beside the server; ``bench.grpc_load`` does the same
with HTTP/2. A reply that is anything but good ends the run with :class:`BadReply`.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from dataclasses import dataclass
from typing import Protocol, cast

from .payloads import Shot

DRAIN_SECONDS = 30.0
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: *chunked")


class BadReply(Exception):
    """A reply that must not be counted as speed."""


@dataclass
class Tally:
    """What one run did: ``units`` (calls, or events of a stream), ``replies``, and the ``size`` of them in bytes."""

    units: int = 0
    replies: int = 0
    size: int = 0


class Load(Protocol):
    """Something that can keep a server busy for a while."""

    async def run(self, seconds: float) -> Tally:
        """Fire for ``seconds``, then wait for what is in flight. Raises :class:`BadReply`."""
        ...

    async def close(self) -> None:
        """Give the connections back."""
        ...


class HttpLoad:
    """``connections`` kept-alive connections, one request in flight on each."""

    def __init__(self, shot: Shot, connections: int = 16) -> None:
        self._shot = shot
        self._wanted = connections
        self._open: list[_Connection] = []
        self._numbers = itertools.count(1)

    async def run(self, seconds: float) -> Tally:
        """See :class:`Load`."""
        loop = asyncio.get_running_loop()
        self._open = [connection for connection in self._open if connection.alive]  # the server may end idle ones
        while len(self._open) < self._wanted:
            _, connection = await loop.create_connection(self._connection, self._shot.host, self._shot.port)
            self._open.append(connection)
        tally, until = Tally(), loop.time() + seconds
        idle = [connection.start(tally, until, loop) for connection in self._open]
        await asyncio.wait_for(asyncio.gather(*idle), seconds + DRAIN_SECONDS)
        return tally

    def _connection(self) -> _Connection:
        return _Connection(self._shot, self._numbers)

    async def close(self) -> None:
        """See :class:`Load`."""
        for connection in self._open:
            connection.close()
        self._open.clear()


class _Connection(asyncio.Protocol):
    """One loop of request and reply."""

    _transport: asyncio.Transport
    _idle: asyncio.Future[None]
    _tally: Tally
    _until: float

    def __init__(self, shot: Shot, numbers: itertools.count[int]) -> None:
        self._shot = shot
        self._numbers = numbers
        self._buffer = bytearray()

    def start(self, tally: Tally, until: float, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Send until ``until`` on the loop's clock; the future is done when the last reply is in."""
        self._tally, self._until, self._time = tally, until, loop.time
        self._idle = loop.create_future()
        self._send()
        return self._idle

    @property
    def alive(self) -> bool:
        return not self._transport.is_closing()

    def close(self) -> None:
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if hasattr(self, "_idle"):
            self._fail(f"the server closed the connection: {exc or 'end of stream'}; {bytes(self._buffer[:300])!r}")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        body = self._complete()
        if body is None:
            return
        units = body.count(b"data:") if self._shot.events else 1
        if not self._buffer.startswith(b"HTTP/1.1 200") or self._shot.marker not in body or units < self._shot.events:
            self._fail(f"bad reply: {bytes(self._buffer[:600])!r}")
            return
        self._tally.units += units
        self._tally.replies += 1
        self._tally.size += len(body)
        self._buffer.clear()
        if self._time() < self._until:
            self._send()
        else:
            self._idle.set_result(None)

    def _send(self) -> None:
        self._transport.write(self._shot.bytes(next(self._numbers)))

    def _complete(self) -> bytes | bytearray | None:
        """The body, once all of it is there."""
        buffer = self._buffer
        end = buffer.find(b"\r\n\r\n") + 4
        if end < 4:
            return None
        length = _LENGTH.search(buffer, 0, end)
        if length:
            total = end + int(length[1])
            return buffer[end:total] if len(buffer) >= total else None
        if not _CHUNKED.search(buffer, 0, end):
            self._fail(f"a reply without length: {bytes(buffer[:300])!r}")
            return None
        return _joined(buffer, end) if buffer.endswith(b"\r\n0\r\n\r\n") else None

    def _fail(self, why: str) -> None:
        if not self._idle.done():
            self._idle.set_exception(BadReply(why))
        self._transport.abort()


def _joined(buffer: bytearray, at: int) -> bytes:
    """The chunks of a chunked body (RFC 9112 §7.1) that starts at ``at``, joined."""
    pieces = []
    while size := int(buffer[at : (start := buffer.index(b"\r\n", at) + 2)].split(b";")[0], 16):
        pieces.append(buffer[start : start + size])
        at = start + size + 2
    return b"".join(pieces)
