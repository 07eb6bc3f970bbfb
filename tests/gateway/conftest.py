"""What the gateway's tests share: one loop and one upstream for all pairs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman.client.client import Client
from dragoman.faces import ALL_FACES, Face
from tests.client.peers import Peer
from tests.gateway.fronts import Upstream, client_of, upstream


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for all: the clients of the upstream outlive a test."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
async def one_loop(anyio_backend: str) -> AsyncIterator[None]:
    """It runs to the end: gRPC may still have a word about a call when the test that made it is over."""
    yield


@pytest.fixture(scope="session")
async def shared_upstream(anyio_backend: str) -> AsyncIterator[Upstream]:
    async with upstream() as one:
        yield one


@pytest.fixture(scope="session")
async def clients(shared_upstream: Upstream) -> AsyncIterator[dict[Face, Client]]:
    """A client of the upstream by the face that it speaks."""
    made = {face: await client_of(shared_upstream, face) for face in ALL_FACES}
    yield made
    for one in made.values():
        await one.aclose()


@pytest.fixture
async def behind(shared_upstream: Upstream) -> AsyncIterator[Upstream]:
    """The upstream with nothing on stage and nothing in its record."""
    stage = shared_upstream.behind.stage
    for event in (stage.go, stage.begun, stage.done):
        event.clear()
    shared_upstream.arrived.clear()
    yield shared_upstream
    stage.go.set()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    one = Peer()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()
