"""Every way in which an upstream fails: a typed error of the caller's face within the limits, and no other notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from dragoman.client.options import Resume
from dragoman.faces import Face
from dragoman.gateway.agents import Agent, Backoff
from dragoman.gateway.config import Breaker, Config, UpstreamLimits, UpstreamTimeouts, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE, Operation
from dragoman.protocol.operations import Binding, Version
from tests.asgi_driver import Answer
from tests.gateway.fronts import Upstream, upstream
from tests.gateway.misbehaving import FAULTS, Misbehaving, misbehaving
from tests.gateway.waiting import until
from tests.server.callers import check_failure, reply_task, send, sending, wire
from tests.server.test_streams import check_broken, clean

JSON, GRPC = Face("JSONRPC", "1.0"), Face("GRPC", "1.0")
BINDINGS: tuple[Binding, ...] = ("JSONRPC", "GRPC", "HTTP+JSON")
SMALL = UpstreamLimits(reply=256 * 1024, event=256 * 1024)
SHORT = UpstreamTimeouts(connect=10, reply=0.5, silence=0.5)
LONG = UpstreamTimeouts(connect=10, reply=10, silence=10)
#: protobuf is framed by its length, so where its bytes pass undecoded what is wrong inside is for its reader to see.
PASSES = (GRPC, "sends bad UTF-8")
#: A gRPC stream that says nothing may be at work for long; whether its connection lives is what pings ask.
SILENT = ("GRPC", "hangs in the middle")


class Rig(NamedTuple):
    """An agent that fails as it is told to, of one face, and a gateway before it and a good one."""

    agent: Misbehaving
    board: Switchboard


def cases(*versions: Version, but: tuple[str, str] = ("", "")) -> list[Any]:
    """Every fault once per binding, the versions taking turns: its rig, and the name of the fault."""
    found = []
    for number, (name, fault) in enumerate(FAULTS.items()):
        for binding in BINDINGS:
            face = Face(binding, versions[number % 2])
            if fault.only in ("", binding) and (binding, name) != but:
                found.append(pytest.param((face, fault.waits), name, id=f"{face} {name}"))
    return found


@pytest.fixture(scope="module")
async def good(anyio_backend: str) -> AsyncIterator[Upstream]:
    async with upstream() as one:
        yield one


@pytest.fixture(scope="module")
async def rig(request: pytest.FixtureRequest, good: Upstream) -> AsyncIterator[Rig]:
    """One for all faults of a face, and one for those that are found out by the passing of time."""
    face, waits = request.param
    times = SHORT if waits else LONG
    async with misbehaving(face) as agent:
        several = (
            Configured(url=agent.url, name="bad", limits=SMALL, timeouts=times, breaker=Breaker(failures=1000)),
            Configured(url=f"http://127.0.0.1:{good.port}", name="good"),
        )
        quickly = Backoff(first=0.01, most=0.01)
        async with Switchboard(completed(Config(upstream=several)), backoff=quickly) as board:
            await until(lambda: board.agents[0].client is not None)  # the times are short for the card too
            client = board.agents[0].client
            assert client is not None, board.agents[0].error
            client.remote.behaviour = replace(client.remote.behaviour, resume=Resume(tries=2, wait=0.01))
            yield Rig(agent, board)


async def call(board: Switchboard, near: Face, name: str, op: Operation[Any, Any], text: str = "hello") -> Answer:
    request = wire(near, op, sending(text, tenant=name))
    return await send(board, request)


async def again(board: Switchboard, near: Face, op: Operation[Any, Any]) -> Answer:
    """The answer of the agent that is itself again. A gRPC channel may not have seen yet that its connection was cut,
    and what it has written may have arrived, so such a call is not sent twice by the gateway, but by its caller."""
    for _ in range(20):
        answer = await call(board, near, "bad", op)
        if b"UNAVAILABLE" not in answer.body and (answer.trailers or answer.headers).get("grpc-status", "0") == "0":
            break
    return answer


def near_of(face: Face, name: str, patient: Face) -> tuple[Face, ...]:
    """The faces to call in; ``patient``: the one where it takes time."""
    if FAULTS[name].waits:
        return (patient,)
    return (JSON,) if (face, name) == PASSES else (JSON, GRPC)


def at_rest(agent: Agent) -> bool:
    state = agent.state
    turns = (agent.pool.calls.taken, agent.pool.streams.taken)
    return (state.calls, state.streams, state.waiting, *turns) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize(("rig", "name"), cases("1.0", "0.3"), indirect=["rig"])
async def test_a_call_that_fails_gets_a_typed_error_and_no_other_notices(rig: Rig, name: str) -> None:
    agent, board = rig
    for near in near_of(agent.face, name, JSON):
        agent.fault = name
        before = agent.calls
        bad, fine = await asyncio.gather(
            call(board, near, "bad", SEND_MESSAGE), call(board, near, "good", SEND_MESSAGE)
        )
        check_failure(near, bad, FAULTS[name].error(agent.face))
        assert reply_task(near, fine).artifacts
        assert agent.calls == before + 1 and at_rest(board.agents[0])
        agent.fault = ""
        assert reply_task(near, await again(board, near, SEND_MESSAGE)).id == "t-1"


@pytest.mark.parametrize(("rig", "name"), cases("0.3", "1.0", but=SILENT), indirect=["rig"])
async def test_a_stream_that_fails_ends_with_a_typed_error_and_no_other_notices(rig: Rig, name: str) -> None:
    agent, board = rig
    for near in near_of(agent.face, name, GRPC):
        agent.fault = name
        bad, fine = await asyncio.gather(
            call(board, near, "bad", SEND_STREAMING_MESSAGE), call(board, near, "good", SEND_STREAMING_MESSAGE)
        )
        assert clean(near, fine) and not clean(near, bad)
        told = FAULTS[name].error_of_stream(agent.face)
        if bad.headers["content-type"].startswith("text/event-stream") or bad.trailers:
            check_broken(near, bad, told)
        else:
            check_failure(near, bad, told)
        assert at_rest(board.agents[0])
        agent.fault = ""
        assert clean(near, await again(board, near, SEND_STREAMING_MESSAGE))
