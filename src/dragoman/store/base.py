"""What the runtime asks of a place that keeps tasks and webhook configs.

Rules of this module:

- Everything is kept per *owner*: the tenant and the name of the caller. What one owner stores no other can read,
  count or delete, and asking for it looks like asking for something that never was (1.0 §13.1).
- A store keeps whole, finished snapshots. It knows neither runs nor subscribers.
- Tasks are listed by status timestamp, newest first, then by id; those without a timestamp come last (1.0 §3.1.4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ..model import Task, TaskPushNotificationConfig, TaskState
from ..protocol.operations import Version

#: Tenant and caller name; both may be empty.
Owner: TypeAlias = tuple[str, str]


class Webhook(NamedTuple):
    """A webhook config, which has its ``task_id`` and ``id``, and the version that it was registered in."""

    config: TaskPushNotificationConfig
    version: Version = "1.0"


class Cursor(NamedTuple):
    """Where a page ended: status timestamp (empty if it had none) and id of its last task."""

    timestamp: str
    task_id: str


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks to list; the filters hold together.

    ``context_id``, ``state``, ``since`` (canonical timestamp, inclusive) filter unless empty. ``after``: only what
    comes behind this cursor. ``limit``: at most that many tasks.
    """

    context_id: str = ""
    state: TaskState | None = None
    since: str = ""
    after: Cursor | None = None
    limit: int = 50


class TaskPage(NamedTuple):
    """``tasks`` of one page, ``total`` that match whatever the cursor, and whether ``more`` follow this page."""

    tasks: tuple[Task, ...]
    total: int
    more: bool


class Store(ABC):
    """Keeps tasks and webhook configs. Every method may raise ``UnavailableError`` for a failure that may pass."""

    @abstractmethod
    async def get(self, owner: Owner, task_id: str) -> Task | None:
        """The task, or None if this owner has none of that id."""

    @abstractmethod
    async def save(self, owner: Owner, task: Task) -> None:
        """Keep the task, in place of what was kept under its id."""

    @abstractmethod
    async def delete(self, owner: Owner, task_id: str) -> None:
        """Forget the task and its webhook configs; nothing happens if there is no such task."""

    @abstractmethod
    async def list(self, owner: Owner, query: TaskQuery) -> TaskPage:
        """One page of the owner's tasks."""

    @abstractmethod
    async def save_config(self, owner: Owner, webhook: Webhook) -> None:
        """Keep a webhook config in place of the one of its id."""

    @abstractmethod
    async def configs(self, owner: Owner, task_id: str) -> tuple[Webhook, ...]:
        """The webhook configs of a task in the order of their creation."""

    @abstractmethod
    async def delete_config(self, owner: Owner, task_id: str, config_id: str) -> None:
        """Forget a webhook config; nothing happens if there is none."""

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of files and connections."""
