"""Callers who want to wait, at an agent that never lets them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.errors import UnavailableError
from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.config.upstream import UpstreamTimeouts
from dragoman.gateway.emulation.announcing import URI
from dragoman.model import GetTaskRequest, Part, Task, TaskState
from tests.gateway.lacking import message, only_text, rig, sending, soon

JSON = Face("JSONRPC", "1.0")


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_callers_of_every_face_wait_for_the_end(face: Face) -> None:
    async with rig(emulate=("blocking",), waits=False) as one:
        client = await one.client(face)
        waiting = asyncio.ensure_future(client.send_message(sending("steps")))
        await soon(lambda: one.service.calls["GetTask"] > 1)
        one.stage.go(3)
        async with asyncio.timeout(10):
            task = (await waiting).task
        assert task is not None and task.status.state is TaskState.COMPLETED
        assert only_text(task) == {"x": "ab", "y": "new"}
        assert [part.text for one in task.history for part in one.parts] == ["steps", "one", "two"]
        assert one.service.calls["SendMessage"] == 1


async def test_it_waits_for_a_question_too() -> None:
    async with rig(emulate=("blocking",), waits=False) as one:
        client = await one.client(JSON)
        waiting = asyncio.ensure_future(client.send_message(sending("ask")))
        await soon(lambda: one.service.calls["GetTask"] > 1)
        one.stage.go()
        task = (await waiting).task
        assert task is not None and task.status.state is TaskState.INPUT_REQUIRED


@pytest.mark.parametrize("history", [0, 1])
async def test_the_answer_has_as_much_history_as_was_asked_for(history: int) -> None:
    async with rig(emulate=("blocking",), waits=False) as one:
        client = await one.client(JSON)
        waiting = asyncio.ensure_future(client.send_message(sending("steps", history=history)))
        await soon(lambda: one.service.calls["GetTask"] > 1)
        one.stage.go(3)
        task = (await waiting).task
        assert task is not None and task.status.state is TaskState.COMPLETED and len(task.history) == history
        lengths = [asked.history_length for asked in one.service.requests if isinstance(asked, GetTaskRequest)]
        assert set(lengths[:-1]) <= {0} and lengths[-1] == history


async def still_working(one: Any, task: Task | None) -> None:
    assert task is not None and task.status.state is TaskState.WORKING
    assert task.history[0].parts == (Part(text="steps"),)
    one.stage.go(3)
    await one.stage.done.wait()
    direct = await one.direct()
    assert (await direct.get_task(task.id)).status.state is TaskState.COMPLETED


@pytest.mark.parametrize("face", [face for face in ALL_FACES if face.binding == "GRPC"], ids=str)
async def test_a_callers_deadline_gets_it_what_is_known_by_then(face: Face) -> None:
    async with rig(emulate=("blocking",), waits=False) as one:
        client = await one.client(face)
        await still_working(one, (await client.send_message(sending("steps"), timeout=6)).task)


async def test_the_agents_time_to_reply_is_the_longest_wait() -> None:
    async with rig(emulate=("blocking",), waits=False, timeouts=UpstreamTimeouts(reply=0.4)) as one:
        client = await one.client(JSON)
        await still_working(one, (await client.send_message(sending("steps"))).task)


async def test_a_task_that_cannot_be_asked_for_is_told_as_far_as_it_is_known() -> None:
    def fail(request: Any) -> None:
        if isinstance(request, GetTaskRequest):
            raise UnavailableError("later")

    async with rig(emulate=("blocking",), waits=False, hook=fail) as one:
        client = await one.client(JSON)
        answer = await client.send_message(sending("steps"))
        one.service.hook = None
        await still_working(one, answer.task)


async def test_nobody_is_asked_where_nobody_has_to_wait() -> None:
    async with rig(emulate=("blocking",), waits=False) as one:
        client = await one.client(JSON)
        at_once = (await client.send_message(sending("steps", at_once=True))).task
        assert at_once is not None and at_once.status.state is TaskState.WORKING
        said = await client.send_message(message("say hello"))
        assert said.message is not None
        assert "GetTask" not in one.service.calls
    async with rig(emulate=("blocking",)) as one:
        client = await one.client(JSON)
        await client.send_message(sending("hello"))
        assert "GetTask" not in one.service.calls


async def test_the_card_says_that_waiting_is_made_up_for() -> None:
    async with rig(emulate=("blocking",), index=False) as one:
        client = await one.client(JSON)
        [found] = [one for one in client.card.capabilities.extensions if one.uri == URI]
        assert found.params == {"emulated": ["blocking"]} and not found.required
        assert not client.card.capabilities.streaming
