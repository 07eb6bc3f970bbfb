"""Two snapshots of a task in, the events that lead from the first to the second out.

Rules of this module (pure: no asyncio, no clock):

- A reader who folds the events into the first snapshot has the status, the artifacts and, where the agent moves its
  status messages into the history as they are replaced, the history of the second one.
- An artifact that only got more parts is told as a chunk (``append``), every other change as the whole artifact.
  ``last_chunk`` says that nothing more follows for it, which is known once the task is terminal.
- Artifacts come before the status: a terminal status is the last event of a stream.
- An agent's message that has passed through the status in between, and stands in the history, is told as a status.
  What is new there is what stands behind the last message that was known; if none was, nothing is told.
- Not representable, and left out: an artifact that is gone, one that changed its place, metadata of the task, user's
  messages. A terminal task does not change (1.0 §3.1.1), so nothing follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ...model import (
    INTERRUPTED,
    TERMINAL,
    Artifact,
    Message,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from ...runtime.lifecycle import described

_RESTS = TERMINAL | INTERRUPTED


def differences(first: Task, second: Task) -> tuple[StreamResponse, ...]:
    """The events that happened between two snapshots of one task, in order."""
    if first.status.state in TERMINAL:
        return ()
    passed = tuple(_messages(first, second))
    status = (_update(second, second.status),) if passed or first.status != second.status else ()
    return (*passed, *_artifacts(first, second), *status)


def _messages(first: Task, second: Task) -> Iterator[StreamResponse]:
    state = TaskState.WORKING if second.status.state in _RESTS else second.status.state
    shown = _ids((first.status.message, second.status.message))
    for message in _news(first, second):
        if message.role is Role.AGENT and message.message_id not in shown:
            yield _update(second, TaskStatus(state=state, message=message))


def _news(first: Task, second: Task) -> tuple[Message, ...]:
    """The messages of the second history that stand behind everything known."""
    known = _ids((*first.history, first.status.message))
    for place in range(len(second.history) - 1, -1, -1):
        if second.history[place].message_id in known:
            return second.history[place + 1 :]
    return ()


def _ids(messages: Iterable[Message | None]) -> set[str]:
    return {message.message_id for message in messages if message is not None}


def _artifacts(first: Task, second: Task) -> Iterator[StreamResponse]:
    if first.artifacts == second.artifacts:
        return
    known = {artifact.artifact_id: artifact for artifact in first.artifacts}
    last = second.status.state in TERMINAL
    for artifact in second.artifacts:
        before = known.get(artifact.artifact_id)
        if before != artifact:
            chunk = _chunk(before, artifact) if before is not None else None
            yield StreamResponse(
                artifact_update=TaskArtifactUpdateEvent(
                    task_id=second.id,
                    context_id=second.context_id,
                    artifact=chunk or artifact,
                    append=chunk is not None,
                    last_chunk=last,
                )
            )


def _chunk(before: Artifact, after: Artifact) -> Artifact | None:
    """The parts that were added, under what the artifact is called now; None if more than that has changed.

    A reader adds what a chunk says of its artifact to what it knows, so nothing can be taken back by one.
    """
    count = len(before.parts)
    if not 0 < count < len(after.parts) or after.parts[:count] != before.parts:
        return None
    read = replace(described(before, after), parts=after.parts)
    return replace(after, parts=after.parts[count:]) if read == after else None


def _update(task: Task, status: TaskStatus) -> StreamResponse:
    return StreamResponse(
        status_update=TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=status)
    )
