"""An upstream that misbehaves, over raw sockets: every fault once, for each binding and version.

    async with misbehaving(Face("GRPC", "1.0")) as agent:
        agent.fault = "dies in mid-stream"      # "" is to behave
        ...                                     # call agent.url; its card is there

A fault is told once, in terms of a :class:`Conversation`; HTTP/1.1 and HTTP/2 each know how to hold one. A call whose
text is the name of a fault is answered with that fault, whatever ``fault`` is.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dragoman.faces import FACES, Face
from dragoman.model import (
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.protocol.grpc import frame
from dragoman.protocol.messages import Call
from dragoman.server.http2.hpack import Decoder

HTML = b"<!doctype html><title>Sign in</title>"
HUGE = 100 * 1024 * 1024
PIECE = b"x" * 65_536


def _task(state: TaskState) -> Task:
    return Task(id="t-1", context_id="c-1", status=TaskStatus(state=state))


def _update(state: TaskState) -> StreamResponse:
    status = TaskStatus(state=state)
    return StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=status))


class Conversation(ABC):
    """One request, and the bytes to answer it with. ``streaming``: it asked for a stream."""

    def __init__(self, face: Face, streaming: bool, id: bytes) -> None:
        self.face = face
        self.streaming = streaming
        self._call = Call("", b"", id)
        self._codec, self._dialect = FACES[face]

    @property
    def kind(self) -> str:
        """The media type of a good answer."""
        if self.face.binding == "GRPC":
            return "application/grpc"
        return "text/event-stream" if self.streaming else "application/json"

    def first(self) -> bytes:
        """A good reply, or the first event of a good stream."""
        if self.streaming:
            return self._event(StreamResponse(task=_task(TaskState.WORKING)))
        reply = SendMessageResponse(task=_task(TaskState.COMPLETED))
        body = self._dialect.dump_reply(SEND_MESSAGE, reply)
        return frame(body) if self.face.binding == "GRPC" else self._codec.write_result(self._call, body).body

    def rest(self) -> bytes:
        """What a good stream says after that."""
        return self._event(_update(TaskState.COMPLETED)) if self.streaming else b""

    def _event(self, event: StreamResponse) -> bytes:
        return self._codec.write_event(self._call, self._dialect.dump_reply(SEND_STREAMING_MESSAGE, event))

    @abstractmethod
    async def head(self, kind: str = "", status: int = 200) -> None:
        """Send the head of an answer, of the media type ``kind`` or the right one."""

    @abstractmethod
    async def body(self, data: bytes) -> None:
        """Send a piece of its body."""

    @abstractmethod
    async def end(self) -> None:
        """End it well."""

    @abstractmethod
    def abort(self) -> None:
        """Drop the connection."""

    @abstractmethod
    async def hang(self) -> None:
        """Say nothing until the other side has had enough."""


# -- the faults


async def _behaves(io: Conversation) -> None:
    await io.head()
    await io.body(io.first() + io.rest())
    await io.end()


async def _hangs_before_head(io: Conversation) -> None:
    await io.hang()


async def _hangs_after_head(io: Conversation) -> None:
    await io.head()
    await io.hang()


async def _hangs_in_the_middle(io: Conversation) -> None:
    await io.head()
    await io.body(io.first() if io.streaming else io.first()[:20])
    await io.hang()


async def _dies_in_the_middle(io: Conversation) -> None:
    await io.head()
    await io.body(io.first() if io.streaming else io.first()[:20])
    io.abort()


async def _ends_too_soon(io: Conversation) -> None:
    await io.head()
    if io.streaming:
        await io.body(io.first())
    await io.end()


async def _closes_at_once(io: Conversation) -> None:
    io.abort()


async def _sends_html(io: Conversation) -> None:
    await io.head("text/html")
    await io.body(HTML)
    await io.end()


async def _sends_an_endless_line(io: Conversation) -> None:
    await io.head()
    if io.streaming:
        await io.body(io.first())
    await io.body(b"data: " if io.face.binding != "GRPC" else b"\0\x7f\xff\xff\xff")
    while True:
        await io.body(PIECE)


async def _sends_100_mb(io: Conversation) -> None:
    await io.head()
    if io.streaming:
        await io.body(io.first())
    await io.body(b"\0" + HUGE.to_bytes(4, "big") if io.face.binding == "GRPC" else b'data: {"jsonrpc":"2.0","id":1,"')
    for _ in range(HUGE // len(PIECE)):
        await io.body(PIECE)
    await io.end()


async def _sends_bad_utf8(io: Conversation) -> None:
    await io.head()
    await io.body(io.first().replace(b"t-1", b"t\xff1"))
    await io.end()


async def _answers_another_id(io: Conversation) -> None:
    await io.head()
    await io.body((io.first() + io.rest()).replace(b'"id":1,', b'"id":99,'))
    await io.end()


async def _has_the_wrong_type(io: Conversation) -> None:
    await io.head("application/octet-stream")
    await io.body(b"\x80\x81\x82 no message")
    await io.end()


async def _sends_half_an_event(io: Conversation) -> None:
    await io.head()
    await io.body(io.first() + io.rest()[:-5] if io.streaming else io.first()[:-5])
    await io.end()


async def _is_overloaded(io: Conversation) -> None:
    await io.head("text/plain", 503)
    await io.body(b"busy")
    await io.end()


class Fault(NamedTuple):
    """How it fails. ``told``: the error that a caller gets (tests.server.callers.ERRORS); ``grpc``: over gRPC, where
    that is another, and ``stream``, in a stream. ``waits``: it is found out by the passing of time. ``only``: for this
    binding."""

    play: Callable[[Conversation], Awaitable[None]]
    told: str = "bad reply"
    grpc: str = ""
    waits: bool = False
    only: str = ""
    stream: str = ""

    def error(self, face: Face) -> str:
        """The name of the error, behind this face."""
        return (self.grpc if face.binding == "GRPC" else "") or self.told

    def error_of_stream(self, face: Face) -> str:
        """The same, of a stream."""
        return self.stream or self.error(face)


FAULTS: dict[str, Fault] = {
    "hangs before the head": Fault(_hangs_before_head, "unavailable", waits=True),
    "hangs after the head": Fault(_hangs_after_head, "unavailable", waits=True),
    "hangs in the middle": Fault(_hangs_in_the_middle, "unavailable", waits=True),
    "dies in the middle": Fault(_dies_in_the_middle, "unavailable"),
    "ends too soon": Fault(_ends_too_soon, stream="unavailable"),
    "closes at once": Fault(_closes_at_once, "unavailable"),
    "sends HTML": Fault(_sends_html),
    "sends an endless line": Fault(_sends_an_endless_line),
    "sends 100 MB": Fault(_sends_100_mb),
    "sends bad UTF-8": Fault(_sends_bad_utf8),
    "answers another id": Fault(_answers_another_id, only="JSONRPC"),
    "has the wrong type": Fault(_has_the_wrong_type),
    "sends half an event": Fault(_sends_half_an_event, stream="unavailable"),
    "is overloaded": Fault(_is_overloaded, "unavailable"),
}


# -- over HTTP/1.1


class Http1(Conversation):
    """A conversation over HTTP/1.1, its body in chunks."""

    def __init__(
        self, face: Face, streaming: bool, id: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        super().__init__(face, streaming, id)
        self._reader = reader
        self._writer = writer

    async def head(self, kind: str = "", status: int = 200) -> None:
        fields = f"content-type: {kind or self.kind}\r\ntransfer-encoding: chunked\r\n"
        self._writer.write(f"HTTP/1.1 {status} Status\r\n{fields}\r\n".encode())
        await self._writer.drain()

    async def body(self, data: bytes) -> None:
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def abort(self) -> None:
        self._writer.transport.abort()

    async def hang(self) -> None:
        await self._reader.read()


# -- over HTTP/2

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _WINDOW = 0, 1, 3, 4, 6, 8


class Http2:
    """Just enough of HTTP/2 to answer calls; it keeps to the windows of the other side."""

    def __init__(self, agent: Misbehaving, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._agent = agent
        self._reader = reader
        self._writer = writer
        self._decoder = Decoder(65_536)
        self._gone = asyncio.Event()
        self._bodies: dict[int, bytes] = {}
        self._streaming: dict[int, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.room = asyncio.Condition()
        self.window = 65_535
        self.windows: dict[int, int] = {}
        self.initial = 65_535

    async def run(self) -> None:
        self.write(_SETTINGS, 0, 0, b"")
        try:
            while True:
                head = await self._reader.readexactly(9)
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                stream = int.from_bytes(head[5:], "big")
                await self._take(kind, flags, stream, await self._reader.readexactly(length))
        finally:
            self._gone.set()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def write(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(
                len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
            )

    async def drain(self) -> None:
        await self._writer.drain()

    def abort(self) -> None:
        self._writer.transport.abort()

    async def gone(self) -> None:
        await self._gone.wait()

    async def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & 1:
            for at in range(0, len(payload), 6):
                if payload[at : at + 2] == b"\0\x04":
                    self.initial = int.from_bytes(payload[at + 2 : at + 6], "big")
            self.write(_SETTINGS, 1, 0, b"")
        elif kind == _PING and not flags & 1:
            self.write(_PING, 1, 0, payload)
        elif kind == _WINDOW:
            async with self.room:
                more = int.from_bytes(payload, "big")
                if stream:
                    self.windows[stream] = self.windows.get(stream, self.initial) + more
                else:
                    self.window += more
                self.room.notify_all()
        elif kind == _HEADERS:
            path = dict(self._decoder.decode(payload))[b":path"]
            self._streaming[stream] = b"Stream" in path or b"Subscribe" in path
            self._bodies[stream] = b""
        elif kind == _DATA:
            self._bodies[stream] += payload
            if flags & 1:
                self._begin(stream)

    def _begin(self, stream: int) -> None:
        body = self._bodies.pop(stream)
        io = Http2Conversation(self._agent.face, self._streaming.pop(stream), self, stream)
        task = asyncio.create_task(self._agent.answer(io, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Http2Conversation(Conversation):
    """A call over HTTP/2 and its stream."""

    def __init__(self, face: Face, streaming: bool, connection: Http2, stream: int) -> None:
        super().__init__(face, streaming, b"")
        self._connection = connection
        self._stream = stream

    async def head(self, kind: str = "", status: int = 200) -> None:
        fields = _literal(b":status", b"%d" % status) + _literal(b"content-type", (kind or self.kind).encode())
        self._connection.write(_HEADERS, 4, self._stream, fields)
        await self._connection.drain()

    def _room(self) -> int:
        one = self._connection
        return min(one.window, one.windows.get(self._stream, one.initial))

    async def body(self, data: bytes) -> None:
        one = self._connection
        for at in range(0, len(data), 16_384):
            piece = data[at : at + 16_384]
            async with one.room:
                await one.room.wait_for(lambda: self._room() >= min(16_384, len(data)))
                one.window -= len(piece)
                one.windows[self._stream] = one.windows.get(self._stream, one.initial) - len(piece)
            one.write(_DATA, 0, self._stream, piece)
            await one.drain()

    async def end(self) -> None:
        self._connection.write(_HEADERS, 5, self._stream, _literal(b"grpc-status", b"0"))
        await self._connection.drain()

    def abort(self) -> None:
        self._connection.abort()

    async def hang(self) -> None:
        await self._connection.gone()


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes((len(name),)) + name + bytes((len(value),)) + value


# -- the agent


@dataclass
class Misbehaving:
    """The agent. ``calls``: how many it was asked."""

    face: Face
    port: int = 0
    fault: str = ""
    calls: int = 0
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def card(self) -> AgentCard:
        face = self.face
        url = f"127.0.0.1:{self.port}" if face.binding == "GRPC" else self.url
        return AgentCard(
            name="Misbehaving",
            description="",
            supported_interfaces=(
                AgentInterface(url=url, protocol_binding=face.binding, protocol_version=face.version),
            ),
            version="1",
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=("text/plain",),
            default_output_modes=("text/plain",),
            skills=(),
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open.add(writer)
        try:
            start = await reader.readexactly(4)
            if start == b"PRI ":
                await reader.readexactly(len(_PREFACE) - 4)
                await Http2(self, reader, writer).run()
            while await self._http1(start, reader, writer):
                start = b""
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the other side hung up, or the test is over
        finally:
            self.open.discard(writer)
            writer.close()

    async def _http1(self, start: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = start + await reader.readuntil(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        lengths = [int(one.partition(":")[2]) for one in fields if one.lower().startswith("content-length:")]
        body = await reader.readexactly(lengths[0]) if lengths else b""
        if "well-known" in line:
            found = json.dumps(_card_json(self.card())).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")
            writer.write(b"content-length: %d\r\n\r\n%b" % (len(found), found))
            await writer.drain()
            return True
        streaming = b"tream" in body[:120] or "stream" in line or "ubscribe" in line
        await self.answer(Http1(self.face, streaming, b"1", reader, writer), body)
        return not writer.is_closing()

    async def answer(self, io: Conversation, body: bytes) -> None:
        """Answer one call, as the fault is that its text or ``fault`` names."""
        self.calls += 1
        named = next((name for name in FAULTS if f"fault: {name}".encode() in body), self.fault)
        play = FAULTS[named].play if named else _behaves
        await play(io)


def _card_json(card: AgentCard) -> Any:
    from dragoman.dialects.cards import dump_card

    return json.loads(dump_card(card, card.supported_interfaces[0].protocol_version))  # type: ignore[arg-type]


@asynccontextmanager
async def misbehaving(face: Face) -> AsyncIterator[Misbehaving]:
    """The agent of one face, on a port of its own."""
    agent = Misbehaving(face)
    server = await asyncio.start_server(agent.serve, "127.0.0.1", 0)
    agent.port = server.sockets[0].getsockname()[1]
    try:
        yield agent
    finally:
        server.close()
        for writer in list(agent.open):
            writer.transport.abort()
        await server.wait_closed()
