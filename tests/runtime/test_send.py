"""SendMessage: replies, waiting, ids, follow-ups, refusals."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    DeadlineExceededError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from dragoman.model import (
    SEND_MESSAGE,
    AgentExtension,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
    Unary,
)
from dragoman.runtime.agent import Turn, as_parts, data, file_bytes, file_url, text
from dragoman.runtime.lifecycle import LifecycleError
from tests.runtime.bench import Open, card


async def echo(turn: Turn) -> None:
    await turn.artifact(turn.text, name="echo")


async def asking(turn: Turn) -> None:
    if turn.task is None:
        await turn.ask("name?")
    else:
        await turn.artifact(f"hello {turn.text}")


async def test_a_handler_that_just_returns_completes_its_task(bench: Open) -> None:
    task = await bench(echo).send("hi")
    assert task.status.state is TaskState.COMPLETED
    assert [part.text for part in task.artifacts[0].parts] == ["hi"]
    assert task.artifacts[0].name == "echo"


async def test_a_handler_that_does_nothing_completes_its_task(bench: Open) -> None:
    async def nothing(turn: Turn) -> None: ...

    task = await bench(nothing).send()
    assert task.status.state is TaskState.COMPLETED
    assert task.artifacts == ()


@pytest.mark.parametrize(
    ("act", "state"),
    [
        ("complete", TaskState.COMPLETED),
        ("fail", TaskState.FAILED),
        ("reject", TaskState.REJECTED),
        ("ask", TaskState.INPUT_REQUIRED),
        ("auth", TaskState.AUTH_REQUIRED),
    ],
)
async def test_a_blocking_send_returns_in_each_settled_state(bench: Open, act: str, state: TaskState) -> None:
    async def handler(turn: Turn) -> None:
        await getattr(turn, act)("because")

    b = bench(handler)
    task = await b.send()
    assert task.status.state is state
    said = task.status.message
    assert said is not None
    assert (said.role, said.parts[0].text, said.task_id, said.context_id) == (
        Role.AGENT,
        "because",
        task.id,
        task.context_id,
    )
    assert await b.get(task.id) == task


async def test_a_direct_message_makes_no_task(bench: Open) -> None:
    async def say(turn: Turn) -> None:
        await turn.say("hello back", metadata={"a": 1})

    b = bench(say)
    reply = await b.reply(return_immediately=True)
    assert reply.task is None
    assert reply.message is not None
    assert (reply.message.role, reply.message.task_id, reply.message.metadata) == (Role.AGENT, "", {"a": 1})
    assert reply.message.context_id  # made by the server, told in the reply (1.0 §3.4.1)
    assert (await b.list()).total_size == 0


async def test_a_direct_message_keeps_the_callers_context(bench: Open) -> None:
    async def say(turn: Turn) -> None:
        await turn.say("x")

    reply = await bench(say).reply(context="mine")
    assert reply.message is not None
    assert reply.message.context_id == "mine"


async def test_saying_something_once_a_task_exists_fails_the_task(
    bench: Open, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        await turn.say("too late")

    task = await bench(handler).send()
    assert task.status.state is TaskState.FAILED
    assert "LifecycleError" in caplog.text


async def test_a_turn_is_over_after_its_direct_message(bench: Open) -> None:
    seen: list[str] = []

    async def handler(turn: Turn) -> None:
        await turn.say("bye")
        for act in (turn.working, turn.complete):
            with pytest.raises(LifecycleError):
                await act()
            seen.append("refused")

    b = bench(handler)
    assert (await b.reply()).message is not None
    await b.engine.aclose()
    assert seen == ["refused", "refused"]


async def test_an_exception_fails_the_task_and_stays_in_the_log(bench: Open, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(turn: Turn) -> None:
        await turn.artifact("half of it")
        raise RuntimeError("password=hunter2")

    with caplog.at_level(logging.ERROR, "dragoman.runtime"):
        task = await bench(handler).send()
    assert task.status.state is TaskState.FAILED
    assert len(task.artifacts) == 1
    assert "hunter2" not in repr(task)
    assert "hunter2" in caplog.text
    assert "Traceback" in caplog.text


async def test_an_exception_before_anything_was_told_still_makes_a_failed_task(
    bench: Open, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(turn: Turn) -> None:
        raise KeyError("secret")

    task = await bench(handler).send()
    assert task.status.state is TaskState.FAILED
    assert "secret" not in repr(task)


async def test_an_a2a_error_before_the_task_exists_is_the_reply(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        raise ContentTypeNotSupportedError("no pictures")

    b = bench(handler)
    with pytest.raises(ContentTypeNotSupportedError, match="no pictures"):
        await b.reply()
    with pytest.raises(ContentTypeNotSupportedError, match="no pictures"):
        await b.stream()
    assert (await b.list()).total_size == 0


async def test_an_a2a_error_once_the_task_exists_fails_it_with_its_text(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        raise UnavailableError("the model is asleep")

    task = await bench(handler).send()
    assert task.status.state is TaskState.FAILED
    assert task.status.message is not None
    assert task.status.message.parts[0].text == "the model is asleep"


async def test_an_immediate_send_returns_as_soon_as_the_task_exists(bench: Open) -> None:
    go = asyncio.Event()

    async def handler(turn: Turn) -> None:
        await turn.working("on it")
        await go.wait()

    b = bench(handler)
    task = await b.send(return_immediately=True)
    assert task.status.state is TaskState.WORKING
    assert (await b.list()).tasks[0].id == task.id
    go.set()
    assert await b.outcome(task.id) is TaskState.COMPLETED


async def test_a_blocking_send_waits_through_progress(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        for n in range(3):
            await turn.working(f"step {n}")
            await asyncio.sleep(0)
        await turn.complete("done")

    task = await bench(handler).send()
    assert task.status.state is TaskState.COMPLETED
    said = [entry.parts[0].text for entry in task.history]
    assert said == ["hello", "step 0", "step 1", "step 2"]  # superseded status messages enter the history


async def test_a_caller_that_goes_away_cancels_nothing(bench: Open) -> None:
    go, begun = asyncio.Event(), asyncio.Event()
    ids: list[str] = []

    async def handler(turn: Turn) -> None:
        ids.append(turn.task_id)
        await turn.working()
        begun.set()
        await go.wait()
        await turn.artifact("made it")

    b = bench(handler)
    waiting = asyncio.create_task(b.send())
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    assert await b.outcome(ids[0]) is TaskState.COMPLETED
    assert len((await b.get(ids[0])).artifacts) == 1


async def test_a_deadline_ends_the_wait_and_not_the_task(bench: Open) -> None:
    go = asyncio.Event()
    ids: list[str] = []

    async def handler(turn: Turn) -> None:
        ids.append(turn.task_id)
        await turn.working()
        await go.wait()

    b = bench(handler)
    b.ctx.deadline = asyncio.get_running_loop().time() + 0.01
    with pytest.raises(DeadlineExceededError):
        await b.send()
    b.ctx.deadline = None
    go.set()
    assert await b.outcome(ids[0]) is TaskState.COMPLETED


async def test_the_server_makes_ids_that_differ(bench: Open) -> None:
    b = bench(echo)
    tasks = [await b.send() for _ in range(600)]  # more than one block of random bits
    assert len({task.id for task in tasks} | {task.context_id for task in tasks}) == 1200


async def test_a_context_of_the_caller_is_kept(bench: Open) -> None:
    assert (await bench(echo).send(context="mine")).context_id == "mine"


async def test_the_history_holds_the_callers_message_with_its_ids_filled_in(bench: Open) -> None:
    task = await bench(echo).send("hi")
    (entry,) = task.history
    assert (entry.message_id, entry.role, entry.task_id, entry.context_id) == (
        "m1",
        Role.USER,
        task.id,
        task.context_id,
    )


@pytest.mark.parametrize(("length", "kept"), [(None, 3), (0, 0), (2, 2), (9, 3)])
async def test_history_length_limits_the_reply(bench: Open, length: int | None, kept: int) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working("a")
        await turn.working("b")

    task = await bench(handler).send(history_length=length)
    assert [entry.parts[0].text for entry in task.history] == ["hello", "a", "b"][3 - kept :]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (Message(message_id="m", role=Role.USER, parts=()), "message.parts"),
        (Message(message_id="", role=Role.USER, parts=(Part(text="x"),)), "message.messageId"),
        (Message(message_id="m", role=Role.UNSPECIFIED, parts=(Part(text="x"),)), "message.role"),
    ],
)
async def test_a_message_without_what_it_must_have_is_refused(bench: Open, message: Message, field: str) -> None:
    b = bench(echo)
    with pytest.raises(InvalidParamsError) as caught:
        await b.engine.call(SEND_MESSAGE, SendMessageRequest(message=message), b.ctx)
    assert [violation[0] for violation in caught.value.violations] == [field]


async def test_a_negative_history_length_is_refused_before_any_work(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        raise AssertionError("must not run")

    with pytest.raises(InvalidParamsError) as caught:
        await bench(handler).send(history_length=-1)
    assert caught.value.violations[0][0] == "configuration.historyLength"


# -- follow-ups


@pytest.mark.parametrize("named", [True, False])
async def test_a_follow_up_resumes_a_task_that_asked(bench: Open, named: bool) -> None:
    b = bench(asking)
    first = await b.send("hi")
    second = await b.send("Ada", task=first.id, context=first.context_id if named else "")
    assert (second.id, second.context_id) == (first.id, first.context_id)
    assert second.status.state is TaskState.COMPLETED
    assert second.artifacts[0].parts[0].text == "hello Ada"
    assert [entry.parts[0].text for entry in second.history] == ["hi", "name?", "Ada"]
    assert {(entry.task_id, entry.context_id) for entry in second.history} == {(first.id, first.context_id)}


async def test_a_follow_up_sees_the_task_as_it_was(bench: Open) -> None:
    seen: list[Any] = []

    async def handler(turn: Turn) -> None:
        seen.append(turn.task)
        if turn.task is None:
            await turn.ask("name?")

    b = bench(handler)
    first = await b.send()
    await b.send(task=first.id)
    assert seen == [None, first]


async def test_a_resumed_task_is_working_at_once(bench: Open) -> None:
    go = asyncio.Event()

    async def handler(turn: Turn) -> None:
        if turn.task is None:
            await turn.ask("name?")
        else:
            await go.wait()

    b = bench(handler)
    first = await b.send()
    again = await b.send(task=first.id, return_immediately=True)
    assert again.status.state is TaskState.WORKING
    with pytest.raises(UnsupportedOperationError):
        await b.send(task=first.id)
    go.set()
    assert await b.outcome(first.id) is TaskState.COMPLETED


async def test_a_follow_up_waits_for_the_end_of_the_handler_that_asked(bench: Open) -> None:
    tidy = asyncio.Event()
    order: list[str] = []

    async def handler(turn: Turn) -> None:
        if turn.task is None:
            await turn.ask("name?")
            await tidy.wait()
            order.append("tidied")
        else:
            order.append("answered")

    b = bench(handler)
    first = await b.send()
    second = asyncio.create_task(b.send(task=first.id))
    await asyncio.sleep(0)
    tidy.set()
    assert (await second).status.state is TaskState.COMPLETED
    assert order == ["tidied", "answered"]


async def test_a_message_takes_over_from_a_handler_that_waits_for_a_credential(bench: Open) -> None:
    order: list[str] = []

    async def handler(turn: Turn) -> None:
        if turn.task is not None:
            await turn.artifact(turn.text)
            return
        await turn.auth("calendar")
        try:
            await asyncio.Event().wait()
        finally:
            order.append("gave up waiting")
            with pytest.raises(LifecycleError):
                await turn.working()

    b = bench(handler)
    first = await b.send()
    second = await b.send("never mind", task=first.id)
    assert (second.status.state, order) == (TaskState.COMPLETED, ["gave up waiting"])
    assert second.artifacts[0].parts[0].text == "never mind"


async def test_a_handler_goes_on_by_itself_once_the_credential_is_there(bench: Open) -> None:
    credential = asyncio.Event()

    async def handler(turn: Turn) -> None:
        await turn.auth("calendar")
        await credential.wait()
        await turn.working("thanks")
        await turn.artifact("done")

    b = bench(handler)
    first = await b.send()
    assert first.status.state is TaskState.AUTH_REQUIRED
    credential.set()
    assert await b.outcome(first.id) is TaskState.COMPLETED


async def test_an_unknown_task_is_not_found(bench: Open) -> None:
    with pytest.raises(TaskNotFoundError) as caught:
        await bench(echo).send(task="made-up")
    assert caught.value.metadata == {"taskId": "made-up"}


async def test_another_context_than_the_tasks_is_refused(bench: Open) -> None:
    b = bench(asking)
    first = await b.send()
    with pytest.raises(InvalidParamsError) as caught:
        await b.send(task=first.id, context="other")
    assert caught.value.violations[0][0] == "message.contextId"
    assert await b.get(first.id) == first


@pytest.mark.parametrize("act", ["complete", "fail", "reject"])
async def test_a_final_task_takes_no_message(bench: Open, act: str) -> None:
    async def handler(turn: Turn) -> None:
        await getattr(turn, act)()

    b = bench(handler)
    first = await b.send()
    with pytest.raises(UnsupportedOperationError):
        await b.send(task=first.id)
    assert await b.get(first.id) == first


# -- what a handler may do


async def test_nothing_changes_a_final_task(bench: Open) -> None:
    refused: list[str] = []

    async def handler(turn: Turn) -> None:
        await turn.complete()
        for name, act in (("status", turn.working()), ("end", turn.fail()), ("artifact", turn.artifact("late"))):
            with pytest.raises(LifecycleError):
                await act
            refused.append(name)

    b = bench(handler)
    task = await b.send()
    await b.engine.aclose()
    assert refused == ["status", "end", "artifact"]
    assert (await b.get(task.id)).artifacts == ()


async def test_chunks_are_joined_and_artifacts_replaced(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        made = await turn.artifact("a", append=False)
        await turn.artifact("b", artifact_id=made, append=True, name="letters", metadata={"n": 2})
        await turn.artifact("old", artifact_id="other")
        await turn.artifact([text("new"), text("er")], artifact_id="other")

    letters, other = (await bench(handler).send()).artifacts
    assert [part.text for part in letters.parts] == ["a", "b"]
    assert (letters.name, letters.metadata) == ("letters", {"n": 2})
    assert [part.text for part in other.parts] == ["new", "er"]


async def test_made_up_artifact_ids_avoid_those_in_use(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.artifact("x", artifact_id="artifact-2")
        await turn.artifact("y")

    artifacts = (await bench(handler).send()).artifacts
    assert len({artifact.artifact_id for artifact in artifacts}) == 2


async def test_an_artifact_needs_parts_and_an_append_needs_its_id(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        with pytest.raises(ValueError, match="at least one part"):
            await turn.artifact(())
        with pytest.raises(ValueError, match="artifact_id"):
            await turn.artifact("x", append=True)
        await turn.artifact("")  # an empty text is a part

    assert (await bench(handler).send()).artifacts[0].parts == (Part(text=""),)


async def test_a_turn_tells_what_the_caller_sent(bench: Open) -> None:
    seen: dict[str, Any] = {}

    async def handler(turn: Turn) -> None:
        for name in ("text", "tenant", "caller", "extensions", "metadata", "accepted_output_modes", "context_id"):
            seen[name] = getattr(turn, name)

    known = AgentExtension(uri="urn:known")
    b = bench(handler, extensions=(known,)).as_caller("ada", tenant="acme", extensions=("urn:known", "urn:other"))
    message = Message(
        message_id="m", role=Role.USER, context_id="c", parts=(text("a"), data(None), text("b"), file_url("http://x"))
    )
    await b.engine.call(SEND_MESSAGE, SendMessageRequest(message=message, metadata={"k": "v"}), b.ctx)
    assert seen == {
        "text": "a\nb",
        "tenant": "acme",
        "caller": b.ctx.caller,
        "extensions": ("urn:known",),
        "metadata": {"k": "v"},
        "accepted_output_modes": (),
        "context_id": "c",
    }
    assert b.ctx.activated == ("urn:known",)


def test_content_may_be_text_a_part_or_parts() -> None:
    part = file_bytes(b"x", media_type="image/png", filename="x.png")
    assert as_parts("x") == (Part(text="x"),)
    assert as_parts(part) == (part,)
    assert as_parts([part, part]) == (part, part)


async def test_user_code_runs_in_a_task_of_its_own_where_timeouts_work(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            await turn.complete("timed out")

    task = await bench(handler).send()
    assert task.status.message is not None
    assert task.status.message.parts[0].text == "timed out"


# -- capabilities


@pytest.mark.parametrize(
    ("modes", "media_type", "refused"),
    [
        (("text/plain",), "", False),
        (("text/plain",), "image/png", True),
        (("image/*",), "image/png", False),
        (("*/*",), "image/png", False),
        ((), "image/png", False),
        (("image/png",), "IMAGE/PNG; q=1", False),
        (("text",), "image/png", True),
        (("image",), "image/png", False),
    ],
)
async def test_a_stated_media_type_must_be_one_that_the_card_lists(
    bench: Open, modes: tuple[str, ...], media_type: str, refused: bool
) -> None:
    b = bench(echo, card=replace(card(), default_input_modes=modes))
    message = Message(message_id="m", role=Role.USER, parts=(file_bytes(b"x", media_type=media_type),))
    request = SendMessageRequest(message=message)
    if refused:
        with pytest.raises(ContentTypeNotSupportedError) as caught:
            await b.engine.call(SEND_MESSAGE, request, b.ctx)
        assert caught.value.metadata["mediaType"] == media_type
    else:
        assert (await b.engine.call(SEND_MESSAGE, request, b.ctx)).task is not None


async def test_a_required_extension_must_be_activated(bench: Open) -> None:
    b = bench(echo, extensions=(AgentExtension(uri="urn:must", required=True),))
    with pytest.raises(ExtensionSupportRequiredError, match="urn:must"):
        await b.send()
    assert (await b.as_caller(extensions=("urn:must",)).send()).status.state is TaskState.COMPLETED


# -- the end


async def test_closing_fails_running_tasks_and_answers_those_who_wait(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        await asyncio.Event().wait()

    b = bench(handler)
    waiting = asyncio.create_task(b.send())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await b.engine.aclose()
    task = await waiting
    assert task.status.state is TaskState.FAILED
    with pytest.raises(UnavailableError):
        await b.send()


async def test_closing_before_a_task_exists_answers_with_an_error(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await asyncio.Event().wait()

    b = bench(handler)
    waiting = [asyncio.create_task(b.send()), asyncio.create_task(b.send(return_immediately=True))]
    await asyncio.sleep(0)
    await b.engine.aclose()
    for one in waiting:
        with pytest.raises(UnavailableError):
            await one


async def test_closing_leaves_a_task_that_waits_for_somebody_as_it_is(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.auth("credential")
        await asyncio.Event().wait()

    b = bench(handler)
    task = await b.send()
    await b.engine.aclose()
    assert await b.get(task.id) == task


async def test_an_unknown_operation_is_refused(bench: Open) -> None:
    b = bench(echo)
    with pytest.raises(A2AError) as caught:
        await b.engine.call(Unary("Nonsense", GetTaskRequest, Task), GetTaskRequest(id="x"), b.ctx)
    assert caught.value.code == -32601
