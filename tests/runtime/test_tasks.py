"""GetTask, ListTasks, CancelTask, and who may see what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dragoman.errors import A2AError, InvalidParamsError, TaskNotCancelableError, TaskNotFoundError
from dragoman.model import GET_TASK, GetTaskRequest, Task, TaskState
from dragoman.runtime.agent import Turn
from dragoman.runtime.runs import Limits
from dragoman.store.memory import MemoryStore
from tests.runtime.bench import Bench, Open, drain, kinds


async def obeys(turn: Turn) -> None:
    """Does what the message says: done, ask, fail, or wait."""
    match turn.text:
        case "ask":
            await turn.ask("name?")
        case "fail":
            await turn.fail()
        case "wait":
            await turn.working()
            await asyncio.Event().wait()
        case _:
            await turn.artifact(turn.text)


# -- get


@pytest.mark.parametrize(("length", "kept"), [(None, 3), (0, 0), (1, 1), (5, 3)])
async def test_get_trims_the_history_to_the_newest(bench: Open, length: int | None, kept: int) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working("a")
        await turn.working("b")

    b = bench(handler)
    task = await b.get((await b.send()).id, history_length=length)
    assert [entry.parts[0].text for entry in task.history] == ["hello", "a", "b"][3 - kept :]


async def test_get_refuses_a_negative_history_length(bench: Open) -> None:
    b = bench(obeys)
    with pytest.raises(InvalidParamsError):
        await b.get((await b.send()).id, history_length=-1)


async def test_get_shows_a_running_task_as_it_is_now(bench: Open) -> None:
    b = bench(obeys)
    task = await b.send("wait", return_immediately=True)
    assert (await b.get(task.id)).status.state is TaskState.WORKING


async def test_an_unknown_task_is_not_found(bench: Open) -> None:
    with pytest.raises(TaskNotFoundError):
        await bench(obeys).get("made-up")


# -- list


async def test_tasks_are_listed_newest_status_first(bench: Open) -> None:
    b = bench(obeys)
    old, asking, new = await b.send("1"), await b.send("ask"), await b.send("3")
    assert [task.id for task in (await b.list()).tasks] == [new.id, asking.id, old.id]
    await b.send("Ada", task=asking.id)
    assert [task.id for task in (await b.list()).tasks] == [asking.id, new.id, old.id]


async def test_running_tasks_are_listed_with_their_latest_status(bench: Open) -> None:
    b = bench(obeys)
    running = await b.send("wait", return_immediately=True)
    await b.send("done")
    assert [task.status.state for task in (await b.list()).tasks] == [TaskState.COMPLETED, TaskState.WORKING]
    assert [task.id for task in (await b.list(status=TaskState.WORKING)).tasks] == [running.id]


@pytest.mark.parametrize(("wanted", "listed"), [(None, False), (False, False), (True, True)])
async def test_artifacts_are_listed_only_when_asked_for(bench: Open, wanted: bool | None, listed: bool) -> None:
    b = bench(obeys)
    await b.send("x")
    (task,) = (await b.list(include_artifacts=wanted)).tasks
    assert bool(task.artifacts) is listed


async def test_filters_hold_together(bench: Open) -> None:
    b = bench(obeys)
    mine = await b.send("x", context="mine")
    await b.send("fail", context="mine")
    await b.send("x", context="other")
    page = await b.list(context_id="mine", status=TaskState.COMPLETED)
    assert ([task.id for task in page.tasks], page.total_size) == ([mine.id], 1)


async def test_the_time_filter_is_inclusive_and_reads_any_offset(bench: Open) -> None:
    b = bench(obeys)
    await b.send("1")
    second, third = await b.send("2"), await b.send("3")
    assert second.status.timestamp is not None
    page = await b.list(status_timestamp_after=second.status.timestamp.replace("Z", "+00:00"))
    assert {task.id for task in page.tasks} == {second.id, third.id}


async def test_pages_join_to_the_whole_list(bench: Open) -> None:
    b = bench(obeys)
    sent = [(await b.send(str(n))).id for n in range(7)]
    seen: list[str] = []
    token, sizes = "", []
    while True:
        page = await b.list(page_size=3, page_token=token)
        assert (page.page_size, page.total_size) == (3, 7)
        seen += [task.id for task in page.tasks]
        sizes.append(len(page.tasks))
        token = page.next_page_token
        if not token:
            break
    assert (seen, sizes) == (sent[::-1], [3, 3, 1])


async def test_a_task_that_changes_between_pages_shifts_no_other(bench: Open) -> None:
    b = bench(obeys)
    asking = await b.send("ask")
    rest = [(await b.send(str(n))).id for n in range(4)]
    first = await b.list(page_size=2)
    await b.send("Ada", task=asking.id)  # goes to the front
    second = await b.list(page_size=2, page_token=first.next_page_token)
    assert [task.id for task in first.tasks + second.tasks] == rest[::-1]
    assert second.next_page_token == ""


async def test_the_default_page_holds_fifty(bench: Open) -> None:
    b = bench(obeys)
    for _ in range(51):
        await b.send()
    page = await b.list()
    assert (len(page.tasks), page.page_size, page.total_size, bool(page.next_page_token)) == (50, 50, 51, True)


@pytest.mark.parametrize(
    ("request_fields", "fields"),
    [
        ({"page_size": 0}, ["pageSize"]),
        ({"page_size": 101}, ["pageSize"]),
        ({"history_length": -1}, ["historyLength"]),
        ({"status_timestamp_after": "yesterday"}, ["statusTimestampAfter"]),
        ({"page_token": "what?"}, ["pageToken"]),
        ({"page_token": "ünsinn"}, ["pageToken"]),
        ({"page_size": -5, "history_length": -1, "page_token": "x"}, ["pageSize", "historyLength", "pageToken"]),
    ],
)
async def test_every_bad_field_of_a_list_is_named(
    bench: Open, request_fields: dict[str, Any], fields: list[str]
) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        await bench(obeys).list(**request_fields)
    assert [violation[0] for violation in caught.value.violations] == fields


async def test_a_token_of_another_list_is_refused(bench: Open) -> None:
    b = bench(obeys)
    for _ in range(3):
        await b.send(context="c")
    token = (await b.list(page_size=1, context_id="c")).next_page_token
    for who, filters in ((b, {}), (b, {"context_id": "d"}), (b.as_caller("eve"), {"context_id": "c"})):
        with pytest.raises(InvalidParamsError):
            await who.list(page_size=1, page_token=token, **filters)


# -- cancel


async def test_canceling_stops_the_handler_and_answers_everybody(bench: Open) -> None:
    stopped: list[str] = []

    async def handler(turn: Turn) -> None:
        await turn.working()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(turn.task_id)

    b = bench(handler)
    stream = await b.stream()
    (opening, *_) = await stream.batch()
    assert opening.task is not None
    task = await b.cancel(opening.task.id)
    assert task.status.state is TaskState.CANCELED
    assert stopped == [task.id]
    assert kinds(await drain(stream)) == ["CANCELED"]


async def test_a_blocking_send_is_answered_when_its_task_is_canceled(bench: Open) -> None:
    b = bench(obeys)
    waiting = asyncio.create_task(b.send("wait"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    (task,) = (await b.list()).tasks
    await b.cancel(task.id)
    assert (await waiting).status.state is TaskState.CANCELED


async def test_cancels_at_the_same_time_all_get_the_canceled_task(bench: Open) -> None:
    b = bench(obeys)
    task = await b.send("wait", return_immediately=True)
    both = await asyncio.gather(b.cancel(task.id), b.cancel(task.id))
    assert [one.status.state for one in both] == [TaskState.CANCELED] * 2


async def test_a_task_that_waits_for_input_can_be_canceled(bench: Open) -> None:
    b = bench(obeys)
    task = await b.send("ask")
    stream = await b.subscribe(task.id)
    assert (await b.cancel(task.id)).status.state is TaskState.CANCELED
    assert kinds(await drain(stream)) == ["task", "CANCELED"]
    assert (await b.get(task.id)).status.state is TaskState.CANCELED


@pytest.mark.parametrize("text", ["done", "fail", "cancel"])
async def test_a_final_task_cannot_be_canceled(bench: Open, text: str) -> None:
    b = bench(obeys)
    task = await b.send("ask" if text == "cancel" else text)
    if text == "cancel":
        await b.cancel(task.id)
    with pytest.raises(TaskNotCancelableError):
        await b.cancel(task.id)


async def test_an_agent_may_refuse_to_cancel(bench: Open) -> None:
    asked: list[str] = []

    async def refuse(task: Task) -> bool:
        asked.append(task.id)
        return False

    b = bench(obeys, on_cancel=refuse)
    task = await b.send("wait", return_immediately=True)
    with pytest.raises(TaskNotCancelableError):
        await b.cancel(task.id)
    assert asked == [task.id]
    assert (await b.get(task.id)).status.state is TaskState.WORKING


async def test_a_handler_that_finishes_in_spite_of_the_cancel_wins(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await turn.complete("already done")

    b = bench(handler)
    task = await b.send(return_immediately=True)
    with pytest.raises(TaskNotCancelableError):
        await b.cancel(task.id)
    assert (await b.get(task.id)).status.state is TaskState.COMPLETED


async def test_a_handler_that_swallows_the_cancel_and_returns_is_canceled(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

    b = bench(handler)
    task = await b.send(return_immediately=True)
    assert (await b.cancel(task.id)).status.state is TaskState.CANCELED


async def test_a_cancel_that_takes_long_returns_the_task_as_it_is(bench: Open) -> None:
    tidy = asyncio.Event()

    async def handler(turn: Turn) -> None:
        await turn.working()
        try:
            await asyncio.Event().wait()
        finally:
            await tidy.wait()

    b = bench(handler, limits=Limits(cancel_wait=0.001))
    task = await b.send(return_immediately=True)
    assert (await b.cancel(task.id)).status.state is TaskState.WORKING
    tidy.set()
    assert await b.outcome(task.id) is TaskState.CANCELED


async def test_a_resumed_task_can_be_canceled_before_its_handler_began(bench: Open) -> None:
    ran: list[str] = []

    async def handler(turn: Turn) -> None:
        ran.append(turn.text)
        await turn.ask("name?")

    b = bench(handler)
    task = await b.send("first")
    resumed, canceled = await asyncio.gather(b.send("second", task=task.id), b.cancel(task.id))
    assert (resumed.status.state, canceled.status.state) == (TaskState.CANCELED, TaskState.CANCELED)
    assert ran == ["first"]


async def test_a_handler_that_cancels_itself_fails_its_task(bench: Open, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(turn: Turn) -> None:
        raise asyncio.CancelledError

    assert (await bench(handler).send()).status.state is TaskState.FAILED
    assert "not by the engine" in caplog.text


# -- who may see what


SEES: dict[str, Callable[[Bench, str], Awaitable[Any]]] = {
    "get": lambda who, task: who.get(task),
    "send": lambda who, task: who.send(task=task),
    "subscribe": lambda who, task: who.subscribe(task),
    "cancel": lambda who, task: who.cancel(task),
}


@pytest.mark.parametrize("text", ["ask", "wait"])
@pytest.mark.parametrize("act", SEES)
@pytest.mark.parametrize("stranger", [("eve", "acme"), ("ada", "other"), ("ada", ""), ("", "acme")])
async def test_a_task_of_somebody_else_looks_like_none(
    bench: Open, act: str, text: str, stranger: tuple[str, str]
) -> None:
    b = bench(obeys)
    ada = b.as_caller("ada", tenant="acme")
    task = await ada.send(text, return_immediately=True)
    name, tenant = stranger
    with pytest.raises(TaskNotFoundError) as caught:
        await SEES[act](b.as_caller(name, tenant=tenant), task.id)
    with pytest.raises(TaskNotFoundError) as unknown:
        await SEES[act](b, "x" * len(task.id))
    assert str(caught.value) == str(unknown.value)
    assert await ada.get(task.id) == task


async def test_everybody_lists_their_own_tasks_only(bench: Open) -> None:
    b = bench(obeys)
    people = [b.as_caller(name, tenant=tenant) for name in ("ada", "eve") for tenant in ("", "acme")]
    own = [(await who.send()).id for who in people]
    for who, task in zip(people, own, strict=True):
        page = await who.list()
        assert ([one.id for one in page.tasks], page.total_size) == ([task], 1)


async def test_the_tenant_of_the_request_counts_and_must_not_contradict_the_route(bench: Open) -> None:
    b = bench(obeys)
    acme = b.as_caller(tenant="acme")
    task = await acme.send()
    request = GetTaskRequest(id=task.id, tenant="acme")
    assert await b.engine.call(GET_TASK, request, b.ctx) == task
    assert await b.engine.call(GET_TASK, request, acme.ctx) == task
    with pytest.raises(InvalidParamsError) as caught:
        await b.engine.call(GET_TASK, request, b.as_caller(tenant="other").ctx)
    assert caught.value.violations[0][0] == "tenant"


# -- the store


async def test_a_task_at_rest_survives_its_engine(bench: Open) -> None:
    store = MemoryStore()
    task = await bench(obeys, store=store).send("ask")
    after = await bench(obeys, store=store).send("Ada", task=task.id)
    assert (after.id, after.status.state) == (task.id, TaskState.COMPLETED)
    assert len(after.history) == 3


async def test_a_running_task_survives_eviction_from_the_store(bench: Open) -> None:
    b = bench(obeys, store=MemoryStore(limit=2))
    running = await b.send("wait", return_immediately=True)
    for _ in range(5):
        await b.send("done")
        await b.list()
    assert (await b.get(running.id)).status.state is TaskState.WORKING
    assert running.id in {task.id for task in (await b.list()).tasks}


class Broken(MemoryStore):
    """A store that cannot save."""

    async def save(self, owner: tuple[str, str], task: Task) -> None:
        raise OSError("disk full")


async def test_a_store_that_fails_leaves_nobody_waiting(bench: Open, caplog: pytest.LogCaptureFixture) -> None:
    b = bench(obeys, store=Broken())
    with pytest.raises(A2AError) as caught:
        await b.send()
    assert "disk full" not in str(caught.value)
    assert "disk full" in caplog.text
    stream = await b.stream()
    with pytest.raises(A2AError):
        await drain(stream)
