"""The events between two snapshots, told back by a reader who folds them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.gateway.emulation.differences import differences
from dragoman.model import (
    TERMINAL,
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from dragoman.runtime.lifecycle import Draft, fold


def part(text: str) -> Part:
    return Part(text=text)


def said(text: str, role: Role = Role.AGENT) -> Message:
    return Message(message_id=text, role=role, parts=(part(text),))


def artifact(key: str, *texts: str, **more: Any) -> Artifact:
    return Artifact(artifact_id=key, parts=tuple(map(part, texts)), **more)


def task(state: TaskState = TaskState.WORKING, message: Message | None = None, **more: Any) -> Task:
    return Task(id="t", context_id="c", status=TaskStatus(state=state, message=message), **more)


def told(events: tuple[StreamResponse, ...]) -> list[object]:
    """The events in short: the state and word of a status, or id, texts, append and last of an artifact."""
    found: list[object] = []
    for event in events:
        if (status := event.status_update) is not None:
            message = status.status.message
            found.append((status.status.state.name, message.message_id if message else ""))
        if (chunk := event.artifact_update) is not None:
            texts = "".join(str(one.text) for one in chunk.artifact.parts)
            found.append((chunk.artifact.artifact_id, texts, chunk.append, chunk.last_chunk))
    return found


S = TaskState


@pytest.mark.parametrize(
    ("first", "second", "events"),
    [
        (task(), task(), []),
        (task(S.SUBMITTED), task(), [("WORKING", "")]),
        (task(), task(message=said("a")), [("WORKING", "a")]),
        (task(), task(artifacts=(artifact("x", "1"),)), [("x", "1", False, False)]),
        (
            task(artifacts=(artifact("x", "1"),)),
            task(artifacts=(artifact("x", "1", "2", "3"),)),
            [("x", "23", True, False)],
        ),
        (
            task(artifacts=(artifact("x", "1"),)),
            task(S.COMPLETED, artifacts=(artifact("x", "1", "2"), artifact("y", "3"))),
            [("x", "2", True, True), ("y", "3", False, True), ("COMPLETED", "")],
        ),
        (
            task(artifacts=(artifact("x", "1", "2"),)),
            task(artifacts=(artifact("x", "1"),)),
            [("x", "1", False, False)],
        ),
        (
            task(artifacts=(artifact("x", "1", name="old"),)),
            task(artifacts=(artifact("x", "1", "2"),)),
            [("x", "12", False, False)],
        ),
        (
            task(artifacts=(artifact("x", "1"),)),
            task(artifacts=(artifact("x", "1", "2", name="new"),)),
            [("x", "2", True, False)],
        ),
        (
            task(message=said("a")),
            task(message=said("c"), history=(said("a"), said("b"))),
            [("WORKING", "b"), ("WORKING", "c")],
        ),
        (
            task(message=said("a")),
            task(S.COMPLETED, history=(said("a"), said("b"))),
            [("WORKING", "b"), ("COMPLETED", "")],
        ),
        (task(), task(history=(said("a"), said("b"))), []),
        (
            task(history=(said("q", Role.USER),)),
            task(history=(said("q", Role.USER), said("r", Role.USER))),
            [],
        ),
        (task(S.COMPLETED), task(), []),
    ],
)
def test_what_happened_in_between_is_told_in_order(first: Task, second: Task, events: list[object]) -> None:
    assert told(differences(first, second)) == events


def test_a_message_that_passed_by_leaves_the_status_as_it_is() -> None:
    first = task(message=said("a"), history=(said("q", Role.USER),))
    second = replace(first, history=(*first.history, said("b")))
    assert told(differences(first, second)) == [("WORKING", "b"), ("WORKING", "a")]
    assert fold(first, differences(first, second)).status == second.status


texts = st.sampled_from("abcd")
metadata = st.none() | st.dictionaries(texts, st.integers(0, 1), max_size=2)
artifacts = st.lists(
    st.builds(
        Artifact,
        artifact_id=st.sampled_from("xyz"),
        name=st.sampled_from(["", "n", "m"]),
        description=st.sampled_from(["", "d"]),
        parts=st.lists(texts.map(part), min_size=1, max_size=3).map(tuple),
        metadata=metadata,
        extensions=st.lists(texts, max_size=2).map(tuple),
    ),
    max_size=3,
    unique_by=lambda one: one.artifact_id,
).map(tuple)
messages = st.builds(said, st.text("abcdefgh", min_size=1, max_size=3), st.sampled_from(Role))
statuses = st.builds(
    TaskStatus,
    state=st.sampled_from(TaskState),
    message=st.none() | messages,
    timestamp=st.none() | st.sampled_from(["2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"]),
)
tasks = st.builds(
    Task,
    id=st.just("t"),
    context_id=st.just("c"),
    status=statuses,
    artifacts=artifacts,
    history=st.lists(messages, max_size=4).map(tuple),
)


@given(tasks, tasks)
def test_a_reader_who_folds_the_events_has_the_status_and_the_artifacts(first: Task, second: Task) -> None:
    read = fold(first, differences(first, second))
    if first.status.state in TERMINAL:
        assert read == first
        return
    assert read.status == second.status
    held = {one.artifact_id: one for one in read.artifacts}
    assert {one.artifact_id: held[one.artifact_id] for one in second.artifacts} == {
        one.artifact_id: one for one in second.artifacts
    }


class Step:
    """What an agent may do to a task of its own in one step."""

    strategy = st.one_of(
        st.tuples(st.just("status"), st.sampled_from([s for s in TaskState if s not in TERMINAL]), st.booleans()),
        st.tuples(st.just("artifact"), st.sampled_from("xy"), st.booleans()),
    )


@given(st.lists(Step.strategy, max_size=4), st.lists(Step.strategy, max_size=6), st.booleans())
def test_of_an_agent_that_keeps_its_words_the_history_is_read_too(
    before: list[Any], after: list[Any], ends: bool
) -> None:
    draft = Draft.of(task(history=(said("q", Role.USER),)))
    number = iter(range(100))

    def play(steps: list[Any]) -> Task:
        for kind, what, flag in steps:
            if kind == "status":
                draft.move(TaskStatus(state=what, message=said(f"m{next(number)}") if flag else None), lenient=True)
            else:
                draft.put(artifact(what, str(next(number))), append=flag)
        return draft.snapshot()

    first = play(before)
    play(after)
    if ends:
        draft.move(TaskStatus(state=TaskState.COMPLETED), lenient=True)
    second = draft.snapshot()
    assert fold(first, differences(first, second)) == second
