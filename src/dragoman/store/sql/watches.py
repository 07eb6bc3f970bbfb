"""The half of an outbox that is changed: watches, their registrations, and what is put on their lines.

Rules of this module:

- Whoever changes a watch has its row locked, so that notifications of one task are put down one after the other. Locks
  are taken in one order: watches by their ids, then registrations by theirs.
- Changes that are asked for while others are made are made together, in one transaction: under load each costs a
  fraction of what it costs alone. One that fails to be decided fails alone; where the database refuses the whole, each
  is made by itself, so that one that cannot be made costs nobody else's.
- A line is due from the moment that something is put on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from ...errors import UnavailableError
from ..outbox import Change, Decide, Line, Registration, Scope, State, Tell, Watch
from .database import Database, Session
from .texts import MARK, written

_encode = msgspec.json.Encoder().encode
_watch = msgspec.json.Decoder(Watch).decode
_registration = msgspec.json.Decoder(Registration).decode

#: What :func:`task_id_of` needs of a watch ``w``.
TASK_ID = f"w.task_id, CASE WHEN w.task_id LIKE '%{MARK}%' THEN w.record END"
#: Changes that are made together.
_MOST = 64

_ADD_WATCH = """
INSERT INTO dragoman_watches (id, agent, tenant, owner, task_id, reference, ended, touched, record)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_SAVE_WATCH = "UPDATE dragoman_watches SET task_id = $2, ended = $3, record = $4 WHERE id = $1"
_DELETE_WATCH = "DELETE FROM dragoman_watches WHERE id = $1"
_LOCK = "UPDATE dragoman_watches SET touched = $2 WHERE id = $1"
_LOCKED = "SELECT id, record FROM dragoman_watches WHERE id IN ({places})"
_BY_REFERENCE = "SELECT record FROM dragoman_watches WHERE reference = $1"
_FIND = """
SELECT record FROM dragoman_watches WHERE agent = $1 AND tenant = $2 AND owner = $3 AND task_id = $4
ORDER BY id
"""
_LINES = """
SELECT r.watch_id, r.record, (SELECT COUNT(*) FROM dragoman_deliveries d WHERE d.registration_id = r.id AND d.dead = 0
  AND (d.id > r.taken OR r.until < $1)),
  (SELECT d.part FROM dragoman_deliveries d WHERE d.registration_id = r.id AND d.dead = 0
  AND (d.id > r.taken OR r.until < $1) ORDER BY d.id DESC LIMIT 1)
FROM dragoman_registrations r WHERE r.watch_id IN ({places}) AND r.ended = 0 ORDER BY r.created, r.id
"""
_PUT = """
INSERT INTO dragoman_registrations (id, watch_id, record, created) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET record = excluded.record, watch_id = excluded.watch_id, ended = 0
"""
_DROP = "DELETE FROM dragoman_registrations WHERE id = $1"
_STIR = "UPDATE dragoman_registrations SET due = COALESCE(due, $2) WHERE id = $1"
_TELL = """
INSERT INTO dragoman_deliveries (registration_id, body, last, part, created) VALUES ($1, $2, $3, $4, $5)
"""
_FREE = """dead = 0 AND registration_id = $1 AND id >
  (SELECT CASE WHEN until < $2 THEN 0 ELSE taken END FROM dragoman_registrations WHERE id = $1)"""
_CLEAR_ALL = f"DELETE FROM dragoman_deliveries WHERE {_FREE}"
_CLEAR_NEWEST = f"""
DELETE FROM dragoman_deliveries WHERE id = (SELECT MAX(id) FROM dragoman_deliveries WHERE {_FREE}) AND part = 1
"""


class _Wanted(NamedTuple):
    watch_id: str
    decide: Decide
    done: asyncio.Future[Change | None]


