"""Which of two snapshots is the newer one, and what both tell together."""

from __future__ import annotations

import pytest

from dragoman.gateway.snapshots import is_older, merged
from dragoman.model import Artifact, Message, Part, Role, Task, TaskState, TaskStatus

S = TaskState
EARLY, LATE = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"


def snapshot(state: TaskState = S.WORKING, time: str | None = EARLY, history: str = "", **artifacts: str) -> Task:
    return Task(
        id="t",
        context_id="c",
        status=TaskStatus(state=state, timestamp=time),
        history=tuple(Message(message_id=one, role=Role.AGENT, parts=(Part(text=one),)) for one in history),
        artifacts=tuple(
            Artifact(artifact_id=name, parts=tuple(Part(text=one) for one in parts))
            for name, parts in artifacts.items()
        ),
    )


@pytest.mark.parametrize(
    ("task", "known", "older"),
    [
        (snapshot(time=LATE), snapshot(time=EARLY), False),
        (snapshot(time=EARLY), snapshot(time=LATE), True),
        (snapshot(), snapshot(), False),
        (snapshot(time=None), snapshot(time=LATE), False),
        (snapshot(time=EARLY), snapshot(time=None), False),
        (snapshot(S.WORKING, LATE), snapshot(S.COMPLETED, EARLY), True),
        (snapshot(S.COMPLETED, EARLY), snapshot(S.WORKING, LATE), False),
        (snapshot(S.COMPLETED, EARLY), snapshot(S.COMPLETED, LATE), True),
        (snapshot(S.COMPLETED, None), snapshot(S.COMPLETED, LATE), False),
        (snapshot(S.INPUT_REQUIRED, EARLY), snapshot(S.WORKING, LATE), True),
    ],
)
def test_a_terminal_state_and_then_the_time_decide(task: Task, known: Task, older: bool) -> None:
    assert is_older(task, known) is older
    if older:
        assert merged(known, task) is known


@pytest.mark.parametrize(
    ("known", "task", "both"),
    [
        (snapshot(history="ab"), snapshot(history="abc"), snapshot(history="abc")),
        (snapshot(history="abc"), snapshot(time=LATE), snapshot(time=LATE, history="abc")),
        (snapshot(history="abc"), snapshot(time=LATE, history="c"), snapshot(time=LATE, history="abc")),
        (snapshot(history="abc"), snapshot(time=LATE, history="cd"), snapshot(time=LATE, history="abcd")),
        (snapshot(x="1"), snapshot(time=LATE), snapshot(time=LATE, x="1")),
        (snapshot(x="1"), snapshot(time=LATE, y="2"), snapshot(time=LATE, x="1", y="2")),
        (snapshot(x="1", y="2"), snapshot(time=LATE, y="2", x="1"), snapshot(time=LATE, y="2", x="1")),
        (snapshot(x="123"), snapshot(x="12"), snapshot(x="123")),
        (snapshot(x="123"), snapshot(time=LATE, x="12"), snapshot(time=LATE, x="12")),
        (snapshot(x="123"), snapshot(x="4"), snapshot(x="4")),
    ],
)
def test_what_a_newer_one_leaves_out_is_kept(known: Task, task: Task, both: Task) -> None:
    assert merged(known, task) == both
