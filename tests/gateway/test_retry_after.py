"""When to come back, as an agent says it, reaches the caller in its own face, for every pair of faces."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import pytest
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # has no stubs

from dragoman.client.client import Client, connect
from dragoman.errors import A2AError, RateLimitedError, UnavailableError
from dragoman.faces import ALL_FACES, Face
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE
from dragoman.server.app import A2AApp
from dragoman.server.host import serve
from tests.asgi_driver import Answer
from tests.gateway.fronts import QUICK, front
from tests.server.callers import CARD, send, sending, wire


class Overloaded:
    """An agent that has no time."""

    error: A2AError = UnavailableError()

    async def call(self, *_: object) -> NoReturn:
        raise self.error

    async def stream(self, *_: object) -> NoReturn:
        raise self.error


agent = Overloaded()


@pytest.fixture(scope="module")
async def clients(anyio_backend: str) -> AsyncIterator[dict[Face, Client]]:
    async with serve(A2AApp(agent, CARD)) as server:
        made = {
            face: await connect(server.url, version=face.version, binding=face.binding, timeouts=QUICK)
            for face in ALL_FACES
        }
        yield made
        for one in made.values():
            await one.aclose()


def seconds_of(face: Face, answer: Answer) -> float:
    """What an answer says, in the place that its face has for it."""
    if face.binding != "GRPC":
        assert answer.headers["retry-after"] == "7"
    if face.version == "0.3":
        return int(answer.headers["grpc-retry-pushback-ms"]) / 1000 if face.binding == "GRPC" else 7
    if face.binding == "GRPC":
        packed = answer.headers["grpc-status-details-bin"]
        status = status_pb2.Status.FromString(base64.b64decode(packed + "=" * (-len(packed) % 4)))
        info = error_details_pb2.RetryInfo()
        assert any(one.Unpack(info) for one in status.details)
        return float(info.retry_delay.seconds)
    error = json.loads(answer.body)["error"]
    details: list[dict[str, Any]] = error.get("data") or error["details"]
    told = next(one for one in details if one["@type"].endswith("RetryInfo"))
    return float(told["retryDelay"].removesuffix("s"))


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("kind", [UnavailableError, RateLimitedError], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("called", ALL_FACES, ids=str)
@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_when_to_come_back_crosses_every_pair(
    clients: dict[Face, Client], face: Face, called: Face, kind: type[A2AError], op: Any
) -> None:
    agent.error = kind("later", retry_after=7)
    answer = await send(front(clients[called]), wire(face, op, sending("x")))
    assert seconds_of(face, answer) == 7
