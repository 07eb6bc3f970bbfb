"""gRPC calls of any kind over ASGI: request messages in as they come, replies out as they are made.

Rules of this module:

- A method is an async generator of replies over its requests; unary is one of each. Its reply goes out before the
  next request is looked at, so a caller that does not read is not read from.
- Whatever ends a call stands in its trailers. When the server closes, waiting for a request raises
  :class:`ShutDownError`, and the call ends with UNAVAILABLE unless its method says more first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from ...errors import A2AError
from ...protocol.grpc import CONTENT_TYPE, Grpc, frame, read_frames, status_fields, whole_frames
from ...protocol.messages import Header, Headers, HttpResponse
from ...protocol.wire import WireError
from ..asgi import DisconnectedError, Message, Receive, Scope, Send, StreamBody, send_response

log = logging.getLogger(__name__)

MAX_MESSAGE = 64 * 1024  # bytes of a request: names are short
_CODEC = Grpc("1.0", MAX_MESSAGE)  # for what does not depend on the version
_HEAD: Header = (b"content-type", CONTENT_TYPE)
_OK: Header = (b"grpc-status", b"0")


class StatusError(Exception):
    """Raised by a method to end its call with a status. ``name``: such as NOT_FOUND."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name
        self.text = text


class ShutDownError(StatusError):
    """Raised in a method that waits for its caller while the server closes."""

    def __init__(self) -> None:
        super().__init__("UNAVAILABLE", "This server is shutting down")


class Requests:
    """The request messages of one call. ``closing`` is set when the server closes."""

    def __init__(self, receive: Receive, encoding: bytes, closing: asyncio.Event) -> None:
        self._receive = receive
        self._encoding = encoding
        self._closing = closing
        self._received = b""
        self._ready: list[bytes] = []
        self._more = True
        self._begun = False

    def __aiter__(self) -> Requests:
        return self

    async def __anext__(self) -> bytes:
        if self._begun and self._closing.is_set():
            raise ShutDownError  # a caller that goes on asking does not hold the server up
        self._begun = True
        message = await self._message()
        if message is None:
            raise StopAsyncIteration
        return message

    async def only(self) -> bytes:
        """The one message of a call that takes one. Raises ``StatusError`` for none or several."""
        message = await self._message()
        if message is None or await self._message() is not None:
            raise StatusError("INVALID_ARGUMENT", "Exactly one message is expected")
        return message

    async def until_closing(self) -> None:
        """Wait until the server closes. Raises ``DisconnectedError`` if the caller is gone before that."""
        try:
            while True:
                await self._next()
        except ShutDownError:
            return

    async def _message(self) -> bytes | None:
        """The next message, None after the last."""
        while not self._ready:
            if not self._more:
                return None
            await self._take()
        return self._ready.pop(0)

    async def _take(self) -> None:
        message = await self._next()
        self._more = message.get("more_body", False)
        received = self._received + message.get("body", b"")
        end = whole_frames(received, MAX_MESSAGE) if self._more else len(received)  # what is cut off, is so for good
        self._ready = read_frames(received[:end], self._encoding, MAX_MESSAGE)
        self._received = received[end:]

    async def _next(self) -> Message:
        """The next of ASGI's messages about the request's body; one that is there already comes before a closing."""
        coming = asyncio.ensure_future(self._receive())
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((coming, closing), return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                raise ShutDownError
            message = coming.result()
        finally:
            coming.cancel()
            closing.cancel()
        if message["type"] != "http.request":
            raise DisconnectedError
        return message


Method = Callable[[Requests], AsyncGenerator[bytes, None]]


class Services:
    """Methods by path, and the calls of them that are open."""

    def __init__(self) -> None:
        self.methods: dict[str, Method] = {}
        self.closing = asyncio.Event()
        self._open: set[asyncio.Task[Any]] = set()

    def add(self, methods: Mapping[str, Method]) -> None:
        """Serve further methods."""
        self.methods.update(methods)

    async def aclose(self) -> None:
        """End every open call, and wait until that is written."""
        self.closing.set()
        if calls := self._open - {asyncio.current_task()}:
            await asyncio.wait(calls)

    async def answer(self, path: str, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Answer one call of the method at ``path``."""
        if scope["method"] != "POST" or not headers.get(b"content-type").startswith(CONTENT_TYPE):
            await send_response(send, HttpResponse(415, [(b"accept-post", CONTENT_TYPE)]))
            return
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in one
        self._open.add(task)
        try:
            requests = Requests(receive, headers.get(b"grpc-encoding"), self.closing)
            await _run(self.methods[path], requests, send, _CODEC.read_timeout(headers))
        except DisconnectedError:
            log.debug("the caller of %s went away", path)
        finally:
            self._open.discard(task)


async def _run(method: Method, requests: Requests, send: Send, timeout: float | None) -> None:
    body = StreamBody(send, b"", 0)
    opened = False
    replies = method(requests)
    trailers = [_OK]
    try:
        async with asyncio.timeout(timeout):
            async for reply in replies:
                if not opened:
                    await body.open(HttpResponse(200, [_HEAD]), True)
                    opened = True
                await body.write(frame(reply))
    except DisconnectedError:
        raise
    except Exception as error:  # the boundary: whatever it was becomes a status
        trailers = _status(error)
    finally:
        await replies.aclose()
    if opened:
        await body.close(trailers)
    else:
        await send_response(send, HttpResponse(200, [_HEAD, *trailers]))


def _status(error: Exception) -> list[Header]:
    match error:
        case StatusError():
            return status_fields(error.name, error.text)
        case A2AError():  # of the framing
            return status_fields(error.row.grpc, error.message)
        case TimeoutError():
            return status_fields("DEADLINE_EXCEEDED", "The call took longer than its deadline")
        case WireError():
            return status_fields("INVALID_ARGUMENT", str(error))
    log.error("a gRPC service failed", exc_info=error)
    return status_fields("INTERNAL", "Internal error")
