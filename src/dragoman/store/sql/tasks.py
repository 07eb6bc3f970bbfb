"""Tasks and webhook configs in a database.

Rules of this module:

- A task is kept as the JSON that 1.0 has for it; the columns beside it are what tasks are found by.
- What is done to one task happens in the order in which it was asked for, whatever the database's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from ...model import TERMINAL, Task, TaskPushNotificationConfig
from ..base import Owner, Store, TaskPage, TaskQuery, Webhook
from .database import Database
from .pruning import Pruning
from .texts import written

_encode = msgspec.json.Encoder().encode
_task = msgspec.json.Decoder(Task).decode
_config = msgspec.json.Decoder(TaskPushNotificationConfig).decode

#: Tenant, owner and task as they are written.
Key: TypeAlias = tuple[str, str, str]

_GET = "SELECT snapshot FROM dragoman_tasks WHERE tenant = $1 AND owner = $2 AND id = $3"
_SAVE = """
INSERT INTO dragoman_tasks (tenant, owner, id, context_id, state, stamp, ended, saved, snapshot)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (tenant, owner, id) DO UPDATE SET context_id = excluded.context_id, state = excluded.state,
  stamp = excluded.stamp, ended = excluded.ended, saved = excluded.saved, snapshot = excluded.snapshot
"""
_DELETE = "DELETE FROM dragoman_tasks WHERE tenant = $1 AND owner = $2 AND id = $3"
_CONFIGS = """
SELECT config, version FROM dragoman_webhooks WHERE tenant = $1 AND owner = $2 AND task_id = $3 ORDER BY sequence
"""
_SAVE_CONFIG = """
INSERT INTO dragoman_webhooks (tenant, owner, task_id, id, version, saved, config) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (tenant, owner, task_id, id) DO UPDATE SET version = excluded.version, saved = excluded.saved,
  config = excluded.config
"""
_DELETE_CONFIG = "DELETE FROM dragoman_webhooks WHERE tenant = $1 AND owner = $2 AND task_id = $3 AND id = $4"
_DELETE_CONFIGS = "DELETE FROM dragoman_webhooks WHERE tenant = $1 AND owner = $2 AND task_id = $3"


class SqlStore(Store):
    """Keeps tasks in a database that was opened and has its tables.

    ``retention``: seconds that a task is kept after it was last saved, default for ever. ``limit``: how many tasks
    are kept in all, default any number; above it the terminal task that was saved the longest time ago goes, and any
    other only when none is terminal. Both are seen to while tasks are saved, now and then, so a few more may be there.
    ``closing``: the database is closed with the store. ``clock``: seconds of the epoch.
    """

    def __init__(
        self,
        database: Database,
        *,
        retention: float | None = None,
        limit: int | None = None,
        closing: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database = database
        self._pruning = Pruning(database, retention=retention, limit=limit, clock=clock)
        self._closing = closing
        self._clock = clock
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    async def get(self, owner: Owner, task_id: str) -> Task | None:
        rows = await self._database.fetch(_GET, *_key(owner, task_id))
        return _task(rows[0][0]) if rows else None

    async def save(self, owner: Owner, task: Task) -> None:
        key = _key(owner, task.id)
        status = task.status
        async with self._turn(key):
            await self._database.execute(
                _SAVE,
                *key,
                written(task.context_id),
                status.state.value,
                status.timestamp or "",
                int(status.state in TERMINAL),
                self._clock(),
                _encode(task),
            )
        self._pruning.saved()

    async def delete(self, owner: Owner, task_id: str) -> None:
        key = _key(owner, task_id)
        async with self._turn(key), self._database.transaction() as session:
            await session.execute(_DELETE_CONFIGS, *key)
            await session.execute(_DELETE, *key)

    async def list(self, owner: Owner, query: TaskQuery) -> TaskPage:
        statements = _listing(*map(bool, (query.context_id, query.state, query.since)), query.after is not None)
        args: list[object] = [*map(written, owner)]
        args += [written(query.context_id)] if query.context_id else []
        args += [query.state.value] if query.state else []
        args += [query.since] if query.since else []
        after = [query.after.timestamp, written(query.after.task_id)] if query.after else []
        rows = await self._database.fetch(statements.page, *args, *after, query.limit + 1)
        more = len(rows) > query.limit
        total = len(rows)
        if more or after:
            [(total,)] = await self._database.fetch(statements.total, *args)
        return TaskPage(tuple(_task(row[0]) for row in rows[: query.limit]), total, more)

    async def save_config(self, owner: Owner, webhook: Webhook) -> None:
        config, version = webhook
        key = _key(owner, config.task_id)
        async with self._turn(key):
            await self._database.execute(
                _SAVE_CONFIG, *key, written(config.id), version, self._clock(), _encode(config)
            )

    async def configs(self, owner: Owner, task_id: str) -> tuple[Webhook, ...]:
        rows = await self._database.fetch(_CONFIGS, *_key(owner, task_id))
        return tuple(Webhook(_config(config), version) for config, version in rows)

    async def delete_config(self, owner: Owner, task_id: str, config_id: str) -> None:
        key = _key(owner, task_id)
        async with self._turn(key):
            await self._database.execute(_DELETE_CONFIG, *key, written(config_id))

    async def settled(self) -> None:
        """Wait until what earlier saves have made superfluous is gone."""
        await self._pruning.settled()

    async def aclose(self) -> None:
        await self._pruning.settled()
        if self._closing:
            await self._database.aclose()

    def _turn(self, key: Key) -> asyncio.Lock:
        """A lock that is there while somebody has it or waits for it."""
        lock = self._turns.get(key)
        if lock is None:
            lock = self._turns[key] = asyncio.Lock()
        return lock


class _Listing(NamedTuple):
    page: str
    total: str


@cache
def _listing(context: bool, state: bool, since: bool, after: bool) -> _Listing:
    """The statements of a list with these filters, which take their parameters in this order, then the limit."""
    wanted = ["tenant = ${}", "owner = ${}"]
    wanted += ["context_id = ${}"] if context else []
    wanted += ["state = ${}"] if state else []
    wanted += ["stamp >= ${}"] if since else []
    where = " AND ".join(condition.format(number) for number, condition in enumerate(wanted, 1))
    total = f"SELECT COUNT(*) FROM dragoman_tasks WHERE {where}"
    number = len(wanted) + 1
    if after:
        where += f" AND stamp <= ${number} AND (stamp < ${number} OR id > ${number + 1})"
        number += 2
    page = f"SELECT snapshot FROM dragoman_tasks WHERE {where} ORDER BY stamp DESC, id LIMIT ${number}"
    return _Listing(page, total)


def _key(owner: Owner, task_id: str) -> Key:
    tenant, name = owner
    return written(tenant), written(name), written(task_id)
