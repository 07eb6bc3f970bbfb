"""Real sockets: peers that are slow, silent, endless, broken or gone, and the good call after them."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import pytest

from dragoman.faces import Face
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE
from dragoman.server.app import AppLimits
from dragoman.server.host import Limits, Server, serve
from tests.asgi_driver import LIMIT
from tests.server.callers import EACH_FACE, Bench, Wire, bench, sending, wire

SHORT = Limits(
    head_timeout=0.5, idle_timeout=0.6, body_stall=0.5, write_stall=0.5, tick=0.02, head_size=8192, graceful_timeout=0.3
)
BODY_LIMIT = 64 * 1024


class Running:
    """A server on a loopback port and what is behind it."""

    def __init__(self, server: Server, behind: Bench) -> None:
        self.server, self.behind, self.port = server, behind, server.port

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, data: bytes, *, eof: bool = False) -> bytes:
        """Send bytes and read until the server hangs up."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            if eof:
                writer.write_eof()
            return await until_closed(reader)
        finally:
            writer.close()

    async def good_call(self) -> None:
        """One call over HTTP/1.1 that succeeds."""
        answer = await self.exchange(
            raw(wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("fine")), connection="close")
        )
        assert answer.startswith(b"HTTP/1.1 200 ") and b'"text":"fine"' in answer, answer


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the end; a reset is an end too. Fails when neither comes."""
    parts = []
    async with asyncio.timeout(LIMIT):
        try:
            while part := await reader.read(65536):
                parts.append(part)
        except ConnectionError:
            pass
    return b"".join(parts)


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """One response with a length."""
    async with asyncio.timeout(LIMIT):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(fields.get("content-length", 0)))
    return int(head[0].split(" ")[1]), fields, body


def raw(request: Wire, **more: str) -> bytes:
    """A request in HTTP/1.1."""
    fields = {**request.headers, "content-length": str(len(request.body)), **more}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{request.method} {request.path} HTTP/1.1\r\n{head}\r\n".encode() + request.body


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    behind = bench(limits=AppLimits(body=BODY_LIMIT, keep_alive=0.02, watch=0.02))
    async with serve(behind.app, limits=SHORT) as server:
        yield Running(server, behind)
    await behind.engine.aclose()


HEAD = b"POST / HTTP/1.1\r\nhost: a\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n"
BROKEN: list[tuple[str, bytes]] = [
    ("nonsense", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 is TLS\r\n\r\n"),
    ("text", b"hello there\r\n\r\n"),
    ("a bad verb", b"P\x00ST / HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("no verb", b" / HTTP/1.1\r\nhost: a\r\n\r\n"),
    ("a bad version", b"GET / HTTP/9.9\r\nhost: a\r\n\r\n"),
    ("a field without colon", b"GET / HTTP/1.1\r\nhost a\r\n\r\n"),
    ("a blank before the colon", b"GET / HTTP/1.1\r\nhost : a\r\n\r\n"),
    ("NUL in a field", b"GET / HTTP/1.1\r\nhost: a\r\nx: a\x00b\r\n\r\n"),
    ("two lengths", HEAD + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd"),
    ("a bad length", HEAD + b"content-length: 1x\r\n\r\na"),
    ("a negative length", HEAD + b"content-length: -1\r\n\r\n"),
    ("length and chunks", HEAD + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("an unknown coding", HEAD + b"transfer-encoding: gzip\r\n\r\nabc"),
    ("a bad chunk size", HEAD + b"transfer-encoding: chunked\r\n\r\nZZ\r\nabc\r\n0\r\n\r\n"),
    ("a chunk beyond its size", HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n"),
    ("a huge chunk size", HEAD + b"transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\nabc"),
    ("a preface that goes wrong", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"),
    ("HTTP/2 that goes wrong", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64),
    ("HTTP/2 without settings", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\x08\x06\0\0\0\0\0" + bytes(8)),
]


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in BROKEN])
async def test_what_is_no_http_is_refused_and_the_connection_closed(running: Running, data: bytes) -> None:
    answer = await running.exchange(data)
    first = answer.split(b"\r\n")[0].split(b" ")
    assert not answer or answer[3:4] in (b"\x04", b"\x07") or first[1][:1] == b"4" or first[1] == b"501", answer
    await running.good_call()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"P",
        b"PRI * HTT",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"POST / HTTP/1.1\r\nhost: a\r\n",
        HEAD + b"content-length: 100\r\n\r\n{",
        HEAD + b"transfer-encoding: chunked\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\nab",
    ],
    ids=[
        "nothing",
        "a letter",
        "half a preface",
        "a preface",
        "idle HTTP/2",
        "half a head",
        "half a body",
        "no chunk",
        "half a chunk",
    ],
)
async def test_a_peer_that_says_no_more_is_closed_in_time(running: Running, data: bytes) -> None:
    answer = await running.exchange(data)
    assert not answer.startswith(b"HTTP/1.1 2") and not answer.startswith(b"HTTP/1.1 5"), answer
    await running.good_call()


@pytest.mark.parametrize("data", [b"", b"POST /", HEAD, HEAD + b"content-length: 9\r\n\r\n{"])
async def test_a_peer_that_stops_sending_for_good_is_closed(running: Running, data: bytes) -> None:
    answer = await running.exchange(data, eof=True)
    assert not answer or answer.startswith(b"HTTP/1.1 4")
    await running.good_call()


async def test_a_whole_request_before_the_half_close_is_answered_or_dropped_but_not_left_open(running: Running) -> None:
    request = wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("fine"))
    answer = await running.exchange(raw(request), eof=True)
    assert not answer or b'"text":"fine"' in answer
    await running.good_call()


async def drip(running: Running, first: bytes, piece: bytes) -> bytes:
    """Send a piece again and again until the server hangs up."""
    reader, writer = await running.connect()
    closed = asyncio.create_task(until_closed(reader))
    writer.write(first)
    try:
        while not closed.done():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
    except ConnectionError:
        pass
    finally:
        writer.close()
    return await closed


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (b"POST / HTTP/1.1\r\n", b"x-more: and more\r\n"),
        (b"POST /", b"and/so/on/"),
        (b"", b"\r\n"),
        (b"POST / HTTP/1.1\r\nx: ", b"a"),
    ],
    ids=["fields", "path", "empty lines", "one field"],
)
async def test_an_endless_head_is_refused(running: Running, first: bytes, piece: bytes) -> None:
    answer = await drip(running, first, piece)
    assert not answer or answer.split(b" ")[1] in (b"400", b"408", b"414", b"431"), answer[:200]
    await running.good_call()


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"transfer-encoding: chunked\r\n\r\n", b"400\r\n" + b"x" * 1024 + b"\r\n"),
        (b"content-length: 99999999\r\n\r\n", b"x" * 1024),
    ],
    ids=["chunks", "length"],
)
@pytest.mark.parametrize("face", [face for face in EACH_FACE if face.binding != "GRPC"], ids=str)
async def test_an_endless_body_is_refused_in_the_words_of_the_face(
    running: Running, face: Face, head: bytes, piece: bytes
) -> None:
    request = wire(face, SEND_MESSAGE, sending("x"))
    fields = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    answer = await drip(running, f"POST {request.path} HTTP/1.1\r\n{fields}".encode() + head, piece)
    if answer:  # or a reset took it away
        status = answer.split(b" ")[1]
        assert status == (b"200" if face.binding == "JSONRPC" else b"413")
        assert str(BODY_LIMIT).encode() in answer
    await running.good_call()


async def test_a_head_beyond_its_size_is_431(running: Running) -> None:
    answer = await running.exchange(b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 10_000 + b"\r\n\r\n")
    assert answer.split(b" ")[1] in (b"431", b"400"), answer[:200]
    await running.good_call()


@pytest.mark.parametrize("face", [face for face in EACH_FACE if face.binding != "GRPC"], ids=str)
async def test_bad_and_good_calls_share_a_connection(running: Running, face: Face) -> None:
    good = wire(face, SEND_MESSAGE, sending("fine"))
    reader, writer = await running.connect()
    for body in (b"{", b"[]", b"\xff", b'{"message":1}', b""):
        writer.write(raw(good._replace(body=body)))
        status, fields, answer = await read_answer(reader)
        assert status < 500 and fields["content-type"].startswith("application/json"), answer
        assert b"rror" in answer
        writer.write(raw(good))
        status, _, answer = await read_answer(reader)
        assert status == 200 and b"fine" in answer
    writer.close()


async def test_pipelined_calls_are_answered_in_order(running: Running) -> None:
    reader, writer = await running.connect()
    words = [f"call {number}" for number in range(20)]
    writer.write(b"".join(raw(wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending(word))) for word in words))
    for word in words:
        _, _, body = await read_answer(reader)
        assert json.loads(body)["result"]["task"]["artifacts"][0]["parts"] == [{"text": word}]
    writer.close()


async def test_a_caller_that_expects_to_be_told_to_go_on_is_told(running: Running) -> None:
    request = wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("fine"))
    data = raw(request, expect="100-continue", connection="close")
    reader, writer = await running.connect()
    writer.write(data[: -len(request.body)])
    async with asyncio.timeout(LIMIT):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(request.body)
    assert b'"text":"fine"' in await until_closed(reader)
    writer.close()


async def test_a_body_in_chunks_is_read(running: Running) -> None:
    request = wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("fine"))
    fields = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    chunks = b"".join(b"1;ext=1\r\n" + bytes((octet,)) + b"\r\n" for octet in request.body) + b"0\r\ntrailer: x\r\n\r\n"
    head = f"POST / HTTP/1.1\r\n{fields}connection: close\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    assert b'"text":"fine"' in await running.exchange(head + chunks)


# -- streams


async def test_a_caller_that_hangs_up_ends_its_stream_and_not_the_task(running: Running) -> None:
    reader, writer = await running.connect()
    writer.write(raw(wire(Face("JSONRPC", "1.0"), SEND_STREAMING_MESSAGE, sending("hold"))))
    async with asyncio.timeout(LIMIT):
        await reader.readuntil(b"TASK_STATE_WORKING")
    writer.transport.abort()
    async with asyncio.timeout(LIMIT):
        await asyncio.wait(running.behind.app.desk.streams)
    running.behind.stage.go.set()
    async with asyncio.timeout(LIMIT):
        await running.behind.stage.done.wait()
    await running.good_call()


@pytest.mark.parametrize("face", [face for face in EACH_FACE if face.binding != "GRPC"], ids=str)
async def test_ending_the_app_ends_a_stream_with_its_error_and_all_its_bytes(running: Running, face: Face) -> None:
    reader, writer = await running.connect()
    writer.write(raw(wire(face, SEND_STREAMING_MESSAGE, sending("hold")), connection="close"))
    async with asyncio.timeout(LIMIT):
        await reader.readuntil(b"olding")
    await running.behind.app.aclose()
    rest = await until_closed(reader)
    assert b"shutting down" in rest and rest.endswith(b"0\r\n\r\n")
    writer.close()


async def test_a_server_that_must_go_never_ends_a_stream_as_if_it_were_whole() -> None:
    """Whether the app could say why or was cut off."""
    behind = bench()
    async with serve(behind.app, limits=SHORT) as server:
        running = Running(server, behind)
        reader, writer = await running.connect()
        writer.write(raw(wire(Face("JSONRPC", "1.0"), SEND_STREAMING_MESSAGE, sending("hold"))))
        async with asyncio.timeout(LIMIT):
            await reader.readuntil(b"TASK_STATE_WORKING")
    rest = await until_closed(reader)
    assert b'"error"' in rest or not rest.endswith(b"0\r\n\r\n")
    writer.close()
    await behind.engine.aclose()


async def test_a_reader_that_takes_nothing_is_dropped_and_holds_up_nobody(running: Running) -> None:
    """Its answers are larger than what sockets buffer."""
    blocked = socket.socket()
    blocked.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    blocked.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(blocked, ("127.0.0.1", running.port))
    _, writer = await asyncio.open_connection(sock=blocked, limit=1024)
    request = raw(wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("x" * 50_000)))
    try:
        async with asyncio.timeout(LIMIT):
            while True:
                writer.write(request)
                await writer.drain()
                await running.good_call()
    except ConnectionError:
        pass
    finally:
        writer.close()
    await running.good_call()
