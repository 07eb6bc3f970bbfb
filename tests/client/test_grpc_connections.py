"""Calls over gRPC at a peer that allows only so many on one connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.client.client import connect
from dragoman.client.options import Limits, Timeouts
from dragoman.client.transports.grpc import GrpcTransport
from dragoman.server.host import Limits as ServerLimits
from dragoman.server.host import serve
from tests.server.callers import bench


def lines_of(client: Any) -> int:
    transport = client.remote._transport
    assert isinstance(transport, GrpcTransport)
    return len(transport._lines)


@pytest.mark.parametrize("held", [25])
async def test_more_streams_than_a_peer_allows_on_a_connection_are_all_open_at_once(held: int) -> None:
    one = bench()
    async with serve(one.app, limits=ServerLimits(max_streams=10)) as server:
        found = connect(
            f"http://127.0.0.1:{server.port}",
            binding="GRPC",
            version="1.0",
            limits=Limits(streams_per_connection=10),
            timeouts=Timeouts(reply=10),
        )
        async with found as client, asyncio.timeout(30):
            streams = await asyncio.gather(*(client.stream_text("hold") for _ in range(held)))
            assert lines_of(client) == 3
            assert (await client.send_text("hello")).task is not None  # beside them
            one.stage.go.set()
            for stream in streams:
                events = [event async for event in stream]
                assert events[-1].status_update is not None
                await stream.aclose()
            for _ in range(5):
                await client.send_text("hello")
            assert lines_of(client) == 3
            assert [line.calls for line in client.remote._transport._lines._lines] == [0, 0, 0]  # type: ignore[attr-defined]
    await one.engine.aclose()


async def test_calls_that_fail_or_are_cancelled_make_room() -> None:
    one = bench()
    async with serve(one.app) as server:
        found = connect(
            f"http://127.0.0.1:{server.port}", binding="GRPC", version="1.0", limits=Limits(streams_per_connection=1)
        )
        async with found as client:
            call = asyncio.create_task(client.send_text("hold"))
            await one.stage.begun.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            for _ in range(3):
                with pytest.raises(Exception, match="not found"):
                    await client.get_task("unknown")
            assert lines_of(client) == 1
    await one.engine.aclose()
