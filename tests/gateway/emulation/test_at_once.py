"""Callers who do not want to wait, at an agent that always makes them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.errors import TaskNotCancelableError, TaskNotFoundError, UnavailableError, UnsupportedOperationError
from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.background import Background
from dragoman.gateway.config.upstream import UpstreamTimeouts
from dragoman.gateway.emulation import leading
from dragoman.gateway.emulation.aliases import PREFIX, STALE, Records, alias_of, beating, failed, is_own, pending
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import SendMessageRequest, Task, TaskPushNotificationConfig, TaskState
from dragoman.service import Context
from dragoman.store.memory import MemoryStore
from tests.gateway.lacking import Rig, events_of, folded, message, next_of, only_text, rig, sending, soon
from tests.server.callers import CARD

JSON = Face("JSONRPC", "1.0")
SILENTLY: dict[str, Any] = {"emulate": ("return-at-once",), "waits": True}


async def begun(one: Rig, words: str = "mute", face: Face = JSON, **more: Any) -> Task:
    client = await one.client(face)
    task = (await client.send_message(sending(words, at_once=True, **more))).task
    assert task is not None
    return task


async def become(one: Rig, task_id: str, face: Face = JSON) -> Task:
    """The task once it is not SUBMITTED any more."""
    client = await one.client(face)
    async with asyncio.timeout(10):
        while (task := await client.get_task(task_id)).status.state is TaskState.SUBMITTED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return task


# -- an agent that streams


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_the_first_task_of_a_stream_is_the_answer(face: Face) -> None:
    async with rig(CARD, **SILENTLY) as one:
        task = await begun(one, "steps", face)
        assert task.status.state is not TaskState.COMPLETED and not is_own(task.id)
        assert one.service.calls == {"SendStreamingMessage": 1}
        one.stage.go(3)
        await one.stage.done.wait()
        client = await one.client(face)
        assert (await client.get_task(task.id)).status.state is TaskState.COMPLETED


async def test_the_stream_is_followed_to_its_end_behind_the_caller() -> None:
    async with rig(CARD, **SILENTLY) as one:
        await begun(one, "steps")
        assert len(one.board.common.background) == 1
        one.stage.go(3)
        await soon(lambda: len(one.board.common.background) == 0)


async def test_beyond_so_many_a_stream_is_closed_and_its_task_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "MOST", 0)
    async with rig(CARD, **SILENTLY) as one:
        task = await begun(one, "steps")
        await soon(lambda: len(one.board.common.background) == 0)
        one.stage.go(3)
        await one.stage.done.wait()
        client = await one.client(JSON)
        assert (await client.get_task(task.id)).status.state is TaskState.COMPLETED


async def test_a_direct_answer_and_an_error_are_passed_on() -> None:
    async with rig(CARD, **SILENTLY) as one:
        client = await one.client(JSON)
        said = await client.send_message(sending("say hello", at_once=True))
        assert said.message is not None and said.message.parts[0].text == "hello"
        with pytest.raises(TaskNotFoundError):
            await client.send_message(sending("hello", at_once=True, task="nobody's"))


async def test_who_wants_to_wait_waits() -> None:
    async with rig(CARD, **SILENTLY) as one:
        client = await one.client(JSON)
        one.stage.go(3)
        task = (await client.send_message(sending("steps"))).task
        assert task is not None and task.status.state is TaskState.COMPLETED
        assert one.service.calls == {"SendMessage": 1}


# -- an agent that does not


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_callers_of_every_face_get_a_task_of_our_own_that_becomes_the_agents(face: Face) -> None:
    async with rig(**SILENTLY) as one:
        task = await begun(one, face=face)
        assert task.id.startswith(PREFIX) and task.status.state is TaskState.SUBMITTED and task.context_id
        client = await one.client(face)
        assert (await client.get_task(task.id)).status.state is TaskState.SUBMITTED
        with pytest.raises(TaskNotCancelableError):
            await client.cancel_task(task.id)
        one.stage.go()
        done = await become(one, task.id, face)
        assert (done.id, done.context_id) == (task.id, task.context_id)
        assert done.status.state is TaskState.COMPLETED and list(only_text(done).values()) == ["told at last"]
        assert {one.task_id for one in done.history} <= {task.id, ""}
        assert one.service.calls["SendMessage"] == 1


async def test_a_quick_agent_gives_its_own_id() -> None:
    async with rig(**SILENTLY) as one:
        task = await begun(one, "hello")
        assert not is_own(task.id) and task.status.state is TaskState.COMPLETED


async def test_such_a_task_can_be_followed_from_its_beginning() -> None:
    async with rig(**SILENTLY) as one:
        task = await begun(one)
        client = await one.client(JSON)
        stream = await client.subscribe_to_task(task.id)
        events = [await next_of(stream)]
        one.stage.go()
        events += await events_of(stream)
        read = folded(events)
        assert read.id == task.id and read.status.state is TaskState.COMPLETED
        with pytest.raises(UnsupportedOperationError):
            await client.subscribe_to_task(task.id)


async def test_streams_are_made_of_it_where_they_are_made_up_for() -> None:
    async with rig(emulate=("streaming", "return-at-once"), waits=True) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("mute"))
        events = [await next_of(stream)]
        assert events[0].task is not None and events[0].task.status.state is TaskState.SUBMITTED
        one.stage.go()
        events += await events_of(stream)
        assert folded(events).status.state is TaskState.COMPLETED


async def test_further_messages_go_by_either_id_and_either_context() -> None:
    async with rig(**SILENTLY) as one:
        client = await one.client(JSON)
        sent = asyncio.ensure_future(client.send_message(sending("ask", at_once=True)))
        task = (await sent).task
        assert task is not None and is_own(task.id)
        with pytest.raises(UnsupportedOperationError):
            await client.send_message(message("too early", task=task.id))
        one.stage.go()
        assert (await become(one, task.id)).status.state is TaskState.INPUT_REQUIRED
        more = (await client.send_message(message("hello", task=task.id, context=task.context_id))).task
        assert more is not None and (more.id, more.context_id) == (task.id, task.context_id)
        assert more.status.state is TaskState.COMPLETED
        request = one.service.requests[-1]
        assert isinstance(request, SendMessageRequest) and not is_own(request.message.task_id)
        other = (await client.get_task(request.message.task_id)).context_id
        assert not is_own(other)
        third = (await client.send_message(message("again", context=task.context_id))).task
        assert third is not None and third.context_id == other and not is_own(third.id)


async def test_a_direct_answer_completes_the_task() -> None:
    async with rig(**SILENTLY) as one:
        task = await begun(one, "hush hello")
        one.stage.go()
        done = await become(one, task.id)
        assert done.status.state is TaskState.COMPLETED and done.status.message is not None
        assert done.status.message.parts[0].text == "hello" and done.status.message.task_id == task.id
        client = await one.client(JSON)
        with pytest.raises(UnsupportedOperationError):
            await client.send_message(message("more", task=task.id))


async def test_an_error_that_comes_later_fails_the_task() -> None:
    async with rig(**SILENTLY, timeouts=UpstreamTimeouts(reply=0.5)) as one:
        task = await begun(one)
        done = await become(one, task.id)
        assert done.status.state is TaskState.FAILED and done.status.message is not None
        said = str(done.status.message.parts[0].text)
        assert "gave no answer" in said and str(one.upstream) not in said


async def test_nobody_else_finds_it() -> None:
    async with rig(**SILENTLY) as one:
        alice, bob = await one.client(JSON, "alice"), await one.client(JSON, "bob")
        task = (await alice.send_message(sending("mute", at_once=True))).task
        assert task is not None
        assert (await alice.get_task(task.id)).id == task.id
        with pytest.raises(TaskNotFoundError):
            await bob.get_task(task.id)


async def test_a_client_that_leaves_while_it_waits_cancels_nothing() -> None:
    async with rig(**SILENTLY) as one:
        client = await one.client(JSON)
        waiting = asyncio.ensure_future(client.send_message(sending("mute")))
        await one.stage.begun.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert len(one.board.common.background) == 1
        one.stage.go()
        await one.stage.done.wait()
        await soon(lambda: len(one.board.common.background) == 0)


async def test_webhooks_of_a_task_without_a_name_have_to_wait_for_it() -> None:
    async with rig(**SILENTLY) as one:
        client = await one.client(JSON)
        task = await begun(one)
        config = TaskPushNotificationConfig(task_id=task.id, url="https://hook.example/")
        with pytest.raises(UnavailableError):
            await client.create_task_push_notification_config(config)
        one.stage.go()
        await become(one, task.id)
        made = await client.create_task_push_notification_config(config)
        assert made.task_id == task.id
        assert [one.task_id for one in (await client.list_task_push_notification_configs(task.id)).configs] == [task.id]


async def test_the_list_of_an_agent_without_one_has_it_by_the_id_it_was_given() -> None:
    async with rig(**SILENTLY, face="0.3/JSONRPC") as one:
        client = await one.client(JSON)
        task = await begun(one)
        assert [(one.id, one.status.state) for one in (await client.list_tasks()).tasks] == [
            (task.id, TaskState.SUBMITTED)
        ]
        one.stage.go()
        await become(one, task.id)
        assert [(one.id, one.status.state) for one in (await client.list_tasks()).tasks] == [
            (task.id, TaskState.COMPLETED)
        ]


# -- restarts


async def test_a_task_that_was_named_outlives_the_gateway() -> None:
    store = MemoryStore()

    def keep(board: Switchboard) -> None:
        board.common.keep_tasks(store, days=1)

    async with rig(**SILENTLY, before=keep) as one:
        task = await begun(one)
        one.stage.go()
        await become(one, task.id)
        async with rig(**SILENTLY, before=keep) as other:
            client = await other.client(JSON)
            [record] = store._tasks[("at-once:agent/", "")].values()
            alias = alias_of(record)
            assert alias is not None
            with pytest.raises(TaskNotFoundError):  # the other upstream has never heard of it
                await client.get_task(task.id)
            asked = other.service.requests[-1]
            assert asked.id == alias.task_id


async def test_a_shutdown_fails_what_is_under_way_and_says_so() -> None:
    store = MemoryStore()
    async with rig(**SILENTLY, before=lambda board: board.common.keep_tasks(store, days=1)) as one:
        task = await begun(one)
        await one.board.common.background.aclose()
        done = await become(one, task.id)
        assert done.status.state is TaskState.FAILED and done.status.message is not None
        assert "shut down" in str(done.status.message.parts[0].text)


async def test_what_was_lost_with_its_process_has_failed() -> None:
    records = Records(MemoryStore(), "agent")
    owner = records.owner("", "alice")
    task = pending("dragoman-1", "")
    await records.save(owner, beating(task))
    alive = await records.find(owner, "dragoman-1")
    assert alive is not None and alive.status.state is TaskState.SUBMITTED
    await records.save(owner, replace(task, metadata={"dragoman": {"beat": time.time() - STALE - 1}}))
    lost = await records.find(owner, "dragoman-1")
    assert lost is not None and lost.status.state is TaskState.FAILED and lost.status.message is not None
    assert "not known" in str(lost.status.message.parts[0].text)
    assert await records.find(owner, "dragoman-1") == lost
    assert await records.find(records.owner("", "bob"), "dragoman-1") is None
    assert failed(task, "x").metadata is None


# -- what goes on without a caller


async def test_background_work_outlasts_who_waits_for_it() -> None:
    background, done = Background(), asyncio.Event()
    go = asyncio.Event()

    async def work() -> None:
        await go.wait()
        done.set()

    waiting = asyncio.ensure_future(background.outlasting(work(), "work", Context()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert len(background) == 1
    go.set()
    await done.wait()
    await background.aclose()
    assert len(background) == 0
