"""An upstream that shows a sound card and then fails, in the way that the path of its card names.

The first segment of a path is the face, the second the way to fail: ``/1.0-JSONRPC/hang``. gRPC has a port of its own
and fails by the port's number: one server per way.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import h2.config
import h2.connection
import h2.events

from .parties import free_port

Fail = Callable[[asyncio.StreamWriter, "Asked"], Awaitable[None]]
_BLOCK = b"x" * 65_536
_EVENTS = {
    "1.0": {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}},
    "0.3/JSONRPC": {
        "kind": "status-update",
        "taskId": "t",
        "contextId": "c",
        "final": False,
        "status": {"state": "working"},
    },
    "0.3/HTTP+JSON": {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}},
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: the face that it came in, and its JSON-RPC id."""

    face: str
    id: object

    @property
    def event(self) -> bytes:
        """A sound first event for it."""
        event: dict[str, object] = _EVENTS.get(self.face) or _EVENTS["1.0"]  # type: ignore[assignment]
        if self.face.endswith("JSONRPC"):
            event = {"jsonrpc": "2.0", "id": self.id, "result": event}
        return b"data: " + json.dumps(event).encode() + b"\n\n"


def _head(status: str, media: str, *more: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", f"content-type: {media}", *more, "", "")).encode()


def _whole(status: str, media: str, body: bytes, *more: str) -> bytes:
    return _head(status, media, f"content-length: {len(body)}", *more) + body


async def _hang(out: asyncio.StreamWriter, asked: Asked) -> None:
    await asyncio.Event().wait()


async def _hang_after_head(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_head("200 OK", "application/json", "content-length: 100"))
    await _hang(out, asked)


async def _close(out: asyncio.StreamWriter, asked: Asked) -> None:
    """At once, without a word."""


async def _html(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_whole("200 OK", "text/html", b"<html><body>Welcome to nginx!</body></html>"))


async def _endless(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_head("200 OK", "text/event-stream") + b"data: ")
    while True:
        out.write(_BLOCK)
        await out.drain()


async def _not_utf8(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_whole("200 OK", "application/json", b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"\xff\xfe"}}}'))


async def _other_id(out: asyncio.StreamWriter, asked: Asked) -> None:
    result = {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}
    reply = {"jsonrpc": "2.0", "id": "somebody else's", "result": result}
    out.write(_whole("200 OK", "application/json", json.dumps(reply).encode()))


async def _overloaded(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_whole("503 Service Unavailable", "text/plain", b"come back later", "retry-after: 7"))


async def _huge(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_head("200 OK", "application/json", f"content-length: {200 * 2**20}"))
    while True:
        out.write(_BLOCK)
        await out.drain()


async def _half_event(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_head("200 OK", "text/event-stream") + asked.event + b'data: {"jsonrpc":"2.0","id"')


async def _silence(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(_head("200 OK", "text/event-stream") + asked.event)
    await _hang(out, asked)


async def _no_http(out: asyncio.StreamWriter, asked: Asked) -> None:
    out.write(b"220 mail.example ESMTP\r\n")


WAYS: dict[str, Fail] = {
    "hang": _hang,
    "hang after the head": _hang_after_head,
    "close at once": _close,
    "HTML": _html,
    "endless line": _endless,
    "invalid UTF-8": _not_utf8,
    "reply for another id": _other_id,
    "overloaded": _overloaded,
    "200 MiB": _huge,
    "half an event": _half_event,
    "silence in a stream": _silence,
    "no HTTP": _no_http,
}
_OF_JSONRPC = ("reply for another id",)
FACES = ("1.0/JSONRPC", "0.3/JSONRPC", "1.0/HTTP+JSON", "0.3/HTTP+JSON")


def _faces(mode: str) -> list[str]:
    return [face for face in FACES if mode not in _OF_JSONRPC or face.endswith("JSONRPC")]


@dataclass(frozen=True, slots=True)
class Faulty:
    """An upstream that fails. ``url``: of its card."""

    mode: str
    face: str
    url: str


def _slug(text: str) -> str:
    return "".join(one if one.isalnum() or one == "." else "-" for one in text)


def _card(face: str, url: str) -> bytes:
    version, _, binding = face.partition("/")
    card = {
        "name": "Faulty",
        "description": "Fails.",
        "version": "1",
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
        "supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": version}],
    }
    if version == "0.3":
        del card["supportedInterfaces"]
        card |= {"protocolVersion": "0.3.0", "url": url, "preferredTransport": binding}
    return json.dumps(card).encode()


