"""HTTP/1.1 to the octet: what goes in, what comes out, and when the connection ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.server.asgi import App, ClientDisconnectedError, Receive, Scope, Send
from dragoman.server.host import Host, Limits, serve
from dragoman.server.http1 import Http1Protocol
from tests.server.http.driver import (
    LIMIT,
    SHORT,
    MemoryTransport,
    Raw,
    body,
    connected,
    echo,
    read_all,
    replies,
    respond,
    start,
    undated,
)

GET = b"GET /a HTTP/1.1\r\nhost: a\r\n"
POST = b"POST /p HTTP/1.1\r\nhost: a\r\n"
LAST = b"connection: close\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n%b\r\n%b"
REFUSED = b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
BAD = REFUSED % b"400 Bad Request"


def answer(text: bytes, more: bytes = b"") -> bytes:
    return ANSWER % (len(text), more, text)


def last(text: bytes) -> bytes:
    return answer(text, b"connection: close\r\n")


async def exchange(app: App, data: bytes, limits: Limits = SHORT) -> bytes:
    """Send ``data`` at once and read until the server hangs up."""
    async with serve(app, limits=limits) as server, connected(server) as raw:
        raw.send(data)
        return undated(await raw.rest())


ECHOES: dict[str, tuple[bytes, bytes]] = {
    "a request": (GET + LAST, last(b"GET /a ")),
    "keep-alive": (GET + b"\r\n" + GET + LAST, answer(b"GET /a ") + last(b"GET /a ")),
    "pipelined, in order": (
        b"".join(b"GET /%d HTTP/1.1\r\nhost: a\r\n\r\n" % n for n in range(40)) + GET + LAST,
        b"".join(answer(b"GET /%d " % n) for n in range(40)) + last(b"GET /a "),
    ),
    "a body with a length": (POST + b"content-length: 3\r\n" + LAST + b"abc", last(b"POST /p abc")),
    "a body in chunks": (
        POST + b"transfer-encoding: chunked\r\n" + LAST + b"1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n",
        last(b"POST /p abc"),
    ),
    "bodies pipelined": (
        POST
        + b"content-length: 3\r\n\r\nabc"
        + POST
        + b"transfer-encoding: chunked\r\n"
        + LAST
        + b"1\r\nd\r\n0\r\n\r\n",
        answer(b"POST /p abc") + last(b"POST /p d"),
    ),
    "an empty line before the request": (b"\r\n" + GET + LAST, last(b"GET /a ")),
    "HTTP/1.0": (b"GET /a HTTP/1.0\r\n\r\n", last(b"GET /a ")),
    "HTTP/1.0 that wants to stay": (b"GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", last(b"GET /a ")),
    "HEAD": (b"HEAD /a HTTP/1.1\r\nhost: a\r\n" + LAST, b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"),
    "absolute form": (b"GET http://b:1/a?x=1 HTTP/1.1\r\nhost: a\r\n" + LAST, last(b"GET /a?x=1 ")),
    "absolute form without a path": (b"GET http://b HTTP/1.1\r\nhost: a\r\n" + LAST, last(b"GET / ")),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\nhost: a\r\n" + LAST, last(b"OPTIONS * ")),
    "a query": (b"GET /a?b=c?d HTTP/1.1\r\nhost: a\r\n" + LAST, last(b"GET /a?b=c?d ")),
    "an upgrade declined": (
        GET + b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAE\r\n\r\n" + GET + LAST,
        answer(b"GET /a ") + last(b"GET /a "),
    ),
    "an upgrade declined, with a body": (
        POST + b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 3\r\n\r\nabc" + GET + LAST,
        answer(b"POST /p abc") + last(b"GET /a "),
    ),
    "an upgrade declined, with chunks": (
        POST
        + b"connection: upgrade\r\nupgrade: h2c\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        + GET
        + LAST,
        answer(b"POST /p abc") + last(b"GET /a "),
    ),
    "100 is said when the body is wanted": (
        POST + b"expect: 100-continue\r\ncontent-length: 3\r\n" + LAST,
        b"HTTP/1.1 100 Continue\r\n\r\n" + REFUSED % b"408 Request Timeout",
    ),
    "100 is not said when the body is there": (
        POST + b"expect: 100-continue\r\ncontent-length: 3\r\n" + LAST + b"abc",
        last(b"POST /p abc"),
    ),
    "100 is not said to HTTP/1.0": (
        b"POST /p HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n",
        REFUSED % b"408 Request Timeout",
    ),
    "octets after the last request": (GET + LAST + b"garbage", last(b"GET /a ")),
    "nonsense": (b"hello\r\n\r\n", BAD),
    "nonsense after a request": (GET + b"\r\nhello\r\n\r\n", answer(b"GET /a ") + BAD),
    "a request line without version": (b"GET /\r\n\r\n", REFUSED % b"505 HTTP Version Not Supported"),
    "HTTP/2 without its preface": (
        b"GET / HTTP/2.0\r\nhost: a\r\n\r\n",
        REFUSED % b"505 HTTP Version Not Supported",
    ),
    "a version from the future": (b"GET / HTTP/3.0\r\nhost: a\r\n\r\n", BAD),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", BAD),
    "two hosts": (b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", BAD),
    "two lengths": (POST + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd", BAD),
    "a length and chunks": (POST + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
    "a chunk without a size": (POST + b"transfer-encoding: chunked\r\n\r\nxyz\r\n", BAD),
    "CONNECT": (b"CONNECT b:443 HTTP/1.1\r\nhost: b:443\r\n\r\n", BAD),
    "HTTP/2's preface too late": (GET + b"\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", answer(b"GET /a ") + BAD),
    "a broken second body": (
        GET + b"\r\n" + POST + b"transfer-encoding: chunked\r\n\r\nxyz\r\n" + GET + LAST,
        answer(b"GET /a ") + BAD,
    ),
    "a large head": (GET + b"x: " + b"y" * 70_000 + b"\r\n\r\n", REFUSED % b"431 Request Header Fields Too Large"),
    "a large target": (b"GET /" + b"y" * 70_000, REFUSED % b"431 Request Header Fields Too Large"),
    "a head of many fields": (GET + b"x: y\r\n" * 14_000, REFUSED % b"431 Request Header Fields Too Large"),
    "a large head and its body": (
        POST + b"x: " + b"y" * 70_000 + b"\r\ncontent-length: 3\r\n\r\nabc",
        REFUSED % b"431 Request Header Fields Too Large",
    ),
    "a large head after a request": (
        GET + b"\r\n" + GET + b"x: " + b"y" * 600_000,
        answer(b"GET /a ") + REFUSED % b"431 Request Header Fields Too Large",
    ),
    "large trailers": (
        POST + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: " + b"y" * 200_000,
        REFUSED % b"431 Request Header Fields Too Large",
    ),
    "a large chunk extension": (
        POST + b"transfer-encoding: chunked\r\n\r\n1;" + b"y" * 200_000,
        REFUSED % b"431 Request Header Fields Too Large",
    ),
}


@pytest.mark.parametrize(("data", "expected"), ECHOES.values(), ids=ECHOES.keys())
async def test_these_octets_are_answered_by_those(data: bytes, expected: bytes) -> None:
    assert await exchange(echo, data) == expected


@pytest.mark.parametrize("name", ["a body in chunks", "an upgrade declined, with a body", "pipelined, in order"])
async def test_octets_that_come_one_by_one_mean_the_same(name: str) -> None:
    data, expected = ECHOES[name]
    host = Host(echo, SHORT, {})
    protocol, transport = in_memory(host)
    for octet in data:
        protocol.data_received(bytes((octet,)))
        await asyncio.sleep(0)
    await transport.until(lambda: transport.closed)
    protocol.connection_lost(None)
    await host.close()
    assert undated(transport.written) == expected


def in_memory(host: Host) -> tuple[Http1Protocol, MemoryTransport]:
    protocol, transport = Http1Protocol(host, {}), MemoryTransport()
    protocol.connection_made(transport)
    return protocol, transport


HEAD = b"HTTP/1.1 %b\r\n"
SENT: dict[str, tuple[App, bytes, bytes]] = {
    "in chunks": (
        replies(start(), body(b"ab", True), body(b"", True), body(b"c" * 17, True), body()),
        GET,
        HEAD % b"200 OK" + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n11\r\n" + b"c" * 17 + b"\r\n0\r\n\r\n",
    ),
    "the last chunk with a body": (
        replies(start(), body(b"ab", True), body(b"c")),
        GET,
        HEAD % b"200 OK" + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
    ),
    "in pieces with a length": (
        replies(start(200, (b"content-length", b"3")), body(b"ab", True), body(b"c")),
        GET,
        HEAD % b"200 OK" + b"content-length: 3\r\n\r\nabc",
    ),
    "an empty body": (replies(start(), body()), GET, HEAD % b"200 OK" + b"content-length: 0\r\n\r\n"),
    "204": (replies(start(204), body()), GET, HEAD % b"204 No Content" + b"\r\n"),
    "204 whose body is dropped": (
        replies(start(204), body(b"x", True), body(b"y")),
        GET,
        HEAD % b"204 No Content" + b"\r\n",
    ),
    "304 with the length of what is not sent": (
        replies(start(304, (b"content-length", b"9")), body()),
        GET,
        HEAD % b"304 Not Modified" + b"content-length: 9\r\n\r\n",
    ),
    "HEAD with a length": (
        replies(start(200, (b"content-length", b"3")), body(b"abc")),
        b"HEAD /a HTTP/1.1\r\nhost: a\r\n",
        HEAD % b"200 OK" + b"content-length: 3\r\n\r\n",
    ),
    "HEAD of a stream": (
        replies(start(), body(b"abc", True), body(b"d")),
        b"HEAD /a HTTP/1.1\r\nhost: a\r\n",
        HEAD % b"200 OK" + b"\r\n",
    ),
    "a status without a name": (replies(start(299), body()), GET, HEAD % b"299 " + b"content-length: 0\r\n\r\n"),
    "the server's framing, not the app's": (
        replies(
            start(200, (b"transfer-encoding", b"chunked"), (b"connection", b"keep-alive")), body(b"a", True), body()
        ),
        GET,
        HEAD % b"200 OK" + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    ),
    "trailers, which are not sent": (
        replies(start(trailers=True), body(b"a"), {"type": "http.response.trailers", "headers": []}),
        GET,
        HEAD % b"200 OK" + b"content-length: 1\r\n\r\na",
    ),
}


@pytest.mark.parametrize(("app", "request_head", "expected"), SENT.values(), ids=SENT.keys())
async def test_a_reply_is_framed_so_that_the_next_one_can_follow(
    app: App, request_head: bytes, expected: bytes
) -> None:
    last_one = expected.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1)
    if last_one == expected:  # a head without fields of its own
        last_one = expected[:-2] + b"connection: close\r\n\r\n"
    assert await exchange(app, request_head + b"\r\n" + request_head + LAST) == expected + last_one


async def test_http_1_0_gets_a_body_without_chunks_that_ends_with_the_connection() -> None:
    app = replies(start(), body(b"ab", True), body(b"c", True), body())
    assert await exchange(app, b"GET / HTTP/1.0\r\n\r\n") == HEAD % b"200 OK" + b"connection: close\r\n\r\nabc"


async def test_the_app_may_end_the_connection() -> None:
    app = replies(start(200, (b"connection", b"close")), body(b"a"))
    assert await exchange(app, GET + b"\r\n" + GET + b"\r\n") == last(b"a")


async def test_a_date_is_sent() -> None:
    async with serve(echo) as server, connected(server) as raw:
        raw.send(GET + b"\r\n")
        assert b"\r\ndate: " in await raw.until(b"\r\n\r\n")


async def test_the_scope_tells_all_of_the_request() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            seen.append(scope)
            await respond(send)

    await exchange(app, b"PUT /a%2Fb/%C3%A9?q=%20 HTTP/1.1\r\nHost: a\r\nX-Twice: 1\r\nX-Twice:  2 \r\n" + LAST)
    scope = seen[0]
    assert (scope["method"], scope["http_version"], scope["scheme"]) == ("PUT", "1.1", "http")
    assert (scope["path"], scope["raw_path"]) == ("/a/b/é", b"/a%2Fb/%C3%A9")
    assert (scope["query_string"], scope["root_path"]) == (b"q=%20", "")
    assert scope["headers"] == [(b"host", b"a"), (b"x-twice", b"1"), (b"x-twice", b"2"), (b"connection", b"close")]
    assert scope["client"][0] == scope["server"][0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("target", "host"),
    [(b"http://b:1/a", b"b:1"), (b"http://b?q", b"b"), (b"http://u:p@b/a", b"b"), (b"http://[::1]:8/", b"[::1]:8")],
)
async def test_the_host_of_an_absolute_target_counts(target: bytes, host: bytes) -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            seen.append(scope)
            await respond(send)

    await exchange(app, b"GET " + target + b" HTTP/1.1\r\nhost: a\r\n" + LAST)
    assert [value for name, value in seen[0]["headers"] if name == b"host"] == [host]


async def test_trailers_of_a_request_do_not_become_headers_of_the_next() -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await read_all(receive)
            seen.append(scope["headers"])
            await respond(send)

    chunked = POST + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nauthorization: forged\r\n\r\n"
    await exchange(app, chunked + GET + LAST)
    assert seen[1] == [(b"host", b"a"), (b"connection", b"close")]


# --- Expect ---


async def test_a_body_that_was_waited_for_follows_its_100() -> None:
    async with serve(echo) as server, connected(server) as raw:
        raw.send(POST + b"expect: 100-continue\r\ncontent-length: 3\r\n" + LAST)
        assert await raw.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        raw.send(b"abc")
        assert undated(await raw.rest()) == last(b"POST /p abc")


async def test_an_answer_without_the_body_that_was_offered_ends_the_connection() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await respond(send, b"no", 403)

    text = await exchange(app, POST + b"expect: 100-continue\r\ncontent-length: 3\r\n\r\n")
    assert text == b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"


async def test_a_body_that_is_not_wanted_is_read_and_the_connection_goes_on() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await respond(send, scope["raw_path"])

    async with serve(app) as server, connected(server) as raw:
        raw.send(POST + b"content-length: 4000000\r\n\r\n")
        assert undated(await raw.until(b"\r\n\r\n/p")) == answer(b"/p")
        raw.send(b"x" * 4_000_000 + GET + LAST)
        assert undated(await raw.rest()) == last(b"/a")


# --- apps that fail ---


def failing(*before: Any) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for message in before:
                await send(message)
            raise LookupError("of the app")

    return app


INTERNAL = REFUSED % b"500 Internal Server Error"
PARTIAL = HEAD % b"200 OK" + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n"
FAILURES: dict[str, tuple[App, bytes]] = {
    "raises before its head": (failing(), INTERNAL),
    "raises after its head": (failing(start()), b""),
    "raises within its body": (failing(start(), body(b"a", True)), PARTIAL),
    "raises after its body": (failing(start(), body(b"a")), answer(b"a")),
    "says nothing": (replies(), INTERNAL),
    "says a head and no more": (replies(start()), b""),
    "does not end its body": (replies(start(), body(b"a", True)), PARTIAL),
    "says less than its length": (replies(start(200, (b"content-length", b"3")), body(b"a")), b""),
    "says less than its length, in pieces": (
        replies(start(200, (b"content-length", b"3")), body(b"a", True), body(b"b")),
        HEAD % b"200 OK" + b"content-length: 3\r\n\r\na",
    ),
    "says more than its length": (replies(start(200, (b"content-length", b"1")), body(b"abc")), b""),
    "says more than its length, in pieces": (
        replies(start(200, (b"content-length", b"2")), body(b"a", True), body(b"bc")),
        HEAD % b"200 OK" + b"content-length: 2\r\n\r\na",
    ),
    "has a length that is none": (replies(start(200, (b"content-length", b"x")), body(b"a")), INTERNAL),
    "says its head twice": (replies(start(), start(), body()), b""),
    "says its body first": (replies(body()), INTERNAL),
    "says something else": (replies({"type": "websocket.accept"}), INTERNAL),
    "splits a value": (replies(start(200, (b"x", b"y\r\nset-cookie: z")), body()), INTERNAL),
    "splits a value by LF": (replies(start(200, (b"x", b"y\nz")), body()), INTERNAL),
    "splits a value by CR": (replies(start(200, (b"x", b"y\rz")), body()), INTERNAL),
    "splits two values": (replies(start(200, (b"x", b"y\r"), (b"z", b"\n")), body()), INTERNAL),
    "splits a name": (replies(start(200, (b"x: y\r\nz", b"y")), body()), INTERNAL),
}


@pytest.mark.parametrize(("app", "expected"), FAILURES.values(), ids=FAILURES.keys())
async def test_no_reader_takes_what_a_failing_app_left_for_complete(
    app: App, expected: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "dragoman")
    ended = answer(b"a") + answer(b"a") if expected == answer(b"a") else expected
    assert await exchange(app, (GET + b"\r\n") * 2) == ended


# --- limits ---


SILENCES: dict[str, tuple[bytes, bytes]] = {
    "nothing": (b"", b""),
    "half a head": (GET, b""),
    "nothing after a request": (GET + b"\r\n", answer(b"GET /a ")),
    "half a head after a request": (GET + b"\r\n" + GET, answer(b"GET /a ")),
    "half a body": (POST + b"content-length: 3\r\n\r\na", REFUSED % b"408 Request Timeout"),
    "half a chunk": (POST + b"transfer-encoding: chunked\r\n\r\n3\r\na", REFUSED % b"408 Request Timeout"),
}


@pytest.mark.parametrize(("data", "expected"), SILENCES.values(), ids=SILENCES.keys())
async def test_a_client_that_falls_silent_is_closed_in_time(data: bytes, expected: bytes) -> None:
    assert await exchange(echo, data) == expected


async def test_a_client_that_never_ends_its_head_is_closed_in_time() -> None:
    async with serve(echo, limits=SHORT) as server, connected(server) as raw:
        raw.send(GET)
        trickling = asyncio.create_task(trickle(raw, b"x: y\r\n"))
        assert await raw.rest() == b""
        trickling.cancel()


async def trickle(raw: Raw, data: bytes) -> None:
    while True:
        raw.send(data)
        await asyncio.sleep(0.02)


async def test_a_body_that_the_answer_did_not_wait_for_is_not_read_for_ever() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await respond(send)

    async with serve(app, limits=SHORT) as server, connected(server) as raw:
        raw.send(POST + b"transfer-encoding: chunked\r\n\r\n")
        trickling = asyncio.create_task(trickle(raw, b"1\r\na\r\n"))
        assert undated(await raw.rest()) == answer(b"")
        trickling.cancel()


async def test_a_client_that_does_not_read_its_answer_is_closed_in_time() -> None:
    left: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await send(start())
        try:
            while True:
                await send(body(b"x" * 65_536, True))
        except (asyncio.CancelledError, ClientDisconnectedError) as error:
            left.set_result(error)

    async with serve(app, limits=SHORT) as server, connected(server, receive_buffer=4_096) as raw:
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        raw.send(GET + b"\r\n")
        async with asyncio.timeout(LIMIT):
            await left


async def test_a_connection_too_many_is_closed() -> None:
    async with serve(echo, limits=Limits(connections=1)) as server, connected(server) as first:
        first.send(GET + b"\r\n")
        await first.until(b"GET /a ")
        async with connected(server) as second:
            assert await second.rest() == b""
        first.send(GET + LAST)
        assert undated(await first.rest()) == last(b"GET /a ")
        async with connected(server) as third:
            third.send(GET + LAST)
            assert undated(await third.rest()) == last(b"GET /a ")


# --- memory ---


@pytest.fixture
async def waiting() -> AsyncIterator[tuple[Http1Protocol, MemoryTransport, asyncio.Event]]:
    """A connection whose app reads nothing before the event."""
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await gate.wait()
        await echo(scope, receive, send)

    host = Host(app, SHORT, {})
    protocol, transport = in_memory(host)
    yield protocol, transport, gate
    protocol.connection_lost(None)
    await host.close()


async def test_a_body_that_nobody_reads_pauses_the_reading(
    waiting: tuple[Http1Protocol, MemoryTransport, asyncio.Event],
) -> None:
    protocol, transport, gate = waiting
    protocol.data_received(POST + b"content-length: 3000000\r\n\r\n")
    for _ in range(15):
        protocol.data_received(b"x" * 65_536)
    assert transport.reading
    for _ in range(2):
        protocol.data_received(b"x" * 65_536)
    assert not transport.reading
    gate.set()
    await transport.until(lambda: transport.reading)


async def test_a_body_of_crumbs_costs_no_more_than_its_octets(
    waiting: tuple[Http1Protocol, MemoryTransport, asyncio.Event],
) -> None:
    protocol, transport, _ = waiting
    protocol.data_received(POST + b"transfer-encoding: chunked\r\n\r\n")
    for _ in range(4):
        protocol.data_received(b"1\r\na\r\n" * 40_000)
    request = protocol._current
    assert request is not None
    assert sum(map(len, request.body)) == 160_000
    assert len(request.body) < 200 and transport.reading


async def test_requests_that_wait_pause_the_reading_and_have_an_end(
    waiting: tuple[Http1Protocol, MemoryTransport, asyncio.Event],
) -> None:
    protocol, transport, gate = waiting
    for _ in range(17):
        assert transport.reading
        protocol.data_received(GET + b"\r\n")
    assert not transport.reading
    protocol.data_received((GET + b"\r\n") * 1_000)
    assert len(protocol._waiting) == 256
    gate.set()
    await transport.until(lambda: protocol.closing)
    assert transport.written.count(b"GET /a ") == 257
    assert transport.written.endswith(REFUSED % b"503 Service Unavailable")


# --- clients that leave ---


def noting(told: asyncio.Queue[Any]) -> App:
    """An app that notes its own cancellation, what ``receive`` says after that and what ``send`` raises."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await read_all(receive)
        told.put_nowait("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.put_nowait(await receive())
            try:
                await respond(send)
            except ClientDisconnectedError as error:
                told.put_nowait(error)
            raise

    return app


@pytest.mark.parametrize("half", [False, True], ids=["closed", "half closed"])
async def test_a_client_that_leaves_cancels_its_request(half: bool) -> None:
    told: asyncio.Queue[Any] = asyncio.Queue()
    async with serve(noting(told)) as server, connected(server) as raw, asyncio.timeout(LIMIT):
        raw.send(GET + b"\r\n")
        assert await told.get() == "begun"
        if half:
            raw.writer.write_eof()
        else:
            raw.writer.close()
        assert await told.get() == {"type": "http.disconnect"}
        assert isinstance(await told.get(), ClientDisconnectedError)


async def test_receive_after_the_answer_says_that_it_is_over() -> None:
    told: asyncio.Queue[Any] = asyncio.Queue()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await read_all(receive)
            await respond(send)
            told.put_nowait(await receive())

    await exchange(app, GET + LAST)
    assert told.get_nowait() == {"type": "http.disconnect"}


async def test_a_head_whose_body_lets_wait_for_itself_is_sent_by_the_next_tick() -> None:
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send(start(200, (b"content-type", b"text/event-stream")))
            await gate.wait()
            await send(body(b"data: 1\n\n"))

    async with serve(app, limits=SHORT) as server, connected(server) as raw:
        raw.send(GET + b"\r\n")
        head = await raw.until(b"\r\n\r\n")
        assert (
            undated(head) == HEAD % b"200 OK" + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        gate.set()
        assert await raw.until(b"0\r\n\r\n") == b"9\r\ndata: 1\n\n\r\n0\r\n\r\n"
