"""What requests are about, what replies tell, and what is remembered of it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from dragoman.gateway.affinity import PLACED, About, Affinity, about, told
from dragoman.model import (
    CANCEL_TASK,
    GET_EXTENDED_AGENT_CARD,
    LIST_TASKS,
    OPERATIONS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    CancelTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

STATUS = TaskStatus(state=TaskState.WORKING)


def message(task_id: str = "", context_id: str = "") -> Message:
    return Message(message_id="m", role=Role.USER, parts=(Part(text="x"),), task_id=task_id, context_id=context_id)


def test_all_operations_but_those_of_the_whole_agent_are_about_something() -> None:
    assert set(OPERATIONS.values()) - PLACED == {LIST_TASKS, GET_EXTENDED_AGENT_CARD}


def test_a_request_is_about_its_task_and_context() -> None:
    assert about(CANCEL_TASK, CancelTaskRequest(id="t")) == About("t")
    for op in (SEND_MESSAGE, SEND_STREAMING_MESSAGE):
        sent = SendMessageRequest(message=message(task_id="t", context_id="c"))
        assert about(op, sent) == About("t", "c")
    assert about(GET_EXTENDED_AGENT_CARD, None) == About()


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (SendMessageResponse(task=Task(id="t", context_id="c", status=STATUS)), About("t", "c")),
        (SendMessageResponse(message=message(context_id="c")), About("", "c")),
        (
            StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", context_id="c", status=STATUS)),
            About("t", "c"),
        ),
        (None, About()),
    ],
    ids=["task", "message", "update", "nothing"],
)
def test_a_reply_tells_of_its_task_and_context(reply: Any, what: About) -> None:
    assert told(reply) == what


def test_who_has_what_is_remembered_per_tenant() -> None:
    known = Affinity()
    known.learn("one", About("t", "c"), "http://a")
    assert (known.task("one", "t"), known.context("one", "c")) == ("http://a", "http://a")
    assert (known.task("two", "t"), known.task("one", "c")) == (None, None)


def test_only_so_many_are_remembered_those_of_last_use() -> None:
    known = Affinity(100)
    known.learn("", About("asked for"), "http://a")
    for number in range(1000):
        known.learn("", About(f"task {number}"), "http://a")
        assert known.task("", "asked for") == "http://a"
        assert len(known) <= 101
    found = [number for number in range(1000) if known.task("", f"task {number}")]
    assert found[-50:] == list(range(950, 1000)) and found[0] >= 899


@pytest.mark.parametrize("id", ["t", "x" * 10_000], ids=["short", "long"])
def test_what_is_remembered_takes_little_room_however_long_its_id(id: str) -> None:
    known = Affinity(1_000)
    tracemalloc.start()
    try:
        for number in range(1_000):
            known.learn("tenant", About(f"{id}{number}"), "http://a")
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1_000 * 200


def test_what_was_known_of_replicas_that_there_still_are_is_taken_over() -> None:
    before, now = Affinity(), Affinity()
    before.learn("", About("t", "c"), "http://a")
    before.learn("", About("u"), "http://b")
    now.adopt(before, frozenset({"http://a"}))
    assert (now.task("", "t"), now.context("", "c"), now.task("", "u")) == ("http://a", "http://a", None)
