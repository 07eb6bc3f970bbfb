"""HTTP/2 over a real socket: calls checked by the ``h2`` package, offences as literal frames."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import hpack
import pytest

from dragoman.server.asgi import App, ClientDisconnectedError, Receive, Scope, Send
from dragoman.server.host import Host, Limits, serve
from dragoman.server.http2 import PREFACE, Http2Protocol
from tests.server.http.driver import (
    HELLO,
    LIMIT,
    SHORT,
    MemoryTransport,
    body,
    connected,
    echo,
    frame,
    frames,
    peer,
    read_all,
    replies,
    respond,
    start,
)

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, HAS_PRIORITY = 1, 4, 8, 32
NO_ERROR, PROTOCOL, INTERNAL, FLOW, _, CLOSED, SIZE, REFUSED, CANCEL, COMPRESSION, _, CALM = range(12)
TRAILERS = {"type": "http.response.trailers", "headers": [(b"grpc-status", b"0")]}


def block(*more: tuple[bytes, bytes], method: bytes = b"POST") -> bytes:
    """A request's header block that touches no table."""
    fields = [(b":method", method), (b":scheme", b"http"), (b":path", b"/"), *more]
    return hpack.Encoder().encode([(*field, True) for field in fields])


def asks(stream_id: int = 1, flags: int = END_STREAM, *more: tuple[bytes, bytes]) -> bytes:
    return frame(HEADERS, flags | END_HEADERS, stream_id, block(*more))


def u32(value: int) -> bytes:
    return value.to_bytes(4, "big")


async def sleeper(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads its request and never answers; ``/echo`` is answered."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/echo":
        await echo(scope, receive, send)
        return
    await read_all(receive)
    await asyncio.Event().wait()


# --- calls ---


async def test_a_call_is_answered() -> None:
    async with serve(echo) as server, peer(server) as client:
        response = await client.call(b"abc", path=b"/a%2Fb?q=1")
        assert (response.status, response.body, response.ended) == (200, b"POST /a%2Fb?q=1 abc", True)
        assert b"date" in response.headers
        assert response.reset is None


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 65_535, 65_536, 3_000_000])
async def test_bodies_of_every_size_go_both_ways(size: int) -> None:
    data = random.Random(size).randbytes(size)
    async with serve(echo) as server, peer(server) as client:
        stream_id = client.ask(None)
        at = 0
        while at < size:
            room = min(client.h2.local_flow_control_window(stream_id), 16_384)
            if room:
                client.h2.send_data(stream_id, data[at : at + room])
                client.flush()
                at += room
            else:
                await client.until(lambda: client.h2.local_flow_control_window(stream_id) > 0)
        client.h2.end_stream(stream_id)
        client.flush()
        assert (await client.response(stream_id)).body == b"POST / " + data


async def test_a_stream_ends_with_trailers() -> None:
    app = replies(start(200, trailers=True), *(body(b"%d" % n, True) for n in range(100)), body(b"."), TRAILERS)
    async with serve(app) as server, peer(server) as client:
        response = await client.call()
        assert response.body == b"".join(b"%d" % n for n in range(100)) + b"."
        assert response.trailers == {b"grpc-status": b"0"}


@pytest.mark.parametrize("window", [1, 100])
async def test_trailers_wait_for_a_body_that_the_window_holds_back(window: int) -> None:
    app = replies(start(200, trailers=True), body(b"x" * 150, True), body(b"y" * 150), TRAILERS)
    async with serve(app) as server, peer(server, window=window) as client:
        response = await client.call()
        assert response.body == b"x" * 150 + b"y" * 150
        assert response.trailers == {b"grpc-status": b"0"}


async def test_a_head_with_an_empty_body_is_one_frame() -> None:
    app = replies(start(200, (b"grpc-status", b"5")), body())
    async with serve(app) as server, peer(server) as client:
        response = await client.call()
        assert response.ended_on_head
        assert response.headers[b"grpc-status"] == b"5"


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", 200), (b"GET", 204), (b"GET", 304)])
async def test_what_has_no_body_gets_none(method: bytes, status: int) -> None:
    async with serve(replies(start(status), body(b"x", True), body(b"y"))) as server, peer(server) as client:
        response = await client.call(method=method)
        assert (response.status, response.body, response.ended) == (status, b"", True)


async def test_fields_of_a_connection_are_not_sent_and_names_are_lowered() -> None:
    app = replies(
        start(200, (b"Connection", b"close"), (b"Transfer-Encoding", b"chunked"), (b"X-Name", b" v ")), body()
    )
    async with serve(app) as server, peer(server) as client:
        headers = (await client.call()).headers
        assert headers[b"x-name"] == b"v"
        assert not headers.keys() & {b"connection", b"transfer-encoding"}


