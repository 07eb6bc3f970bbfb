"""Tasks under an id of the gateway's own, given out before the agent said which id it has for them.

Rules of this module:

- An own id begins with ``PREFIX``, so that no look-up is needed to know that an id is none. It stands for the context
  as well, if the caller named none.
- An own task is *pending* while the agent has not answered; then it is *known* under the agent's id too, or *over*:
  the agent answered with a Message, refused, or failed.
- Records are tasks in a store, with a note in the metadata that no caller sees. They belong to tenant and caller.
- A pending record tells now and then that somebody still waits for the agent. One that has not for ``STALE`` seconds
  was lost with its process: it is FAILED, and says that nobody knows what the agent did.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from msgspec.structs import replace

from ...model import Message, Part, Role, SendMessageResponse, Task, TaskState, TaskStatus
from ...runtime.stamps import new_id, utc_now
from ...store.base import Owner, Store

PREFIX = "dragoman-"
BEAT = 15.0  # seconds between two signs of life of a pending record
STALE = 4 * BEAT
_NOTE = "dragoman"


def new_own_id() -> str:
    """An id for a task that the agent has not named yet."""
    return PREFIX + new_id()


def is_own(task_id: str) -> bool:
    """Whether an id may be one of ours."""
    return task_id.startswith(PREFIX)


class Alias(NamedTuple):
    """Our id and the agent's for one task, and the agent's context, empty if the caller knows it by its own name."""

    own: str
    task_id: str
    context_id: str


def pending(own: str, context_id: str) -> Task:
    """An own task of which nothing is known yet."""
    return Task(id=own, context_id=context_id or own, status=_status(TaskState.SUBMITTED))


def answered(task: Task, reply: SendMessageResponse) -> Task:
    """The record of a pending task when the agent has answered."""
    if reply.task is not None:
        context_id = reply.task.context_id if task.context_id == task.id else ""
        return replace(task, metadata={_NOTE: {"task": reply.task.id, "context": context_id}})
    assert reply.message is not None  # it is one or the other
    message = replace(reply.message, task_id=task.id, context_id=task.context_id)
    return replace(task, status=_status(TaskState.COMPLETED, message), metadata=None)


def failed(task: Task, why: str) -> Task:
    """The record of a pending task from which nothing will come."""
    said = Message(
        message_id=new_id(), role=Role.AGENT, parts=(Part(text=why),), task_id=task.id, context_id=task.context_id
    )
    return replace(task, status=_status(TaskState.FAILED, said), metadata=None)


def alias_of(record: Task) -> Alias | None:
    """What a record says about the agent's ids, None if it knows none."""
    note = _note(record)
    return Alias(record.id, note["task"], note["context"]) if "task" in note else None


def beating(task: Task) -> Task:
    """A pending record with a sign of life."""
    return replace(task, metadata={_NOTE: {"beat": time.time()}})


def is_lost(record: Task) -> bool:
    """Whether a record is pending and nobody waits for the agent any more."""
    beat = _note(record).get("beat")
    return beat is not None and time.time() - beat > STALE


def is_pending(record: Task) -> bool:
    """Whether the agent has not answered yet."""
    return "beat" in _note(record)


def shown(record: Task) -> Task:
    """A record as its caller sees it."""
    return replace(record, metadata=None)


def renamed(task: Task, alias: Alias) -> Task:
    """The agent's task under our id."""
    return replace(
        task,
        id=alias.own,
        context_id=_context(task.context_id, alias),
        status=replace(task.status, message=_message(task.status.message, alias)),
        history=tuple(filter(None, (_message(message, alias) for message in task.history))),
    )


def _context(context_id: str, alias: Alias) -> str:
    return alias.own if alias.context_id and context_id == alias.context_id else context_id


def _message(message: Message | None, alias: Alias) -> Message | None:
    if message is None:
        return None
    task_id = alias.own if message.task_id == alias.task_id else message.task_id
    return replace(message, task_id=task_id, context_id=_context(message.context_id, alias))


def _status(state: TaskState, message: Message | None = None) -> TaskStatus:
    return TaskStatus(state=state, message=message, timestamp=utc_now())


def _note(record: Task) -> dict[str, Any]:
    note = (record.metadata or {}).get(_NOTE)
    return note if isinstance(note, dict) else {}


class Records:
    """Own tasks of one agent in a store."""

    def __init__(self, store: Store, upstream: str) -> None:
        self._store = store
        self._upstream = upstream

    def owner(self, tenant: str, caller: str) -> Owner:
        """Whose a record is."""
        return f"at-once:{self._upstream}/{tenant}", caller

    async def save(self, owner: Owner, record: Task) -> None:
        """Keep a record."""
        await self._store.save(owner, record)

    async def find(self, owner: Owner, own: str) -> Task | None:
        """The record of an own id, None if this caller has none. One that was lost has failed, from now on."""
        record = await self._store.get(owner, own)
        if record is not None and is_lost(record):
            record = failed(record, "The gateway was restarted before the agent answered: what it did is not known")
            await self._store.save(owner, record)
        return record
