"""The catalogue: what a client is asked to do, and what must come of it, whatever stands in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

from . import vocabulary
from .model import (
    INTERRUPTED,
    TERMINAL,
    ArtifactUpdate,
    Driver,
    Event,
    Message,
    Outgoing,
    Part,
    PushConfig,
    StatusUpdate,
    Task,
    Unavailable,
    raw_part,
    text_part,
)
from .webhook import Webhook

Act = Callable[[Driver], Awaitable[str]]


@dataclass(frozen=True)
class Step:
    """One thing to do, and what must come of it."""

    name: str
    title: str
    act: Act
    since: str = "0.3"

    def or_refused_with(self, error: str) -> Step:
        """The step where that error is a pass too."""

        async def act(driver: Driver) -> str:
            try:
                return await self.act(driver)
            except (Mismatch, Unavailable):
                raise
            except Exception as raised:
                typed = driver.typed(raised)
                if typed.name != error:
                    raise
                return f"refused: {typed.seen}"

        return replace(self, act=act)


class Mismatch(Exception):
    """The peer answered, with something else than it should have."""


CATALOGUE: list[Step] = []


def step(title: str, *, since: str = "0.3", catalogue: list[Step] = CATALOGUE) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        catalogue.append(Step(cast(Any, act).__name__.replace("_", "-"), title, act, since))
        return act

    return add


def expect(seen: object, wanted: object, what: str) -> None:
    if seen != wanted:
        raise Mismatch(f"{what}: {_short(seen)} instead of {_short(wanted)}")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else f"{text[:200]}... ({len(text)} characters)"


def tell(text: str, **more: Any) -> Outgoing:
    return Outgoing([text_part(text)], **more)


async def task_for(driver: Driver, outgoing: Outgoing) -> Task:
    reply = await driver.send(outgoing)
    if not isinstance(reply, Task):
        raise Mismatch(f"a message instead of a task: {_short(reply.text)}")
    return reply


def sole_text(task: Task) -> str:
    expect(len(task.artifacts), 1, "number of artifacts")
    return task.artifacts[0].text


@dataclass
class Seen:
    """A stream as it went: every event, the last state, and the artifacts put together from the chunks."""

    events: list[Event]
    task_id: str = ""
    state: str = ""

    def chunks(self) -> list[ArtifactUpdate]:
        return [event for event in self.events if isinstance(event, ArtifactUpdate)]


async def watch(events: AsyncIterator[Event], until: Callable[[Seen], bool] | None = None) -> Seen:
    """Read a stream to its end, or until the predicate holds."""
    seen = Seen([])
    async with aclosing(cast(Any, events)):
        async for event in events:
            seen.events.append(event)
            match event:
                case Task(id=task_id, state=state):
                    seen.task_id, seen.state = task_id, state
                case StatusUpdate(task_id=task_id, state=state):
                    seen.task_id, seen.state = task_id, state
                case _:
                    pass
            if until and until(seen):
                break
    return seen


@step("SendMessage answered with a task and its artifact")
async def send_task(driver: Driver) -> str:
    task = await task_for(driver, tell("echo hello, wörld"))
    expect(task.state, "completed", "state")
    expect(sole_text(task), "hello, wörld", "artifact")
    return "completed, one artifact"


@step("SendMessage answered with a message")
async def send_message(driver: Driver) -> str:
    reply = await driver.send(tell("say hello"))
    if not isinstance(reply, Message):
        raise Mismatch(f"a task ({reply.state}) instead of a message")
    expect(reply.text, "hello", "text")
    return "a message"


@step("SendMessage that is told not to wait returns while the task runs")
async def send_at_once(driver: Driver) -> str:
    task = await task_for(driver, tell("slow 50", wait=False))
    if task.state not in {"submitted", "working"}:
        raise Mismatch(f"state: {task.state} instead of submitted or working")
    await driver.cancel(task.id)
    return task.state


@step("A stream of five artifact chunks")
async def stream_chunks(driver: Driver) -> str:
    seen = await watch(driver.stream(tell("chunks 5")))
    chunks = seen.chunks()
    expect([chunk.artifact.text for chunk in chunks], [f"chunk {n} " for n in range(1, 6)], "chunks")
    expect([chunk.append for chunk in chunks], [False, True, True, True, True], "append flags")
    expect(chunks[-1].last, True, "lastChunk of the last chunk")
    expect(len({chunk.artifact.id for chunk in chunks}), 1, "number of artifact ids")
    expect(seen.state, "completed", "last state")
    task = await driver.get(seen.task_id)
    expect(sole_text(task), "chunk 1 chunk 2 chunk 3 chunk 4 chunk 5 ", "artifact afterwards")
    return f"{len(seen.events)} events"


@step("A stream of status updates with messages")
async def stream_slow(driver: Driver) -> str:
    seen = await watch(driver.stream(tell("slow 3")))
    texts = [e.text for e in seen.events if isinstance(e, StatusUpdate) and e.text.startswith("step")]
    expect(texts, [f"step {n} of 3" for n in (1, 2, 3)], "status messages")
    expect(seen.state, "completed", "last state")
    return f"{len(seen.events)} events"


@step("A stream that is one message")
async def stream_message(driver: Driver) -> str:
    seen = await watch(driver.stream(tell("say hello")))
    expect([type(event).__name__ for event in seen.events], ["Message"], "events")
    return "one message"


@step("A stream reaches input-required")
async def stream_ask(driver: Driver) -> str:
    seen = await watch(driver.stream(tell("ask What then?")), until=lambda seen: seen.state in INTERRUPTED)
    expect(seen.state, "input-required", "state")
    return "input-required"


@step("GetTask of a finished task")
async def get(driver: Driver) -> str:
    sent = await task_for(driver, tell("echo again"))
    task = await driver.get(sent.id)
    expect((task.id, task.context_id, task.state), (sent.id, sent.context_id, "completed"), "task")
    expect(sole_text(task), "again", "artifact")
    return "same task"


@step("The caller's contextId is kept")
async def context(driver: Driver) -> str:
    wanted = f"context-{uuid4()}"
    task = await task_for(driver, tell("echo x", context_id=wanted))
    expect(task.context_id, wanted, "contextId")
    return "kept"


@step("ListTasks by context, in two pages", since="1.0")
async def list_tasks(driver: Driver) -> str:
    context_id = f"context-{uuid4()}"
    sent = {(await task_for(driver, tell(f"echo {n}", context_id=context_id))).id for n in range(2)}
    first = await driver.list(context_id, 1, "")
    expect(len(first.tasks), 1, "tasks on page 1")
    second = await driver.list(context_id, 1, first.next_token)
    expect({task.id for task in first.tasks + second.tasks}, sent, "tasks on both pages")
    expect(second.next_token, "", "nextPageToken of the last page")
    return "two pages"


@step("CancelTask of a running task")
async def cancel(driver: Driver) -> str:
    task = await task_for(driver, tell("slow 100", wait=False))
    expect((await driver.cancel(task.id)).state, "canceled", "state in the reply")
    expect((await driver.get(task.id)).state, "canceled", "state afterwards")
    return "canceled"


@step("SubscribeToTask of a running task, to its end")
async def resubscribe(driver: Driver) -> str:
    task = await task_for(driver, tell("slow 12", wait=False))
    seen = await watch(driver.subscribe(task.id))
    expect(seen.state, "completed", "last state")
    told = [event for event in seen.events if isinstance(event, StatusUpdate) and event.text]
    if len(told) < 2:
        raise Mismatch(f"{len(told)} status messages after subscribing to a task with 12")
    return f"{len(seen.events)} events"


@step("A question, and the answer that completes the task")
async def ask(driver: Driver) -> str:
    asked = await task_for(driver, tell("ask What then?"))
    expect((asked.state, asked.status_text), ("input-required", "What then?"), "question")
    done = await task_for(driver, tell("forty-two", task_id=asked.id, context_id=asked.context_id))
    expect((done.id, done.context_id, done.state), (asked.id, asked.context_id, "completed"), "task")
    expect(done.artifacts[-1].text, "forty-two", "artifact")
    return "asked and answered"


@step("auth-required")
async def auth(driver: Driver) -> str:
    task = await task_for(driver, tell("auth Who are you?"))
    expect((task.state, task.status_text), ("auth-required", "Who are you?"), "state")
    return task.state


@step("failed, with its message")
async def fail(driver: Driver) -> str:
    task = await task_for(driver, tell("fail failed as told"))
    expect((task.state, task.status_text), ("failed", "failed as told"), "state")
    return task.state


@step("rejected, with its message")
async def reject(driver: Driver) -> str:
    task = await task_for(driver, tell("reject rejected as told"))
    expect((task.state, task.status_text), ("rejected", "rejected as told"), "state")
    return task.state


@step("Files from the agent: bytes and a URL")
async def agent_file(driver: Driver) -> str:
    task = await task_for(driver, tell("file"))
    expect([part for artifact in task.artifacts for part in artifact.parts], vocabulary.FILE_PARTS, "parts")
    return "two files"


@step("A data object from the agent")
async def agent_data(driver: Driver) -> str:
    value = {"answer": 42, "list": [1, "two", None]}
    task = await task_for(driver, tell(f"data {json.dumps(value)}"))
    expect([part for artifact in task.artifacts for part in artifact.parts], [{"data": value}], "parts")
    return "one object"


async def there_and_back(driver: Driver, *parts: Part) -> str:
    sent = [text_part("back"), *parts]
    task = await task_for(driver, Outgoing(sent))
    expect(task.state, "completed", "state")
    expect([part for artifact in task.artifacts for part in artifact.parts], sent, "parts")
    return "came back the same"


@step("Text there and back")
async def part_text(driver: Driver) -> str:
    return await there_and_back(driver, text_part("línea\n„quoted“ \\ \U0001f600\t"))


@step("A file as bytes there and back")
async def part_raw(driver: Driver) -> str:
    return await there_and_back(driver, raw_part(bytes(range(256)), mediaType="application/octet-stream"))


@step("A file of 300 kB there and back")
async def part_big(driver: Driver) -> str:
    return await there_and_back(driver, raw_part(bytes(300_000), mediaType="application/octet-stream"))


@step("A file whose bytes are base64 text themselves")
async def part_base64(driver: Driver) -> str:
    return await there_and_back(driver, raw_part(b"QUJDRA==", mediaType="text/plain"))


@step("A file by URL there and back")
async def part_url(driver: Driver) -> str:
    return await there_and_back(driver, {"url": "https://example.org/a%20b?c=d", "mediaType": "text/html"})


@step("A data object there and back")
async def part_data(driver: Driver) -> str:
    value = {"n": 1, "f": 1.5, "s": "ü", "b": True, "z": None, "l": [1, {"k": []}], "snake_key": {}}
    return await there_and_back(driver, {"data": value})


@step("Data that is no object there and back", since="1.0")
async def part_data_value(driver: Driver) -> str:
    return await there_and_back(driver, {"data": [1, "two"]}, {"data": "text"}, {"data": 7}, {"data": True})


@step("File names there and back")
async def part_names(driver: Driver) -> str:
    return await there_and_back(
        driver,
        raw_part(b"abc", mediaType="text/plain", filename="ä b.txt"),
        {"url": "https://example.org/x", "mediaType": "image/png", "filename": "x.png"},
    )


@step("Part metadata there and back")
async def part_metadata(driver: Driver) -> str:
    return await there_and_back(
        driver,
        text_part("x", metadata={"origin": "bench"}),
        {"data": {"a": 1}, "metadata": {"level": 2}},
    )


HOOK = PushConfig("hook-1", "http://127.0.0.1:9/hook", "secret")


@step("Create a push config")
async def push_create(driver: Driver) -> str:
    task = await task_for(driver, tell("ask What then?"))
    expect(await driver.push_create(task.id, HOOK), HOOK, "created")
    return "created"


@step("Read a push config")
async def push_get(driver: Driver) -> str:
    task, wanted = await _with_push(driver)
    expect(await driver.push_get(task.id, wanted.id), wanted, "config")
    return "same config"


@step("List push configs")
async def push_list(driver: Driver) -> str:
    task, wanted = await _with_push(driver)
    expect(list(await driver.push_list(task.id)), [wanted], "configs")
    return "one config"


@step("Delete a push config")
async def push_delete(driver: Driver) -> str:
    task, wanted = await _with_push(driver)
    await driver.push_delete(task.id, wanted.id)
    expect(list(await driver.push_list(task.id)), [], "configs afterwards")
    return "deleted"


async def _with_push(driver: Driver) -> tuple[Task, PushConfig]:
    task = await task_for(driver, tell("ask What then?"))
    await driver.push_create(task.id, HOOK)
    return task, HOOK


@step("A push notification arrives, with its token")
async def push_arrives(driver: Driver) -> str:
    async with Webhook() as hook:
        config = PushConfig("hook-1", hook.url, "secret")
        await task_for(driver, tell("slow 3", push=config))
        try:
            body = await asyncio.wait_for(hook.bodies.get(), 8)
        except TimeoutError:
            raise Mismatch("no notification within 8 s") from None
        expect(hook.tokens[0], "secret", "token header")
        return f"first body has {', '.join(sorted(body))}"


async def refused(driver: Driver, call: Awaitable[object], name: str) -> str:
    try:
        result = await call
    except Unavailable:
        raise
    except Exception as error:
        typed = driver.typed(error)
        if typed.name != name:
            raise Mismatch(f"{name} expected, the client raised {typed.seen}") from error
        return typed.seen
    raise Mismatch(f"{name} expected, got a result: {_short(result)}")


@step("GetTask of an unknown task")
async def unknown_get(driver: Driver) -> str:
    return await refused(driver, driver.get(str(uuid4())), "TaskNotFound")


@step("CancelTask of an unknown task")
async def unknown_cancel(driver: Driver) -> str:
    return await refused(driver, driver.cancel(str(uuid4())), "TaskNotFound")


@step("SubscribeToTask of an unknown task")
async def unknown_subscribe(driver: Driver) -> str:
    return await refused(driver, watch(driver.subscribe(str(uuid4()))), "TaskNotFound")


@step("A message to an unknown task")
async def unknown_send(driver: Driver) -> str:
    return await refused(driver, driver.send(tell("echo x", task_id=str(uuid4()))), "TaskNotFound")


@step("CancelTask of a finished task")
async def cancel_finished(driver: Driver) -> str:
    task = await task_for(driver, tell("echo done"))
    expect(task.state in TERMINAL, True, "finished")
    return await refused(driver, driver.cancel(task.id), "TaskNotCancelable")


@step("The extended card")
async def extended_card(driver: Driver) -> str:
    skills = await driver.extended_card_skills()
    expect(vocabulary.EXTENDED_SKILL in skills, True, f"the extended skill among {list(skills)}")
    return ", ".join(skills)
