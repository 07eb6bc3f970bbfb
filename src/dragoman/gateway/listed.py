"""The pages of a list that is made of the tasks that were seen.

Rules of this module:

- Tasks that were not final when they were last seen are looked at again before they are listed: those of the page,
  and where the request filters by state or time the newest of all, since what they are now may differ.
- That takes only so long. What cannot be asked for stays as it was seen; what the agent does not know any more is
  left out, and forgotten.
- A page begins behind the last task of the one before, as that was listed: nothing is left out between them.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..errors import DragomanError, TaskNotFoundError
from ..model import (
    GET_TASK,
    TERMINAL,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Task,
    TaskState,
)
from ..runtime.listing import read_query, write_page
from ..service import A2AService, Context
from ..store.base import Owner, TaskPage, TaskQuery
from .background import unhurried
from .seen import Seen
from .snapshots import merged

REFRESHED = 50  # tasks that are looked at again for one list
AT_ONCE = 8
PATIENCE = 5.0  # seconds
_UNFINISHED = tuple(state for state in TaskState if state not in TERMINAL)


class Listing:
    """Lists what was ``seen`` of the tasks of ``agent``. ``since``: gives the time before which nothing is listed."""

    def __init__(self, agent: A2AService, seen: Seen, since: Callable[[], str]) -> None:
        self._agent = agent
        self._seen = seen
        self._since = since

    async def page(self, request: ListTasksRequest, whose: Owner, ctx: Context) -> ListTasksResponse:
        """The reply to a request. Raises ``InvalidParamsError`` for a bad one, ``UnavailableError``."""
        query = read_query(request, whose)
        within = dataclasses.replace(query, since=max(query.since, self._since()))
        if query.state is not None or query.since:
            await self._refresh(whose, await self._unfinished(whose, query.context_id), request, ctx)
            return write_page(request, whose, query, await self._seen.list(whose, within))
        page = await self._seen.list(whose, within)
        reply = write_page(request, whose, query, page)
        found = await self._refresh(whose, page.tasks, request, ctx)
        if not found:
            return reply
        now = write_page(request, whose, query, _now(page, found))
        return replace(now, next_page_token=reply.next_page_token)  # behind the last task as it was listed

    async def _unfinished(self, whose: Owner, context_id: str) -> list[Task]:
        found: list[Task] = []
        for state in _UNFINISHED:
            some = TaskQuery(context_id=context_id, state=state, since=self._since(), limit=REFRESHED)
            found += (await self._seen.list(whose, some)).tasks
        return sorted(found, key=_time, reverse=True)[:REFRESHED]

    async def _refresh(
        self, whose: Owner, tasks: Sequence[Task], request: ListTasksRequest, ctx: Context
    ) -> dict[str, Task | None]:
        """What those that were not final are now, by id: None for what is no more, nothing for what is not known."""
        found: dict[str, Task | None] = {}
        turns = asyncio.Semaphore(AT_ONCE)

        async def look(known: Task) -> None:
            asked = GetTaskRequest(tenant=request.tenant, id=known.id, history_length=request.history_length)
            async with turns:
                try:
                    task = await self._agent.call(GET_TASK, asked, unhurried(ctx))
                except TaskNotFoundError:
                    found[known.id] = None
                    self._seen.forget(whose, known.id)
                except DragomanError:
                    pass
                else:
                    found[known.id] = merged(known, _stamped(task, known))
                    self._seen.see(whose, task)

        unfinished = [task for task in tasks if task.status.state not in TERMINAL]
        if unfinished:
            await _within(_patience(ctx), [look(task) for task in unfinished])
        return found


def _patience(ctx: Context) -> float:
    if ctx.deadline is None:
        return PATIENCE
    return min(PATIENCE, (ctx.deadline - asyncio.get_running_loop().time()) / 2)


async def _within(seconds: float, work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do what can be done in that time."""
    running = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.wait(running, timeout=max(seconds, 0.0))
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _now(page: TaskPage, found: Mapping[str, Task | None]) -> TaskPage:
    """The page with what its tasks are now, the newest first."""
    now = [found.get(task.id, task) for task in page.tasks]
    kept = sorted((task for task in now if task is not None), key=_time, reverse=True)
    return TaskPage(tuple(kept), page.total - len(page.tasks) + len(kept), page.more)


def _stamped(task: Task, known: Task) -> Task:
    """The task with a time to be listed by, should the agent give none."""
    if task.status.timestamp:
        return task
    return replace(task, status=replace(task.status, timestamp=known.status.timestamp))


def _time(task: Task) -> str:
    return task.status.timestamp or ""
