"""The half of an outbox that is served: who has which line, and what came of it.

Rules of this module:

- A line is served by whoever claimed it, until then or until the time of the claim is over. What was put on the line
  meanwhile stays the line's.
- When a line is due stands beside it. It is told again after the line's row was locked, by a statement that begins
  then and sees what was put on the line before.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ..outbox import Claim, Delivery, Registration, Settled
from .database import Database, Row, Session
from .watches import TASK_ID, each, task_id_of

_registration = msgspec.json.Decoder(Registration).decode

_DUE = "SELECT id FROM dragoman_registrations WHERE due <= $1 AND until < $1 ORDER BY due LIMIT $2"
_TAKE = "UPDATE dragoman_registrations SET holder = $2, claim = $3, until = $4 WHERE id = $1"
_CLAIMED = f"""
SELECT r.id, r.record, {TASK_ID}, r.failures, d.id, d.body, d.last, d.attempts
FROM dragoman_registrations r JOIN dragoman_watches w ON w.id = r.watch_id
JOIN (SELECT e.id, e.registration_id, e.body, e.last, e.attempts,
    ROW_NUMBER() OVER (PARTITION BY e.registration_id ORDER BY e.id) AS place
  FROM dragoman_deliveries e JOIN dragoman_registrations q ON q.id = e.registration_id
  WHERE q.claim = $1 AND e.dead = 0) d ON d.registration_id = r.id AND d.place <= $2
WHERE r.claim = $1 ORDER BY r.due, r.id, d.id
"""
_TAKEN = "UPDATE dragoman_registrations SET taken = $2 WHERE id = $1"
_DELIVERED = "DELETE FROM dragoman_deliveries WHERE id = $1"
_FAILED = "UPDATE dragoman_deliveries SET attempts = attempts + 1, status = $2 WHERE id = $1"
_DIED = (
    "UPDATE dragoman_deliveries SET attempts = attempts + 1, status = $2, dead = 1, died = $3, part = 0 WHERE id = $1"
)
_GONE = "DELETE FROM dragoman_registrations WHERE id = $1"
_RELEASE = """
UPDATE dragoman_registrations SET holder = '', claim = '', until = 0, taken = 0, failures = $3
WHERE id = $1 AND holder = $2
"""
_END = "UPDATE dragoman_registrations SET ended = 1 WHERE id = $1"
DUE_AGAIN = """
UPDATE dragoman_registrations SET due = CASE WHEN EXISTS
  (SELECT 1 FROM dragoman_deliveries d WHERE d.registration_id = $1 AND d.dead = 0) THEN CAST($2 AS DOUBLE PRECISION)
  END
WHERE id = $1 AND holder = ''
"""
SPENT = """
DELETE FROM dragoman_registrations WHERE id = $1 AND ended = 1 AND NOT EXISTS
  (SELECT 1 FROM dragoman_deliveries d WHERE d.registration_id = $1)
"""
_EXTEND = "UPDATE dragoman_registrations SET until = $2 WHERE holder = $1"
_FREE_HOLDER = """
UPDATE dragoman_registrations SET holder = '', claim = '', until = 0, taken = 0 WHERE holder = $1
"""
_FREE_ALL = "UPDATE dragoman_registrations SET holder = '', claim = '', until = 0, taken = 0 WHERE holder <> ''"
_NEARER = "UPDATE dragoman_registrations SET due = $1 WHERE due > $1"
_SHORTER = "UPDATE dragoman_registrations SET until = $1 WHERE holder <> '' AND until > $1"
_NEXT = "SELECT MIN(CASE WHEN until > due THEN until ELSE due END) FROM dragoman_registrations WHERE due IS NOT NULL"


class Lines:
    """Lines in a database. ``clock``: seconds of the epoch."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def claim(self, holder: str, until: float, *, lines: int, each: int) -> tuple[Claim, ...]:
        """Take at most so many lines that are due, with at most ``each`` deliveries of each, until that time."""
        claim, now = secrets.token_hex(8), self._clock()
        async with self._database.transaction() as session:
            rows = await session.fetch(_DUE + self._database.locking, now, lines)
            if not rows:
                return ()
            await session.execute_many(_TAKE, [(id, holder, claim, until) for (id,) in rows])
            found = await session.fetch(_CLAIMED, claim, each)
            claims = _claims(found)
            await session.execute_many(_TAKEN, [(one.registration.id, one.deliveries[-1].id) for one in claims])
            empty = {id for (id,) in rows} - {one.registration.id for one in claims}
            await self._released(session, holder, [Settled(registration_id=id) for id in sorted(empty)], now)
            return claims

    async def settle(self, holder: str, settled: Iterable[Settled], delivered: Iterable[int] = ()) -> None:
        """Put down what came of claims, and give the lines back. ``delivered``: ids of what was acknowledged on lines
        that are not given back yet."""
        ordered, now = sorted(settled, key=lambda one: one.registration_id), self._clock()
        done = sorted({*delivered, *(id for one in ordered for id in one.delivered)})
        outcomes = (
            (_DELIVERED, [(id,) for id in done]),
            (_FAILED, [(one.failed, one.status) for one in ordered if one.failed and not one.dead]),
            (_DIED, [(one.failed, one.status, now) for one in ordered if one.dead]),
            (_GONE, [(one.registration_id,) for one in ordered if one.gone]),
        )
        async with self._database.transaction() as session:
            await self._released(session, holder, ordered, now, outcomes)

    async def _released(
        self,
        session: Session,
        holder: str,
        settled: Sequence[Settled],
        now: float,
        outcomes: Iterable[tuple[str, Sequence[tuple[Any, ...]]]] = (),
    ) -> None:
        ended = [(one.registration_id,) for one in settled if one.ended]
        await each(session, _RELEASE, [(one.registration_id, holder, one.failures) for one in settled])
        for sql, rows in outcomes:
            await each(session, sql, rows)
        await each(session, _END, ended)
        await each(session, DUE_AGAIN, [(one.registration_id, now if one.due is None else one.due) for one in settled])
        await each(session, SPENT, ended)

    async def extend(self, holder: str, until: float) -> None:
        """Keep what was claimed until that time."""
        await self._database.execute(_EXTEND, holder, until)

    async def release(self, holder: str = "") -> None:
        """Give back what ``holder`` has claimed; what anybody has, if it is empty."""
        if holder:
            await self._database.execute(_FREE_HOLDER, holder)
        else:
            await self._database.execute(_FREE_ALL)

    async def bring_near(self, *, due: float, until: float) -> int:
        """Have no line wait beyond ``due``, and none claimed beyond ``until`` (seconds of the epoch): a clock that was
        put back leaves such times behind. Returns how many there were."""
        nearer = await self._database.execute(_NEARER, due)
        return nearer + await self._database.execute(_SHORTER, until)

    async def next_due(self) -> float | None:
        """When the next line can be claimed, as far as is known; None if nothing waits."""
        [(due,)] = await self._database.fetch(_NEXT)
        return None if due is None else float(due)


def _claims(rows: Iterable[Row]) -> tuple[Claim, ...]:
    found: dict[str, Claim] = {}
    several: dict[str, list[Delivery]] = {}
    for line, record, task_id, watch, failures, id, body, last, attempts in rows:
        if line not in found:
            found[line] = Claim(_registration(record), task_id_of(task_id, watch), failures, ())
            several[line] = []
        several[line].append(Delivery(id, bytes(body), bool(last), attempts))
    return tuple(claim._replace(deliveries=tuple(several[line])) for line, claim in found.items())
