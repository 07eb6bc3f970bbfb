"""What the client's tests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.client.peers import Peer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    one = Peer()
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.port = server.sockets[0].getsockname()[1]
    yield one
    server.close()
