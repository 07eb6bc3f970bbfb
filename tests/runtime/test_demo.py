"""The demo agent keeps its promises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.model import SEND_MESSAGE, Message, Part, Role, SendMessageRequest, TaskState
from dragoman.runtime.engine import Engine
from examples import demo
from tests.runtime.bench import Bench, drain, kinds


@pytest.fixture
def b() -> Bench:
    return Bench(Engine(demo.agent))


@pytest.mark.parametrize(
    ("text", "state", "parts"),
    [
        ("echo hello there", TaskState.COMPLETED, [Part(text="hello there")]),
        ("anything else", TaskState.COMPLETED, [Part(text="anything else")]),
        ('data {"a": [1, null]}', TaskState.COMPLETED, [Part(data={"a": [1, None]})]),
        ("data null", TaskState.COMPLETED, [Part(data=None)]),
        ("data 1.5", TaskState.COMPLETED, [Part(data=1.5)]),
        ("data {", TaskState.REJECTED, []),
        ("chunks 2", TaskState.COMPLETED, [Part(text="chunk 1 "), Part(text="chunk 2 ")]),
        ("slow 0", TaskState.COMPLETED, []),
        ("ask", TaskState.INPUT_REQUIRED, []),
        ("auth", TaskState.AUTH_REQUIRED, []),
        ("fail", TaskState.FAILED, []),
        ("reject", TaskState.REJECTED, []),
    ],
)
async def test_the_first_word_is_obeyed(b: Bench, text: str, state: TaskState, parts: list[Part]) -> None:
    task = await b.send(text)
    assert task.status.state is state
    assert [part for artifact in task.artifacts for part in artifact.parts] == parts


async def test_say_answers_with_a_message(b: Bench) -> None:
    reply = await b.reply("say hi")
    assert reply.message is not None
    assert (reply.message.role, reply.message.parts) == (Role.AGENT, (Part(text="hi"),))


@pytest.mark.parametrize("word", ["ask", "auth"])
async def test_an_answer_completes_the_task_with_its_text(b: Bench, word: str) -> None:
    task = await b.send(word)
    after = await b.send("fail", task=task.id)  # an answer is no command
    assert after.status.state is TaskState.COMPLETED
    assert after.artifacts[0].parts == (Part(text="fail"),)


async def test_file_sends_a_png_by_value_and_one_by_url(b: Bench) -> None:
    inside, outside = (await b.send("file")).artifacts[0].parts
    assert isinstance(inside.raw, bytes)
    assert inside.raw.startswith(b"\x89PNG")
    assert (inside.media_type, outside.media_type) == ("image/png", "image/png")
    assert isinstance(outside.url, str)


async def test_back_returns_every_part_untouched(b: Bench) -> None:
    parts = (
        Part(text="back", metadata={"k": 1}),
        Part(raw=b"\0", media_type="x/y", filename="f"),
        Part(url="http://h"),
        Part(data=[]),
    )
    request = SendMessageRequest(message=Message(message_id="m", role=Role.USER, parts=parts))
    reply = await b.engine.call(SEND_MESSAGE, request, b.ctx)
    assert reply.task is not None
    assert reply.task.artifacts[0].parts == parts


async def test_slow_tells_each_step_and_can_be_canceled(b: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    stuck = asyncio.Event()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 4:
            stuck.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(demo, "pause", pause)
    events = await drain(await b.stream("slow 3"))
    assert kinds(events) == ["task", "WORKING", "WORKING", "WORKING", "COMPLETED"]
    assert pauses == [0.1] * 3
    task = await b.send("slow 9", return_immediately=True)
    await stuck.wait()
    assert (await b.cancel(task.id)).status.state is TaskState.CANCELED


@pytest.mark.parametrize(
    ("words", "expected"), [("7", 7), ("", 3), ("-1", 3), ("x", 3), ("999999", 100_000), ("²", 3), ("9" * 99, 3)]
)
def test_numbers_are_bounded(words: str, expected: Any) -> None:
    assert demo.number(words) == expected


def test_the_card_declares_what_the_agent_can() -> None:
    capabilities = demo.CARD.capabilities
    assert (capabilities.streaming, capabilities.push_notifications, capabilities.extended_agent_card) == (True,) * 3
    assert len(demo.EXTENDED_CARD.skills) > len(demo.CARD.skills)
    assert demo.CARD.supported_interfaces == ()