async def test_a_large_head_of_a_response_goes_on_in_continuations() -> None:
    app = replies(start(200, (b"x", b"y" * 40_000)), body(b"z"))
    async with serve(app) as server, peer(server) as client:
        response = await client.call()
        assert (len(response.headers[b"x"]), response.body) == (40_000, b"z")


async def test_the_scope_tells_all_of_the_request() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            seen.append(scope)
            await respond(send)

    async with serve(app) as server, peer(server) as client:
        for _ in range(3):  # a head that is seen again is not read again
            await client.call(path=b"/a%2Fb?q", method=b"PUT", headers=[(b"x", b"1"), (b"x", b"2")])
    for scope in seen:
        assert (scope["method"], scope["http_version"], scope["scheme"]) == ("PUT", "2", "http")
        assert (scope["path"], scope["raw_path"], scope["query_string"]) == ("/a/b", b"/a%2Fb", b"q")
        assert scope["headers"] == [(b"host", b"a"), (b"x", b"1"), (b"x", b"2")]
    assert seen[1]["headers"] is not seen[2]["headers"]


async def test_the_authority_takes_the_place_of_host() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            seen.append(scope)
            await respond(send)

    async with serve(app) as server, peer(server) as client:
        await client.call(headers=[(b"host", b"b")])
    assert seen[0]["headers"] == [(b"host", b"a")]


async def test_trailers_of_a_request_end_it() -> None:
    async with serve(echo) as server, peer(server) as client:
        stream_id = client.ask(None)
        client.h2.send_data(stream_id, b"abc")
        client.h2.send_headers(stream_id, [(b"x", b"y")], end_stream=True)
        client.flush()
        assert (await client.response(stream_id)).body == b"POST / abc"


async def test_an_answer_before_the_request_has_ended_stops_the_request() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await respond(send, b"enough", 413)

    async with serve(app) as server, peer(server) as client:
        stream_id = client.ask(None)
        response = await client.response(stream_id)
        await client.until(lambda: response.reset is not None)
        assert (response.status, response.body, response.reset) == (413, b"enough", NO_ERROR)
        client.raw.send(frame(DATA, 0, stream_id, b"what was on its way") + asks(stream_id))
        assert (await client.call()).status == 413


async def test_padding_and_priorities_mean_nothing() -> None:
    padded = b"\x05" + u32(7) + b"\x10" + block() + bytes(5)
    async with serve(echo) as server, connected(server) as raw:
        raw.send(
            HELLO
            + frame(PRIORITY, 0, 9, u32(3) + b"\x10")
            + frame(HEADERS, END_HEADERS | PADDED | HAS_PRIORITY, 1, padded)
            + frame(DATA, PADDED, 1, b"\x03abc" + bytes(3))
            + frame(DATA, PADDED | END_STREAM, 1, b"\x00d")
            + frame(0xEE, 0xFF, 1, b"unknown")
        )
        assert (await raw.until(b"POST / abcd")).endswith(frame(DATA, END_STREAM, 1, b"POST / abcd"))


async def test_padding_is_given_back_to_the_window() -> None:
    limits = Limits(stream_window=1_000, connection_window=65_535)
    async with serve(echo, limits=limits) as server, peer(server) as client:
        stream_id = client.ask(None)
        for _ in range(20):
            await client.until(lambda: client.h2.local_flow_control_window(stream_id) >= 251)
            client.h2.send_data(stream_id, b"", pad_length=250)
            client.flush()
        client.h2.end_stream(stream_id)
        client.flush()
        assert (await client.response(stream_id)).body == b"POST / "


async def test_octets_that_come_one_by_one_mean_the_same() -> None:
    async with serve(echo) as server, connected(server) as raw:
        for octet in HELLO + asks(1, 0) + frame(DATA, END_STREAM, 1, b"abc"):
            raw.send(bytes((octet,)))
            await asyncio.sleep(0)
        assert (await raw.until(b"POST / abc")).endswith(frame(DATA, END_STREAM, 1, b"POST / abc"))


# --- many at once ---


async def test_a_thousand_streams_are_open_at_once_and_one_more_is_refused() -> None:
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await gate.wait()
            await echo(scope, receive, send)

    async with serve(app) as server, peer(server) as client:
        ids = [client.ask(path=b"/%d" % n) for n in range(1_000)]
        extra = client.h2.highest_outbound_stream_id + 2
        client.raw.send(asks(extra, END_STREAM))
        client.h2.ping(b"12345678")
        client.flush()
        seen = await client.raw.until(frame(RST_STREAM, 0, extra, u32(REFUSED)))
        for event in client.h2.receive_data(seen.removesuffix(frame(RST_STREAM, 0, extra, u32(REFUSED)))):
            client.take(event)
        gate.set()
        for n, stream_id in enumerate(ids):
            assert (await client.response(stream_id)).body == b"POST /%d " % n