class Watches:
    """Watches in a database. ``clock``: seconds of the epoch."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._wanted: list[_Wanted] = []
        self._changing: asyncio.Task[None] | None = None

    async def open(self, watch: Watch, *registrations: Registration) -> None:
        """Keep a new watch with its first registrations."""
        key = (*map(written, watch.scope), written(watch.task_id))
        row = (watch.id, *key, watch.reference, int(watch.ended), self._clock(), _encode(watch))
        async with self._database.transaction() as session:
            await session.execute(_ADD_WATCH, *row)
            await each(session, _PUT, list(map(_row, registrations)))

    async def find(self, scope: Scope, task_id: str) -> tuple[State, ...]:
        """The watches of a task, those that have ended among them."""
        rows = await self._database.fetch(_FIND, *map(written, scope), written(task_id))
        if not rows:
            return ()
        watches = [_watch(record) for (record,) in rows]
        lines = await self._lines(self._database, [one.id for one in watches])
        return tuple(State(one, lines[one.id]) for one in watches)

    async def known(self, reference: str) -> Watch | None:
        """The watch of a reference."""
        rows = await self._database.fetch(_BY_REFERENCE, reference)
        return _watch(rows[0][0]) if rows else None

    async def change(self, watch_id: str, decide: Decide) -> Change | None:
        """Do what ``decide`` says about a watch. Returns that; None if it is nothing, or there is no such watch."""
        done: asyncio.Future[Change | None] = asyncio.get_running_loop().create_future()
        self._wanted.append(_Wanted(watch_id, decide, done))
        if self._changing is None:
            self._changing = asyncio.create_task(self._change(), name="dragoman-outbox")
        return await done

    async def _change(self) -> None:
        try:
            while self._wanted:
                await self._together(self._next())
        finally:
            self._changing = None
            for one in self._wanted:  # only when the loop ends before its time
                one.done.cancel()

    def _next(self) -> dict[str, _Wanted]:
        """What is done now: at most one change of each watch, the others wait."""
        now: dict[str, _Wanted] = {}
        later: list[_Wanted] = []
        for one in self._wanted:
            if len(now) < _MOST and one.watch_id not in now:
                now[one.watch_id] = one
            else:
                later.append(one)
        self._wanted = later
        return dict(sorted(now.items()))

    async def _together(self, wanted: dict[str, _Wanted]) -> None:
        outcomes: Mapping[str, Change | Exception | None]
        try:
            outcomes = await self._made(wanted)
        except Exception as error:
            if len(wanted) > 1 and not isinstance(error, UnavailableError):
                try:
                    for id, one in wanted.items():
                        await self._together({id: one})
                finally:
                    for one in wanted.values():  # those that are left, if the loop ends before its time
                        one.done.cancel()
                return
            outcomes = dict.fromkeys(wanted, error)
        except BaseException:
            for one in wanted.values():
                one.done.cancel()
            raise
        for id, one in wanted.items():
            _settle(one.done, outcomes.get(id))

    async def _made(self, wanted: dict[str, _Wanted]) -> dict[str, Change | Exception | None]:
        async with self._database.transaction() as session:
            now = self._clock()
            states = await self._locked(session, list(wanted), now)
            outcomes = {state.watch.id: _decided(wanted[state.watch.id].decide, state) for state in states}
            changes = [(id, one) for id, one in outcomes.items() if isinstance(one, Change)]
            await _apply(session, changes, now)
        return outcomes

    async def _locked(self, session: Session, ids: Sequence[str], now: float) -> list[State]:
        await session.execute_many(_LOCK, [(id, now) for id in ids])
        rows = await session.fetch(*_several(_LOCKED, ids))
        lines = await self._lines(session, ids)
        return [State(_watch(record), lines[id]) for id, record in rows]

    async def _lines(self, session: Session | Database, ids: Sequence[str]) -> dict[str, tuple[Line, ...]]:
        found: dict[str, list[Line]] = {id: [] for id in ids}
        for id, record, waiting, part in await session.fetch(*_several(_LINES, ids, self._clock())):
            found[id].append(Line(_registration(record), waiting, bool(part)))
        return {id: tuple(lines) for id, lines in found.items()}


def _decided(decide: Decide, state: State) -> Change | Exception | None:
    try:
        return decide(state)
    except Exception as error:
        return error


def _settle(done: asyncio.Future[Change | None], outcome: Change | Exception | None) -> None:
    if done.done():  # who asked for it has gone
        return
    if isinstance(outcome, Exception):
        done.set_exception(outcome)
    else:
        done.set_result(outcome)


async def _apply(session: Session, changes: Sequence[tuple[str, Change]], now: float) -> None:
    kept = [one.watch for _, one in changes if one.watch is not None and not one.gone]
    told = sorted((tell for _, one in changes if not one.gone for tell in one.tell), key=_line)
    saved = [(one.id, written(one.task_id), int(one.ended), _encode(one)) for one in kept]
    await each(session, _DELETE_WATCH, [(id,) for id, one in changes if one.gone])
    await each(session, _SAVE_WATCH, saved)
    await each(session, _PUT, [_row(put) for _, one in changes if not one.gone for put in one.put])
    await each(session, _DROP, [(drop,) for _, one in changes if not one.gone for drop in one.drop])
    await each(session, _STIR, [(line, now) for line in dict.fromkeys(map(_line, told))])
    await each(session, _CLEAR_ALL, [(tell.registration_id, now) for tell in told if tell.how == "all"])
    await each(session, _CLEAR_NEWEST, [(tell.registration_id, now) for tell in told if tell.how == "newest"])
    rows = [(tell.registration_id, tell.body, int(tell.last), int(tell.part), now) for tell in told]
    await each(session, _TELL, rows)


def task_id_of(column: str, record: bytes | None) -> str:
    """The task id of a watch, as it is: from its column, or from its record where that was written another way."""
    return column if record is None else _watch(record).task_id


async def each(session: Session, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run a statement once per row, if there are any."""
    if rows:
        await session.execute_many(sql, rows)


def _several(sql: str, ids: Sequence[str], *first: object) -> tuple[Any, ...]:
    """A statement over several ids, behind ``first``, and its parameters. There are few such statements: places are
    added by powers of two, and the last id stands in those that are left."""
    count = 1 << (len(ids) - 1).bit_length()
    places = [*ids, *[ids[-1]] * (count - len(ids))]
    return _over(sql, len(first), count), *first, *places


@cache
def _over(sql: str, first: int, count: int) -> str:
    return sql.format(places=", ".join(f"${first + number}" for number in range(1, count + 1)))


def _line(tell: Tell) -> str:
    return tell.registration_id


def _row(one: Registration) -> tuple[object, ...]:
    return one.id, one.watch_id, _encode(one), one.created
