"""Webhooks and their deliveries in a database, from which several gateways may serve them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from ..outbox import Listed, Registration, Stock
from .database import Database, Row
from .lines import DUE_AGAIN, SPENT, Lines
from .texts import written
from .watches import TASK_ID, Watches, task_id_of

_registration = msgspec.json.Decoder(Registration).decode

_LISTED = f"""
SELECT d.id, w.agent, {TASK_ID}, r.record, d.dead, d.attempts, d.status,
  CASE WHEN d.dead = 1 THEN d.died ELSE r.due END, d.created
FROM dragoman_deliveries d JOIN dragoman_registrations r ON r.id = d.registration_id
JOIN dragoman_watches w ON w.id = r.watch_id
WHERE ($1 = '' OR w.agent = $1) AND ($2 = '' OR w.task_id = $2) AND d.dead >= $3 AND d.id > $4 ORDER BY d.id LIMIT $5
"""
_DEAD = """
SELECT d.id FROM dragoman_deliveries d JOIN dragoman_registrations r ON r.id = d.registration_id
JOIN dragoman_watches w ON w.id = r.watch_id
WHERE d.dead = 1 AND ($1 = '' OR w.agent = $1) AND ($2 = '' OR w.task_id = $2) ORDER BY d.id
"""
_REVIVE = """
UPDATE dragoman_deliveries SET dead = 0, attempts = 0, died = 0 WHERE id = $1 AND dead = 1 RETURNING registration_id
"""
_AT_ONCE = "UPDATE dragoman_registrations SET due = $2, failures = 0 WHERE id = $1"
_DISCARD = "DELETE FROM dragoman_deliveries WHERE id = $1 RETURNING registration_id"
_STOCK = """
SELECT (SELECT COUNT(*) FROM dragoman_registrations WHERE ended = 0),
  (SELECT COUNT(*) FROM dragoman_deliveries WHERE dead = 0), (SELECT COUNT(*) FROM dragoman_deliveries WHERE dead = 1)
"""
_OLD_DEAD = "DELETE FROM dragoman_deliveries WHERE dead = 1 AND died < $1"
_SPENT_ALL = """
DELETE FROM dragoman_registrations WHERE ended = 1 AND NOT EXISTS
  (SELECT 1 FROM dragoman_deliveries d WHERE d.registration_id = dragoman_registrations.id)
"""
_OLD_WATCHES = """
DELETE FROM dragoman_watches WHERE ended >= $1 AND touched < $2 AND NOT EXISTS
  (SELECT 1 FROM dragoman_registrations r JOIN dragoman_deliveries d ON d.registration_id = r.id
  WHERE r.watch_id = dragoman_watches.id)
"""


class Outbox(Watches, Lines):
    """Keeps webhooks, and what they are to be told, in a database that was opened and has its tables.

    Every method may raise ``UnavailableError`` for a failure that may pass. ``shared``: whether other gateways may
    serve from it too. ``clock``: seconds of the epoch; those of gateways that share a database should agree within
    seconds.
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        Watches.__init__(self, database, clock)
        Lines.__init__(self, database, clock)
        self.shared = database.engine != "sqlite"

    async def listed(
        self, *, agent: str = "", task_id: str = "", dead: bool = False, after: int = 0, limit: int = 1000
    ) -> tuple[Listed, ...]:
        """Deliveries behind that id, of one agent and task or of all, ``dead``: only those that were given up."""
        rows = await self._database.fetch(_LISTED, agent, written(task_id), int(dead), after, limit)
        return tuple(map(_listed, rows))

    async def dead(self, *, agent: str = "", task_id: str = "") -> tuple[int, ...]:
        """Ids of those that were given up."""
        return tuple(id for (id,) in await self._database.fetch(_DEAD, agent, written(task_id)))

    async def replay(self, ids: Iterable[int]) -> int:
        """Have dead deliveries tried again, in the order of their line; returns how many are."""
        return await self._by_id(_REVIVE, ids, again=True)

    async def drop(self, ids: Iterable[int]) -> int:
        """Forget deliveries, dead or not; returns how many. What is being delivered at the moment may still arrive."""
        return await self._by_id(_DISCARD, ids, again=False)

    async def _by_id(self, sql: str, ids: Iterable[int], *, again: bool) -> int:
        done, now = 0, self._clock()
        for id in ids:
            async with self._database.transaction() as session:
                found = await session.fetch(sql, id)
                for (line,) in found:
                    await session.execute(_AT_ONCE if again else DUE_AGAIN, line, now)
                    await session.execute(SPENT, line)
            done += len(found)
        return done

    async def stock(self) -> Stock:
        """How much there is."""
        [row] = await self._database.fetch(_STOCK)
        return Stock(*row)

    async def prune(self, *, dead: float, ended: float, idle: float) -> None:
        """Forget what is over: deliveries that died before ``dead``, ended watches of which nothing was heard since
        ``ended``, and others since ``idle`` (seconds of the epoch); none that has a delivery left, dead or not."""
        await self._database.execute(_OLD_DEAD, dead)
        await self._database.execute(_SPENT_ALL)
        await self._database.execute(_OLD_WATCHES, 1, ended)
        await self._database.execute(_OLD_WATCHES, 0, idle)


def _listed(row: Row) -> Listed:
    id, agent, column, watch, record, dead, attempts, status, due, created = row
    kept, task_id = _registration(record), task_id_of(column, watch)
    return Listed(
        id, agent, task_id, kept.version, bool(dead), attempts, status, due or created, created, kept.config.url
    )
