"""ListTasks of agents that have none, by callers who see their own tasks and nobody else's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.client.client import Client
from dragoman.errors import InvalidParamsError, TaskNotFoundError, UnavailableError, UnsupportedOperationError
from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.emulation.announcing import URI
from dragoman.gateway.index import Index, owner
from dragoman.gateway.seen import Seen
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import (
    LIST_TASKS,
    AgentCard,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Task,
    TaskState,
    TaskStatus,
)
from dragoman.store.base import Store, TaskQuery
from dragoman.store.memory import MemoryStore
from dragoman.store.opening import open_store
from tests.gateway.lacking import Rig, events_of, message, next_of, rig, sending
from tests.server.callers import CARD

JSON = Face("JSONRPC", "1.0")
OLD: dict[str, Any] = {"card": CARD, "face": "0.3/JSONRPC"}
NEW_FACES = [face for face in ALL_FACES if face.version == "1.0"]
OLD_FACES = [face for face in ALL_FACES if face.version == "0.3"]


def in_short(found: ListTasksResponse) -> list[tuple[str, str]]:
    return [(task.id, task.status.state.name) for task in found.tasks]


async def sent(client: Client, words: str = "hello", **more: Any) -> Task:
    task = (await client.send_message(sending(words, **more))).task
    assert task is not None
    return task


# -- what is listed


@pytest.mark.parametrize("face", NEW_FACES, ids=str)
@pytest.mark.parametrize("upstream", OLD_FACES, ids=str)
async def test_the_tasks_of_an_old_agent_are_listed_newest_first(face: Face, upstream: Face) -> None:
    async with rig(CARD, face=str(upstream)) as one:
        client = await one.client(face)
        tasks = [await sent(client, f"hello {number}") for number in range(3)]
        found = await client.list_tasks()
        assert [task.id for task in found.tasks] == [
            task.id for task in sorted(tasks, key=lambda task: task.status.timestamp or "", reverse=True)
        ]
        assert (found.total_size, found.page_size, found.next_page_token) == (3, 50, "")
        assert all(not task.artifacts and task.history for task in found.tasks)
        whole = await client.list_tasks(ListTasksRequest(include_artifacts=True, history_length=0))
        assert all(task.artifacts and not task.history for task in whole.tasks)


@pytest.mark.parametrize("face", OLD_FACES, ids=str)
async def test_what_old_callers_send_is_listed_though_its_bytes_pass(face: Face) -> None:
    async with rig(CARD, face=str(face)) as one:
        old, client = await one.client(face), await one.client(JSON)
        task = await sent(old)
        events = await events_of(await old.send_streaming_message(sending("hello again")))
        assert events[0].task is not None
        found = await client.list_tasks(ListTasksRequest(include_artifacts=True))
        assert {task.id for task in found.tasks} == {task.id, events[0].task.id}
        assert {task.artifacts[0].parts[0].text for task in found.tasks} == {"hello", "hello again"}
        assert one.service.calls["GetTask"] == 0


async def test_a_stream_under_way_is_listed_as_far_as_it_went() -> None:
    async with rig(**OLD) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("steps"))
        first = await next_of(stream)
        assert first.task is not None
        assert [task.id for task in (await client.list_tasks()).tasks] == [first.task.id]
        one.stage.go(3)
        await events_of(stream)
        assert in_short(await client.list_tasks()) == [(first.task.id, "COMPLETED")]


async def test_a_task_that_went_on_behind_our_back_is_listed_as_it_is() -> None:
    async with rig(**OLD) as one:
        client = await one.client(JSON)
        task = await sent(client, "steps", at_once=True)
        one.stage.go(3)
        await one.stage.done.wait()
        asked = ListTasksRequest(include_artifacts=True, history_length=1)
        [found] = (await client.list_tasks(asked)).tasks
        assert found.status.state is TaskState.COMPLETED and len(found.artifacts) == 2 and len(found.history) == 1
        calls = one.service.calls["GetTask"]
        await client.list_tasks(asked)
        assert one.service.calls["GetTask"] == calls  # a terminal task is not asked for again
        assert task.id == found.id


@pytest.mark.parametrize("status", [TaskState.COMPLETED, TaskState.WORKING])
async def test_filters_hold_for_what_a_task_is_now(status: TaskState) -> None:
    async with rig(**OLD) as one:
        client = await one.client(JSON)
        task = await sent(client, "steps", at_once=True)
        one.stage.go(3)
        await one.stage.done.wait()
        found = await client.list_tasks(ListTasksRequest(status=status))
        assert in_short(found) == ([(task.id, "COMPLETED")] if status is TaskState.COMPLETED else [])
        assert found.total_size == len(found.tasks)


async def test_tasks_are_filtered_by_context_and_time() -> None:
    async with rig(**OLD) as one:
        client = await one.client(JSON)
        first = await sent(client)
        second = (await client.send_message(message("more", context=first.context_id))).task
        third = await sent(client)
        assert second is not None and third.status.timestamp is not None
        found = await client.list_tasks(ListTasksRequest(context_id=first.context_id))
        assert {task.id for task in found.tasks} == {first.id, second.id}
        late = await client.list_tasks(ListTasksRequest(status_timestamp_after="2100-01-01T00:00:00Z"))
        assert late.tasks == ()
        since = await client.list_tasks(ListTasksRequest(status_timestamp_after=third.status.timestamp))
        assert third.id in {task.id for task in since.tasks}


async def test_pages_follow_one_another_whatever_becomes_of_their_tasks() -> None:
    async with rig(**OLD) as one:
        client = await one.client(JSON)
        ids = [(await sent(client, "steps", at_once=True)).id for _ in range(5)]
        one.stage.go(15)
        seen: list[str] = []
        token = ""
        while True:
            page = await client.list_tasks(ListTasksRequest(page_size=2, page_token=token))
            assert page.page_size == 2 and page.total_size == 5
            seen += [task.id for task in page.tasks]
            token = page.next_page_token
            if not token:
                break
        assert sorted(seen) == sorted(ids)
        with pytest.raises(InvalidParamsError):
            await client.list_tasks(ListTasksRequest(page_size=101))
        with pytest.raises(InvalidParamsError):
            await client.list_tasks(ListTasksRequest(page_token="bm8="))


async def test_a_task_that_the_agent_does_not_know_any_more_is_left_out() -> None:
    async with rig(**OLD) as one:
        client = await one.client(JSON)
        kept = await sent(client)
        gone = await sent(client, "steps", at_once=True)

        def forgotten(request: Any) -> None:
            if isinstance(request, GetTaskRequest) and request.id == gone.id:
                raise TaskNotFoundError

        one.service.hook = forgotten
        found = await client.list_tasks()
        assert in_short(found) == [(kept.id, "COMPLETED")] and found.total_size == 1
        one.service.hook = None
        assert in_short(await client.list_tasks()) == [(kept.id, "COMPLETED")]


async def test_what_cannot_be_asked_for_is_listed_as_it_was_seen() -> None:
    async with rig(**OLD) as one:
        client = await one.client(JSON)
        task = await sent(client, "steps", at_once=True)

        def fail(request: Any) -> None:
            if isinstance(request, GetTaskRequest):
                raise UnavailableError("later")

        one.service.hook = fail
        found = await client.list_tasks()
        assert [one.id for one in found.tasks] == [task.id] and found.tasks[0].status.state is not TaskState.COMPLETED


# -- whose it is


async def test_callers_do_not_see_each_others_tasks() -> None:
    async with rig(**OLD) as one:
        clients = {name: await one.client(JSON, name) for name in ("alice", "bob", "")}
        tasks = {name: await sent(client) for name, client in clients.items()}
        for name, client in clients.items():
            assert [task.id for task in (await client.list_tasks()).tasks] == [tasks[name].id]


async def test_a_page_of_one_caller_is_no_page_of_another() -> None:
    async with rig(**OLD) as one:
        alice, bob = await one.client(JSON, "alice"), await one.client(JSON, "bob")
        for _ in range(2):
            await sent(alice)
            await sent(bob)
        page = await alice.list_tasks(ListTasksRequest(page_size=1))
        with pytest.raises(InvalidParamsError):
            await bob.list_tasks(ListTasksRequest(page_size=1, page_token=page.next_page_token))


async def test_tenants_do_not_see_each_others_tasks() -> None:
    async with rig(CARD, refuses=(LIST_TASKS,), face="1.0/JSONRPC") as one:
        red, blue = await one.client(JSON, tenant="red"), await one.client(JSON, tenant="blue")
        await red.list_tasks()
        task = await sent(red)
        assert [one.id for one in (await red.list_tasks()).tasks] == [task.id]
        assert (await blue.list_tasks()).tasks == ()


# -- who has a list of its own


def announced(card: AgentCard) -> list[Any]:
    return [one.params["emulated"] for one in card.capabilities.extensions if one.uri == URI and one.params]


async def test_an_agent_with_a_list_of_its_own_is_asked() -> None:
    async with rig(CARD) as one:
        client = await one.client(JSON)
        task = await sent(client)
        direct = await (await one.direct()).send_text("unseen")
        assert direct.task is not None
        for _ in range(2):
            assert {one.id for one in (await client.list_tasks()).tasks} == {task.id, direct.task.id}
        assert one.service.calls["ListTasks"] == 2 and announced(client.card) == []
        index = one.board.common.index
        assert index is not None and not index.recording


@pytest.mark.parametrize("face", NEW_FACES, ids=str)
async def test_a_new_agent_without_a_list_is_found_out_once(face: Face) -> None:
    async with rig(CARD, refuses=(LIST_TASKS,)) as one:
        client = await one.client(face)
        assert (await client.list_tasks()).tasks == ()
        task = await sent(client)
        assert [one.id for one in (await client.list_tasks()).tasks] == [task.id]
        assert one.service.calls["ListTasks"] == 1


async def test_told_to_keep_nothing_the_gateway_keeps_nothing() -> None:
    async with rig(**OLD, index=False) as one:
        client = await one.client(JSON)
        await sent(client)
        with pytest.raises(UnsupportedOperationError):
            await client.list_tasks()
        assert announced(client.card) == []


async def test_the_card_says_whose_list_it_is() -> None:
    async with rig(**OLD) as one:
        assert announced((await one.client(JSON)).card) == [["list-tasks"]]
        assert announced((await one.client(Face("JSONRPC", "0.3"))).card) == [["list-tasks"]]


# -- how long


async def restarted(store: Store, days: float, check: Any) -> None:
    def keep(board: Switchboard) -> None:
        board.common.keep_tasks(store, days=days)

    async with rig(**OLD, before=keep) as one:
        await check(one)


async def test_what_was_seen_outlives_the_gateway(tmp_path: Path) -> None:
    """In a database, too: what a client was told before the end is there after it."""
    ids: list[str] = []

    async def first(one: Rig) -> None:
        ids.append((await sent(await one.client(JSON))).id)

    async def second(one: Rig) -> None:
        assert [task.id for task in (await (await one.client(JSON)).list_tasks()).tasks] == ids

    for check in (first, second):
        store = await open_store(f"sqlite:{tmp_path / 'gateway.db'}", retention=86_400, limit=100)
        try:
            await restarted(store, 1, check)
        finally:
            await store.aclose()


async def test_a_task_is_forgotten_after_its_days() -> None:
    store = MemoryStore()
    status = TaskStatus(state=TaskState.COMPLETED, timestamp="2020-01-01T00:00:00.000Z")
    await store.save(owner("agent", "", ""), Task(id="old", context_id="c", status=status))

    async def check(one: Rig) -> None:
        client = await one.client(JSON)
        task = await sent(client)
        for request in (ListTasksRequest(), ListTasksRequest(status_timestamp_after="2019-01-01T00:00:00Z")):
            assert [one.id for one in (await client.list_tasks(request)).tasks] == [task.id]

    await restarted(store, 30, check)


async def test_other_ways_may_tell_of_a_task() -> None:
    index = Index(Seen(MemoryStore()))
    task = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))
    index.see("agent", "", "alice", task)
    index.recording.add("agent")
    index.see("agent", "", "alice", replace(task, id="u"))
    page = await index.seen.list(owner("agent", "", "alice"), TaskQuery())
    assert [one.id for one in page.tasks] == ["u"]
    await index.aclose()


async def test_a_list_does_not_wait_for_an_agent_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(**OLD) as one:
        client = await one.client(Face("GRPC", "1.0"))
        task = await sent(client, "steps", at_once=True)
        blocked = asyncio.Event()
        call = one.service.call

        async def stuck(op: Any, request: Any, ctx: Any) -> Any:
            if isinstance(request, GetTaskRequest):
                await blocked.wait()
            return await call(op, request, ctx)

        monkeypatch.setattr(one.service, "call", stuck)
        found = await client.list_tasks(timeout=2)
        blocked.set()
        assert [one.id for one in found.tasks] == [task.id]
