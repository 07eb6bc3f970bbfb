"""Streams of an agent that has none, read by callers of every face."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.client.options import Resume
from dragoman.errors import (
    TaskNotFoundError,
    TransportError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedOperationError,
)
from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.emulation.announcing import URI
from dragoman.model import (
    SUBSCRIBE_TO_TASK,
    AgentCard,
    GetTaskRequest,
    StreamResponse,
    TaskState,
)
from tests.gateway.lacking import Rig, events_of, folded, next_of, only_text, rig, sending, soon
from tests.server.callers import CARD

JSON = Face("JSONRPC", "1.0")
NO_RESUME = Resume(tries=0)


def told(events: list[StreamResponse]) -> list[str]:
    return [type(one.task or one.message or one.status_update or one.artifact_update).__name__ for one in events]


@pytest.mark.parametrize("upstream", ["1.0/JSONRPC", "0.3/JSONRPC", "1.0/GRPC", "0.3/HTTP+JSON"])
async def test_a_stream_tells_what_the_task_becomes_step_by_step(upstream: str) -> None:
    async with rig(emulate=("streaming",), face=upstream) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("steps"))
        events = [await next_of(stream)]
        assert events[0].task is not None and events[0].task.status.state is TaskState.WORKING
        one.stage.go()
        while only_text(folded(events)) != {"x": "a"}:
            events.append(await next_of(stream))
        one.stage.go()
        while only_text(folded(events)) != {"x": "ab", "y": "other"}:
            events.append(await next_of(stream))
        chunk = next(
            event.artifact_update for event in events if event.artifact_update and event.artifact_update.append
        )
        assert chunk is not None and [part.text for part in chunk.artifact.parts] == ["b"] and not chunk.last_chunk
        one.stage.go()
        events += await events_of(stream)
        task = await client.get_task(events[0].task.id)
        read = folded(events)
        assert (read.status, only_text(read)) == (task.status, {"x": "ab", "y": "new"})
        said = [event.status_update.status.message for event in events if event.status_update]
        assert [message.parts[0].text for message in said if message] == ["two", "done"]


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_callers_of_every_face_get_such_a_stream(face: Face) -> None:
    async with rig(emulate=("streaming",)) as one:
        client = await one.client(face)
        stream = await client.send_streaming_message(sending("steps"))
        events = [await next_of(stream)]
        one.stage.go(3)
        events += await events_of(stream)
        assert told(events)[0] == "Task" and told(events)[-1] == "TaskStatusUpdateEvent"
        assert folded(events).status.state is TaskState.COMPLETED
        assert only_text(folded(events)) == {"x": "ab", "y": "new"}
        assert one.service.calls["SendMessage"] == 1 and "SendStreamingMessage" not in one.service.calls


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_callers_of_every_face_subscribe(face: Face) -> None:
    async with rig(emulate=("subscribe",)) as one:
        client = await one.client(face)
        sent = await client.send_message(sending("steps", at_once=True))
        assert sent.task is not None
        stream = await client.subscribe_to_task(sent.task.id)
        events = [await next_of(stream)]
        one.stage.go(3)
        events += await events_of(stream)
        assert folded(events).status.state is TaskState.COMPLETED
        with pytest.raises(UnsupportedOperationError):
            await client.subscribe_to_task(sent.task.id)
        with pytest.raises(TaskNotFoundError):
            await client.subscribe_to_task("nobody's")
        with pytest.raises(UnsupportedOperationError):
            await client.send_streaming_message(sending("steps"))


async def test_messages_that_passed_by_between_two_looks_are_told() -> None:
    async with rig(emulate=("streaming",)) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("steps", history=0))
        events = [await next_of(stream)]
        assert events[0].task is not None and events[0].task.history == ()
        one.stage.go(3)
        await one.stage.done.wait()
        events += await events_of(stream)
        said = [event.status_update.status.message for event in events if event.status_update]
        assert [message.parts[0].text for message in said if message][-2:] == ["two", "done"]


async def test_a_direct_answer_is_the_whole_stream() -> None:
    async with rig(emulate=("streaming",)) as one:
        client = await one.client(JSON)
        events = await events_of(await client.send_streaming_message(sending("say hello")))
        assert told(events) == ["Message"]


async def test_a_task_that_asks_ends_its_stream_and_one_that_asked_can_be_subscribed_to() -> None:
    async with rig(emulate=("streaming",)) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("ask"))
        events = [await next_of(stream)]
        one.stage.go()
        events += await events_of(stream)
        task = folded(events)
        assert task.status.state is TaskState.INPUT_REQUIRED
        again = await client.subscribe_to_task(task.id)
        first = await next_of(again)
        assert first.task is not None and first.task.status.state is TaskState.INPUT_REQUIRED
        await client.send_message(sending("hello", task=task.id))
        assert folded([first, *await events_of(again)]).status.state is TaskState.COMPLETED


# -- failures


class Failing:
    """Raises for GetTask as often as it is told to."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.raised = 0

    def __call__(self, request: Any) -> None:
        if isinstance(request, GetTaskRequest) and self.errors:
            self.raised += 1
            raise self.errors.pop(0)


