"""The health service, called by gRPC's own client; its messages are literal bytes."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from dragoman.faces import Face
from dragoman.protocol.operations import GRPC_SERVICE
from dragoman.server.host import serve
from tests.asgi_driver import LIMIT, Exchange, request, scope
from tests.server.callers import bench
from tests.server.services.conftest import END, Caller

CHECK, WATCH, LIST = (f"/grpc.health.v1.Health/{name}" for name in ("Check", "Watch", "List"))
SERVING, NOT_SERVING, UNKNOWN = b"\x08\x01", b"\x08\x02", b"\x08\x03"
FRAMED = {"content-type": "application/grpc", "te": "trailers"}


def asks(service: str) -> bytes:
    return bytes([0x0A, len(service)]) + service.encode() if service else b""


@pytest.mark.parametrize("service", ["", *GRPC_SERVICE.values()])
async def test_what_is_served_is_serving(caller: Caller, service: str) -> None:
    assert await caller.unary(CHECK, asks(service)) == SERVING


@pytest.mark.parametrize("service", ["lf.a2a.v1", "nobody.Knows", "grpc.health.v1.Health", "é"])
async def test_another_service_is_not_found(caller: Caller, service: str) -> None:
    name = service.encode()
    with pytest.raises(grpc.RpcError) as caught:
        await caller.unary(CHECK, bytes([0x0A, len(name)]) + name)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert service in (caught.value.details() or "")


async def test_a_version_that_is_not_served_is_not_found() -> None:
    behind = bench(health=True, faces=(Face("GRPC", "1.0"), Face("JSONRPC", "0.3")))
    async with serve(behind.app) as server:
        caller = Caller(behind.app, server.port)
        assert await caller.unary(CHECK, asks(GRPC_SERVICE["1.0"])) == SERVING
        with pytest.raises(grpc.RpcError) as caught:
            await caller.unary(CHECK, asks(GRPC_SERVICE["0.3"]))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        caller.channel.close()
    await behind.engine.aclose()


async def test_the_list_has_all_of_them(caller: Caller) -> None:
    reply = await caller.unary(LIST, b"")
    entries = {b"\x0a" + bytes([len(name)]) + name.encode() + b"\x12\x02" + SERVING for name in GRPC_SERVICE.values()}
    entries.add(b"\x0a\x00\x12\x02" + SERVING)
    for entry in entries:
        assert b"\x0a" + bytes([len(entry)]) + entry in reply
    assert len(reply) == sum(len(entry) + 2 for entry in entries)


@pytest.mark.parametrize("message", [b"\x0a\x05a", b"\xff", b"\x08\x01"], ids=["cut off", "no protobuf", "a number"])
async def test_a_message_that_cannot_be_read_is_an_invalid_argument(caller: Caller, message: bytes) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        await caller.unary(CHECK, message)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert await caller.unary(CHECK, b"") == SERVING


async def test_a_message_that_is_too_large_exhausts_its_resources(caller: Caller) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        await caller.unary(CHECK, b"\x0a\x80\x80\x08" + bytes(1 << 17))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize(("service", "first"), [("", SERVING), (GRPC_SERVICE["0.3"], SERVING), ("nobody", UNKNOWN)])
async def test_a_watcher_is_told_when_the_server_closes(caller: Caller, service: str, first: bytes) -> None:
    call = caller.watch(WATCH, asks(service))
    assert await caller.next(call) == first
    await caller.app.aclose()
    if first is SERVING:
        assert await caller.next(call) == NOT_SERVING
    with pytest.raises(grpc.RpcError) as caught:
        await caller.next(call)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await caller.unary(CHECK, b"") == NOT_SERVING


async def test_a_watcher_that_goes_away_is_forgotten(caller: Caller) -> None:
    call = caller.watch(WATCH, b"")
    assert await caller.next(call) == SERVING
    call.cancel()
    async with asyncio.timeout(LIMIT):
        await caller.app.aclose()


async def test_a_watcher_is_let_go_at_its_deadline(caller: Caller) -> None:
    call = caller.watch(WATCH, b"", timeout=0.2)
    assert await caller.next(call) == SERVING
    with pytest.raises(grpc.RpcError) as caught:
        await caller.next(call)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_watch_ends_for_a_caller_that_is_gone_on_any_asgi_server() -> None:
    behind = bench(health=True)
    watch = Exchange(behind.app, scope("POST", WATCH, FRAMED), [b"\0\0\0\0\0"])
    running = asyncio.create_task(watch.run())
    await watch.until(lambda answer: answer.body == b"\0\0\0\0\x02" + SERVING)
    watch.disconnect()
    answer = await running
    assert answer.trailers is None
    await behind.engine.aclose()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", "3"),
        (b"\0\0\0\0\0" * 2, "3"),
        (b"\0\0\0\0\x05ab", "3"),
        (b"\x01\0\0\0\x02ab", "3"),
        (b"\0\xff\xff\xff\xff", "8"),
    ],
    ids=["none", "two", "cut off", "compressed without saying how", "too large"],
)
async def test_a_check_takes_one_framed_message(body: bytes, status: str) -> None:
    behind = bench(health=True)
    answer = await request(behind.app, "POST", CHECK, headers=FRAMED, body=body)
    assert (answer.status, answer.headers["grpc-status"], answer.body) == (200, status, b"")
    await behind.engine.aclose()


@pytest.mark.parametrize(("method", "kind"), [("GET", ""), ("POST", "application/json"), ("GET", "application/grpc")])
async def test_what_is_no_grpc_call_is_415(method: str, kind: str) -> None:
    behind = bench(health=True)
    answer = await request(behind.app, method, CHECK, headers={"content-type": kind})
    assert answer.status == 415
    await behind.engine.aclose()


@pytest.mark.parametrize("path", [CHECK, "/grpc.health.v1.Health/Nope", "/grpc.reflection.v1.ServerReflection/Nope"])
async def test_nothing_is_there_unless_it_is_asked_for(path: str) -> None:
    behind = bench(health=path != CHECK, reflection=path != CHECK)
    answer = await request(behind.app, "POST", path, headers=FRAMED, body=b"\0\0\0\0\0")
    assert answer.headers["grpc-status"] == "12"
    await behind.engine.aclose()


async def test_the_end_of_a_unary_stream_is_clean(caller: Caller) -> None:
    call = caller.watch(CHECK, b"")
    assert [await caller.next(call), await caller.next(call)] == [SERVING, END]
