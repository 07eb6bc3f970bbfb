"""Delivery of events to webhooks, in memory: queues, retries and an end.

Rules of this module:

- Telling is cheap and never waits: the event is put on the line of each webhook of its task. Bodies are made and
  posted in asyncio tasks of their own, so that a slow webhook slows nobody else.
- A line is one webhook of one task. It has one notification on its way at a time, in the order of the events, each
  until it is acknowledged or its tries are used up: at least once, and again after a failure with growing waits.
- Nothing gets lost in silence. A line that is full, and one that gave up on a notification, goes on with the whole
  task in place of the events that it did not deliver; both are counted and logged.
- The line ends, and the webhook is forgotten, after the event that makes its task final was acknowledged or given up.
- Lines that have nothing to deliver are dropped when the engine puts their task to rest; the store has the webhooks.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from ..model import StreamResponse, TaskPushNotificationConfig
from ..security.guard import Guard
from ..store.base import Webhook
from .lifecycle import Draft
from .lines import Forget, Line, Lines
from .notice import FORMS, GONE, Forms, Retry, acknowledged, headers, is_last
from .webhooks import Post, admit, attempted

log = logging.getLogger("dragoman.push")


@dataclass(frozen=True, slots=True)
class PushLimits:
    """``timeout``: seconds for one attempt (1.0 §4.3.3 wants 10 to 30). ``queue``: events held for one webhook.
    ``in_flight``: attempts at a time in all. ``admission``: seconds to look up the host of a new webhook. ``drain``:
    seconds that closing waits for what is queued."""

    timeout: float = 15.0
    queue: int = 256
    in_flight: int = 256
    admission: float = 2.0
    drain: float = 5.0


@dataclass(slots=True)
class Counts:
    """``delivered``: notifications acknowledged. ``retried``: attempts that will be repeated. ``coalesced``: events
    that went out as part of a whole task. ``dead``: notifications given up."""

    delivered: int = 0
    retried: int = 0
    coalesced: int = 0
    dead: int = 0


class Courier:
    """Delivers the events of tasks to their webhooks.

    ``post``: how. ``guard``: judges the URL of a new webhook, None takes any; a real ``post`` judges again when it
    dials. ``forms``: what webhooks of each version get. ``sleep`` and ``chance`` (a number from 0 to 1) are for tests.
    """

    def __init__(
        self,
        post: Post,
        guard: Guard | None = None,
        *,
        retry: Retry = Retry(),  # noqa: B008 - frozen
        limits: PushLimits = PushLimits(),
        forms: Forms = FORMS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        #: The webhooks of each task that is at work or has something to deliver; empty as long as there are none.
        self.tasks: dict[str, Lines] = {}
        self.counts = Counts()
        self._post = post
        self._guard = guard
        self._retry = retry
        self._limits = limits
        self._forms = forms
        self._sleep = sleep
        self._chance = chance
        self._slots = asyncio.Semaphore(limits.in_flight)
        self._workers: set[asyncio.Task[None]] = set()
        self._closed = False

    # -- what the engine asks for ------------------------------------------------------------------------------

    async def admit(self, config: TaskPushNotificationConfig) -> None:
        """Judge a new webhook. Raises ``InvalidParamsError`` for a URL that may not be called or a secret that cannot
        be sent. A host that cannot be found now passes: every delivery looks again.
        """
        await admit(config, self._guard, self._limits.admission)

    def follow(self, webhook: Webhook, forget: Forget, draft: Draft | None = None) -> None:
        """Deliver to this webhook from now on, beginning with the whole task if a draft is given.

        One of the same id is replaced, and what it was not told yet becomes the whole task. ``forget`` is awaited
        when the webhook has served its purpose.
        """
        lines = self.tasks.setdefault(webhook.config.task_id, Lines(self.start))
        lines.resting = False
        known = lines.by_id.get(webhook.config.id)
        if known is not None and known.webhook == webhook:
            return
        line = lines.by_id[webhook.config.id] = Line(webhook, self._forms[webhook.version], forget)
        if draft is not None:
            line.see(draft)
            line.queue.append(line.whole())
        elif known is not None and known.worker is not None:
            line.succeed(known)
        if known is not None and known.worker is not None:
            known.worker.cancel()
        self.start(line)

    def forget(self, task_id: str, config_id: str) -> None:
        """Deliver nothing more to this webhook."""
        lines = self.tasks.get(task_id)
        line = lines.by_id.get(config_id) if lines is not None else None
        if line is not None:
            self._drop(line)
            if line.worker is not None:
                line.worker.cancel()

    def rest(self, task_id: str) -> None:
        """Nothing more comes from this task for now."""
        lines = self.tasks.get(task_id)
        if lines is not None:
            lines.resting = True
            self._drop_idle(task_id)

    def start(self, line: Line) -> None:
        """Deliver what is on a line, unless that is being done."""
        if len(line.queue) > self._limits.queue:
            self.counts.coalesced += line.collapse()
            log.warning("Webhook %s is too slow: it gets the whole task instead of events", _name(line))
        if line.queue and line.worker is None and not self._closed:
            line.worker = asyncio.get_running_loop().create_task(self._work(line))
            self._workers.add(line.worker)
            line.worker.add_done_callback(self._workers.discard)

    async def aclose(self) -> None:
        """Deliver what is queued as far as that takes no longer than ``limits.drain``, then stop."""
        if self._workers:
            await asyncio.wait(self._workers, timeout=self._limits.drain)
        self._closed = True
        left = tuple(self._workers)
        lost = len(left) + sum(len(line.queue) for lines in self.tasks.values() for line in lines.by_id.values())
        for worker in left:
            worker.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        if lost:
            self.counts.dead += lost
            log.warning("%d notifications were not delivered before closing", lost)
        self.tasks.clear()
        await self._post.aclose()

    # -- the work ----------------------------------------------------------------------------------------------

    async def _work(self, line: Line) -> None:
        try:
            while line.queue:
                if line.behind:
                    self.counts.coalesced += line.collapse()
                event = line.take()
                if await self._surely(line, event) or is_last(event):
                    await self._end(line)
        finally:
            line.worker = None
            self._drop_idle(line.config.task_id)

    async def _surely(self, line: Line, event: StreamResponse) -> bool:
        """As :meth:`_deliver`; what we did wrong ourselves counts as given up."""
        try:
            return await self._deliver(line, event)
        except Exception:
            log.exception("A notification to webhook %s failed", _name(line))
            line.behind = True
            self.counts.dead += 1
            return False

    async def _deliver(self, line: Line, event: StreamResponse) -> bool:
        """Try until it is acknowledged or given up; returns whether the webhook is gone."""
        body = line.form.dump(event)
        fields = headers(line.config, line.form.media)
        status = 0
        for tries in range(1, self._retry.tries + 1):
            if line.failures:
                await self._sleep(self._retry.delay(line.failures, self._chance()))
            status = await self._attempt(line, fields, body)
            if acknowledged(status):
                line.failures, line.behind = 0, False
                self.counts.delivered += 1
                return False
            line.failures += 1
            if status == GONE:
                break
            if tries < self._retry.tries:
                self.counts.retried += 1
        self._give_up(line, status)
        return status == GONE

    async def _attempt(self, line: Line, fields: Mapping[str, str], body: bytes) -> int:
        """The status of one attempt, 0 if there was no answer."""
        async with self._slots:
            post = self._post.post(line.config.url, fields, body)
            return await attempted(post, self._limits.timeout, _name(line)) or 0

    def _give_up(self, line: Line, status: int) -> None:
        line.behind = True
        self.counts.dead += 1
        log.warning(
            "Webhook %s did not take a notification (%s), given up", _name(line), f"status {status}" if status else "-"
        )

    async def _end(self, line: Line) -> None:
        """The webhook has served its purpose, or is gone."""
        self.counts.dead += len(line.queue)
        line.queue.clear()
        self._drop(line)
        try:
            await line.forget()
        except Exception:
            log.exception("Webhook %s could not be forgotten", _name(line))

    # -- details -----------------------------------------------------------------------------------------------

    def _drop(self, line: Line) -> None:
        lines = self.tasks.get(line.config.task_id)
        if lines is not None and lines.by_id.get(line.config.id) is line:
            del lines.by_id[line.config.id]
            if not lines.by_id:
                del self.tasks[line.config.task_id]

    def _drop_idle(self, task_id: str) -> None:
        lines = self.tasks.get(task_id)
        if lines is not None and lines.resting and lines.idle:
            del self.tasks[task_id]


def _name(line: Line) -> str:
    """A webhook in the log, where neither its URL nor its token belong."""
    return f"{line.config.id} of task {line.config.task_id}"


def http_courier(guard: Guard | None = None, *, bare_events: bool = False) -> Courier:
    """A courier over HTTP. ``bare_events``: webhooks of 0.3 get the event instead of the task.

    Raises ``ConfigError`` if pyreqwest is missing.
    """
    from .notice import BARE_FORMS
    from .post import HttpPost

    guard = guard or Guard()
    return Courier(HttpPost(guard), guard, forms=BARE_FORMS if bare_events else FORMS)