async def test_a_question_that_fails_is_asked_again() -> None:
    failing = Failing()
    async with rig(emulate=("streaming",), hook=failing) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("steps"))
        events = [await next_of(stream)]
        failing.errors = [UnavailableError("later")] * 4
        one.stage.go(3)
        events += await events_of(stream)
        assert folded(events).status.state is TaskState.COMPLETED and failing.raised == 4


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
@pytest.mark.parametrize(("error", "times"), [(UnavailableError("later"), 5), (UnauthenticatedError(), 1)])
async def test_a_stream_that_cannot_go_on_ends_with_the_error(face: Face, error: Exception, times: int) -> None:
    failing = Failing()
    async with rig(emulate=("streaming",), hook=failing) as one:
        client = await one.client(face, resume=NO_RESUME)
        stream = await client.send_streaming_message(sending("steps"))
        await next_of(stream)
        failing.errors = [error] * 100
        with pytest.raises((type(error), TransportError)):  # gRPC of 0.3 cannot tell unavailable from a lost connection
            await events_of(stream)
        assert failing.raised >= times


async def test_a_task_that_is_gone_ends_its_stream_at_once() -> None:
    failing = Failing()
    async with rig(emulate=("streaming",), hook=failing) as one:
        client = await one.client(JSON, resume=NO_RESUME)
        stream = await client.send_streaming_message(sending("steps"))
        await next_of(stream)
        failing.errors = [TaskNotFoundError()]
        with pytest.raises(TaskNotFoundError):
            await events_of(stream)
        assert failing.raised == 1


# -- a client that goes away


async def test_a_client_that_leaves_cancels_nothing_and_nobody_asks_any_more() -> None:
    async with rig(emulate=("streaming",)) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("steps"))
        first = await next_of(stream)
        assert first.task is not None
        await soon(lambda: one.service.calls["GetTask"] > 2)
        await stream.aclose()
        await soon(lambda: not one.board.agents[0].app.desk.streams)
        asked = one.service.calls["GetTask"]
        await asyncio.sleep(0.1)  # several times the longest interval
        assert one.service.calls["GetTask"] == asked
        one.stage.go(3)
        await one.stage.done.wait()
        direct = await one.direct()
        assert (await direct.get_task(first.task.id)).status.state is TaskState.COMPLETED


async def test_questions_carry_no_more_history_than_is_looked_at() -> None:
    async with rig(emulate=("streaming",)) as one:
        client = await one.client(JSON)
        stream = await client.send_streaming_message(sending("steps"))
        await next_of(stream)
        one.stage.go(3)
        await events_of(stream)
        lengths = {asked.history_length for asked in one.service.requests if isinstance(asked, GetTaskRequest)}
        assert lengths == {10}


# -- the card


def emulations(card: AgentCard) -> list[Any]:
    return [one.params["emulated"] for one in card.capabilities.extensions if one.uri == URI and one.params]


@pytest.mark.parametrize("face", [JSON, Face("HTTP+JSON", "0.3")], ids=str)
async def test_the_card_says_what_is_made_up_for(face: Face) -> None:
    async with rig(emulate=("streaming", "subscribe"), index=False) as one:
        client = await one.client(face)
        assert client.card.capabilities.streaming is True
        assert emulations(client.card) == [["streaming", "subscribe"]]
        extended = await client.get_extended_agent_card()
        assert extended.capabilities.streaming is True and emulations(extended) == [["streaming", "subscribe"]]


async def test_the_card_says_nothing_that_is_off_or_the_agents_own() -> None:
    async with rig(index=False) as one:
        client = await one.client(JSON)
        assert not client.card.capabilities.streaming and emulations(client.card) == []
        with pytest.raises(UnsupportedOperationError):
            await client.send_streaming_message(sending("steps"))
    async with rig(CARD, emulate=("streaming", "subscribe")) as one:
        client = await one.client(JSON)
        assert client.card.capabilities.streaming is True and emulations(client.card) == []
        await events_of(await client.send_streaming_message(sending("hello")))
        assert one.service.calls["SendStreamingMessage"] == 1 and "GetTask" not in one.service.calls


# -- an agent that streams and cannot be subscribed to


async def streaming_without_subscribing(one: Rig) -> None:
    client = await one.client(JSON)
    sent = await client.send_message(sending("steps", at_once=True))
    assert sent.task is not None
    for _ in range(2):
        stream = await client.subscribe_to_task(sent.task.id)
        await next_of(stream)
        await stream.aclose()
    assert one.service.calls["SubscribeToTask"] == 1
    stream = await client.subscribe_to_task(sent.task.id)
    one.stage.go(3)
    assert folded(await events_of(stream)).status.state is TaskState.COMPLETED
    with pytest.raises(UnsupportedOperationError):
        await client.subscribe_to_task(sent.task.id)


async def test_an_agent_that_streams_and_knows_no_subscribing_is_asked_once() -> None:
    async with rig(CARD, emulate=("subscribe",), refuses=(SUBSCRIBE_TO_TASK,)) as one:
        await streaming_without_subscribing(one)


async def test_an_agent_that_refuses_a_terminal_task_is_not_taken_for_one_without_subscribing() -> None:
    async with rig(CARD, emulate=("subscribe",)) as one:
        client = await one.client(JSON)
        sent = await client.send_message(sending("hello"))
        assert sent.task is not None
        for _ in range(2):
            with pytest.raises(UnsupportedOperationError):
                await client.subscribe_to_task(sent.task.id)
        assert one.service.calls["SubscribeToTask"] == 2
