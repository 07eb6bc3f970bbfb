"""An agent's card is looked at again: what changes is followed, told and published, and nobody's stream ends for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.agents import Agent, Backoff, Pace
from dragoman.gateway.catalogue import catalogue
from dragoman.gateway.config import Config, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.plan import plan
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE
from dragoman.server.asgi import Receive, Scope, Send
from dragoman.server.host import serve
from tests.asgi_driver import request
from tests.gateway.waiting import until
from tests.server.callers import CARD, Bench, begin, bench, good_call, send, sending, wire

JSON = Face("JSONRPC", "1.0")
OLD = [Face("JSONRPC", "0.3"), Face("GRPC", "0.3")]
NEW = [Face("JSONRPC", "1.0"), Face("GRPC", "1.0")]
WELL_KNOWN = "/.well-known/agent-card.json"


@dataclass
class Stageful:
    """An agent at one address that becomes another; ``looks``: the requests for its card."""

    behind: Bench
    port: int = 0
    looks: list[dict[str, str]] = field(default_factory=list)
    away: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == WELL_KNOWN:
            self.looks.append({name.decode(): value.decode() for name, value in scope["headers"]})
        if self.away and scope["type"] == "http":
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await self.behind.app(scope, receive, send)


@dataclass
class Scene:
    """An agent, the gateway before it, and what that said."""

    agent: Stageful
    board: Switchboard
    said: list[str]

    @property
    def upstream(self) -> Agent:
        return self.board.agents[0]

    async def looked(self) -> None:
        """Until the card was looked at once more, and the time after."""
        count = len(self.agent.looks)
        await until(lambda: len(self.agent.looks) > count + 1)


@asynccontextmanager
async def scene(*faces: Face, pace: Pace = Pace(floor=0.01), **more: Any) -> AsyncIterator[Scene]:  # noqa: B008
    behind = bench(faces=faces or ALL_FACES)
    agent, said = Stageful(behind), list[str]()
    async with serve(agent) as server:
        agent.port = server.port
        one = Configured(url=server.url, name="agent", **{"refresh": 0.02, **more})
        quickly = Backoff(first=0.01, most=0.01)
        async with Switchboard(completed(Config(upstream=(one,))), tell=said.append, pace=pace, backoff=quickly) as b:
            yield Scene(agent, b, said)
    await agent.behind.engine.aclose()


async def test_a_card_that_did_not_change_is_not_sent_again_and_changes_nothing() -> None:
    async with scene() as one:
        client, app = one.upstream.client, one.upstream.app
        await one.looked()
        assert "if-none-match" not in one.agent.looks[0] and all(
            "if-none-match" in look for look in one.agent.looks[1:]
        )
        assert (one.upstream.client, one.upstream.app) == (client, app)
        assert not one.said


async def test_a_card_that_changed_is_published() -> None:
    async with scene() as one:
        one.agent.behind = bench(replace(CARD, description="another"))
        await until(lambda: one.said)
        answer = await request(one.board, "GET", WELL_KNOWN)
        assert json.loads(answer.body)["description"] == "another"
        assert one.said == ["agent: its card has changed"]


async def test_a_stream_of_before_runs_to_its_end() -> None:
    async with scene() as one:
        before = one.agent.behind
        stream = begin(one.board, wire(JSON, SEND_STREAMING_MESSAGE, sending("hold")))
        running = asyncio.create_task(stream.run())
        await stream.until(lambda answer: b"holding" in answer.body)
        line = one.upstream.pool.replicas[0].line
        one.agent.behind = bench(replace(CARD, description="another"))
        await until(lambda: one.said)
        await good_call(one.board, JSON)
        assert line is not None and line.users == 1
        before.stage.go.set()
        assert b"COMPLETED" in (await running).body
        await until(lambda: not line.users)
        await before.engine.aclose()


@pytest.mark.parametrize("binding", ["JSONRPC", "GRPC"])
@pytest.mark.parametrize(("before", "after"), [(OLD, NEW), (NEW, OLD)], ids=["0.3 to 1.0", "1.0 to 0.3"])
async def test_another_version_is_noticed_by_a_call_that_fails_and_followed(
    before: list[Face], after: list[Face], binding: str
) -> None:
    here, there = ([face for face in faces if face.binding == binding] for faces in (before, after))
    async with scene(*here, refresh=3600.0) as one:
        await good_call(one.board, JSON)
        one.agent.behind = bench(faces=there)
        answer = await send(one.board, wire(JSON, SEND_MESSAGE, sending("x")))
        assert b'"error"' in answer.body
        told = f"agent: it was called over {here[0]}, from now on over {there[0]} at "
        await until(lambda: any(said.startswith(told) for said in one.said))
        await good_call(one.board, JSON)
        assert plan(one.upstream, "http://gw.test").face == str(there[0])


async def test_calls_that_fail_do_not_make_it_look_all_the_time() -> None:
    async with scene(pace=Pace(floor=30), refresh=3600.0) as one:
        one.agent.away = True
        for _ in range(10):
            await send(one.board, wire(JSON, SEND_MESSAGE, sending("x")))
        assert len(one.agent.looks) == 1


async def test_a_card_that_cannot_be_had_for_long_shows_and_the_last_one_stands() -> None:
    async with scene() as one:
        one.agent.away = True
        await until(lambda: one.upstream.pool.replicas[0].missed >= 3)
        planned = plan(one.upstream, "http://gw.test")
        assert "503" in planned.error and planned.face == "1.0/JSONRPC"
        (listed,) = catalogue(one.board.agents, "http://gw.test").agents
        assert not listed.available and listed.title == CARD.name
        assert one.upstream.state.error == "TransportError"
        assert (await request(one.board, "GET", WELL_KNOWN)).status == 200
        assert any("the last one stands" in said for said in one.said)
        one.agent.away = False
        await until(lambda: one.upstream.reachable)
        assert plan(one.upstream, "http://gw.test").error == ""
        assert any("it answers now" in said for said in one.said)
