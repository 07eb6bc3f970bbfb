"""The state table, and tasks that grow by events."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model import (
    INTERRUPTED,
    TERMINAL,
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.runtime.lifecycle import ALLOWED, Draft, LifecycleError, fold, is_settled, is_terminal, trim

S = TaskState
ANY = [S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED, S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED]


def say(text: str) -> Message:
    return Message(message_id=text, role=Role.AGENT, parts=(Part(text=text),))


def status(state: TaskState, text: str = "") -> TaskStatus:
    return TaskStatus(state=state, message=say(text) if text else None)


def chunk(id: str, *texts: str) -> Artifact:
    return Artifact(artifact_id=id, parts=tuple(Part(text=text) for text in texts))


def draft(state: TaskState = S.SUBMITTED) -> Draft:
    return Draft("t", "c", status(state), [say("hello")])


def texts(task: Task) -> dict[str, list[object]]:
    return {artifact.artifact_id: [part.text for part in artifact.parts] for artifact in task.artifacts}


@pytest.mark.parametrize("after", S)
@pytest.mark.parametrize("before", S)
def test_the_state_table(before: TaskState, after: TaskState) -> None:
    one = draft(before)
    allowed = before not in TERMINAL and (after in ANY or (before is S.UNSPECIFIED and after is S.SUBMITTED))
    assert (after in ALLOWED[before]) is allowed
    if allowed:
        one.move(status(after))
        assert one.snapshot().status.state is after
    else:
        with pytest.raises(LifecycleError):
            one.move(status(after))
        assert one.snapshot().status.state is before


@pytest.mark.parametrize("state", S)
def test_the_classes_of_states_are_those_of_the_model(state: TaskState) -> None:
    assert is_terminal(state) is (state in TERMINAL)
    assert is_settled(state) is (state in TERMINAL | INTERRUPTED)


def test_a_status_message_enters_the_history_when_the_next_status_comes() -> None:
    one = draft()
    one.move(status(S.WORKING, "a"))
    assert [entry.message_id for entry in one.snapshot().history] == ["hello"]
    one.move(status(S.WORKING))
    one.move(status(S.COMPLETED, "b"))
    assert [entry.message_id for entry in one.snapshot().history] == ["hello", "a"]


def test_chunks_join_in_order_and_replacing_starts_anew() -> None:
    one = draft()
    one.put(chunk("x", "1"), append=True)  # unknown: created
    one.put(chunk("x", "2", "3"), append=True)
    assert texts(one.snapshot()) == {"x": ["1", "2", "3"]}
    one.put(chunk("y", "a"))
    one.put(chunk("x", "4"), append=True)
    assert texts(one.snapshot()) == {"x": ["1", "2", "3", "4"], "y": ["a"]}
    one.put(chunk("x", "new"))
    one.put(chunk("x", "er"), append=True)
    assert texts(one.snapshot()) == {"x": ["new", "er"], "y": ["a"]}


def test_what_a_chunk_says_about_its_artifact_is_merged_over_what_was_known() -> None:
    one = draft()
    one.put(Artifact(artifact_id="x", name="n", parts=(Part(text="1"),), metadata={"a": 1, "b": 1}, extensions=("u",)))
    one.put(
        Artifact(artifact_id="x", description="d", parts=(Part(text="2"),), metadata={"b": 2}, extensions=("v", "u")),
        append=True,
    )
    one.put(chunk("x", "3"), append=True)
    (artifact,) = one.snapshot().artifacts
    assert (artifact.name, artifact.description, artifact.metadata) == ("n", "d", {"a": 1, "b": 2})
    assert artifact.extensions == ("u", "v")
    assert texts(one.snapshot()) == {"x": ["1", "2", "3"]}


def test_a_terminal_task_takes_no_artifact() -> None:
    one = draft(S.COMPLETED)
    with pytest.raises(LifecycleError):
        one.put(chunk("x", "late"))


def test_a_snapshot_is_kept_until_something_changes() -> None:
    one = draft()
    first = one.snapshot()
    assert one.snapshot() is first
    one.remember(say("more"))
    assert one.snapshot() is not first
    assert first.history == (say("hello"),)


@pytest.mark.parametrize(("length", "kept"), [(None, "abc"), (0, ""), (1, "c"), (3, "abc"), (7, "abc")])
def test_trimming_keeps_the_newest(length: int | None, kept: str) -> None:
    task = Task(id="t", status=status(S.WORKING), history=tuple(say(letter) for letter in "abc"))
    assert [entry.message_id for entry in trim(task, length).history] == list(kept)


def test_a_reader_ignores_what_comes_after_a_terminal_state_until_a_whole_task_comes() -> None:
    done = Task(id="t", context_id="c", status=status(S.COMPLETED))
    late = StreamResponse(
        artifact_update=TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=chunk("x", "1"))
    )
    again = StreamResponse(status_update=TaskStatusUpdateEvent(task_id="t", context_id="c", status=status(S.SUBMITTED)))
    whole = StreamResponse(task=Task(id="t", context_id="c", status=status(S.WORKING)))
    assert fold(done, [late, again]) == done
    assert texts(fold(done, [whole, late, again])) == {"x": ["1"]}


STATUSES = st.builds(
    status, st.sampled_from([S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED]), st.sampled_from(["", "m"])
)
CHUNKS = st.tuples(st.builds(chunk, st.sampled_from("xyz"), st.sampled_from("abc")), st.booleans(), st.booleans())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(STATUSES, CHUNKS), max_size=30))
def test_whenever_one_looks_the_task_is_the_same_and_a_reader_sees_it_too(
    steps: list[TaskStatus | tuple[Artifact, bool, bool]],
) -> None:
    looked, unseen = draft(), draft()
    start = looked.snapshot()
    events: list[StreamResponse] = []
    for step in steps:
        if isinstance(step, TaskStatus):
            looked.move(step)
            unseen.move(step)
            update = TaskStatusUpdateEvent(task_id="t", context_id="c", status=step)
            events.append(StreamResponse(status_update=update))
        else:
            artifact, append, look = step
            looked.put(artifact, append)
            unseen.put(artifact, append)
            if look:
                looked.snapshot()
            change = TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact, append=append)
            events.append(StreamResponse(artifact_update=change))
    assert looked.snapshot() == unseen.snapshot() == fold(start, events)
    assert Draft.of(looked.snapshot()).snapshot() == looked.snapshot()