async def test_one_unread_stream_does_not_hold_up_the_others() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] != "/endless":
            await echo(scope, receive, send)
            return
        await send(start())
        while True:
            await send(body(b"x" * 10_000, True))

    async with serve(app) as server, peer(server) as client:
        client.h2.increment_flow_control_window(10_000_000)
        client.acknowledge = False
        stuck = client.ask(path=b"/endless")
        await client.until(lambda: len(client.responses[stuck].body) == 65_535)
        for n in range(50):
            assert (await client.call(b"%d" % n)).body == b"POST / %d" % n
        assert len(client.responses[stuck].body) == 65_535
        client.h2.increment_flow_control_window(1, stuck)
        client.flush()
        await client.until(lambda: len(client.responses[stuck].body) == 65_536)


async def test_a_connection_window_that_is_spent_holds_all_and_frees_all() -> None:
    async with serve(replies(start(), body(b"x" * 30_000))) as server, peer(server) as client:
        client.acknowledge = False
        ids = [client.ask() for _ in range(5)]
        await client.until(lambda: sum(len(client.responses[one].body) for one in ids) == 65_535)
        client.h2.increment_flow_control_window(150_000)
        client.flush()
        for one in ids:
            assert len((await client.response(one)).body) == 30_000


async def test_five_hundred_cancels_do_not_touch_the_call_beside_them() -> None:
    ended = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal ended
        if scope["type"] != "http":
            return
        if scope["path"] == "/innocent":
            await echo(scope, receive, send)
            return
        try:
            await read_all(receive)
            await asyncio.Event().wait()
        finally:
            ended += 1

    async with serve(app) as server, peer(server) as client:
        innocent = client.ask(None, path=b"/innocent")
        ids = [client.ask() for _ in range(500)]
        client.h2.ping(b"12345678")
        client.flush()
        await client.until(lambda: client.pongs == 1)
        for one in ids:
            client.h2.reset_stream(one, CANCEL)
        client.h2.send_data(innocent, b"alive", end_stream=True)
        client.flush()
        assert (await client.response(innocent)).body == b"POST /innocent alive"
        assert ended == 500


async def test_a_cancel_reaches_the_app() -> None:
    told: asyncio.Queue[Any] = asyncio.Queue()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await send(start())
            await send(body(b"a", True))
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.put_nowait(await receive())
            try:
                await send(body(b"b"))
            except ClientDisconnectedError as error:
                told.put_nowait(error)
            raise

    async with serve(app) as server, peer(server) as client, asyncio.timeout(LIMIT):
        stream_id = client.ask()
        await client.until(lambda: client.responses[stream_id].body == b"a")
        client.h2.reset_stream(stream_id, CANCEL)
        client.flush()
        assert await told.get() == {"type": "http.disconnect"}
        assert isinstance(await told.get(), ClientDisconnectedError)


async def test_an_end_of_the_connection_cancels_all_of_it() -> None:
    ended: asyncio.Queue[None] = asyncio.Queue()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await asyncio.Event().wait()
        finally:
            ended.put_nowait(None)

    async with serve(app) as server, asyncio.timeout(LIMIT):
        async with peer(server) as client:
            for _ in range(20):
                client.ask()
            client.h2.ping(b"12345678")
            client.flush()
            await client.until(lambda: client.pongs == 1)
        for _ in range(20):
            await ended.get()


@pytest.mark.parametrize(
    "attack",
    [
        lambda n: asks(n) + frame(RST_STREAM, 0, n, u32(CANCEL)),
        lambda n: asks(n, 0) + frame(WINDOW_UPDATE, 0, n, u32(0)),
        lambda n: asks(n, 0) + frame(WINDOW_UPDATE, 0, n, u32(2**31 - 1)),
        lambda n: asks(n, 0, (b"content-length", b"1")) + frame(DATA, END_STREAM, n, b"ab"),
        lambda n: frame(HEADERS, END_HEADERS | END_STREAM, n, b"\x82"),
    ],
    ids=["its own reset", "no step", "too large a step", "too much body", "malformed heads"],
)
async def test_a_flood_of_resets_ends_the_connection(attack: Any) -> None:
    async with serve(sleeper, limits=Limits(reset_burst=50, max_streams=10_000)) as server, connected(server) as raw:
        raw.send(HELLO + b"".join(map(attack, range(1, 400, 2))))
        got = frames(await raw.rest())
        assert got[-1][0] == GOAWAY
        assert got[-1][3][4:8] == u32(CALM)


# --- settings, pings, windows ---


