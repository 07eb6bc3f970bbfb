"""Two snapshots of one task that came by different ways: which is the newer one, and what both tell together.

Rules of this module (pure):

- A terminal task does not change (1.0 §3.1.1): nothing that is not terminal is newer.
- Else the timestamp of the status decides. Where one has none, or both have the same, what came later is newer.
- What a newer snapshot leaves out is kept: a history may have been cut on request, and no operation takes an artifact
  from a task. Where both snapshots are of one status, an artifact that has grown further is the newer one.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..model import TERMINAL, Artifact, Message, Task


def is_older(task: Task, known: Task) -> bool:
    """Whether ``task``, which came after ``known``, nevertheless tells of an earlier moment."""
    if known.status.state in TERMINAL and task.status.state not in TERMINAL:
        return True
    if task.status.state in TERMINAL and known.status.state not in TERMINAL:
        return False
    here, there = task.status.timestamp, known.status.timestamp
    return bool(here and there and here < there)


def merged(known: Task, task: Task) -> Task:
    """What is known of a task after a snapshot that came later."""
    if is_older(task, known):
        return known
    history, artifacts = _history(known, task), _artifacts(known, task)
    if history is task.history and artifacts is task.artifacts:
        return task
    return replace(task, history=history, artifacts=artifacts)


def _history(known: Task, task: Task) -> tuple[Message, ...]:
    if len(task.history) >= len(known.history):
        return task.history
    ids = {message.message_id for message in known.history}
    more = tuple(message for message in task.history if message.message_id not in ids)
    return known.history + more


def _artifacts(known: Task, task: Task) -> tuple[Artifact, ...]:
    if not known.artifacts:
        return task.artifacts
    now = {artifact.artifact_id: artifact for artifact in task.artifacts}
    same = known.status == task.status
    both = {one.artifact_id: _artifact(one, now.get(one.artifact_id), same) for one in known.artifacts}
    found = tuple({**now, **both}.values()) if now.keys() >= both.keys() else tuple({**both, **now, **both}.values())
    return task.artifacts if found == task.artifacts else found


def _artifact(before: Artifact, now: Artifact | None, same: bool) -> Artifact:
    if now is None:
        return before
    count = len(now.parts)
    grown = same and count < len(before.parts) and before.parts[:count] == now.parts
    return before if grown else now
