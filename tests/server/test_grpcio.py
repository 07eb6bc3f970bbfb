"""The gRPC faces over a socket, called by gRPC's own implementation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from grpc import aio

from dragoman.faces import FACES, Face
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE
from dragoman.protocol.operations import GRPC_SERVICE
from dragoman.server.app import AppLimits
from dragoman.server.host import serve
from tests.asgi_driver import LIMIT
from tests.server.callers import EACH_FACE, bench, sending
from tests.server.test_sockets import BODY_LIMIT, SHORT, Running


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for all tests: grpcio reports the end of a call to the loop that it first saw, however late."""
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
async def one_loop(anyio_backend: str) -> AsyncIterator[None]:
    yield
    async with aio.insecure_channel("127.0.0.1:9") as nobody:  # its failure is the last thing that is reported
        with pytest.raises(aio.AioRpcError):
            call: Any = nobody.unary_unary("/x/y")
            await call(b"")


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    behind = bench(limits=AppLimits(body=BODY_LIMIT, watch=0.02))
    async with serve(behind.app, limits=SHORT) as server:
        yield Running(server, behind)
    await behind.engine.aclose()


def method(face: Face, op: Any) -> str:
    names = {"SendMessage": "SendMessage", "SendStreamingMessage": "SendStreamingMessage"}
    return f"/{GRPC_SERVICE[face.version]}/{names[op.name]}"


GRPC_FACES = [face for face in EACH_FACE if face.binding == "GRPC"]


@pytest.fixture
async def channel(running: Running) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(f"127.0.0.1:{running.port}") as made:
        yield made


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"\xff", grpc.StatusCode.INVALID_ARGUMENT),
        (b"", grpc.StatusCode.INVALID_ARGUMENT),
        (b"\x12\x7f\x00", grpc.StatusCode.INVALID_ARGUMENT),
        (bytes(BODY_LIMIT), grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
    ids=["no protobuf", "empty", "cut off", "too large"],
)
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_grpcio_gets_the_status_of_a_bad_message_and_then_is_served(
    running: Running, channel: aio.Channel, face: Face, body: bytes, code: grpc.StatusCode
) -> None:
    call: Any = channel.unary_unary(method(face, SEND_MESSAGE))
    metadata = (("a2a-version", face.version),)
    with pytest.raises(aio.AioRpcError) as caught:
        await call(body, metadata=metadata, timeout=LIMIT)
    wanted = grpc.StatusCode.INTERNAL if face.version == "0.3" and body and len(body) < 9 else code
    assert caught.value.code() is wanted, caught.value
    good = FACES[face].dialect.dump_request(SEND_MESSAGE, sending("fine"))
    assert b"fine" in await call(good, metadata=metadata, timeout=LIMIT)


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_grpcio_is_told_when_the_server_ends(running: Running, channel: aio.Channel, face: Face) -> None:
    start: Any = channel.unary_stream(method(face, SEND_STREAMING_MESSAGE))
    call = start(
        FACES[face].dialect.dump_request(SEND_STREAMING_MESSAGE, sending("hold")),
        metadata=(("a2a-version", face.version),),
        timeout=LIMIT,
    )
    assert await call.read()
    await running.behind.app.aclose()
    with pytest.raises(aio.AioRpcError) as caught:
        while await call.read() is not aio.EOF:
            pass
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "shutting down" in (caught.value.details() or "")


@pytest.mark.parametrize("cancel", [True, False], ids=["cancel", "deadline"])
@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_grpc_cancel_or_deadline_ends_the_wait_and_not_the_task(
    running: Running, channel: aio.Channel, face: Face, op: Any, cancel: bool
) -> None:
    body = FACES[face].dialect.dump_request(op, sending("hold"))
    metadata = (("a2a-version", face.version),)
    timeout = LIMIT if cancel else 0.05
    start: Any = (channel.unary_unary if op is SEND_MESSAGE else channel.unary_stream)(method(face, op))
    call = start(body, metadata=metadata, timeout=timeout)
    await running.behind.stage.begun.wait()
    if cancel:
        call.cancel()
    assert await call.code() is (grpc.StatusCode.CANCELLED if cancel else grpc.StatusCode.DEADLINE_EXCEEDED)
    running.behind.stage.go.set()
    async with asyncio.timeout(LIMIT):
        await running.behind.stage.done.wait()
    await running.good_call()
