"""SendStreamingMessage and SubscribeToTask: order, ends, several readers, slow readers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.errors import TaskNotFoundError, UnavailableError, UnsupportedOperationError
from dragoman.model import TaskState
from dragoman.runtime.agent import Turn
from dragoman.runtime.lifecycle import fold
from dragoman.runtime.runs import Limits
from tests.runtime.bench import Open, drain, kinds


async def working_then_done(turn: Turn) -> None:
    await turn.working("on it")
    await turn.artifact("a", artifact_id="x")
    await turn.artifact("b", artifact_id="x", append=True, last_chunk=True)
    await turn.complete("done")


async def test_a_stream_begins_with_the_task_and_ends_with_its_last_status(bench: Open) -> None:
    b = bench(working_then_done)
    events = await drain(await b.stream())
    assert kinds(events) == ["task", "WORKING", "artifact", "artifact", "COMPLETED"]
    first = events[0].task
    assert first is not None
    assert first.status.state is TaskState.SUBMITTED
    assert {event.status_update.context_id for event in events if event.status_update} == {first.context_id}
    chunks = [event.artifact_update for event in events if event.artifact_update]
    assert [(chunk.append, chunk.last_chunk) for chunk in chunks] == [(False, False), (True, True)]


async def test_what_a_stream_tells_adds_up_to_the_task(bench: Open) -> None:
    b = bench(working_then_done)
    first, *rest = await drain(await b.stream())
    assert first.task is not None
    assert fold(first.task, rest) == await b.get(first.task.id)


async def test_a_chunk_for_an_artifact_that_is_not_there_creates_it(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.artifact("a", artifact_id="x", append=True)

    events = await drain(await bench(handler).stream())
    assert events[1].artifact_update is not None
    assert events[1].artifact_update.append is False


async def test_a_message_stream_holds_one_message(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.say("hi")

    assert kinds(await drain(await bench(handler).stream())) == ["message"]


@pytest.mark.parametrize(("length", "kept"), [(0, 0), (1, 1), (None, 1)])
async def test_the_first_task_respects_the_history_length(bench: Open, length: int | None, kept: int) -> None:
    events = await drain(await bench(working_then_done).stream(history_length=length))
    assert events[0].task is not None
    assert len(events[0].task.history) == kept


async def test_a_stream_closes_when_input_is_asked_for(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.ask("name?") if turn.task is None else await turn.complete()

    b = bench(handler)
    events = await drain(await b.stream())
    assert kinds(events) == ["task", "INPUT_REQUIRED"]
    assert events[0].task is not None
    again = await drain(await b.stream("Ada", task=events[0].task.id))
    assert kinds(again) == ["task", "COMPLETED"]
    assert again[0].task is not None
    assert again[0].task.status.state is TaskState.WORKING
    assert [entry.parts[0].text for entry in again[0].task.history] == ["hello", "name?", "Ada"]


async def test_a_stream_stays_open_while_an_authorization_is_awaited(bench: Open) -> None:
    credential = asyncio.Event()

    async def handler(turn: Turn) -> None:
        await turn.auth("calendar")
        await credential.wait()
        await turn.working()

    stream = await bench(handler).stream()
    events = list(await stream.batch())
    assert kinds(events) == ["task", "AUTH_REQUIRED"]
    credential.set()
    assert kinds(await drain(stream)) == ["WORKING", "COMPLETED"]


async def test_a_stream_of_a_waiting_task_closes_when_nothing_happens_for_long(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.auth("calendar")

    b = bench(handler, limits=Limits(interrupted=0.001))
    events = await drain(await b.stream())
    assert kinds(events) == ["task", "AUTH_REQUIRED"]
    assert events[0].task is not None
    assert kinds(await drain(await b.subscribe(events[0].task.id))) == ["task"]


async def test_streaming_needs_the_capability(bench: Open) -> None:
    b = bench(working_then_done, streaming=False)
    task = await b.send()
    with pytest.raises(UnsupportedOperationError):
        await b.stream()
    with pytest.raises(UnsupportedOperationError):
        await b.subscribe(task.id)


# -- subscribing


class Gate:
    """A handler that works in steps and waits to be let on after each."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.let = asyncio.Semaphore(0)

    async def __call__(self, turn: Turn) -> None:
        for n in range(self.steps):
            await turn.working(f"step {n}")
            await self.let.acquire()

    def all(self) -> None:
        for _ in range(self.steps):
            self.let.release()


async def test_a_subscription_begins_with_the_task_as_it_is_and_misses_nothing(bench: Open) -> None:
    gate = Gate(3)
    b = bench(gate)
    task = await b.send(return_immediately=True)
    stream = await b.subscribe(task.id)
    gate.all()
    first, *rest = await drain(stream)
    assert first.task == task
    assert kinds(rest) == ["WORKING", "WORKING", "COMPLETED"]
    assert fold(task, rest) == await b.get(task.id)


async def test_all_readers_get_the_same_events_in_the_same_order(bench: Open) -> None:
    gate = Gate(5)
    b = bench(gate)
    one = await b.stream()
    (opening, *_) = await one.batch()
    assert opening.task is not None
    two, three = await b.subscribe(opening.task.id), await b.subscribe(opening.task.id)
    gate.all()
    first, second, third = await asyncio.gather(drain(one), drain(two), drain(three))
    assert second == third
    assert first == second[1:]


