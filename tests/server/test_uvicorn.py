"""The app is plain ASGI: its HTTP faces answer on another server as they do on ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import uvicorn

from dragoman import connect
from dragoman.faces import ALL_FACES, Face
from dragoman.model import TaskState
from tests.server.callers import bench

HTTP_FACES = [face for face in ALL_FACES if face.binding != "GRPC"]
LIMIT = 20.0  # seconds for uvicorn to come up


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A uvicorn on a free port, until the test is over."""
    config = uvicorn.Config(bench(faces=HTTP_FACES).app, port=0, log_level="error", http="httptools", lifespan="on")
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    async with asyncio.timeout(LIMIT):
        await server.startup()
    main = asyncio.create_task(server.main_loop())
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await main
    await server.shutdown()


@pytest.mark.parametrize("face", HTTP_FACES, ids=str)
async def test_a_call_and_a_stream_are_answered_on_uvicorn(url: str, face: Face) -> None:
    async with connect(url, version=face.version, binding=face.binding) as agent:
        reply = await agent.send_text("hello")
        assert reply.task is not None and reply.task.status.state is TaskState.COMPLETED
        events = [event async for event in await agent.stream_text("hello")]
    last = events[-1].status_update
    assert last is not None and last.status.state is TaskState.COMPLETED
