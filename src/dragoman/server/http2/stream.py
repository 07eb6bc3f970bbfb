"""One request on an HTTP/2 connection, as the app sees it: ``receive``, ``send`` and their waiting."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from ..asgi import ClientDisconnectedError
from .frames import BODILESS, DATA, END_STREAM, FRAME_HEAD, STATUS, Head, write_block

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from .connection import Http2Protocol


class Stream:
    """One request and its response; ``receive`` and ``send`` are what the app is given."""

    __slots__ = (
        "bodiless", "body_done", "chunks", "conn", "dead", "drain", "ended", "finished", "head", "id", "left",
        "owed", "pending", "pending_size", "progress", "queued", "reader", "recv_window", "scope", "started",
        "tail", "task", "told", "trailers", "window",
    )  # fmt: skip

    def __init__(self, conn: Http2Protocol, stream_id: int, head: Head) -> None:
        self.conn = conn
        self.id = stream_id
        self.scope: dict[str, Any] = {}
        self.task: asyncio.Task[None] | None = None
        self.bodiless = head.method == "HEAD"
        # what comes in
        self.chunks: list[bytes] = []
        self.left = head.length  # octets of body that content-length still promises; -1: it promised none
        self.owed = 0  # octets received that no WINDOW_UPDATE has given back
        self.recv_window = conn.limits.stream_window
        self.ended = self.told = False  # the request is complete; and the app knows it
        self.reader: asyncio.Future[None] | None = None
        # what goes out
        self.window = conn.peer_stream_window
        self.pending: deque[memoryview] = deque()
        self.pending_size = 0
        self.tail: bytes | None = None  # how the stream ends once nothing is pending: trailers, or b"" for none
        self.drain: asyncio.Future[None] | None = None
        self.queued = False
        self.started = self.trailers = self.body_done = False
        self.head: bytes | None = (
            None  # held until a body or the end of the loop's turn: an empty body ends on the head
        )
        self.finished = False  # END_STREAM was sent
        self.dead = False  # reset by either side, or the connection is gone
        self.progress = conn.loop.time()

    async def receive(self) -> dict[str, Any]:
        while not self.dead:
            if self.chunks or (self.ended and not self.told):
                body = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
                self.chunks.clear()
                self.conn.give_back(self, len(body))
                self.told = self.ended
                return {"type": "http.request", "body": body, "more_body": not self.ended}
            if self.finished:
                break
            self.progress = self.conn.loop.time()
            self.reader = self.conn.loop.create_future()
            await self.reader
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if self.dead:
            raise ClientDisconnectedError("the client has left this stream")
        kind = message["type"]
        conn = self.conn
        if kind == "http.response.body" and self.started and not self.body_done:
            self.body_done = not message.get("more_body", False)
            last = self.body_done and not self.trailers
            data = b"" if self.bodiless else message.get("body", b"")
            size = len(data)
            if self.head is not None:
                self.release_head(END_STREAM if last and not size else 0)
            if self.finished:
                pass
            elif self.pending or size > self.window or size > conn.window or size > conn.peer_frame_size or conn.paused:
                self._hold(data, b"" if last else None)
            elif size or last:
                self.window -= size
                conn.window -= size
                conn.emit(FRAME_HEAD.pack(size >> 16, size & 0xFFFF, DATA, END_STREAM if last else 0, self.id), data)
                if last:
                    conn.finish(self)
        elif kind == "http.response.start" and not self.started:
            status = message["status"]
            block = write_block(tuple(map(tuple, message.get("headers", ()))))
            self.head = STATUS[status] + conn.default_block() + block
            self.started = True
            self.trailers = message.get("trailers", False)
            self.bodiless = self.bodiless or status in BODILESS
            conn.hold_head(self)
        elif kind == "http.response.trailers" and self.body_done and self.trailers and self.tail is None:
            block = write_block(tuple(map(tuple, message.get("headers", ()))))
            if self.pending:
                self.tail = block
            else:
                conn.emit_block(self.id, block, END_STREAM)
                conn.finish(self)
        else:
            raise RuntimeError(f"{kind} out of turn")
        if conn.out_size > conn.limits.write_buffer:
            conn.flush()
            await asyncio.sleep(0)  # an app that never waits must not keep the loop to itself
        if self.pending_size > conn.limits.stream_buffer or conn.paused:
            await self._drained()

    def release_head(self, flags: int) -> None:
        """Emit the head; with ``END_STREAM`` it is the whole response, as gRPC wants its errors."""
        assert self.head is not None
        block, self.head = self.head, None
        self.conn.emit_block(self.id, block, flags)
        if flags:
            self.conn.finish(self)

    def _hold(self, data: bytes, tail: bytes | None) -> None:
        if data:
            self.pending.append(memoryview(data))
            self.pending_size += len(data)
        self.tail = tail
        self.progress = self.conn.loop.time()
        self.conn.queue(self)

    async def _drained(self) -> None:
        limit = self.conn.limits.stream_buffer // 2
        while not self.dead and (self.pending_size > limit or (self.conn.paused and not self.finished)):
            self.drain = self.conn.loop.create_future()
            await self.drain
        if self.dead:
            raise ClientDisconnectedError("the client has left this stream")

    @property
    def starved(self) -> bool:
        """Whether the app waits for more of the body."""
        return self.reader is not None and not self.reader.done() and not self.ended

    def arrive(self, data: bytes) -> None:
        """More of the body. What comes in crumbs is put together: a crumb costs more memory than it has octets."""
        chunks = self.chunks
        if chunks and len(chunks[-1]) < 1024:
            chunks[-1] += data
        else:
            chunks.append(data)
        self.progress = self.conn.heard

    def take(self, size: int) -> memoryview:
        """At most ``size`` octets of what is pending."""
        first = self.pending[0]
        if len(first) <= size:
            self.pending.popleft()
        else:
            self.pending[0], first = first[size:], first[:size]
        self.pending_size -= len(first)
        return first

    def wake(self) -> None:
        for waiter in (self.reader, self.drain):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def kill(self) -> None:
        """The peer or the connection is gone, or we gave this stream up."""
        self.dead = True
        self.pending.clear()
        self.pending_size = 0
        self.wake()
        if self.task is not None and not self.finished:
            self.task.cancel()
