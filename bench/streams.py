"""Many streams at a time: each on a connection of its own, kept open from run to run, its events counted."""

from __future__ import annotations

import asyncio
import resource
from typing import cast

from .load import BadReply, Tally
from .payloads import Shot

OPENING_SECONDS = 90.0
_EVENT = b"data:"


def enough_files() -> None:
    """Let this process, and those that it starts, have as many sockets open as they may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class StreamsLoad:
    """``streams`` open streams; see :class:`bench.load.Load`. The first run opens them, later ones those that ended.

    A unit is an event. What is read is counted and thrown away, so that the load costs little beside the server.
    """

    def __init__(self, shot: Shot, streams: int) -> None:
        self._shot = shot
        self.streams = streams
        self._open: list[_Stream] = []
        self._number = 0

    async def run(self, seconds: float) -> Tally:
        """See :class:`bench.load.Load`."""
        loop = asyncio.get_running_loop()
        self._open = [one for one in self._open if not one.ended]
        fresh: list[_Stream] = []
        while len(fresh) < self.streams - len(self._open):
            _, one = await loop.create_connection(self._stream, self._shot.host, self._shot.port)
            fresh.append(one)
        await asyncio.wait_for(asyncio.gather(*(one.begun for one in fresh)), OPENING_SECONDS)
        self._open += fresh
        before = self._taken()
        await asyncio.sleep(seconds)
        events, size = (now - then for now, then in zip(self._taken(), before, strict=True))
        if any(one.broken for one in self._open) or not events:
            raise BadReply(next((one.broken for one in self._open if one.broken), "no event came"))
        return Tally(units=events, replies=events, size=size)

    def _stream(self) -> _Stream:
        self._number += 1
        return _Stream(self._shot.bytes(self._number), asyncio.get_running_loop().create_future())

    def _taken(self) -> tuple[int, int]:
        return sum(one.events for one in self._open), sum(one.size for one in self._open)

    async def close(self) -> None:
        """See :class:`bench.load.Load`."""
        for one in self._open:
            one.close()
        self._open.clear()


class _Stream(asyncio.Protocol):
    """One request and what comes of it."""

    _transport: asyncio.Transport

    def __init__(self, request: bytes, begun: asyncio.Future[None]) -> None:
        self._request = request
        self.begun = begun
        self.events = self.size = 0
        self.ended = False
        self.broken = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        found = data.count(_EVENT)
        self.events += found
        self.size += len(data)
        if not self.begun.done():
            if not data.startswith(b"HTTP/1.1 200"):
                self._break(f"bad reply: {data[:600]!r}")
            elif found:
                self.begun.set_result(None)
        self.ended = self.ended or data.endswith(b"0\r\n\r\n")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended:
            self._break(f"the server closed the connection: {exc or 'end of stream'}")

    def _break(self, why: str) -> None:
        self.ended, self.broken = True, why
        if not self.begun.done():
            self.begun.set_exception(BadReply(why))

    def close(self) -> None:
        self.ended = True
        self._transport.abort()
