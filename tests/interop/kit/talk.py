"""The catalogue for agents that know no script: they are told something, and what they say must hold it."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from .model import INTERRUPTED, TERMINAL, ArtifactUpdate, Driver, Event, Message, StatusUpdate, Task
from .steps import Mismatch, Step, expect, refused, step, tell, watch

CATALOGUE: list[Step] = []
TOLD = "hello, wörld"
POLLS, PAUSE = 50, 0.1


def said(event: Event) -> str:
    """The text of an event that is not the caller's own."""
    match event:
        case Task(artifacts=artifacts, status_text=text, history_text=history):
            return "".join([text, *(artifact.text for artifact in artifacts), history])
        case Message() | StatusUpdate():
            return event.text
        case ArtifactUpdate(artifact=artifact):
            return artifact.text


def expect_told(text: str, what: str) -> str:
    if TOLD not in text:
        raise Mismatch(f"{what}: {text!r}, without {TOLD!r}")
    return text


async def rested(driver: Driver, task: Task) -> Task:
    """The task when it goes no further: an agent may answer at once, whatever it was asked."""
    for _ in range(POLLS):
        if task.state in TERMINAL | INTERRUPTED:
            return task
        await asyncio.sleep(PAUSE)
        task = await driver.get(task.id)
    raise Mismatch(f"the task is {task.state} after {POLLS * PAUSE:g} s")


async def answer(driver: Driver, context_id: str | None = None) -> Task | Message:
    reply = await driver.send(tell(TOLD, context_id=context_id))
    return await rested(driver, reply) if isinstance(reply, Task) else reply


@step("The agent is told something, and says it back", catalogue=CATALOGUE)
async def said_back(driver: Driver) -> str:
    reply = await answer(driver)
    expect_told(said(reply), "reply")
    return f"a {type(reply).__name__.lower()}"


@step("The same as a stream, which comes to its end", catalogue=CATALOGUE)
async def said_in_stream(driver: Driver) -> str:
    seen = await watch(driver.stream(tell(TOLD)))
    expect_told("".join(map(said, seen.events)), "events")
    if seen.task_id and seen.state not in TERMINAL | INTERRUPTED:
        raise Mismatch(f"the stream ended with the task {seen.state}")
    return f"{len(seen.events)} events"


@step("The caller's contextId is kept, and the context can be gone on with", catalogue=CATALOGUE)
async def same_context(driver: Driver) -> str:
    wanted = str(uuid4())
    for turn in ("first", "second"):
        reply = await answer(driver, wanted)
        expect_told(said(reply), f"{turn} reply")
        if isinstance(reply, Task):
            expect(reply.context_id, wanted, f"contextId of the {turn} task")
    return "two turns"


@step("GetTask of the task that came of it, if one did", catalogue=CATALOGUE)
async def task_again(driver: Driver) -> str:
    reply = await answer(driver)
    if isinstance(reply, Message):
        return "no task"
    again = await driver.get(reply.id)
    expect((again.id, again.context_id, again.state), (reply.id, reply.context_id, reply.state), "task")
    return again.state


@step("GetTask of an unknown task", catalogue=CATALOGUE)
async def task_unknown(driver: Driver) -> str:
    return await refused(driver, driver.get(str(uuid4())), "TaskNotFound")
