"""Upstreams told apart by the 1.0 tenant that a request names, over real sockets and in the shape of each binding."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.client.client import connect
from dragoman.faces import Face
from dragoman.gateway.config import Config, Server, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.config.auth import Auth, Key
from dragoman.gateway.config.values import Secret
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import (
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    AgentInterface,
    GetTaskRequest,
)
from dragoman.server.host import serve
from tests.asgi_driver import scope
from tests.gateway.fronts import Upstream, upstream
from tests.server.callers import CARD, Wire, check_failure, good_call, reply, reply_task, send, sending, wire

JSON, GRPC, REST = (Face(binding, "1.0") for binding in ("JSONRPC", "GRPC", "HTTP+JSON"))


@asynccontextmanager
async def gateway(*several: Configured, **more: Any) -> AsyncIterator[Switchboard]:
    async with Switchboard(completed(Config(upstream=several, **more))) as board:
        yield board


@pytest.fixture
async def two() -> AsyncIterator[list[Upstream]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(upstream(card=replace(CARD, name=name))) for name in ("billing", "search")
        ]


def configured(two: list[Upstream], **more: dict[str, Any]) -> list[Configured]:
    return [
        Configured(url=f"http://127.0.0.1:{one.port}", name=name, **more.get(name, {}))
        for one, name in zip(two, ("billing", "search"), strict=True)
    ]


async def test_a_grpc_client_that_reads_the_card_reaches_its_agent(two: list[Upstream]) -> None:
    async with gateway(*configured(two)) as board, serve(board) as server:
        for place, name in enumerate(("billing", "search")):
            found = connect(f"{server.url}/{name}", version="1.0", binding="GRPC")
            async with found as client:
                assert client.tenant == name
                made = (await client.send_text("tenant")).task
                assert made is not None and made.artifacts[0].parts[0].text == "none"
                assert (await client.get_task(made.id)).id == made.id
                events = [event async for event in await client.stream_text("hello")]
                assert events
            assert len(two[place].arrived) == 3


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
async def test_a_call_names_its_agent_which_does_not_see_the_name(two: list[Upstream], op: Any) -> None:
    async with gateway(*configured(two)) as board:
        for face in (GRPC, JSON):
            answer = await send(board, wire(face, op, sending("tenant", tenant="search")))
            assert b"none" in answer.body, (answer.headers, answer.body)
        assert (len(two[0].arrived), len(two[1].arrived)) == (0, 2)


async def test_the_tenant_of_a_rest_path_at_the_root_names_its_agent(two: list[Upstream]) -> None:
    several = configured(two, search={"path": "/tools/search"})
    async with gateway(*several) as board:
        task = reply_task(REST, await send(board, wire(REST, SEND_MESSAGE, sending("tenant"), tenant="search")))
        assert task.artifacts[0].parts[0].text == "none"
        answer = await send(board, wire(REST, GET_TASK, GetTaskRequest(id=task.id), tenant="search"))
        assert reply(REST, GET_TASK, answer).id == task.id
        assert len(two[1].arrived) == 2


@pytest.mark.parametrize("face", [GRPC, JSON], ids=str)
@pytest.mark.parametrize("tenant", ["", "nobody", "Billing"])
async def test_a_tenant_that_is_nobodys_reaches_nobody(two: list[Upstream], face: Face, tenant: str) -> None:
    async with gateway(*configured(two)) as board:
        answer = await send(board, wire(face, SEND_MESSAGE, sending("x", tenant=tenant)))
        check_failure(face, answer, "no method")
        assert b"billing" not in answer.body + repr(answer.headers).encode()


async def test_0_3_has_no_tenant_and_is_told_apart_by_host_only(two: list[Upstream]) -> None:
    old = Face("GRPC", "0.3")
    async with gateway(*configured(two, search={"authority": "search.test"})) as board:
        check_failure(old, await send(board, wire(old, SEND_MESSAGE, sending("x"))), "no method")
        answer = await send(board, wire(old, SEND_MESSAGE, sending("x"), headers={"host": "search.test"}))
        assert reply_task(old, answer).artifacts


async def test_who_is_at_the_root_gets_what_no_other_is_named_for_tenants_of_its_own_included(
    two: list[Upstream],
) -> None:
    async with gateway(*configured(two, billing={"path": "/"})) as board:
        for face in (GRPC, JSON):
            own = reply_task(face, await send(board, wire(face, SEND_MESSAGE, sending("tenant", tenant="acme"))))
            assert own.artifacts[0].parts[0].text == "acme"
            await good_call(board, face)
            other = reply_task(face, await send(board, wire(face, SEND_MESSAGE, sending("tenant", tenant="search"))))
            assert other.artifacts[0].parts[0].text == "none"
        assert (len(two[0].arrived), len(two[1].arrived)) == (4, 2)


async def test_the_tenant_of_an_agents_own_interface_is_what_it_sees() -> None:
    async with upstream() as one, AsyncExitStack() as stack:
        places = tuple(
            AgentInterface(
                url=f"127.0.0.1:{one.port}" if face.binding == "GRPC" else f"http://127.0.0.1:{one.port}",
                protocol_binding=face.binding,
                protocol_version="1.0",
                tenant="acme",
            )
            for face in (GRPC, JSON)
        )
        published = one.behind.app.published
        one.behind.app.published = type(published)(CARD, (), published._grpc_at)
        one.behind.app.published.at = lambda base: replace(CARD, supported_interfaces=places)  # type: ignore[method-assign]
        for face in (GRPC, JSON):
            config = Configured(url=f"http://127.0.0.1:{one.port}", name="billing", path="/b", face=str(face))
            board = await stack.enter_async_context(gateway(config, replace(config, name="other", path="/o")))
            task = reply_task(GRPC, await send(board, wire(GRPC, SEND_MESSAGE, sending("tenant", tenant="billing"))))
            assert task.artifacts[0].parts[0].text == "acme"


async def test_a_host_and_a_tenant_may_both_name_it(two: list[Upstream]) -> None:
    several = configured(two, search={"authority": "search.test", "tenant": "s"})
    async with gateway(*several) as board:
        for tenant in ("s", ""):
            call = wire(GRPC, SEND_MESSAGE, sending("tenant", tenant=tenant), headers={"host": "search.test"})
            assert reply_task(GRPC, await send(board, call)).artifacts[0].parts[0].text == "none"
        card = board.agents[1].app.published.at("http://gw.test/search")
        listed = {one.protocol_version: one for one in card.supported_interfaces if one.protocol_binding == "GRPC"}
        assert (listed["1.0"].url, listed["1.0"].tenant) == ("search.test:80", "s")
        assert listed["0.3"].tenant == ""


async def test_the_body_of_who_is_not_let_in_is_not_read(two: list[Upstream]) -> None:
    auth = Auth(key=(Key(name="ada", secret=Secret("right")),))
    async with gateway(*configured(two), auth=auth) as board:
        call = wire(GRPC, SEND_MESSAGE, sending("x", tenant="search"))
        read: list[str] = []

        async def receive() -> dict[str, Any]:
            read.append("body")
            return {"type": "http.request", "body": call.body, "more_body": True}

        sent: list[dict[str, Any]] = []

        async def take(message: Any) -> None:
            sent.append(message)

        await board(scope(call.method, call.path, call.headers), receive, take)
        assert not read and dict(sent[0]["headers"])[b"grpc-status"] == b"16"
        known = wire(GRPC, SEND_MESSAGE, sending("x", tenant="search"), headers={"x-api-key": "right"})
        assert reply_task(GRPC, await send(board, known)).artifacts


async def test_health_is_told_without_a_tenant(two: list[Upstream]) -> None:
    async with gateway(*configured(two), server=Server(health=True)) as board:
        headers = {"host": "gw.test", "content-type": "application/grpc", "te": "trailers"}
        answer = await send(board, Wire("POST", "/grpc.health.v1.Health/Check", headers, b"\0\0\0\0\0"))
        assert answer.trailers is not None and answer.trailers["grpc-status"] == "0"


async def test_a_json_rpc_id_and_unknown_keys_survive_the_way(two: list[Upstream]) -> None:
    async with gateway(*configured(two)) as board:
        call = wire(JSON, GET_TASK, GetTaskRequest(id="none", tenant="search"))
        body = json.dumps({**json.loads(call.body), "id": "x-1"}).encode()
        answer = await send(board, call._replace(body=body))
        assert json.loads(answer.body)["id"] == "x-1"
        check_failure(JSON, answer, "task not found")
