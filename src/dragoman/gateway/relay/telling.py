"""What a notification of an agent means for the webhooks of its task: pure decisions over a watch and its lines.

Rules of this module:

- A line gets what happened in the version of its webhook; who gets the task as a whole is told of artifacts once, or
  with the next status. (The same as for webhooks of an agent of our own, ``runtime.lines``.)
- Nothing gets lost in silence: a line that is full, or that gave something up, goes on with the whole task.
- What an agent repeats because it did not hear our answer is told once, where that is certain: a chunk that looks like
  the one before may be meant, a task or a status with its time cannot.
- Nothing follows a terminal state. What comes after it is repetition.
- What the reply to a send knew of the task at its end, and no notification told, is told with the last of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from ...model import StreamResponse, Task, TaskState, TaskStatus
from ...runtime.lifecycle import Draft, absorb, is_terminal
from ...runtime.notice import Forms
from ...store.outbox import Change, How, Line, Registration, State, Tell, Watch
from ..emulation.aliases import Alias, is_own, renamed
from ..snapshots import merged
from .reading import task_of

#: Digests that are kept of a watch.
_RECENT = 8


class Misdirected(Exception):
    """Raised for a notification about another task than that which its callback was given out for."""


@dataclass(slots=True)
class Heard:
    """The decision on one notification. ``digest``: of its body. ``queue``: deliveries that a line may hold.

    Afterwards: ``asked``: whether there was anything to decide about; ``told``: how many lines were told;
    ``coalesced``: how many deliveries went into a whole task; ``task``: as it is now, None if nothing was new.
    """

    event: StreamResponse
    digest: str
    forms: Forms
    queue: int
    asked: bool = False
    coalesced: int = 0
    told: int = 0
    task: Task | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.task is not None and is_terminal(self.task.status.state)

    def __call__(self, state: State) -> Change | None:
        """As ``Decide``. Raises ``Misdirected``."""
        self.asked, self.coalesced, self.told, self.task = True, 0, 0, None
        if state.watch.ended:
            return None
        watch, event = placed(state.watch, self.event)
        if _repeated(watch, event, self.digest):
            return None if watch is state.watch else Change(watch=watch)
        watch = replace(watch, recent=(*watch.recent, self.digest)[-_RECENT:])
        task = _after(watch, event)
        if task is not None:
            watch = replace(watch, snapshot=task, ended=is_terminal(task.status.state))
        self.task = task
        return self._told(state, watch, event)

    def _told(self, state: State, watch: Watch, event: StreamResponse) -> Change:
        writer = Writer(event, self.task, self.forms)
        tell = tuple(self._tell(line, writer) for line in state.lines)
        self.told = len(tell)
        relieved = (line.registration for line in state.lines if line.registration.behind and self.task is not None)
        return Change(watch=watch, put=tuple(replace(one, behind=False) for one in relieved), tell=tell)

    def _tell(self, line: Line, writer: Writer) -> Tell:
        one, form = line.registration, self.forms[line.registration.version]
        full = line.waiting >= self.queue and writer.task is not None
        self.coalesced += line.waiting if full else 0
        whole = (form.whole or one.behind or full) and writer.task is not None
        how: How = "all" if full else "newest" if whole and line.part else "behind"
        part = form.whole and writer.event.artifact_update is not None
        return Tell(one.id, writer.write(one, whole=whole), how, last=writer.last, part=part)


class Writer:
    """Bodies of what there is to tell, each made once. ``last``: nothing follows."""

    def __init__(self, event: StreamResponse, task: Task | None, forms: Forms) -> None:
        self.event = event
        self.task = task
        self.last = task is not None and is_terminal(task.status.state)
        self._forms = forms
        self._made: dict[tuple[str, bool], bytes] = {}

    def write(self, one: Registration, *, whole: bool) -> bytes:
        """The event for a webhook, or the task if there is one."""
        key = one.version, whole
        body = self._made.get(key)
        if body is None:
            event = StreamResponse(task=self.task) if whole and self.task is not None else self.event
            body = self._made[key] = self._forms[one.version].dump(event)
        return body


def whole_task(task: Task, one: Registration, forms: Forms, how: How = "all") -> Tell:
    """The task as it is, for one webhook."""
    writer = Writer(StreamResponse(task=task), task, forms)
    return Tell(one.id, writer.write(one, whole=True), how, last=writer.last)


def placed(watch: Watch, event: StreamResponse) -> tuple[Watch, StreamResponse]:
    """A watch that knows its task, and the event under the id that the caller knows. Raises ``Misdirected``."""
    named = task_of(event)
    if not named:
        raise Misdirected("names no task")
    if not watch.task_id:
        return replace(watch, task_id=named), event
    if watch.task_id == named:
        return watch, event
    if not watch.peer_id and is_own(watch.task_id):
        watch = replace(watch, peer_id=named)
    if watch.peer_id != named:
        raise Misdirected("is about another task")
    return watch, _named(event, watch.task_id)


def _named(event: StreamResponse, own: str) -> StreamResponse:
    if event.task is not None:
        return StreamResponse(task=renamed(event.task, Alias(own, event.task.id, "")))
    if event.status_update is not None:
        return StreamResponse(status_update=replace(event.status_update, task_id=own))
    if event.artifact_update is not None:
        return StreamResponse(artifact_update=replace(event.artifact_update, task_id=own))
    assert event.message is not None  # it is one of four
    return StreamResponse(message=replace(event.message, task_id=own))


def _repeated(watch: Watch, event: StreamResponse, digest: str) -> bool:
    if digest not in watch.recent or (event.artifact_update is not None and event.artifact_update.append):
        return False
    told = event.task or event.status_update
    return watch.recent[-1] == digest or bool(told is not None and told.status.timestamp)


def _after(watch: Watch, event: StreamResponse) -> Task | None:
    """The task after an event, None for a message, which changes none."""
    known = watch.snapshot
    if event.task is not None:
        task = event.task if known is None else merged(known, event.task)
    elif event.message is not None:
        return None
    else:
        draft = Draft.of(known if known is not None else _unknown(event))
        task = absorb(draft, event).snapshot()
    if watch.reply is not None and is_terminal(task.status.state):
        task = merged(replace(watch.reply, status=task.status), task)
    return task


def _unknown(event: StreamResponse) -> Task:
    """What is known of a task of which only an update was told."""
    about = event.status_update or event.artifact_update
    assert about is not None  # the caller saw to it
    return Task(id=about.task_id, context_id=about.context_id, status=TaskStatus(state=TaskState.WORKING))
