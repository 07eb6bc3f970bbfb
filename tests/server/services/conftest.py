"""What the tests of the services beside A2A share: a server with all of them, and gRPC's own client.

The client is grpcio's blocking one in threads: its asyncio one would bind all tests to one loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory

from dragoman.protocol.descriptors import descriptor
from dragoman.protocol.proto_files import files
from dragoman.server.app import A2AApp
from dragoman.server.host import serve
from tests.asgi_driver import LIMIT
from tests.server.callers import bench

END = b"the end"  # of a stream; no message of these services looks like it


class Caller:
    """Calls methods of a server by raw bytes."""

    def __init__(self, app: A2AApp, port: int) -> None:
        self.app = app
        self.port = port
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    async def unary(self, path: str, message: bytes) -> bytes:
        """The reply. Raises ``grpc.RpcError``."""
        call: Any = self.channel.unary_unary(path)
        reply: bytes = await asyncio.to_thread(call, message, timeout=LIMIT)
        return reply

    def watch(self, path: str, message: bytes, timeout: float = LIMIT) -> Any:
        """A stream of replies, to be read with :meth:`next`."""
        start: Any = self.channel.unary_stream(path)
        return start(message, timeout=timeout)

    def talk(self, path: str, messages: Iterator[bytes]) -> Any:
        """A stream in both directions."""
        start: Any = self.channel.stream_stream(path)
        return start(messages, timeout=LIMIT)

    async def next(self, call: Any) -> bytes:
        """The next reply of a stream, or ``END``. Raises ``grpc.RpcError``."""
        reply: bytes = await asyncio.to_thread(next, call, END)
        return reply


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    """A caller of a server with all faces and both services."""
    behind = bench(health=True, reflection=True)
    async with serve(behind.app) as server:
        one = Caller(behind.app, server.port)
        yield one
        one.channel.close()
    await behind.engine.aclose()


def _messages() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    for name in files():
        pool.AddSerializedFile(descriptor(name))
    made = {}
    for name in files():
        for message in pool.FindFileByName(name).message_types_by_name.values():
            made[message.full_name] = message_factory.GetMessageClass(message)
    return made


@pytest.fixture(scope="session")
def messages() -> dict[str, Any]:
    """protobuf's own classes of the services' messages, by full name."""
    return _messages()
