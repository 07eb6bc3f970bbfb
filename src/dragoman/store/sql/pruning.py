"""Forgetting tasks that are too old or too many, beside the saves.

Where there are too many, those go first whose owner has most: nobody pushes out what others have.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ...errors import UnavailableError
from .database import Database

log = logging.getLogger(__name__)

#: Tasks that go in one transaction.
_CHUNK = 500
#: Saves between two sweeps at most, unless so many seconds have passed.
_SAVES, _SECONDS = 500, 60.0

_TOO_OLD = """
DELETE FROM dragoman_tasks WHERE saved < $1 AND (tenant, owner, id) IN
  (SELECT tenant, owner, id FROM dragoman_tasks WHERE ended IN (0, 1) AND saved < $1 LIMIT $2)
RETURNING tenant, owner, id
"""
_TOO_MANY = """
DELETE FROM dragoman_tasks WHERE (tenant, owner, id) IN
  (SELECT tenant, owner, id FROM dragoman_tasks ORDER BY ended DESC, saved LIMIT $1)
RETURNING tenant, owner, id
"""
_TOO_MANY_OF_ONE = """
DELETE FROM dragoman_tasks WHERE tenant = $1 AND owner = $2 AND id IN
  (SELECT id FROM dragoman_tasks WHERE tenant = $1 AND owner = $2 ORDER BY ended DESC, saved LIMIT $3)
RETURNING tenant, owner, id
"""
_MOST = "SELECT tenant, owner, COUNT(*) AS tasks FROM dragoman_tasks GROUP BY tenant, owner ORDER BY tasks DESC LIMIT 2"
_COUNT = "SELECT COUNT(*) FROM dragoman_tasks"
_CONFIGS = "DELETE FROM dragoman_webhooks WHERE tenant = $1 AND owner = $2 AND task_id = $3"
#: Of tasks that never came.
_ORPHANS = """
DELETE FROM dragoman_webhooks WHERE saved < $1 AND NOT EXISTS (SELECT 1 FROM dragoman_tasks AS task
  WHERE task.tenant = dragoman_webhooks.tenant AND task.owner = dragoman_webhooks.owner
  AND task.id = dragoman_webhooks.task_id)
"""


class Pruning:
    """Sweeps now and then; see :class:`.tasks.SqlStore` for the parameters."""

    def __init__(
        self, database: Database, *, retention: float | None, limit: int | None, clock: Callable[[], float]
    ) -> None:
        if limit is not None and limit < 1:
            raise ValueError("limit must be at least 1")
        if retention is not None and retention <= 0:
            raise ValueError("retention must be above 0")
        self._database = database
        self._retention = retention
        self._limit = limit
        self._clock = clock
        self._every = max(1, min(_SAVES, (limit or _SAVES * 10) // 10))
        self._saves = self._every  # the first save sweeps up what was left behind
        self._next = 0.0
        self._sweeping: asyncio.Task[None] | None = None
        self._needed = retention is not None or limit is not None

    def saved(self) -> None:
        """A task was saved."""
        self._saves += 1
        if self._needed and self._sweeping is None and (self._saves >= self._every or self._clock() >= self._next):
            self._saves, self._next = 0, self._clock() + _SECONDS
            self._sweeping = asyncio.create_task(self._sweep_quietly(), name="dragoman-pruning")

    async def sweep(self) -> None:
        """Forget what is too old or too much, and what belonged to it. Raises ``UnavailableError``."""
        if self._retention is not None:
            horizon = self._clock() - self._retention
            while await self._drop(_TOO_OLD, horizon, _CHUNK) == _CHUNK:
                pass
            await self._database.execute(_ORPHANS, horizon)
        if self._limit is not None:
            [(count,)] = await self._database.fetch(_COUNT)
            excess = count - self._limit
            while excess > 0 and (gone := await self._make_room(excess)):
                excess -= gone

    async def _make_room(self, excess: int) -> int:
        """Drop some of the owner who has most, down to what the next one has; returns how many."""
        [(tenant, owner, most), *others] = await self._database.fetch(_MOST)
        if not others:
            return await self._drop(_TOO_MANY, min(excess, _CHUNK))
        above = max(most - others[0][2], excess // 8, 1)  # steps of some size, where several have as much
        return await self._drop(_TOO_MANY_OF_ONE, tenant, owner, min(excess, _CHUNK, above))

    async def settled(self) -> None:
        """Let the sweep under way come to its end."""
        if self._sweeping is not None:
            await asyncio.wait((self._sweeping,))

    async def _drop(self, sql: str, *args: object) -> int:
        async with self._database.transaction() as session:
            gone = await session.fetch(sql, *args)
            await session.execute_many(_CONFIGS, gone)
        return len(gone)

    async def _sweep_quietly(self) -> None:
        try:
            await self.sweep()
        except UnavailableError:
            log.warning("old tasks could not be swept out of the store; the next sweep will")
        except Exception:
            log.exception("old tasks could not be swept out of the store")
        finally:
            self._sweeping = None