async def test_settings_are_acknowledged_in_order_and_pings_answered() -> None:
    async with serve(echo) as server, connected(server) as raw:
        raw.send(
            HELLO
            + frame(SETTINGS, 0, 0, b"\0\x01" + u32(0))
            + frame(PING, 0, 0, b"abcdefgh")
            + frame(PING, 1, 0, bytes(8))
        )
        got = frames(await raw.until(b"abcdefgh"))
        assert got[0][0] == SETTINGS
        assert [one[:3] for one in got[2:]] == [(SETTINGS, 1, 0), (SETTINGS, 1, 0), (PING, 1, 0)]


async def test_a_smaller_window_counts_for_streams_that_are_open() -> None:
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send(start())
            await send(body(b"x" * 1_000, True))
            await gate.wait()
            await send(body(b"y" * 1_000))

    async with serve(app) as server, connected(server) as raw:
        raw.send(HELLO + asks())
        await raw.until(b"x" * 1_000)
        raw.send(frame(SETTINGS, 0, 0, b"\0\x04" + u32(600)) + frame(PING, 0, 0, b"settings"))
        await raw.until(b"settings")  # the window is 400 below zero now
        gate.set()
        raw.send(frame(WINDOW_UPDATE, 0, 1, u32(410)))
        assert (await raw.until(b"y")).endswith(frame(DATA, 0, 1, b"y" * 10)[:10])
        raw.send(frame(SETTINGS, 0, 0, b"\0\x04" + u32(65_535)))
        assert frame(DATA, END_STREAM, 1, b"y" * 990) in await raw.until(b"y" * 990)


async def test_what_a_larger_window_allows_comes_behind_its_acknowledgement() -> None:
    """grpc counts by what was acknowledged, and resets a stream that is ahead of it."""
    async with serve(replies(start(), body(b"x" * 65_535 + b"y" * 4_000))) as server, connected(server) as raw:
        raw.send(HELLO + asks() + frame(WINDOW_UPDATE, 0, 0, u32(1 << 20)))
        await raw.until(b"x" * 16_383)  # the last of what the first window takes, or before it
        raw.send(frame(SETTINGS, 0, 0, b"\0\x04" + u32(1 << 20)))
        await raw.until(frame(SETTINGS, 1, 0))
        assert b"y" in await raw.until(b"y" * 4_000)


async def test_larger_frames_are_used_when_the_peer_takes_them() -> None:
    async with serve(replies(start(), body(b"x" * 60_000))) as server, connected(server) as raw:
        raw.send(HELLO + frame(SETTINGS, 0, 0, b"\0\x05" + u32(1 << 20)) + asks())
        assert frame(DATA, END_STREAM, 1, b"x" * 60_000) in await raw.until(b"x" * 60_000)


async def test_what_the_app_does_not_read_is_not_asked_for() -> None:
    limits = Limits(stream_window=10_000)
    async with serve(sleeper, limits=limits) as server, peer(server) as client:
        gate = client.ask(None, path=b"/never")
        other = client.ask(None, path=b"/echo")
        client.h2.send_data(other, b"x" * 8_000, end_stream=True)
        client.flush()
        assert len((await client.response(other)).body) == 8_000 + len(b"POST /echo ")
        assert client.h2.local_flow_control_window(gate) == 10_000


async def test_a_body_of_crumbs_costs_no_more_than_its_octets() -> None:
    host = Host(sleeper, SHORT, {})
    protocol = Http2Protocol(host, {})
    protocol.connection_made(MemoryTransport())
    protocol.data_received(HELLO + asks(1, 0) + frame(DATA, 0, 1, b"x") * 30_000)
    chunks = protocol.streams[1].chunks
    assert sum(map(len, chunks)) == 30_000
    assert len(chunks) < 40
    protocol.connection_lost(None)
    await host.close()


# --- refusals ---


