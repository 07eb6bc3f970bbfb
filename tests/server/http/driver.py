"""Peers of the server library: raw sockets, an HTTP/2 client on the ``h2`` package, a transport in memory; and apps."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings

from dragoman.server.asgi import App, Message, Receive, Scope, Send
from dragoman.server.host import Limits, Server
from dragoman.server.http2 import PREFACE

LIMIT = 10.0  # seconds that any one wait may take before the test fails
SHORT = Limits(
    head_timeout=0.5, idle_timeout=0.5, body_stall=0.5, write_stall=0.5, ping_after=0.2, ping_timeout=0.3, tick=0.02,
    graceful_timeout=0.2,
)  # fmt: skip
Fields = list[tuple[bytes, bytes]]


# --- apps ---


async def read_all(receive: Receive) -> bytes:
    """The whole body; fails when the client leaves first."""
    body, more = b"", True
    while more:
        message = await receive()
        assert message["type"] == "http.request"
        body, more = body + message["body"], message["more_body"]
    return body


async def respond(
    send: Send, body: bytes = b"", status: int = 200, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """One head, one body."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """What was asked, as text: method, target, body."""
    if scope["type"] != "http":
        return
    body = await read_all(receive)
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    await respond(send, b" ".join((scope["method"].encode(), scope["raw_path"] + query, body)))


def replies(*messages: Message) -> App:
    """An app that reads the request and sends ``messages``."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await read_all(receive)
            for message in messages:
                await send(message)

    return app


def start(status: int = 200, *headers: tuple[bytes, bytes], trailers: bool = False) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers), "trailers": trailers}


def body(data: bytes = b"", more: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


# --- raw sockets ---


class Raw:
    """One connection, octet by octet."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def until(self, end: bytes) -> bytes:
        async with asyncio.timeout(LIMIT):
            return await self.reader.readuntil(end)

    async def rest(self) -> bytes:
        """All that comes until the server hangs up; a reset is an end too."""
        parts = []
        async with asyncio.timeout(LIMIT):
            try:
                while part := await self.reader.read(65_536):
                    parts.append(part)
            except ConnectionError:
                pass
        return b"".join(parts)


@asynccontextmanager
async def connected(
    server: Server, context: ssl.SSLContext | None = None, receive_buffer: int = 0
) -> AsyncIterator[Raw]:
    sock = socket.socket()
    sock.setblocking(False)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", server.port))
    except OSError:
        sock.close()
        raise
    name = "localhost" if context else None
    reader, writer = await asyncio.open_connection(sock=sock, ssl=context, server_hostname=name)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()


def undated(answer: bytes) -> bytes:
    """Without the dates, which differ."""
    return re.sub(rb"date: [^\r]*GMT\r\n", b"", answer)


# --- HTTP/2 ---


def frame(kind: int, flags: int = 0, stream_id: int = 0, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream_id.to_bytes(4, "big") + payload


HELLO = PREFACE + frame(4)


def frames(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """``(type, flags, stream, payload)`` of each whole frame."""
    found, at = [], 0
    while at + 9 <= len(data):
        size = int.from_bytes(data[at : at + 3], "big")
        found.append((data[at + 3], data[at + 4], int.from_bytes(data[at + 5 : at + 9], "big"), data[at + 9 :][:size]))
        at += 9 + size
    return found


@dataclass
class Response:
    """What came on one stream."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""
    trailers: dict[bytes, bytes] | None = None
    ended: bool = False
    ended_on_head: bool = False
    reset: int | None = None

    @property
    def over(self) -> bool:
        return self.ended or self.reset is not None


class Peer:
    """A client that checks all that the server says: ``h2`` raises where the server breaks the protocol."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        config = h2.config.H2Configuration(
            header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.h2 = h2.connection.H2Connection(config)
        self.responses: dict[int, Response] = {}
        self.goaway: int | None = None
        self.pongs = 0
        self.settled = False
        self.closed = False
        self.acknowledge = True

    def flush(self) -> None:
        self.raw.send(self.h2.data_to_send())

    def ask(
        self,
        body: bytes | None = b"",
        path: bytes = b"/",
        method: bytes = b"POST",
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> int:
        """A request; with ``body`` None it is left open. The stream's id."""
        stream_id = self.h2.get_next_available_stream_id()
        fields = [(b":method", method), (b":scheme", b"http"), (b":path", path), (b":authority", b"a"), *headers]
        self.responses[stream_id] = Response()
        self.h2.send_headers(stream_id, fields, end_stream=body == b"")
        if body:
            self.h2.send_data(stream_id, body, end_stream=True)
        self.flush()
        return stream_id

    async def until(self, done: Callable[[], bool]) -> None:
        """Take what comes until ``done()``; the connection's end is an end too if it is asked for."""
        async with asyncio.timeout(LIMIT):
            while not done():
                assert not self.closed, f"closed; GOAWAY {self.goaway}"
                try:
                    data = await self.raw.reader.read(65_536)
                except ConnectionError:
                    data = b""
                self.closed = not data
                for event in self.h2.receive_data(data):
                    self.take(event)
                if not self.closed:
                    self.flush()

    def take(self, event: h2.events.Event) -> None:
        response = self.responses.get(getattr(event, "stream_id", 0) or 0, Response())
        match event:
            case h2.events.ResponseReceived():
                response.headers = dict(event.headers or ())
                response.status = int(response.headers[b":status"])
                response.ended_on_head = event.stream_ended is not None
            case h2.events.DataReceived():
                response.body += event.data or b""
                if self.acknowledge and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id or 0)
            case h2.events.TrailersReceived():
                response.trailers = dict(event.headers or ())
            case h2.events.StreamEnded():
                response.ended = True
            case h2.events.StreamReset() if event.remote_reset:
                response.reset = event.error_code
            case h2.events.ConnectionTerminated():
                self.goaway = event.error_code
            case h2.events.PingAckReceived():
                self.pongs += 1
            case h2.events.RemoteSettingsChanged():
                self.settled = True

    async def response(self, stream_id: int) -> Response:
        await self.until(lambda: self.responses[stream_id].over)
        return self.responses[stream_id]

    async def call(self, body: bytes = b"", **more: Any) -> Response:
        return await self.response(self.ask(body, **more))

    async def end(self) -> int | None:
        """Until the server has hung up; the code of its GOAWAY."""
        await self.until(lambda: self.closed)
        return self.goaway


@asynccontextmanager
async def peer(server: Server, *, window: int = 0, context: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """An HTTP/2 connection past its greeting; with ``window`` each stream of the server has that much room."""
    async with connected(server, context) as raw:
        client = Peer(raw)
        if window:
            client.h2.local_settings = h2.settings.Settings(
                client=True, initial_values={h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window}
            )
        client.h2.initiate_connection()
        client.flush()
        await client.until(lambda: client.settled)
        yield client


# --- in memory ---


class MemoryTransport(asyncio.Transport):
    """Keeps what is written and how reading was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reading = True
        self.closed = False
        self._changed = asyncio.Event()

    async def until(self, done: Callable[[], bool]) -> None:
        """Until a call on this transport made ``done()`` true."""
        async with asyncio.timeout(LIMIT):
            while not done():
                self._changed.clear()
                await self._changed.wait()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        self._changed.set()

    def pause_reading(self) -> None:
        self.reading = False
        self._changed.set()

    def resume_reading(self) -> None:
        self.reading = True
        self._changed.set()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._changed.set()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True
        self._changed.set()

    def abort(self) -> None:
        self.closed = True
        self._changed.set()
