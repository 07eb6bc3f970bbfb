"""What is still to be told to webhooks: a line for each, and the lines of one task.

Rules of this module:

- Events stand in their order. Nothing is left out but what a whole task behind it says too.
- A whole task never shows a state that nobody was told of yet: a settled one is stored first.
- Putting an event on a line takes no time; a task that goes out whole is put together when its turn comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from ..model import StreamResponse, TaskPushNotificationConfig, TaskStatus
from ..store.base import Webhook
from .lifecycle import Draft
from .notice import Form

#: Awaited when a webhook has served its purpose.
Forget: TypeAlias = Callable[[], Awaitable[None]]


class Line:
    """One webhook of one task and what it is still to be told; ``None`` in the queue is the task when its turn comes.

    ``failures``: attempts in a row that failed. ``behind``: something was given up, so the whole task comes next.
    """

    __slots__ = ("_draft", "_status", "behind", "failures", "forget", "form", "queue", "webhook", "worker")

    def __init__(self, webhook: Webhook, form: Form, forget: Forget) -> None:
        self.webhook = webhook
        self.form = form
        self.forget = forget
        self.queue: deque[StreamResponse | None] = deque()
        self.failures = 0
        self.behind = False
        self.worker: asyncio.Task[None] | None = None
        self._draft: Draft | None = None
        self._status: TaskStatus | None = None

    @property
    def config(self) -> TaskPushNotificationConfig:
        return self.webhook.config

    def add(self, event: StreamResponse, draft: Draft) -> None:
        """Put an event behind the others. Webhooks that get the task are told of artifacts once, when their turn
        comes, or with the next status."""
        self.see(draft)
        if not self.form.whole:
            self.queue.append(event)
            return
        if self.queue and self.queue[-1] is None:
            self.queue.pop()
        self.queue.append(None if event.artifact_update is not None else self.whole())

    def see(self, draft: Draft) -> None:
        """Note how the task is at an event."""
        self._draft = draft
        self._status = draft.status

    def succeed(self, known: Line) -> None:
        """Take over from a line that had something left to deliver."""
        self._draft, self._status = known._draft, known._status
        self.queue.append(self.whole())

    def whole(self) -> StreamResponse:
        """The task as it is, but in no state that nobody was told of yet."""
        assert self._draft is not None and self._status is not None
        task = self._draft.snapshot()
        return StreamResponse(task=task if task.status is self._status else replace(task, status=self._status))

    def collapse(self) -> int:
        """Replace what is queued by the whole task; returns how many events that leaves out."""
        left_out = len(self.queue) - 1
        self.queue.clear()
        self.queue.append(self.whole())
        return left_out

    def take(self) -> StreamResponse:
        """The next notification."""
        event = self.queue.popleft()
        return self.whole() if event is None else event


class Lines:
    """The webhooks of one task. ``resting``: the task is, so lines are dropped when they have nothing to deliver.

    ``start``: sees to it that a line is delivered.
    """

    __slots__ = ("_start", "by_id", "resting")

    def __init__(self, start: Callable[[Line], None]) -> None:
        self._start = start
        self.by_id: dict[str, Line] = {}
        self.resting = False

    @property
    def idle(self) -> bool:
        """Whether nothing is to be delivered."""
        return all(line.worker is None and not line.queue for line in self.by_id.values())

    def tell(self, event: StreamResponse, draft: Draft) -> None:
        """Put an event of the task on every line."""
        for line in self.by_id.values():
            line.add(event, draft)
            self._start(line)