MALFORMED: dict[str, list[tuple[bytes, bytes]]] = {
    "a name in capitals": [(b"X-Name", b"v")],
    "an empty name": [(b"", b"v")],
    "a name with a blank": [(b"a b", b"v")],
    "a name with a colon": [(b"a:b", b"v")],
    "a value with a line break": [(b"x", b"a\r\nb: c")],
    "a value with NUL": [(b"x", b"a\0")],
    "a value with a blank before": [(b"x", b" a")],
    "a value with a blank behind": [(b"x", b"a\t")],
    "connection": [(b"connection", b"close")],
    "keep-alive": [(b"keep-alive", b"1")],
    "proxy-connection": [(b"proxy-connection", b"close")],
    "transfer-encoding": [(b"transfer-encoding", b"chunked")],
    "upgrade": [(b"upgrade", b"h2c")],
    "te": [(b"te", b"gzip")],
    "an unknown pseudo-field": [(b":x", b"y")],
    "a pseudo-field of a response": [(b":status", b"200")],
    "a pseudo-field twice": [(b":path", b"/")],
    "a pseudo-field after a field": [(b"x", b"y"), (b":authority", b"a")],
    "an authority with a line break": [(b":authority", b"a\r\nb: c")],
    "a length that is no number": [(b"content-length", b"x")],
    "a length with a sign": [(b"content-length", b"+1")],
    "two lengths": [(b"content-length", b"1"), (b"content-length", b"2")],
    "a length of many digits": [(b"content-length", b"9" * 5_000)],
    "too many fields": [(b"x", b"")] * 257,
}
HEADS: dict[str, bytes] = {name: block(*fields) for name, fields in MALFORMED.items()} | {
    "no path": hpack.Encoder().encode([(b":method", b"GET"), (b":scheme", b"http")]),
    "an empty path": hpack.Encoder().encode([(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"")]),
    "a path without a slash": hpack.Encoder().encode([(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"a")]),
    "a path with a blank": hpack.Encoder().encode([(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/a b")]),
    "no method": hpack.Encoder().encode([(b":scheme", b"http"), (b":path", b"/")]),
    "a method with a blank": block(method=b"GET /"),
    "no scheme": hpack.Encoder().encode([(b":method", b"GET"), (b":path", b"/")]),
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
async def test_a_malformed_request_is_reset_and_the_connection_goes_on(head: bytes) -> None:
    async with serve(echo) as server, connected(server) as raw:
        raw.send(HELLO + frame(HEADERS, END_HEADERS | END_STREAM, 1, head) + frame(PING, 0, 0, b"are you?"))
        assert (RST_STREAM, 0, 1, u32(PROTOCOL)) in frames(await raw.until(b"are you?"))


OFFENCES: dict[str, tuple[bytes, int]] = {
    "trailers that do not end": (asks(1, 0) + frame(HEADERS, END_HEADERS, 1, b"\x0f\x0d\x011"), PROTOCOL),
    "trailers with a pseudo-field": (asks(1, 0) + asks(), PROTOCOL),
    "a head after the end": (asks() + asks(), CLOSED),
    "a body after the end": (asks() + frame(DATA, 0, 1, b"x"), CLOSED),
    "a body after a reset": (asks() + frame(RST_STREAM, 0, 1, u32(CANCEL)) + frame(DATA, 0, 1, b"x"), CLOSED),
    "more body than its length": (asks(1, 0, (b"content-length", b"1")) + frame(DATA, 0, 1, b"ab"), PROTOCOL),
    "less body than its length": (asks(1, 0, (b"content-length", b"3")) + frame(DATA, END_STREAM, 1, b"ab"), PROTOCOL),
    "no body where a length was": (asks(1, END_STREAM, (b"content-length", b"1")), PROTOCOL),
    "more than the stream's window": (asks(1, 0) + frame(DATA, 0, 1, bytes(1_001)), FLOW),
    "no step": (asks(1, 0) + frame(WINDOW_UPDATE, 0, 1, u32(0)), PROTOCOL),
    "a window too large": (asks(1, 0) + frame(WINDOW_UPDATE, 0, 1, u32(2**31 - 1)), FLOW),
    "a PRIORITY of a wrong size": (asks(1, 0) + frame(PRIORITY, 0, 1, bytes(4)), SIZE),
}


@pytest.mark.parametrize(("data", "code"), OFFENCES.values(), ids=OFFENCES.keys())
async def test_an_offence_of_one_stream_resets_that_stream_only(data: bytes, code: int) -> None:
    async with serve(sleeper, limits=Limits(stream_window=1_000)) as server, connected(server) as raw:
        raw.send(HELLO + data + frame(PING, 0, 0, b"are you?"))
        got = frames(await raw.until(b"are you?"))
        assert [one for one in got if one[0] == RST_STREAM] == [(RST_STREAM, 0, 1, u32(code))]


FATAL: dict[str, tuple[bytes, int]] = {
    "no SETTINGS": (PREFACE + frame(PING, 0, 0, bytes(8)), PROTOCOL),
    "DATA on stream 0": (HELLO + frame(DATA, 0, 0, b"x"), PROTOCOL),
    "DATA on an idle stream": (HELLO + frame(DATA, 0, 1, b"x"), PROTOCOL),
    "DATA with too much padding": (HELLO + asks(1, 0) + frame(DATA, PADDED, 1, b"\x05abc"), PROTOCOL),
    "DATA with no padding length": (HELLO + asks(1, 0) + frame(DATA, PADDED, 1), PROTOCOL),
    "DATA over the connection's window": (
        HELLO + b"".join(asks(n, 0) + frame(DATA, 0, n, bytes(16_384)) for n in (1, 3, 5, 7)),
        FLOW,
    ),
    "HEADERS on stream 0": (HELLO + asks(0), PROTOCOL),
    "HEADERS on an even stream": (HELLO + asks(2), PROTOCOL),
    "HEADERS on a stream that was passed over": (HELLO + asks(5) + asks(3), CLOSED),
    "HEADERS with too much padding": (HELLO + frame(HEADERS, 0xD, 1, b"\xff" + block()), PROTOCOL),
    "HEADERS too short for a priority": (HELLO + frame(HEADERS, 0x25, 1, b"\0"), SIZE),
    "HEADERS within HEADERS": (HELLO + frame(HEADERS, 0, 1, block()) + asks(3), PROTOCOL),
    "an unknown frame within HEADERS": (HELLO + frame(HEADERS, 0, 1, block()) + frame(0xEE), PROTOCOL),
    "a broken header block": (HELLO + frame(HEADERS, 5, 1, b"\x80"), COMPRESSION),
    "broken trailers": (HELLO + asks(1, 0) + frame(HEADERS, 5, 1, b"\x80"), COMPRESSION),
    "CONTINUATION of nothing": (HELLO + frame(CONTINUATION, 4, 1, block()), PROTOCOL),
    "CONTINUATION of another stream": (
        HELLO + frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 4, 3, b""),
        PROTOCOL,
    ),
    "CONTINUATION without end": (HELLO + frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1) * 70, CALM),
    "CONTINUATION without end, with content": (
        HELLO + frame(HEADERS, 0, 1, block()) + frame(CONTINUATION, 0, 1, bytes(16_000)) * 9,
        CALM,
    ),
    "PRIORITY on stream 0": (HELLO + frame(PRIORITY, 0, 0, bytes(5)), PROTOCOL),
    "RST_STREAM on stream 0": (HELLO + frame(RST_STREAM, 0, 0, bytes(4)), PROTOCOL),
    "RST_STREAM on an idle stream": (HELLO + frame(RST_STREAM, 0, 1, bytes(4)), PROTOCOL),
    "RST_STREAM of a wrong size": (HELLO + asks(1, 0) + frame(RST_STREAM, 0, 1, bytes(3)), SIZE),
    "SETTINGS of a stream": (HELLO + frame(SETTINGS, 0, 1), PROTOCOL),
    "SETTINGS of a wrong size": (HELLO + frame(SETTINGS, 0, 0, bytes(5)), SIZE),
    "an acknowledgement with content": (HELLO + frame(SETTINGS, 1, 0, bytes(6)), SIZE),
    "ENABLE_PUSH of 2": (HELLO + frame(SETTINGS, 0, 0, b"\0\x02" + u32(2)), PROTOCOL),
    "INITIAL_WINDOW_SIZE too large": (HELLO + frame(SETTINGS, 0, 0, b"\0\x04" + u32(2**31)), FLOW),
    "INITIAL_WINDOW_SIZE too large for a stream": (
        HELLO + asks(1, 0) + frame(WINDOW_UPDATE, 0, 1, u32(2**30)) + frame(SETTINGS, 0, 0, b"\0\x04" + u32(2**31 - 1)),
        FLOW,
    ),
    "MAX_FRAME_SIZE too small": (HELLO + frame(SETTINGS, 0, 0, b"\0\x05" + u32(16_383)), PROTOCOL),
    "MAX_FRAME_SIZE too large": (HELLO + frame(SETTINGS, 0, 0, b"\0\x05" + u32(1 << 24)), PROTOCOL),
    "PUSH_PROMISE": (HELLO + asks(1, 0) + frame(PUSH_PROMISE, 4, 1, u32(2) + block()), PROTOCOL),
    "PING of a stream": (HELLO + frame(PING, 0, 1, bytes(8)), PROTOCOL),
    "PING of a wrong size": (HELLO + frame(PING, 0, 0, bytes(7)), SIZE),
    "GOAWAY of a stream": (HELLO + frame(GOAWAY, 0, 1, bytes(8)), PROTOCOL),
    "GOAWAY of a wrong size": (HELLO + frame(GOAWAY, 0, 0, bytes(7)), SIZE),
    "WINDOW_UPDATE of a wrong size": (HELLO + frame(WINDOW_UPDATE, 0, 0, bytes(3)), SIZE),
    "WINDOW_UPDATE without a step": (HELLO + frame(WINDOW_UPDATE, 0, 0, u32(0)), PROTOCOL),
    "WINDOW_UPDATE on an idle stream": (HELLO + frame(WINDOW_UPDATE, 0, 1, u32(1)), PROTOCOL),
    "WINDOW_UPDATE too large": (HELLO + frame(WINDOW_UPDATE, 0, 0, u32(2**31 - 1)), FLOW),
    "a frame too large": (HELLO + b"\x00\x40\x01" + frame(DATA, 0, 1)[3:], SIZE),
}


@pytest.mark.parametrize(("data", "code"), FATAL.values(), ids=FATAL.keys())
async def test_an_offence_of_the_connection_ends_it_with_this_code(data: bytes, code: int) -> None:
    limits = Limits(connection_window=65_535)
    async with serve(sleeper, limits=limits) as server, connected(server) as raw:
        raw.send(data)
        got = frames(await raw.rest())
        assert got[-1][0] == GOAWAY
        assert got[-1][3][4:8] == u32(code)


@pytest.mark.parametrize("seed", range(10))
async def test_noise_ends_no_more_than_its_connection(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)
    heads = [block(), block((b"x", b"y")), *HEADS.values()]
    async with serve(echo, limits=SHORT) as server:
        for _ in range(15):
            noise = HELLO
            for _ in range(chance.randrange(1, 30)):
                payload = chance.choice([chance.choice(heads), chance.randbytes(chance.randrange(20)), u32(1)])
                kind, flags = chance.choice([0, 1, 1, 1, 2, 3, 4, 6, 8, 9]), chance.randrange(64)
                noise += frame(kind, flags, chance.randrange(8), payload)
            async with connected(server) as raw:
                raw.send(noise)
                raw.writer.write_eof()
                await raw.rest()
        async with peer(server) as client:
            assert (await client.call(b"fine")).body == b"POST / fine"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


# --- heads too large ---


@pytest.mark.parametrize("ended", [True, False])
async def test_a_head_too_large_is_answered_and_the_connection_goes_on(ended: bool) -> None:
    async with serve(echo) as server, peer(server) as client:
        stream_id = client.ask(b"" if ended else None, headers=[(b"x", b"y" * 70_000)])
        response = await client.response(stream_id)
        assert (response.status, response.ended) == (431, True)
        assert (await client.call(b"fine")).body == b"POST / fine"
        assert response.reset == (None if ended else NO_ERROR)


async def test_metadata_too_large_is_answered_in_grpc() -> None:
    async with serve(echo) as server, peer(server) as client:
        response = await client.call(headers=[(b"content-type", b"application/grpc+proto"), (b"x", b"y" * 70_000)])
        assert (response.status, response.headers[b"grpc-status"]) == (200, b"8")
        assert response.ended_on_head


async def test_trailers_too_large_are_passed_over() -> None:
    async with serve(echo) as server, peer(server) as client:
        stream_id = client.ask(None)
        client.h2.send_headers(stream_id, [(b"x", b"y" * 70_000)], end_stream=True)
        client.flush()
        assert (await client.response(stream_id)).body == b"POST / "


# --- apps that fail ---


def failing(*before: Any) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for message in before:
                await send(message)
            raise LookupError("of the app")

    return app


FAILURES: dict[str, tuple[App, tuple[int, bytes, int | None]]] = {
    "raises before its head": (failing(), (500, b"", None)),
    "raises within its body": (failing(start(), body(b"a", True)), (200, b"a", INTERNAL)),
    "raises after its body": (failing(start(), body(b"a")), (200, b"a", None)),
    "says nothing": (replies(), (500, b"", None)),
    "does not end its body": (replies(start(), body(b"a", True)), (200, b"a", INTERNAL)),
    "promises trailers": (replies(start(trailers=True), body(b"a")), (200, b"a", INTERNAL)),
    "says its body first": (replies(body()), (500, b"", None)),
    "splits a value": (replies(start(200, (b"x", b"y\r\nz: 1")), body()), (500, b"", None)),
    "has a name that is none": (replies(start(200, (b"a b", b"c")), body()), (500, b"", None)),
    "has no such status": (replies(start(1_000), body()), (500, b"", None)),
}


@pytest.mark.parametrize(("app", "expected"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_failing_app_costs_one_stream(
    app: App, expected: tuple[int, bytes, int | None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "dragoman")
    async with serve(app) as server, peer(server) as client:
        for _ in range(2):
            response = await client.call()
            assert (response.status, response.body, response.reset) == expected


# --- limits ---


async def test_an_idle_connection_is_told_to_go() -> None:
    async with serve(echo, limits=SHORT) as server, peer(server) as client:
        await client.call()
        assert await client.end() == NO_ERROR


@pytest.mark.parametrize("data", [PREFACE[:10], PREFACE, PREFACE + frame(SETTINGS)[:5]])
async def test_a_greeting_that_does_not_end_is_cut(data: bytes) -> None:
    async with serve(echo, limits=SHORT) as server, connected(server) as raw:
        raw.send(data)
        assert all(kind in (SETTINGS, WINDOW_UPDATE) for kind, *_ in frames(await raw.rest()))


async def test_a_header_block_that_does_not_end_is_cut() -> None:
    async with serve(echo, limits=SHORT) as server, connected(server) as raw:
        raw.send(HELLO + frame(HEADERS, 0, 1, block()))
        assert frames(await raw.rest())[-1][0] == GOAWAY


async def test_a_silent_peer_with_open_streams_is_asked_and_then_cut() -> None:
    async with serve(sleeper, limits=SHORT) as server, connected(server) as raw:
        raw.send(HELLO + asks())
        assert (PING, 0, 0, b"dragoman") in frames(await raw.rest())


async def test_a_body_of_which_nothing_comes_is_reset() -> None:
    async with serve(echo, limits=SHORT) as server, peer(server) as client:
        assert (await client.response(client.ask(None))).reset == CANCEL


async def test_an_app_that_takes_its_time_is_no_stall_of_its_client() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await receive()
            await asyncio.wait_for(gate.wait(), LIMIT)
            await echo(scope, receive, send)

    gate = asyncio.Event()
    async with serve(app, limits=SHORT) as server, peer(server) as client:
        stream_id = client.ask(None)
        client.h2.send_data(stream_id, b"a")
        client.flush()
        asyncio.get_running_loop().call_later(2 * SHORT.body_stall, gate.set)
        await client.until(gate.is_set)  # its pings are answered meanwhile
        client.h2.send_data(stream_id, b"b", end_stream=True)
        client.flush()
        assert (await client.response(stream_id)).body == b"POST / b"


async def test_a_stream_that_is_not_read_is_reset_in_time() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send(start())
            while True:
                await send(body(b"x" * 10_000, True))

    async with serve(app, limits=SHORT) as server, peer(server) as client:
        client.acknowledge = False
        assert (await client.response(client.ask())).reset == CANCEL


async def test_a_peer_that_asks_and_does_not_read_is_cut() -> None:
    limits = Limits(control_buffer=10_000, write_buffer=10_000)
    async with serve(echo, limits=limits) as server, connected(server, receive_buffer=4_096) as raw:
        raw.writer.transport.pause_reading()  # type: ignore[attr-defined]
        raw.send(HELLO)
        async with asyncio.timeout(LIMIT):
            with pytest.raises(ConnectionError):
                while True:
                    raw.send(frame(PING, 0, 0, bytes(8)) * 1_000)
                    await raw.writer.drain()


# --- the end ---


async def test_calls_finish_and_new_ones_are_refused_when_the_server_ends() -> None:
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await gate.wait()
            await echo(scope, receive, send)

    async with serve(app) as server, peer(server) as client:
        stream_id = client.ask(None)
        client.h2.ping(b"12345678")
        client.flush()
        await client.until(lambda: client.pongs == 1)
        server.close()
        seen = await client.raw.until(frame(GOAWAY, 0, 0, u32(1) + u32(NO_ERROR)))
        assert frames(seen)[-1][0] == GOAWAY
        client.raw.send(asks(3))
        assert frames(await client.raw.until(u32(REFUSED)))[-1] == (RST_STREAM, 0, 3, u32(REFUSED))
        gate.set()
        client.h2.send_data(stream_id, b"late", end_stream=True)
        client.flush()
        assert frames(await client.raw.rest())[-1] == (DATA, END_STREAM, 1, b"POST / late")


async def test_calls_that_do_not_finish_are_cancelled_when_the_server_ends() -> None:
    async with serve(sleeper, limits=Limits(graceful_timeout=0.1)) as server, connected(server) as raw:
        raw.send(HELLO + asks() + frame(PING, 0, 0, b"are you?"))
        await raw.until(b"are you?")
        server.close()
        goaway, (kind, flags, stream_id, head) = frames(await raw.rest())
        assert (*goaway[:1], goaway[3]) == (GOAWAY, u32(1) + u32(NO_ERROR))
        assert (kind, flags, stream_id) == (HEADERS, END_STREAM | END_HEADERS, 1)
        assert (b":status", b"503") in [tuple(field) for field in hpack.Decoder().decode(head, raw=True)]


async def test_a_reader_that_stops_does_not_hold_up_the_end() -> None:
    app = replies(start(), body(b"x" * 100_000))
    async with serve(app, limits=Limits(graceful_timeout=0.1)) as server, peer(server) as client:
        client.acknowledge = False
        stream_id = client.ask()
        await client.until(lambda: len(client.responses[stream_id].body) == 65_535)
        server.close()
        async with asyncio.timeout(LIMIT):
            await server.wait_closed()