class _Http:
    """All ways and faces over HTTP/1.1 on one port."""

    def __init__(self) -> None:
        self.port = 0
        self._ways = {_slug(name): way for name, way in WAYS.items()}
        self._faces = {_slug(face): face for face in FACES}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split(" ", 2)
            _, face, way, *_ = path.split("/")
            if method == "GET" and "agent-card" in path:
                url = f"http://127.0.0.1:{self.port}/{face}/{way}"
                writer.write(_whole("200 OK", "application/json", _card(self._faces[face], url), "connection: close"))
            else:
                await self._ways[way](writer, Asked(self._faces[face], await _id(reader, head)))
            await writer.drain()
        writer.close()


async def _id(reader: asyncio.StreamReader, head: str) -> object:
    """The JSON-RPC id of a request; its body is read."""
    length = re.search(r"(?i)content-length: *(\d+)", head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return json.loads(body).get("id") if body else None


async def _grpc_hang(link: h2.connection.H2Connection, stream: int) -> None:
    await asyncio.Event().wait()


async def _grpc_close(link: h2.connection.H2Connection, stream: int) -> None:
    """The connection is closed behind this."""


async def _grpc_garbage(link: h2.connection.H2Connection, stream: int) -> None:
    link.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
    link.send_data(stream, struct.pack(">BI", 0, 4) + b"\xff\xff\xff\xff")
    link.send_headers(stream, [("grpc-status", "0")], end_stream=True)


async def _grpc_unavailable(link: h2.connection.H2Connection, stream: int) -> None:
    fields = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "14")]
    link.send_headers(stream, [*fields, ("grpc-message", "overloaded")], end_stream=True)


async def _grpc_html(link: h2.connection.H2Connection, stream: int) -> None:
    link.send_headers(stream, [(":status", "502"), ("content-type", "text/html")])
    link.send_data(stream, b"<html></html>", end_stream=True)


async def _grpc_no_trailers(link: h2.connection.H2Connection, stream: int) -> None:
    link.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
    link.send_data(stream, b"", end_stream=True)


GRPC_WAYS = {
    "hang": _grpc_hang,
    "close at once": _grpc_close,
    "garbage": _grpc_garbage,
    "overloaded": _grpc_unavailable,
    "HTML": _grpc_html,
    "no trailers": _grpc_no_trailers,
}


class _Grpc:
    """One way to fail over HTTP/2; its card is on the HTTP port."""

    def __init__(self, way: str) -> None:
        self._fail = GRPC_WAYS[way]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        link.initiate_connection()
        writer.write(link.data_to_send())
        closing = self._fail is _grpc_close
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while data := await reader.read(65_536):
                for event in link.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived) and event.stream_id is not None:
                        if closing or self._fail is _grpc_hang:
                            continue
                        await self._fail(link, event.stream_id)
                    if closing and isinstance(event, h2.events.DataReceived):
                        writer.close()
                        return
                writer.write(link.data_to_send())
        writer.close()


@asynccontextmanager
async def misbehaving() -> AsyncIterator[list[Faulty]]:
    """Every way to fail on every face."""
    http = _Http()
    async with AsyncExitStack() as stack:
        server = await asyncio.start_server(http.serve, "127.0.0.1", 0)
        stack.callback(server.close)
        http.port = server.sockets[0].getsockname()[1]
        base = f"http://127.0.0.1:{http.port}"
        found = [Faulty(mode, face, f"{base}/{_slug(face)}/{_slug(mode)}") for mode in WAYS for face in _faces(mode)]
        for way in GRPC_WAYS:
            grpc = await asyncio.start_server(_Grpc(way).serve, "127.0.0.1", 0)
            stack.callback(grpc.close)
            cards = await asyncio.start_server(_cards(grpc.sockets[0].getsockname()[1]), "127.0.0.1", 0)
            stack.callback(cards.close)
            found.append(Faulty(way, "1.0/GRPC", f"http://127.0.0.1:{cards.sockets[0].getsockname()[1]}"))
        cards = await asyncio.start_server(_cards(free_port(), "1.0/JSONRPC"), "127.0.0.1", 0)
        stack.callback(cards.close)
        found.append(Faulty("refused", "1.0/JSONRPC", f"http://127.0.0.1:{cards.sockets[0].getsockname()[1]}"))
        yield found


def _cards(
    port: int, face: str = "1.0/GRPC"
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Serves the card of an interface at that port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            url = f"127.0.0.1:{port}" if face.endswith("GRPC") else f"http://127.0.0.1:{port}"
            writer.write(_whole("200 OK", "application/json", _card(face, url), "connection: close"))
            await writer.drain()
        writer.close()

    return serve
