"""Asking for a task again and again, and the stream that is made of the answers.

Rules of this module:

- It is asked only while somebody waits for the next event: a reader who is slow, or gone, causes no question.
- Intervals grow while nothing changes and begin anew when something did; they are spread, so that many readers do
  not ask at one time. Only so many questions are open at an agent at once.
- A failure that may pass is tried again; too many in a row are the stream's error, and so at once is one that will
  not pass. A stream of this kind never ends cleanly before its task came to rest.
- It ends as a real one does: at a terminal state, and where the agent asks for input. While an authorization is waited
  for it stays open, but only for so long without an event.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import (
    DeadlineExceededError,
    DragomanError,
    InternalError,
    InvalidAgentResponseError,
    PeerError,
    RateLimitedError,
    TransportError,
    UnavailableError,
)
from ...model import GET_TASK, INTERRUPTED, TERMINAL, GetTaskRequest, StreamResponse, Task, TaskState
from ...service import A2AService, Context, EventStream
from ..background import unhurried
from ..snapshots import is_older
from .differences import differences

#: How many of the newest messages are looked at for what passed by between two questions.
LATEST = 10
_ENDS = TERMINAL | {TaskState.INPUT_REQUIRED}
_PASSING = (
    TransportError,
    PeerError,
    UnavailableError,
    RateLimitedError,
    DeadlineExceededError,
    InternalError,
    InvalidAgentResponseError,
)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between questions: ``first``, times ``growth`` each time up to ``most``, each spread by ``jitter`` of
    itself. ``tries``: failures in a row that end it. ``waiting``: how long a task that waits for somebody is followed
    without an event."""

    first: float = 0.25
    most: float = 5.0
    growth: float = 1.5
    jitter: float = 0.2
    tries: int = 5
    waiting: float = 300.0

    def spread(self, seconds: float) -> float:
        """About that long."""
        return seconds * random.uniform(1 - self.jitter, 1 + self.jitter)


class Questions:
    """GetTask at one agent, ``at_once`` at most."""

    def __init__(self, service: A2AService, pace: Pace = Pace(), at_once: int = 64) -> None:
        self.pace = pace
        self._service = service
        self._turns = asyncio.Semaphore(at_once)

    def over(self, service: A2AService) -> Questions:
        """Questions to another service in front of the same agent, which take turns with these."""
        other = Questions(service, self.pace)
        other._turns = self._turns
        return other

    async def ask(self, request: GetTaskRequest, ctx: Context) -> Task:
        """The task as it is. Raises as ``A2AService.call``."""
        async with self._turns:
            return await self._service.call(GET_TASK, request, unhurried(ctx))

    def watch(self, task_id: str, ctx: Context, history_length: int) -> Watch:
        """A task, looked at again and again with so much of its history."""
        return Watch(self, GetTaskRequest(tenant=ctx.tenant, id=task_id, history_length=history_length), ctx)


class Watch:
    """One task that is looked at from time to time."""

    def __init__(self, questions: Questions, request: GetTaskRequest, ctx: Context) -> None:
        self._questions = questions
        self._request = request
        self._ctx = ctx
        self._pace = questions.pace
        self._delay = self._pace.first
        self._failures = 0

    async def look(self) -> Task:
        """Wait a little and ask. Raises what will not pass, and what has not passed often enough."""
        while True:
            await asyncio.sleep(self._pace.spread(self._delay))
            self._delay = min(self._delay * self._pace.growth, self._pace.most)
            try:
                task = await self._questions.ask(self._request, self._ctx)
            except _PASSING as error:
                self._failed(error)
            else:
                self._failures = 0
                return task

    def hurry(self) -> None:
        """Something has changed, so more may soon."""
        self._delay = self._pace.first

    def _failed(self, error: DragomanError) -> None:
        self._failures += 1
        if self._failures >= self._pace.tries:
            raise error
        after = getattr(error, "retry_after", None)
        if after is not None:
            self._delay = max(self._delay, min(after, 60.0))


class Followed(EventStream):
    """The events of a task that is looked at. ``first``: the event that it begins with. ``known``: the task as the
    reader knows it by then, None if nothing follows."""

    def __init__(self, watch: Watch | None, first: StreamResponse, known: Task | None, pace: Pace) -> None:
        self._watch = watch
        self._ready: Sequence[StreamResponse] = (first,)
        self._known = known
        self._pace = pace

    async def batch(self) -> Sequence[StreamResponse]:
        ready, self._ready = self._ready, ()
        if not ready and self._watch is not None and self._known is not None:
            ready = await self._events(self._watch, self._known)
            if not ready or self._known.status.state in _ENDS:
                self._watch = None
        return ready

    async def aclose(self) -> None:
        self._watch, self._ready = None, ()

    async def _events(self, watch: Watch, known: Task) -> Sequence[StreamResponse]:
        """The next events; none if there were none for as long as they are waited for."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._pace.waiting if known.status.state in INTERRUPTED else None
        try:
            async with asyncio.timeout_at(end):
                while True:
                    task = await watch.look()
                    if is_older(task, known):
                        continue
                    if events := differences(known, task):
                        if task.status.state is not known.status.state or task.artifacts != known.artifacts:
                            watch.hurry()
                        self._known = task
                        return events
                    known = task
        except TimeoutError:
            return ()


def follow(
    questions: Questions, ctx: Context, shown: Task, known: Task | None = None, *, ends: bool = True
) -> Followed:
    """The stream of a task that begins with ``shown``. ``known``: what is known of it, if that is more. ``ends``:
    whether a task that is at rest already ends it; else it is waited for it to go on."""
    known = known or shown
    over = known.status.state in (_ENDS if ends else TERMINAL)
    watch = None if over else questions.watch(shown.id, ctx, LATEST)
    return Followed(watch, StreamResponse(task=shown), None if over else known, questions.pace)
