"""Several replicas of one agent behind the gateway: who gets what, and what happens when one is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.agents import Agent, Backoff
from dragoman.gateway.config import Breaker, Config, UpstreamLimits, UpstreamTimeouts, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import (
    CANCEL_TASK,
    GET_TASK,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.server.host import serve
from dragoman.service import Context
from tests.asgi_driver import Answer, Exchange
from tests.client.peers import Asked, Peer, Reply, card, card_json, interface
from tests.client.peers import reply as literal
from tests.gateway.fronts import Upstream, upstream
from tests.gateway.waiting import until
from tests.server.callers import begin, check_failure, good_call, reply, reply_task, send, sending, wire

JSON = Face("JSONRPC", "1.0")
QUICKLY = Backoff(first=0.01, most=0.01)
NOW = SendMessageConfiguration(return_immediately=True)


@asynccontextmanager
async def board(*urls: str, **more: Any) -> AsyncIterator[Switchboard]:
    first, *others = urls
    one = Configured(url=first, replicas=tuple(others), name="agent", **more)
    async with Switchboard(completed(Config(upstream=(one,))), backoff=Backoff(first=60, most=60)) as found:
        await until(lambda: all(replica.looked for replica in agent_of(found).pool.replicas))
        yield found


def agent_of(found: Switchboard) -> Agent:
    return found.agents[0]


def url_of(one: Upstream) -> str:
    return f"http://127.0.0.1:{one.port}"


@pytest.fixture
async def three() -> AsyncIterator[list[Upstream]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(upstream()) for _ in range(3)]


@pytest.fixture
async def two(three: list[Upstream]) -> list[Upstream]:
    return three[:2]


async def tasks_on(app: Any, face: Face, count: int) -> list[Task]:
    return [await good_call(app, face) for _ in range(count)]


# -- where calls go


async def test_new_work_goes_round_while_all_are_idle(three: list[Upstream]) -> None:
    async with board(*map(url_of, three)) as gateway:
        await tasks_on(gateway, JSON, 6)
        assert [len(one.arrived) for one in three] == [2, 2, 2]


async def test_new_work_goes_to_the_least_busy(two: list[Upstream]) -> None:
    async with board(*map(url_of, two)) as gateway:
        stream = begin(gateway, wire(JSON, SEND_STREAMING_MESSAGE, sending("hold")))
        running = asyncio.create_task(stream.run())
        await stream.until(lambda answer: b"holding" in answer.body)
        busy = next(one for one in two if one.arrived)
        await tasks_on(gateway, JSON, 4)
        assert len(busy.arrived) == 1
        busy.behind.stage.go.set()
        await running


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
@pytest.mark.parametrize("called", ["1.0/JSONRPC", "0.3/GRPC"])
async def test_a_task_stays_with_the_replica_that_has_it(three: list[Upstream], face: Face, called: str) -> None:
    async with board(*map(url_of, three), face=called) as gateway:
        tasks = await tasks_on(gateway, face, 6)
        before = [len(one.arrived) for one in three]
        for task in tasks * 2:
            answer = await send(gateway, wire(face, GET_TASK, GetTaskRequest(id=task.id)))
            assert reply(face, GET_TASK, answer).id == task.id
        assert [len(one.arrived) for one in three] == [3 * count for count in before]


async def test_a_streams_task_stays_too(three: list[Upstream]) -> None:
    async with board(*map(url_of, three)) as gateway:
        for face in (JSON, Face("GRPC", "1.0"), Face("JSONRPC", "0.3")):
            stream = begin(gateway, wire(face, SEND_STREAMING_MESSAGE, sending("hold")))
            running = asyncio.create_task(stream.run())
            await stream.until(lambda answer: b"holding" in answer.body)
            has = next(one for one in three if one.behind.stage.begun.is_set())
            (found,) = (await has.behind.engine.call(LIST_TASKS, ListTasksRequest(), Context())).tasks
            before = sum(len(one.arrived) for one in three)
            answer = await send(gateway, wire(face, CANCEL_TASK, CancelTaskRequest(id=found.id)))
            assert reply(face, CANCEL_TASK, answer).status.state is TaskState.CANCELED
            assert sum(len(one.arrived) for one in three) == before + 1
            await running
            for one in three:
                one.behind.stage.begun.clear()
                one.behind.engine.store._tasks.clear()  # type: ignore[attr-defined]  # of memory


async def test_a_context_stays_with_its_replica(three: list[Upstream]) -> None:
    async with board(*map(url_of, three)) as gateway:
        first = await good_call(gateway, JSON)
        has = next(one for one in three if one.arrived)
        for _ in range(4):
            message = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),), context_id=first.context_id)
            await send(gateway, wire(JSON, SEND_MESSAGE, SendMessageRequest(message=message)))
        assert len(has.arrived) == 5


# -- after a restart


@pytest.mark.parametrize("op", [GET_TASK, CANCEL_TASK, SUBSCRIBE_TO_TASK, SEND_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("face", [JSON, Face("GRPC", "0.3")], ids=str)
async def test_a_task_of_before_is_looked_for_and_then_known(three: list[Upstream], op: Any, face: Face) -> None:
    async with board(*map(url_of, three)) as gateway:
        asked = wire(JSON, SEND_MESSAGE, sending("ask", configuration=NOW))
        tasks = [reply_task(JSON, await send(gateway, asked)) for _ in range(3)]
    async with board(*map(url_of, three), face=str(face)) as gateway:
        for one in three:
            one.arrived.clear()
        for task in tasks:
            request: Any = {
                GET_TASK: GetTaskRequest(id=task.id),
                CANCEL_TASK: CancelTaskRequest(id=task.id),
                SUBSCRIBE_TO_TASK: SubscribeToTaskRequest(id=task.id),
                SEND_MESSAGE: sending("Ada", task=task.id),
            }[op]
            exchange = begin(gateway, wire(JSON, op, request))
            running = asyncio.create_task(exchange.run())
            await exchange.until(lambda answer: bool(answer.body))
            assert b'"error"' not in exchange.answer.body, exchange.answer.body
            exchange.disconnect()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        per_task = 3 + 1  # looked for at all three, then sent to one
        assert sum(len(one.arrived) for one in three) == 3 * per_task
        await send(gateway, wire(JSON, GET_TASK, GetTaskRequest(id=tasks[0].id)))
        assert sum(len(one.arrived) for one in three) == 3 * per_task + 1


async def test_a_task_that_nobody_has_is_not_found(two: list[Upstream]) -> None:
    async with board(*map(url_of, two)) as gateway:
        answer = await send(gateway, wire(JSON, SEND_MESSAGE, sending("x", task="unknown")))
        check_failure(JSON, answer, "task not found")


async def test_a_task_that_a_replica_which_is_away_may_have_is_unavailable(two: list[Upstream]) -> None:
    async with board(url_of(two[0]), "http://127.0.0.1:9") as gateway:
        answer = await send(gateway, wire(JSON, CANCEL_TASK, CancelTaskRequest(id="unknown")))
        check_failure(JSON, answer, "unavailable")
        assert int(answer.headers["retry-after"]) >= 1


async def test_a_task_whose_replica_is_away_goes_to_no_other(three: list[Upstream]) -> None:
    async with AsyncExitStack() as stack:
        last = await stack.enter_async_context(upstream())
        async with board(url_of(last), *map(url_of, three)) as gateway:
            task = None
            while not last.arrived:
                task = await good_call(gateway, JSON)
            assert task is not None
            await stack.aclose()
            for one in three:
                one.arrived.clear()
            for _ in range(3):
                answer = await send(gateway, wire(JSON, CANCEL_TASK, CancelTaskRequest(id=task.id)))
                check_failure(JSON, answer, "unavailable")
            assert not any(one.arrived for one in three)


# -- no replay


async def test_new_work_passes_by_a_replica_that_refuses_connections(two: list[Upstream]) -> None:
    async with AsyncExitStack() as stack:
        gone = await stack.enter_async_context(upstream())
        async with board(url_of(gone), url_of(two[0])) as gateway:
            await stack.aclose()
            await tasks_on(gateway, JSON, 12)
            assert len(two[0].arrived) == 12
            state = agent_of(gateway).state
            assert [one.breaker for one in state.replicas] == ["open", "closed"]
            assert state.reachable and state.replicas[0].error == "TransportError"


@asynccontextmanager
async def peers(*faces: str) -> AsyncIterator[list[Peer]]:
    """Replicas that play literal bytes, each behind one interface."""
    async with AsyncExitStack() as stack:
        found = []
        for face in faces:
            one = Peer()
            server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            one.port = server.sockets[0].getsockname()[1]
            one.otherwise = _card_or(one, face)
            found.append(one)
        yield found


def _card_or(one: Peer, face: str) -> Any:
    def answer(asked: Asked) -> Reply:
        one.asked.remove(asked) if "well-known" in asked.path else None
        if "well-known" in asked.path:
            return literal(card_json(card(interface(one.url, face))))
        return Reply(b"")  # closes without a word

    return answer


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("face", ["1.0/JSONRPC", "1.0/HTTP+JSON", "0.3/JSONRPC"])
async def test_what_may_have_arrived_is_sent_nowhere_else_and_not_again(face: str, op: Any) -> None:
    async with peers(face, face) as found, board(*(one.url for one in found)) as gateway:
        answer = await send(gateway, wire(JSON, op, sending("x")))
        check_failure(JSON, answer, "unavailable")
        assert sum(len(one.asked) for one in found) == 1


@pytest.mark.parametrize(("op", "times"), [(GET_TASK, 2), (CANCEL_TASK, 1)], ids=["reads", "writes"])
async def test_only_what_reads_is_asked_for_once_more_when_its_connection_broke(op: Any, times: int) -> None:
    request = GetTaskRequest(id="t") if op is GET_TASK else CancelTaskRequest(id="t")
    async with peers("1.0/JSONRPC") as (one,), board(one.url) as gateway:
        check_failure(JSON, await send(gateway, wire(JSON, op, request)), "unavailable")
        assert len(one.asked) == times


async def test_a_read_that_runs_out_of_time_is_not_asked_for_again() -> None:
    async with peers("1.0/JSONRPC") as (one,), board(one.url, timeouts=UpstreamTimeouts(reply=0.2)) as gateway:
        one.plays(Reply(b"", hold=True))
        check_failure(JSON, await send(gateway, wire(JSON, GET_TASK, GetTaskRequest(id="t"))), "unavailable")
        assert len(one.asked) == 1


# -- breakers


async def test_a_replica_that_fails_is_left_alone_and_says_when_to_come_back() -> None:
    async with peers("1.0/JSONRPC") as (one,), board(one.url, breaker=Breaker(failures=3, first=30)) as gateway:
        for _ in range(3):
            check_failure(JSON, await send(gateway, wire(JSON, SEND_MESSAGE, sending("x"))), "unavailable")
        answer = await send(gateway, wire(JSON, SEND_MESSAGE, sending("x")))
        check_failure(JSON, answer, "unavailable")
        assert len(one.asked) == 3 and 25 <= int(answer.headers["retry-after"]) <= 30
        assert agent_of(gateway).state.replicas[0].breaker == "open"


@pytest.mark.parametrize(
    ("answer", "opens"),
    [
        (literal("<html>", "text/html", 503), True),
        (literal("gone", "text/plain", 502), True),
        (literal("late", "text/plain", 504), True),
        (literal("slow down", "text/plain", 429), False),
        (literal('{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}'), False),
        (literal('{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"oops"}}'), False),
        (literal("<html>a page</html>", "text/html"), False),
    ],
    ids=["503", "502", "504", "429", "no such task", "internal", "page"],
)
async def test_only_failures_of_the_replica_itself_count(answer: Reply, opens: bool) -> None:
    async with peers("1.0/JSONRPC") as (one,), board(one.url, breaker=Breaker(failures=2)) as gateway:
        one.plays(answer, answer)
        for _ in range(2):
            await send(gateway, wire(JSON, SEND_MESSAGE, sending("x")))
        assert agent_of(gateway).state.replicas[0].breaker == ("open" if opens else "closed")


async def test_a_replica_that_answers_again_is_called_again() -> None:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(upstream())
        breaker = Breaker(failures=1, first=0.05, most=0.05)
        async with board(url_of(one), breaker=breaker) as gateway:
            port = one.port
            await stack.aclose()
            check_failure(JSON, await send(gateway, wire(JSON, SEND_MESSAGE, sending("x"))), "unavailable")
            async with upstream() as again, serve(again.app, port=port):
                pool = agent_of(gateway).pool
                await until(lambda: not pool.replicas[0].breaker.wait())
                await good_call(gateway, JSON)
                assert agent_of(gateway).state.replicas[0].breaker == "closed"


# -- replicas that differ


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_replicas_of_different_versions_serve_every_face(face: Face) -> None:
    """As while one after the other is brought up to date."""
    olds = [Face(binding, "0.3") for binding in ("JSONRPC", "GRPC", "HTTP+JSON")]
    async with upstream() as new, upstream(faces=olds) as old, board(url_of(new), url_of(old)) as gateway:
        tasks = await tasks_on(gateway, face, 6)
        assert (len(new.arrived), len(old.arrived)) == (3, 3)
        for task in tasks:
            answer = await send(gateway, wire(face, GET_TASK, GetTaskRequest(id=task.id)))
            assert reply(face, GET_TASK, answer).id == task.id
        stream = await send(gateway, wire(face, SEND_STREAMING_MESSAGE, sending("x")))
        assert stream.complete and b"error" not in stream.body


# -- lists


@pytest.mark.parametrize("face", [JSON, Face("GRPC", "1.0")], ids=str)
async def test_the_tasks_of_all_replicas_are_one_list(three: list[Upstream], face: Face) -> None:
    async with board(*map(url_of, three)) as gateway:
        made = [task.id for task in await tasks_on(gateway, face, 9)]
        listed, token = list[str](), ""
        while True:
            request = ListTasksRequest(page_size=4, page_token=token)
            page = reply(face, LIST_TASKS, await send(gateway, wire(face, LIST_TASKS, request)))
            assert page.total_size == 9
            listed += [task.id for task in page.tasks]
            token = page.next_page_token
            if not token:
                break
        assert sorted(listed) == sorted(made)


async def test_a_list_with_holes_is_none(two: list[Upstream]) -> None:
    async with board(url_of(two[0]), "http://127.0.0.1:9") as gateway:
        check_failure(JSON, await send(gateway, wire(JSON, LIST_TASKS, ListTasksRequest())), "unavailable")


# -- turns


async def begun(gateway: Switchboard, op: Any, text: str = "hold") -> tuple[Exchange, asyncio.Task[Answer]]:
    exchange = begin(gateway, wire(JSON, op, sending(text)))
    return exchange, asyncio.create_task(exchange.run())


async def test_calls_beyond_the_limit_wait_for_a_turn_and_streams_have_their_own(two: list[Upstream]) -> None:
    one = two[0]
    async with board(url_of(one), limits=UpstreamLimits(calls=1, streams=1, queue=10)) as gateway:
        pool = agent_of(gateway).pool
        stream, streaming = await begun(gateway, SEND_STREAMING_MESSAGE)
        await stream.until(lambda answer: b"holding" in answer.body)
        _, first = await begun(gateway, SEND_MESSAGE)
        await until(lambda: pool.calls.taken == 1)
        _, second = await begun(gateway, SEND_MESSAGE, "hello")
        await until(lambda: pool.calls.waiting == 1)
        assert len(one.arrived) <= 2 and agent_of(gateway).state.waiting == 1
        one.behind.stage.go.set()
        for task in (first, second, streaming):
            assert b"COMPLETED" in (await task).body
        assert (pool.calls.taken, pool.streams.taken) == (0, 0)


async def test_who_gets_no_turn_in_time_is_told_to_come_back(two: list[Upstream]) -> None:
    one = two[0]
    async with board(url_of(one), limits=UpstreamLimits(calls=1, streams=1, queue=0.05)) as gateway:
        _, first = await begun(gateway, SEND_MESSAGE)
        await one.behind.stage.begun.wait()
        answer = await send(gateway, wire(JSON, SEND_MESSAGE, sending("x")))
        check_failure(JSON, answer, "unavailable")
        assert answer.headers["retry-after"] == "1" and len(one.arrived) == 1
        one.behind.stage.go.set()
        await first


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
async def test_a_caller_that_goes_away_gives_its_turn_back(two: list[Upstream], op: Any) -> None:
    one = two[0]
    async with board(url_of(one), limits=UpstreamLimits(calls=1, streams=1, queue=0)) as gateway:
        pool = agent_of(gateway).pool
        for _ in range(3):
            _, running = await begun(gateway, op)
            await until(lambda: pool.calls.taken + pool.streams.taken == 1)
            await until(lambda: one.behind.stage.begun.is_set())
            one.behind.stage.begun.clear()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await until(lambda: pool.calls.taken + pool.streams.taken == 0)
        state = agent_of(gateway).state
        assert (state.calls, state.streams, state.waiting) == (0, 0, 0)


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
async def test_what_fails_gives_its_turn_back(op: Any) -> None:
    async with peers("1.0/JSONRPC") as (one,), board(one.url, breaker=Breaker(failures=1)) as gateway:
        for _ in range(3):
            check_failure(JSON, await send(gateway, wire(JSON, op, sending("x"))), "unavailable")
        state = agent_of(gateway).state
        assert (state.calls, state.streams, state.waiting) == (0, 0, 0)
        assert (agent_of(gateway).pool.calls.taken, agent_of(gateway).pool.streams.taken) == (0, 0)