async def test_a_reader_that_leaves_disturbs_neither_the_task_nor_the_others(bench: Open) -> None:
    gate = Gate(2)
    b = bench(gate)
    task = await b.send(return_immediately=True)
    leaving, staying = await b.subscribe(task.id), await b.subscribe(task.id)
    await leaving.aclose()
    assert await drain(leaving) == []
    gate.all()
    assert kinds(await drain(staying)) == ["task", "WORKING", "COMPLETED"]


async def test_a_reader_that_is_cancelled_disturbs_nothing(bench: Open) -> None:
    gate = Gate(1)
    b = bench(gate)
    task = await b.send(return_immediately=True)
    stream = await b.subscribe(task.id)
    reading = asyncio.create_task(drain(stream))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await stream.aclose()
    gate.all()
    assert await b.outcome(task.id) is TaskState.COMPLETED


async def test_subscribing_to_a_waiting_task_stays_open_until_it_goes_on(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.ask("name?") if turn.task is None else await turn.complete("bye")

    b = bench(handler)
    task = await b.send()
    stream = await b.subscribe(task.id)
    assert kinds(list(await stream.batch())) == ["task"]
    await b.send("Ada", task=task.id)
    assert kinds(await drain(stream)) == ["WORKING", "COMPLETED"]


async def test_a_final_task_has_no_stream(bench: Open) -> None:
    b = bench(working_then_done)
    task = await b.send()
    with pytest.raises(UnsupportedOperationError):
        await b.subscribe(task.id)


async def test_a_0_3_caller_is_told_the_final_task_and_then_the_end(bench: Open) -> None:
    b = bench(working_then_done)
    task = await b.send()
    old = b.as_caller(version="0.3")
    assert [event.task for event in await drain(await old.subscribe(task.id))] == [task]


async def test_an_unknown_task_has_no_stream(bench: Open) -> None:
    with pytest.raises(TaskNotFoundError):
        await bench(working_then_done).subscribe("made-up")


async def test_a_task_that_nobody_watches_any_more_is_left_to_the_store(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.ask("name?")

    b = bench(handler)
    task = await b.send()
    stream = await b.subscribe(task.id)
    await stream.aclose()
    assert (await b.send(task=task.id)).status.state is TaskState.INPUT_REQUIRED


# -- slow readers


def counting(count: int) -> Any:
    async def handler(turn: Turn) -> None:
        for n in range(count):
            await turn.artifact(str(n), artifact_id="n", append=n > 0)

    return handler


async def test_a_burst_far_beyond_the_queue_arrives_whole(bench: Open) -> None:
    b = bench(counting(1000), limits=Limits(queue=8))
    events = await drain(await b.stream())
    texts = [event.artifact_update.artifact.parts[0].text for event in events if event.artifact_update]
    assert texts == [str(n) for n in range(1000)]


async def test_events_that_are_ready_come_in_one_batch(bench: Open) -> None:
    stream = await bench(counting(10)).stream()
    assert len(await stream.batch()) == 12  # the task, ten chunks, the last status


async def test_a_reader_that_does_not_read_is_cut_off_with_an_error_after_what_it_was_owed(bench: Open) -> None:
    b = bench(counting(100), limits=Limits(queue=8, patience=0.0))
    slow = await b.stream()
    events = await slow.batch()
    assert len(events) == 8
    with pytest.raises(UnavailableError, match="too slow"):
        await slow.batch()
    assert events[0].task is not None
    assert await b.outcome(events[0].task.id) is TaskState.COMPLETED


async def test_patience_with_a_reader_comes_to_an_end(bench: Open) -> None:
    b = bench(counting(100), limits=Limits(queue=8, patience=0.3))
    slow = await b.stream()
    (stuck,) = (await b.list()).tasks
    assert stuck.status.state is TaskState.SUBMITTED
    assert await b.outcome(stuck.id) is TaskState.COMPLETED
    with pytest.raises(UnavailableError):
        await drain(slow)


async def test_a_reader_that_leaves_while_the_agent_waits_for_it_lets_the_agent_go_on(bench: Open) -> None:
    b = bench(counting(100), limits=Limits(queue=8, patience=3600.0))
    slow = await b.stream()
    (task,) = (await b.list()).tasks
    await slow.aclose()
    assert await b.outcome(task.id) is TaskState.COMPLETED


async def test_cancelling_a_task_that_waits_for_a_slow_reader_works(bench: Open) -> None:
    b = bench(counting(100), limits=Limits(queue=8, patience=3600.0))
    slow = await b.stream()
    (task,) = (await b.list()).tasks
    assert (await b.cancel(task.id)).status.state is TaskState.CANCELED
    assert kinds(await drain(slow))[-1] == "CANCELED"


async def test_closing_ends_the_streams_of_running_tasks_with_their_failure(bench: Open) -> None:
    b = bench(Gate(3))
    stream = await b.stream()
    await stream.batch()
    await b.engine.aclose()
    assert kinds(await drain(stream)) == ["FAILED"]


async def test_a_handler_that_will_not_stop_does_not_keep_streams_open(bench: Open) -> None:
    release = asyncio.Event()

    async def handler(turn: Turn) -> None:
        await turn.working()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                pass

    b = bench(handler, limits=Limits(shutdown=0.001))
    stream = await b.stream()
    await stream.batch()
    await b.engine.aclose()
    with pytest.raises(UnavailableError):
        await drain(stream)
    release.set()
    await asyncio.sleep(0)
