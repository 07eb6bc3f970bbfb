"""HTTP/2 (RFC 9113) for a plain ASGI app: one protocol object per connection, one task per request.

Rules that everything here keeps:

* **A stream waits alone.** What one reader leaves unread is held in that stream, ``Limits.stream_buffer`` at
  most; its ``send()`` waits and no other stream's does. Only the peer's own connection window can stop them
  all.
* **A slot is held by work, not by a stream.** A request that was cancelled counts against ``max_streams``
  until its task has ended, so opening and resetting in a loop buys nothing. A burst of honest cancels is no
  offence.
* **Output is gathered.** Frames wait for the end of the loop's turn and leave in one write, so a unary reply
  is one write and so are ten replies that became ready together.
* **A client that goes away** makes ``receive()`` answer ``http.disconnect``, ``send()`` raise
  ``ClientDisconnectedError`` and the request's task be cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ..asgi import ClientDisconnectedError
from .frames import (
    ACK,
    CANCEL,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    FRAME_HEAD,
    FRAME_SIZE,
    FRAME_SIZE_ERROR,
    GOAWAY,
    GRPC_TOO_LARGE,
    HAS_PRIORITY,
    HEADERS,
    INTERNAL_ERROR,
    MAX_WINDOW,
    NO_ERROR,
    PADDED,
    PING,
    PREFACE,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    RST_STREAM,
    SETTING,
    SETTINGS,
    STATUS,
    STREAM_CLOSED,
    UINT32,
    WINDOW_UPDATE,
    Fault,
    Head,
    read_head,
    unpad,
    write_block,
)
from .hpack import BlockTooLarge, Decoder, HpackError
from .stream import Stream

if TYPE_CHECKING:
    from ..host import Host

log = logging.getLogger(__name__)

_CUTS = 4_096  # ids of streams remembered, long enough for what was on its way to them


class Http2Protocol(asyncio.Protocol):
    """One connection; ``host`` owns the app, the limits and the clock. ``shutdown()`` begins the graceful end."""

    def __init__(self, host: Host, extensions: dict[str, Any]) -> None:
        self.host = host
        self.app = host.app
        self.limits = limits = host.limits
        self.connections = host.connections
        self.tasks = host.tasks
        self.state = host.state
        self.loop = loop = host.loop
        self._default: tuple[list[tuple[bytes, bytes]] | None, bytes] = (None, b"")
        self._lead = b"\x20"  # before the first block: we use no table, whatever size the peer sets
        self.transport: asyncio.Transport
        self.extensions = {**extensions, "http.response.trailers": {}}
        self.scope: dict[str, Any] = {}
        # reading
        self.buffer = b""
        self.greeting = 0  # 0: no preface yet, 1: no SETTINGS yet, 2: under way
        self.decoder = Decoder(limits.head_size)
        self.heads: dict[bytes, Head] = {}
        self.heads_of = 0
        self.block: list[Any] | None = None  # [stream, flags, octets so far] of a block that CONTINUATION goes on with
        self.recv_window = max(limits.connection_window, DEFAULT_WINDOW)
        self.owed = 0
        self.last_id = 0
        self.heard = self.block_since = loop.time()
        self.pinged = False
        self.resets = 0.0
        # writing
        self.window = DEFAULT_WINDOW
        self.peer_stream_window = DEFAULT_WINDOW
        self.peer_frame_size = 16_384
        self.out: list[bytes | memoryview] = []
        self.out_size = 0
        self.held: list[Stream] = []
        self.flush_due = False
        self.paused = False
        self.paused_since = 0.0
        self.ready: deque[Stream] = deque()
        # streams
        self.streams: dict[int, Stream] = {}
        self.cut: dict[int, None] = {}  # those that ended from our side: what was on its way to them is no offence
        self.running = 0
        self.goaway_sent = self.closed = False

    # --- the transport's side ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        transport.set_write_buffer_limits(high=self.limits.write_buffer)
        self.connections.add(self)
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "2",
            "root_path": "",
            "client": tuple(peer[:2]) if isinstance(peer, tuple) else None,
            "server": tuple(local[:2]) if isinstance(local, tuple) else (local or "", None),
        }
        limits = self.limits
        settings = ((3, limits.max_streams), (4, limits.stream_window), (6, limits.head_size))
        self._frame(SETTINGS, 0, 0, b"".join(SETTING.pack(*pair) for pair in settings))
        if limits.connection_window > DEFAULT_WINDOW:
            self._frame(WINDOW_UPDATE, 0, 0, UINT32.pack(limits.connection_window - DEFAULT_WINDOW))

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.host.release(self)
        for stream in list(self.streams.values()):
            stream.kill()
        self.streams.clear()
        self.ready.clear()
        self.held.clear()
        self.out.clear()

    def eof_received(self) -> bool:
        return False  # a client that half-closes HTTP/2 has left

    def pause_writing(self) -> None:
        self.paused, self.paused_since = True, self.loop.time()

    def resume_writing(self) -> None:
        self.paused = False
        self.flush()
        self.pump()
        for stream in list(self.streams.values()):
            if stream.drain is not None and stream.pending_size <= self.limits.stream_buffer // 2:
                stream.wake()

    def data_received(self, data: bytes) -> None:
        self.heard, self.pinged = self.loop.time(), False
        if self.buffer:
            data = self.buffer + data
        at, end = 0, len(data)
        try:
            if not self.greeting:
                if end < 24 and PREFACE.startswith(data):
                    self.buffer = data
                    return
                if not data.startswith(PREFACE):
                    raise Fault(PROTOCOL_ERROR, "no preface")
                at, self.greeting = 24, 1
            while end - at >= 9 and not self.closed:
                high, low, kind, flags, stream_id = FRAME_HEAD.unpack_from(data, at)
                size = high << 16 | low
                if size > FRAME_SIZE:
                    raise Fault(FRAME_SIZE_ERROR, "frame too large")
                stop = at + 9 + size
                if stop > end:
                    break
                if (self.block is not None) != (kind == CONTINUATION) or (self.greeting == 1 and kind != SETTINGS):
                    raise Fault(PROTOCOL_ERROR, "unexpected frame")
                if kind < 10:
                    _HANDLERS[kind](self, flags, stream_id & MAX_WINDOW, data[at + 9 : stop])
                at = stop
        except Fault as fault:
            self.fail(fault.code, str(fault))
        self.buffer = b"" if self.closed else data[at:]

    # --- writing ---

    def emit(self, head: bytes, data: bytes | memoryview) -> None:
        self.out.append(head)
        if data:
            self.out.append(data)
        self.out_size += 9 + len(data)
        if not self.flush_due:
            self.flush_due = True
            self.loop.call_soon(self.flush)

    def _frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self.emit(FRAME_HEAD.pack(size >> 16, size & 0xFFFF, kind, flags, stream_id), payload)
        if self.paused and self.out_size > self.limits.control_buffer:
            self.abort("the peer asks and does not read")

    def hold_head(self, stream: Stream) -> None:
        self.held.append(stream)
        if not self.flush_due:
            self.flush_due = True
            self.loop.call_soon(self.flush)

    def emit_block(self, stream_id: int, block: bytes, flags: int) -> None:
        size = self.peer_frame_size
        if self._lead:
            block, self._lead = self._lead + block, b""
        if len(block) <= size:
            self._frame(HEADERS, flags | END_HEADERS, stream_id, block)
            return
        self._frame(HEADERS, flags, stream_id, block[:size])
        for at in range(size, len(block), size):
            self._frame(CONTINUATION, END_HEADERS if at + size >= len(block) else 0, stream_id, block[at : at + size])

    def flush(self) -> None:
        self.flush_due = False
        for stream in self.held:
            if stream.head is not None and not stream.dead:
                stream.release_head(0)
        self.held.clear()
        if self.out and not self.closed and (not self.paused or self.goaway_sent):
            data = self.out[0] if len(self.out) == 1 else b"".join(self.out)
            self.out.clear()
            self.out_size = 0
            self.transport.write(data)

    def queue(self, stream: Stream) -> None:
        if not stream.queued:
            stream.queued = True
            self.ready.append(stream)
        self.pump()

    def pump(self) -> None:
        """Send what is pending, one frame of each stream in turn, while the windows and the transport take it."""
        ready = self.ready
        while ready and not self.paused and not self.closed:
            stream = ready.popleft()
            stream.queued = False
            if stream.dead:
                continue
            if stream.pending:
                size = min(stream.window, self.window, self.peer_frame_size)
                if size <= 0:
                    if stream.window > 0:  # the connection's window is spent: all wait for it
                        stream.queued = True
                        ready.appendleft(stream)
                        return
                    continue  # a WINDOW_UPDATE of this stream queues it again
                data = stream.take(size)
                size = len(data)
                stream.window -= size
                self.window -= size
                stream.progress = self.host.now
                last = not stream.pending and stream.tail == b""
                self.emit(
                    FRAME_HEAD.pack(size >> 16, size & 0xFFFF, DATA, END_STREAM if last else 0, stream.id),
                    data,
                )
                if last:
                    self.finish(stream)
                elif stream.pending or stream.tail is not None:
                    stream.queued = True
                    ready.append(stream)
            elif stream.tail is not None and not stream.finished:
                if stream.tail:
                    self.emit_block(stream.id, stream.tail, END_STREAM)
                else:
                    self._frame(DATA, END_STREAM, stream.id, b"")
                self.finish(stream)
            if stream.drain is not None and stream.pending_size <= self.limits.stream_buffer // 2:
                stream.wake()
            if self.out_size > self.limits.write_buffer:
                self.flush()

    def default_block(self) -> bytes:
        """The host's own fields (the date), encoded anew when it has made new ones."""
        fields = self.host.default_headers
        if self._default[0] is not fields:
            self._default = (fields, write_block(tuple(fields)))
        return self._default[1]

    # --- streams ---

    def give_back(self, stream: Stream, size: int) -> None:
        """The app took ``size`` octets of a request's body: let the peer send as many again."""
        self._credit(size)
        if not stream.ended:
            stream.owed += size
            if stream.owed >= self.limits.stream_window // 2:
                self._frame(WINDOW_UPDATE, 0, stream.id, UINT32.pack(stream.owed))
                stream.recv_window += stream.owed
                stream.owed = 0

    def _credit(self, size: int) -> None:
        self.owed += size
        if self.owed >= self.limits.connection_window // 2:
            self._frame(WINDOW_UPDATE, 0, 0, UINT32.pack(self.owed))
            self.recv_window += self.owed
            self.owed = 0

    def finish(self, stream: Stream) -> None:
        """The response is complete."""
        stream.finished = True
        if not stream.ended:  # answered early: the rest of the request is not wanted
            self._cut(stream.id, NO_ERROR)
        self._drop(stream)
        stream.wake()

    def reset(self, stream: Stream, code: int) -> None:
        self._cut(stream.id, code)
        stream.kill()
        self._drop(stream)

    def _cut(self, stream_id: int, code: int) -> None:
        self._frame(RST_STREAM, 0, stream_id, UINT32.pack(code))
        self.cut[stream_id] = None
        if len(self.cut) > _CUTS:
            del self.cut[next(iter(self.cut))]

    def _offence(self, stream_id: int, code: int) -> None:
        """The peer broke the rules of one stream. It may do so as often as it may cancel."""
        self._count_reset()
        stream = self.streams.get(stream_id)
        if stream is not None:
            self.reset(stream, code)
        else:
            self._cut(stream_id, code)

    def _count_reset(self) -> None:
        self.resets += 1
        if self.resets > self.limits.reset_burst:
            raise Fault(ENHANCE_YOUR_CALM, "too many resets")

    def _drop(self, stream: Stream) -> None:
        self.streams.pop(stream.id, None)
        unread = sum(map(len, stream.chunks))
        if unread:
            stream.chunks.clear()
            self._credit(unread)
        if self.goaway_sent and not self.streams:
            self.close()

    async def _run(self, stream: Stream) -> None:
        status = 500
        try:
            await self.app(stream.scope, stream.receive, stream.send)
        except asyncio.CancelledError:
            status = 503
        except ClientDisconnectedError:
            pass
        except Exception:
            log.exception("the app failed on %s", stream.scope["path"])
        if not (stream.finished or stream.dead or stream.tail is not None):
            if stream.started:
                self.reset(stream, INTERNAL_ERROR)
            else:
                self._answer(stream.id, status)
                self.finish(stream)

    def _ran(self, task: asyncio.Task[None]) -> None:
        self.running -= 1
        self.tasks.discard(task)

    def _answer(self, stream_id: int, status: int, *headers: tuple[bytes, bytes]) -> None:
        """A whole response of ours, without a body."""
        self.emit_block(stream_id, STATUS[status] + write_block((*headers, (b"content-length", b"0"))), END_STREAM)

    def _open(self, stream_id: int, block: bytes, ended: bool) -> None:
        if stream_id <= self.last_id:
            self._trailers(stream_id, block, ended)
            return
        if not stream_id & 1:
            raise Fault(PROTOCOL_ERROR, "even stream id")
        self.last_id = stream_id
        head = self.heads.get(block) if self.heads_of == self.decoder.generation else None
        if head is None:
            before = self.decoder.generation
            try:
                fields = self._decode(block)
            except BlockTooLarge as large:
                self._too_large(stream_id, large, ended)
                return
            head = read_head(fields)
            if self.heads_of != self.decoder.generation:
                self.heads.clear()
                self.heads_of = self.decoder.generation
            if head is not None and before == self.decoder.generation and len(block) <= 256 and len(self.heads) < 64:
                self.heads[block] = head
        if self.goaway_sent or max(len(self.streams), self.running) >= self.limits.max_streams:
            self._cut(stream_id, REFUSED_STREAM)
            return
        if head is None or len(head.headers) > self.limits.head_fields:
            self._offence(stream_id, PROTOCOL_ERROR)
            return
        stream = Stream(self, stream_id, head)
        stream.scope = {
            **self.scope,
            "method": head.method,
            "scheme": head.scheme,
            "path": head.path,
            "raw_path": head.raw_path,
            "query_string": head.query,
            "headers": head.headers.copy(),
            "state": self.state.copy(),
            "extensions": self.extensions,
        }
        self.streams[stream_id] = stream
        self.running += 1
        if ended:
            self._end(stream)
        task = stream.task = self.loop.create_task(self._run(stream))
        self.tasks.add(task)
        task.add_done_callback(self._ran)

    def _too_large(self, stream_id: int, large: BlockTooLarge, ended: bool) -> None:
        if any(name == b"content-type" and value.startswith(b"application/grpc") for name, value in large.fields):
            self.emit_block(stream_id, STATUS[200] + write_block(GRPC_TOO_LARGE), END_STREAM)
        else:
            self._answer(stream_id, 431)
        if not ended:
            self._cut(stream_id, NO_ERROR)

    def _trailers(self, stream_id: int, block: bytes, ended: bool) -> None:
        """A second block (section 8.1): nothing in it is wanted, but the table must see it."""
        try:
            fields = self._decode(block)
        except BlockTooLarge as large:
            fields = large.fields
        stream = self.streams.get(stream_id)
        if stream is None:
            if stream_id not in self.cut:
                raise Fault(STREAM_CLOSED, "HEADERS on a closed stream")
        elif stream.ended:
            self._offence(stream_id, STREAM_CLOSED)
        elif not ended or any(name[:1] == b":" for name, _ in fields):
            self._offence(stream_id, PROTOCOL_ERROR)
        else:
            self._end(stream)

    def _decode(self, block: bytes) -> list[tuple[bytes, bytes]]:
        try:
            return self.decoder.decode(block)
        except BlockTooLarge:
            raise
        except HpackError as error:
            raise Fault(COMPRESSION_ERROR, str(error)) from None

    def _end(self, stream: Stream) -> None:
        if stream.left > 0:
            self._offence(stream.id, PROTOCOL_ERROR)
            return
        stream.ended = True
        stream.left = 0
        if stream.reader is not None:
            stream.wake()

    # --- frames, by type ---

    def _data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self.recv_window -= size
        if self.recv_window < 0:
            raise Fault(FLOW_CONTROL_ERROR, "connection window exceeded")
        if flags & PADDED:
            payload = unpad(payload)
        stream = self.streams.get(stream_id)
        if stream is None or stream.ended:
            if not stream_id or stream_id > self.last_id:
                raise Fault(PROTOCOL_ERROR, "DATA on an idle stream")
            self._credit(size)
            if stream_id not in self.cut:
                self._offence(stream_id, STREAM_CLOSED)
            return
        stream.recv_window -= size
        if stream.recv_window < 0 or 0 <= stream.left < len(payload):
            self._credit(size)
            self._offence(stream_id, FLOW_CONTROL_ERROR if stream.recv_window < 0 else PROTOCOL_ERROR)
            return
        if size != len(payload):
            self.give_back(stream, size - len(payload))
        if stream.left > 0:
            stream.left -= len(payload)
        if payload:
            stream.arrive(payload)
        if flags & END_STREAM:
            self._end(stream)
        elif stream.reader is not None:
            stream.wake()

    def _headers(self, flags: int, stream_id: int, payload: bytes) -> None:
        if not stream_id:
            raise Fault(PROTOCOL_ERROR, "HEADERS on stream 0")
        if flags & PADDED:
            payload = unpad(payload)
        if flags & HAS_PRIORITY:
            if len(payload) < 5:
                raise Fault(FRAME_SIZE_ERROR, "HEADERS too short")
            payload = payload[5:]
        if flags & END_HEADERS:
            self._open(stream_id, payload, bool(flags & END_STREAM))
        else:
            self.block, self.block_since = [stream_id, flags, payload, 1], self.heard

    def _continuation(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self.block
        assert block is not None
        if stream_id != block[0]:
            raise Fault(PROTOCOL_ERROR, "CONTINUATION of another stream")
        block[2] += payload
        block[3] += 1
        if len(block[2]) > 2 * self.limits.head_size or block[3] > 64:
            raise Fault(ENHANCE_YOUR_CALM, "header block too large")
        if flags & END_HEADERS:
            self.block = None
            self._open(stream_id, block[2], bool(block[1] & END_STREAM))

    def _rst_stream(self, flags: int, stream_id: int, payload: bytes) -> None:
        _sized(len(payload) == 4, "RST_STREAM")
        if not stream_id or stream_id > self.last_id:
            raise Fault(PROTOCOL_ERROR, "bad RST_STREAM")
        self._count_reset()
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.kill()
            self._drop(stream)

    def _settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        _sized(not (len(payload) % 6 or (flags & ACK and payload)), "SETTINGS")
        if stream_id:
            raise Fault(PROTOCOL_ERROR, "SETTINGS of a stream")
        self.greeting = 2
        if flags & ACK:
            return
        grown = False
        for key, value in SETTING.iter_unpack(payload):
            if key == 2 and value > 1:
                raise Fault(PROTOCOL_ERROR, "bad ENABLE_PUSH")
            if key == 4:
                if value > MAX_WINDOW:
                    raise Fault(FLOW_CONTROL_ERROR, "window too large")
                change = value - self.peer_stream_window
                self.peer_stream_window = value
                grown = grown or change > 0
                for stream in self.streams.values():
                    stream.window += change
                    if stream.window > MAX_WINDOW:
                        raise Fault(FLOW_CONTROL_ERROR, "window too large")
            elif key == 5:
                if not 16_384 <= value < 1 << 24:
                    raise Fault(PROTOCOL_ERROR, "bad frame size")
                self.peer_frame_size = min(value, 65_536)
        self._frame(SETTINGS, ACK, 0, b"")
        if grown:  # only behind the ACK: a strict peer counts by what was acknowledged
            for stream in [one for one in self.streams.values() if one.pending and one.window > 0]:
                self.queue(stream)

    def _ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        _sized(len(payload) == 8, "PING")
        if stream_id:
            raise Fault(PROTOCOL_ERROR, "PING of a stream")
        if not flags & ACK:
            self._frame(PING, ACK, 0, payload)

    def _window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        _sized(len(payload) == 4, "WINDOW_UPDATE")
        step = UINT32.unpack(payload)[0] & MAX_WINDOW
        if stream_id > self.last_id or not (step or stream_id):
            raise Fault(PROTOCOL_ERROR, "bad WINDOW_UPDATE")
        if not stream_id:
            self.window += step
            if self.window > MAX_WINDOW:
                raise Fault(FLOW_CONTROL_ERROR, "window too large")
            self.pump()
            return
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.window += step
            if not step or stream.window > MAX_WINDOW:
                self._offence(stream_id, FLOW_CONTROL_ERROR if step else PROTOCOL_ERROR)
            elif stream.pending:
                self.queue(stream)

    def _priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        """It says nothing any more (section 5.3.2), but its form is still checked."""
        if not stream_id:
            raise Fault(PROTOCOL_ERROR, "PRIORITY on stream 0")
        if len(payload) != 5 and stream_id in self.streams:
            self._offence(stream_id, FRAME_SIZE_ERROR)

    def _goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        """A client's GOAWAY asks for nothing."""
        _sized(len(payload) >= 8, "GOAWAY")
        if stream_id:
            raise Fault(PROTOCOL_ERROR, "GOAWAY on a stream")

    def _push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise Fault(PROTOCOL_ERROR, "PUSH_PROMISE from a client")

    # --- endings ---

    def tick(self, now: float) -> None:
        """Every second: what has waited too long."""
        limits = self.limits
        self.resets = max(0.0, self.resets - limits.reset_rate * limits.tick)
        quiet = now - self.heard
        if (self.paused and now - self.paused_since > limits.write_stall) or (
            self.closed and quiet > limits.write_stall
        ):
            return self.abort("the peer does not read")
        if self.greeting < 2 and quiet > limits.head_timeout:
            return self.abort("no preface in time")
        if self.block is not None and now - self.block_since > limits.head_timeout:
            return self.fail(ENHANCE_YOUR_CALM, "header block not ended in time")
        if not self.streams and quiet > limits.idle_timeout:
            return self.fail(NO_ERROR, "idle")
        if self.streams and quiet > limits.ping_after:
            if self.pinged and quiet > limits.ping_after + limits.ping_timeout:
                return self.abort("no answer to a PING")
            if not self.pinged:
                self.pinged = True
                self._frame(PING, 0, 0, b"dragoman")
        for stream in list(self.streams.values()):
            waited = now - stream.progress
            unread = stream.pending and waited > limits.write_stall
            unsent = stream.starved and waited > limits.body_stall
            if unread or unsent:
                self.reset(stream, CANCEL)
        return None

    def shutdown(self) -> None:
        """Take no new streams; end when the last one has."""
        if not self.goaway_sent and not self.closed:
            self.goaway_sent = True
            self._frame(GOAWAY, 0, 0, UINT32.pack(self.last_id) + UINT32.pack(NO_ERROR))
            if not self.streams:
                self.close()

    def fail(self, code: int, text: str) -> None:
        if not self.closed:
            self.goaway_sent = True
            self._frame(GOAWAY, 0, 0, UINT32.pack(self.last_id) + UINT32.pack(code) + text.encode())
            self.close()

    def close(self) -> None:
        """After what was emitted has left."""
        self.flush()
        self.closed = True
        self.transport.close()

    def abort(self, why: str = "the server ends") -> None:
        """At once, whatever is lost."""
        log.info("HTTP/2 connection aborted: %s", why)
        self.closed = True
        self.transport.abort()


def _sized(fits: bool, what: str) -> None:
    if not fits:
        raise Fault(FRAME_SIZE_ERROR, f"{what} of a wrong size")


_HANDLERS: Final[tuple[Callable[[Http2Protocol, int, int, bytes], None], ...]] = (
    Http2Protocol._data,
    Http2Protocol._headers,
    Http2Protocol._priority,
    Http2Protocol._rst_stream,
    Http2Protocol._settings,
    Http2Protocol._push_promise,
    Http2Protocol._ping,
    Http2Protocol._goaway,
    Http2Protocol._window_update,
    Http2Protocol._continuation,
)
