"""Tasks in dictionaries: fast, bounded, and gone with the process.

Frozen model structs are invisible to the garbage collector, so keeping many of them does not lengthen its pauses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import dropwhile, groupby, islice

from ..model import Task, TaskState
from .base import Cursor, Owner, Store, TaskPage, TaskQuery, Webhook

# As a tuple: comparing identities beats hashing an enum member.
_TERMINAL = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED)


class MemoryStore(Store):
    """Keeps at most ``limit`` tasks (default 10,000).

    Above it the task that has been terminal for longest goes, with its webhook configs; only when none is terminal,
    the one that was stored first. An owner who has more than an equal share of all makes room among its own.
    """

    def __init__(self, limit: int = 10_000) -> None:
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self._limit = limit
        self._count = 0
        self._tasks: dict[Owner, dict[str, Task]] = {}
        self._configs: dict[tuple[Owner, str], dict[str, Webhook]] = {}
        self._ended: deque[tuple[Owner, str]] = deque()

    async def get(self, owner: Owner, task_id: str) -> Task | None:
        tasks = self._tasks.get(owner)
        return None if tasks is None else tasks.get(task_id)

    async def save(self, owner: Owner, task: Task) -> None:
        tasks = self._tasks.get(owner)
        if tasks is None:
            tasks = self._tasks[owner] = {}
        known = len(tasks)
        tasks[task.id] = task
        self._count += len(tasks) - known
        if task.status.state in _TERMINAL:  # which a task becomes once
            self._ended.append((owner, task.id))
        if self._count > self._limit:
            self._make_room(owner, tasks)

    async def delete(self, owner: Owner, task_id: str) -> None:
        self._drop(owner, task_id)

    async def list(self, owner: Owner, query: TaskQuery) -> TaskPage:
        found = list(_matching(self._tasks.get(owner, {}), query))
        ordered = _newest_first(found)
        if query.after is not None:
            ordered = dropwhile(partial(_up_to, query.after), ordered)
        page = tuple(islice(ordered, query.limit + 1))
        return TaskPage(page[: query.limit], len(found), len(page) > query.limit)

    async def save_config(self, owner: Owner, webhook: Webhook) -> None:
        self._configs.setdefault((owner, webhook.config.task_id), {})[webhook.config.id] = webhook

    async def configs(self, owner: Owner, task_id: str) -> tuple[Webhook, ...]:
        return tuple(self._configs.get((owner, task_id), {}).values())

    async def delete_config(self, owner: Owner, task_id: str, config_id: str) -> None:
        self._configs.get((owner, task_id), {}).pop(config_id, None)

    async def aclose(self) -> None:
        """Nothing is held that would have to be let go."""

    def _make_room(self, owner: Owner, tasks: dict[str, Task]) -> None:
        """For a task of that owner, who has these."""
        if len(self._tasks) > 1 and len(tasks) > self._limit / len(self._tasks):
            ended = (id for id, one in tasks.items() if one.status.state in _TERMINAL)
            self._drop(owner, next(ended, None) or next(iter(tasks)))
        else:
            self._evict()

    def _evict(self) -> None:
        while self._ended:
            if self._drop(*self._ended.popleft()):
                return
        owner, tasks = next(iter(self._tasks.items()))
        self._drop(owner, next(iter(tasks)))

    def _drop(self, owner: Owner, task_id: str) -> bool:
        tasks = self._tasks.get(owner, {})
        if tasks.pop(task_id, None) is None:
            return False
        self._count -= 1
        if self._configs:
            self._configs.pop((owner, task_id), None)
        if not tasks:
            del self._tasks[owner]
        return True


def _matching(tasks: dict[str, Task], query: TaskQuery) -> Iterator[Task]:
    for task in tasks.values():
        status = task.status
        if query.context_id and task.context_id != query.context_id:
            continue
        if query.state is not None and status.state is not query.state:
            continue
        if query.since and (status.timestamp or "") < query.since:
            continue
        yield task


def _newest_first(tasks: list[Task]) -> Iterator[Task]:
    """Lazily, so that equal timestamps are put in order only as far as somebody reads."""
    for _, together in groupby(sorted(tasks, key=_time, reverse=True), key=_time):
        yield from sorted(together, key=_id)


def _time(task: Task) -> str:
    return task.status.timestamp or ""


def _id(task: Task) -> str:
    return task.id


def _up_to(cursor: Cursor, task: Task) -> bool:
    time = _time(task)
    return time > cursor.timestamp or (time == cursor.timestamp and task.id <= cursor.task_id)
