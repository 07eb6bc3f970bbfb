"""What may become of a task, and the task while it grows.

Rules of this module (pure: no asyncio, no clock, no store):

- :data:`ALLOWED` is the whole state machine. A terminal task takes nothing more (1.0 §3.1.1).
- A status message moves into the history when the next status replaces it; a user's message enters on receipt.
- An artifact is created or replaced as a whole, or grows by chunks. Chunks are gathered in a list and joined when
  somebody looks, so that a stream of n chunks costs n steps.
- Snapshots are frozen; one is built at most once per change.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from ..errors import DragomanError
from ..model import Artifact, JsonObject, Message, Part, StreamResponse, Task, TaskState, TaskStatus

_S = TaskState
_ENDS = (_S.COMPLETED, _S.FAILED, _S.CANCELED, _S.REJECTED)
_SETTLED = (*_ENDS, _S.INPUT_REQUIRED, _S.AUTH_REQUIRED)
_ONWARD = (*_SETTLED, _S.WORKING)

#: The states that may follow a state. A task starts as SUBMITTED.
ALLOWED: dict[TaskState, tuple[TaskState, ...]] = {
    _S.UNSPECIFIED: (_S.SUBMITTED, *_ONWARD),  # a stored task of a later version
    _S.SUBMITTED: _ONWARD,
    _S.WORKING: _ONWARD,  # WORKING again is progress
    _S.INPUT_REQUIRED: _ONWARD,
    _S.AUTH_REQUIRED: _ONWARD,
    _S.COMPLETED: (),
    _S.FAILED: (),
    _S.CANCELED: (),
    _S.REJECTED: (),
}


class LifecycleError(DragomanError):
    """Raised in an agent's own code when it asks of a task what its state no longer allows."""


def is_terminal(state: TaskState) -> bool:
    """Whether a task in this state never changes again. (Comparing identities beats hashing an enum member.)"""
    return state in _ENDS


def is_settled(state: TaskState) -> bool:
    """Whether a blocking send returns in this state: terminal or interrupted (1.0 §3.2.2)."""
    return state in _SETTLED


class Draft(msgspec.Struct, eq=False):
    """A task that is still changing. (A struct because one is made for every new task.)"""

    id: str
    context_id: str
    status: TaskStatus
    _history: list[Message] = []
    metadata: JsonObject | None = None
    _artifacts: dict[str, Artifact] = {}
    _growing: dict[str, list[Part]] | None = None  # the parts of artifacts that came in chunks
    _snapshot: Task | None = None

    @classmethod
    def of(cls, task: Task) -> Draft:
        """A draft that goes on from a snapshot."""
        draft = cls(task.id, task.context_id, task.status, list(task.history), task.metadata)
        draft._artifacts = {artifact.artifact_id: artifact for artifact in task.artifacts}
        draft._snapshot = task
        return draft

    @property
    def settled(self) -> bool:
        """Whether a blocking send returns now."""
        return self.status.state in _SETTLED

    @property
    def terminal(self) -> bool:
        """Whether nothing may change any more."""
        return self.status.state in _ENDS

    def move(self, status: TaskStatus, *, lenient: bool = False) -> None:
        """Take a new status. Raises ``LifecycleError`` if it may not follow the present one, unless ``lenient``."""
        if not lenient and status.state not in ALLOWED[self.status.state]:
            raise LifecycleError(f"a task cannot go from {self.status.state.name} to {status.state.name}")
        if self.status.message is not None:
            self._history.append(self.status.message)
        self.status = status
        self._snapshot = None

    def remember(self, message: Message) -> None:
        """Add a message to the history."""
        self._history.append(message)
        self._snapshot = None

    def holds(self, artifact_id: str) -> bool:
        """Whether there is an artifact of this id."""
        return artifact_id in self._artifacts

    def free_artifact_id(self) -> str:
        """An id that no artifact of this task has."""
        number = len(self._artifacts) + 1
        while f"artifact-{number}" in self._artifacts:
            number += 1
        return f"artifact-{number}"

    def put(self, artifact: Artifact, append: bool = False) -> None:
        """Create or replace an artifact, or add a chunk to it; a chunk of an unknown one creates it.

        What a chunk says about its artifact is merged over what was known. Raises ``LifecycleError`` if the task is
        terminal.
        """
        if self.status.state in _ENDS:
            raise LifecycleError(f"a task that is {self.status.state.name} takes no artifact")
        self._snapshot = None
        key = artifact.artifact_id
        known = self._artifacts.get(key) if append else None
        if known is None:
            self._artifacts[key] = artifact
            if self._growing is not None:
                self._growing.pop(key, None)
            return
        if self._growing is None:
            self._growing = {}
        parts = self._growing.get(key)
        if parts is None:
            parts = self._growing[key] = list(known.parts)
        parts.extend(artifact.parts)
        if artifact.name or artifact.description or artifact.metadata or artifact.extensions:
            self._artifacts[key] = described(known, artifact)

    def snapshot(self) -> Task:
        """The task as it is now."""
        task = self._snapshot
        if task is None:
            if self._growing is not None:
                self._join(self._growing)
            task = self._snapshot = Task(
                id=self.id,
                context_id=self.context_id,
                status=self.status,
                artifacts=tuple(self._artifacts.values()),
                history=tuple(self._history),
                metadata=self.metadata,
            )
        return task

    def _join(self, growing: dict[str, list[Part]]) -> None:
        for key, parts in growing.items():
            artifact = self._artifacts[key]
            if len(artifact.parts) != len(parts):
                self._artifacts[key] = replace(artifact, parts=tuple(parts))


def described(known: Artifact, chunk: Artifact) -> Artifact:
    """An artifact with what a chunk says about it merged over what was known; its parts stay."""
    return replace(
        known,
        name=chunk.name or known.name,
        description=chunk.description or known.description,
        metadata=_merged(known.metadata, chunk.metadata),
        extensions=tuple(dict.fromkeys(known.extensions + chunk.extensions)),
    )


def _merged(known: JsonObject | None, more: JsonObject | None) -> JsonObject | None:
    return {**known, **more} if known and more else more or known


def fold(task: Task, events: Iterable[StreamResponse]) -> Task:
    """The task after a reader saw ``events``: any order of non-terminal states is taken, and a later whole task
    replaces everything; updates after a terminal state and messages are ignored.
    """
    draft = Draft.of(task)
    for event in events:
        draft = absorb(draft, event)
    return draft.snapshot()


def absorb(draft: Draft, event: StreamResponse) -> Draft:
    """The draft after one event, see :func:`fold`: the same one, changed, or that of a whole task."""
    if event.task is not None:
        return Draft.of(event.task)
    if draft.terminal:
        return draft
    if event.status_update is not None:
        draft.move(event.status_update.status, lenient=True)
    elif event.artifact_update is not None:
        draft.put(event.artifact_update.artifact, event.artifact_update.append)
    return draft


def trim(task: Task, history_length: int | None) -> Task:
    """The task with at most ``history_length`` of its newest messages; None = all, 0 = none (1.0 §3.2.4)."""
    if history_length is None or len(task.history) <= history_length:
        return task
    return replace(task, history=task.history[-history_length:] if history_length else ())
