"""Every run of an engine, and the way to a task wherever it is: at work here, or at rest in the store.

Rules of this module:

- A run is in ``Runs.live`` as long as its handler runs, somebody waits, or somebody watches. After that the store
  has all there is, and a task at rest costs nothing else.
- A task of another owner is not found, wherever it is (1.0 §13.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from ..errors import TaskNotFoundError, UnavailableError
from ..model import Task, TaskState
from ..store.base import Owner, Store, Webhook
from .agent import Agent
from .lifecycle import Draft
from .lines import Lines
from .push import Courier
from .run import Run
from .stamps import Clock, new_id


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much an engine waits and holds; times in seconds.

    ``cancel_wait``: how long CancelTask waits for the handler to stop. ``interrupted``: how long a stream of a task
    that waits for somebody stays open without an event. ``queue``: events held for one reader before the agent waits
    for it. ``patience``: how long one reader may hold up the agent in all. ``shutdown``: how long closing waits for
    handlers that were told to stop.
    """

    cancel_wait: float = 2.0
    interrupted: float = 300.0
    queue: int = 256
    patience: float = 10.0
    shutdown: float = 5.0


class Runs:
    """Every run of an engine, and the way to a task wherever it is."""

    def __init__(
        self, agent: Agent, store: Store, limits: Limits, clock: Clock, courier: Courier | None = None
    ) -> None:
        self.agent = agent
        self.store = store
        self.limits = limits
        self.clock = clock
        self.courier = courier
        #: The webhooks to tell of each task; empty as long as there are none, which is one cheap look on each event.
        self.webhooks: Mapping[str, Lines] = {} if courier is None else courier.tasks
        self.live: dict[str, Run] = {}
        self.closed = False

    def new(self, owner: Owner, context_id: str) -> Run:
        """A run for a task that may come to be."""
        if self.closed:
            raise UnavailableError("The agent is shutting down")
        return Run(runs=self, owner=owner, id=new_id(), context_id=context_id or new_id())

    async def find(self, owner: Owner, task_id: str) -> tuple[Run, Draft]:
        """The run of a task, at work or at rest, and the task. Raises ``TaskNotFoundError``."""
        run = self.live.get(task_id)
        if run is None:
            task = await self.store.get(owner, task_id)
            run = self.live.get(task_id)  # somebody may have been faster
            if run is None and task is not None:
                draft = Draft.of(task)
                run = Run(runs=self, owner=owner, id=task.id, context_id=task.context_id, draft=draft)
        if run is None or run.draft is None or run.owner != owner:
            raise not_found(task_id)
        return run, run.draft

    async def task(self, owner: Owner, task_id: str) -> Task:
        """The task as it is. Raises ``TaskNotFoundError``."""
        run = self.live.get(task_id)
        if run is not None and run.draft is not None and run.owner == owner:
            return run.draft.snapshot()
        task = await self.store.get(owner, task_id)
        if task is None:
            raise not_found(task_id)
        return task

    def follow(self, owner: Owner, webhook: Webhook, draft: Draft | None = None) -> None:
        """Deliver to a stored webhook, beginning with the whole task if a draft is given."""
        if self.courier is not None:
            config = webhook.config
            forget = partial(self.store.delete_config, owner, config.task_id, config.id)
            self.courier.follow(webhook, forget, draft)

    async def wake(self, owner: Owner, task_id: str) -> None:
        """Deliver to all stored webhooks of a task that was at rest."""
        if self.courier is not None:
            for webhook in await self.store.configs(owner, task_id):
                self.follow(owner, webhook)

    def rest(self, task_id: str) -> None:
        """Nothing more happens to the task for now, so its webhooks need not be held."""
        if self.courier is not None and task_id not in self.live:
            self.courier.rest(task_id)

    async def flush(self, owner: Owner) -> None:
        """Store what changed since it was last stored, so that it is listed."""
        for run in list(self.live.values()):
            if run.dirty and run.draft is not None and run.owner == owner:
                run.dirty = False
                await self.store.save(owner, run.draft.snapshot())

    def release(self, run: Run) -> None:
        """Forget the run if nothing happens in it any more."""
        if run.idle:
            self.live.pop(run.id, None)
            if self.webhooks:
                self.rest(run.id)

    async def aclose(self) -> None:
        """Stop every handler, wait for them a little, and end every stream and every wait."""
        self.closed = True
        handlers = [handler for run in self.live.values() if (handler := run.stop(TaskState.FAILED)) is not None]
        if handlers:
            await asyncio.wait(handlers, timeout=self.limits.shutdown)
        for run in list(self.live.values()):
            run.close()


def not_found(task_id: str) -> TaskNotFoundError:
    """What a caller hears of a task that is not, or not theirs."""
    return TaskNotFoundError(metadata={"taskId": task_id})
