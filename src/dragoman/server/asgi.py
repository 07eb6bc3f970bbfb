"""Bytes in, bytes out: the few things that are about ASGI and not about A2A.

Rules of this module:

- A reply that is ready goes out as one head and one body message with a content-length.
- A caller that goes away ends the wait for its answer: the handler is cancelled, the work behind it is not.
- A stream that is quiet gets a comment every ``keep_alive`` seconds where its framing has comments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from ..protocol.messages import HttpResponse

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Key of the scope's extensions of a server that cancels the handler of a caller that is gone; ours does.
CANCELS = "dragoman.cancels"

_SAFE = "/:@!$&'()*+,;=~"  # what a path segment may hold unencoded (RFC 3986 §3.3)


class BodyTooLargeError(Exception):
    """Raised when a request body grows beyond its limit."""


class ClientDisconnectedError(OSError):
    """Raised by ``send()`` when the client is gone (ASGI 2.4)."""


class DisconnectedError(Exception):
    """Raised when the caller is gone; nobody is left to answer."""


def path_below_mount(scope: Scope) -> str:
    """The percent-encoded path below the mount point, so that an encoded slash in an id stays one segment."""
    path: str = scope["path"]
    raw = scope.get("raw_path")
    if raw and b"%" in raw:
        path = raw.decode("latin-1").partition("?")[0]
    elif not path.isascii():
        path = quote(path, safe=_SAFE)
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path


async def read_body(receive: Receive, limit: int) -> bytes:
    """The whole request body. Raises ``BodyTooLargeError`` beyond ``limit`` bytes, ``DisconnectedError``."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] != "http.request":
        raise DisconnectedError
    if len(body) > limit:
        raise BodyTooLargeError
    if not message.get("more_body"):
        return body
    chunks, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] != "http.request":
            raise DisconnectedError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise BodyTooLargeError
        chunks.append(chunk)
    return b"".join(chunks)


async def send_response(send: Send, response: HttpResponse) -> None:
    """Send a finished response, with its trailers if it has some (gRPC)."""
    trailers = response.trailers
    start = {"type": "http.response.start", "status": response.status, "headers": response.headers}
    if trailers:
        start["trailers"] = True
    await send(start)
    await send({"type": "http.response.body", "body": response.body})
    if trailers:
        await send({"type": "http.response.trailers", "headers": trailers})


class Watched:
    """One handler that is cancelled if its caller disconnects; ``gone`` says that this is why."""

    __slots__ = ("_receive", "gone", "handler", "seen", "task")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.handler = asyncio.current_task()
        self.task: asyncio.Task[None] | None = None
        self.seen = False
        self.gone = False

    async def wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self.handler is not None:
            self.handler.cancel()


class Watchdog:
    """Looks every ``interval`` seconds for handlers that have run since the last look, and then waits on their callers.

    Most calls are over before that, so they pay for an entry in a set and for no timer or task of their own.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._open: set[Watched] = set()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, receive: Receive) -> Watched:
        """Watch the current task, whose caller is behind ``receive``, until :meth:`leave`."""
        watched = Watched(receive)
        self._open.add(watched)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._look)
        return watched

    def leave(self, watched: Watched) -> None:
        """The handler is done."""
        self._open.discard(watched)
        if watched.task is not None:
            watched.task.cancel()

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        for watched in self._open:
            if watched.seen and watched.task is None:
                watched.task = asyncio.ensure_future(watched.wait())
            watched.seen = True
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._look) if self._open else None


class StreamBody:
    """The body of a streamed response: written in pieces, kept alive in between."""

    __slots__ = ("_comment", "_due", "_interval", "_loop", "_ping", "_send", "_timer")

    def __init__(self, send: Send, comment: bytes, interval: float) -> None:
        self._send = send
        self._comment = comment
        self._interval = interval
        self._loop = asyncio.get_running_loop()
        self._due = 0.0
        self._ping: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, head: HttpResponse, trailers: bool) -> None:
        """Send the head and start to keep the stream alive."""
        await self._send(
            {
                "type": "http.response.start",
                "status": head.status,
                "headers": head.headers,
                "trailers": trailers,
            }
        )
        if self._comment:
            self._due = self._loop.time() + self._interval
            self._timer = self._loop.call_at(self._due, self._tick)

    async def write(self, data: bytes) -> None:
        """Send one piece; waits while the caller's side does not take more."""
        if self._ping is not None:
            await self._ping
            self._ping = None
        if self._comment:
            self._due = self._loop.time() + self._interval
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def close(self, trailers: list[tuple[bytes, bytes]] | None = None) -> None:
        """End the body, then send ``trailers`` if there are any."""
        self.stop()
        if self._ping is not None:
            await self._ping
        await self._send({"type": "http.response.body", "body": b""})
        if trailers is not None:
            await self._send({"type": "http.response.trailers", "headers": trailers})

    def stop(self) -> None:
        """Stop keeping the stream alive."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abandon(self) -> None:
        """Stop, because the caller is gone: a comment on its way goes nowhere."""
        self.stop()
        if self._ping is not None:
            self._ping.cancel()

    def _tick(self) -> None:
        now = self._loop.time()
        if now >= self._due:
            if self._ping is None or self._ping.done():
                self._ping = self._loop.create_task(self._say())
            self._due = now + self._interval
        self._timer = self._loop.call_at(self._due, self._tick)

    async def _say(self) -> None:
        await self._send({"type": "http.response.body", "body": self._comment, "more_body": True})
