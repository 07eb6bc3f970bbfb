"""Whose ids are, in a database.

Rules of this module:

- Whoever claims an id first has it. To claim and to look are one statement each, so that two gateways that share a
  database agree whatever the order.
- An id that nobody made use of for a while is forgotten, a few at a time beside the claims.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from .database import Database

log = logging.getLogger(__name__)

#: Ids that are forgotten at a time, and after how many claims, or seconds, again.
_CHUNK, _CLAIMS, _SECONDS = 500, 200, 60.0

_CLAIM = """
INSERT INTO dragoman_owners (upstream, kind, id, owner, seen) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (upstream, kind, id) DO UPDATE SET seen = excluded.seen
RETURNING owner
"""
_FIND = "UPDATE dragoman_owners SET seen = $1 WHERE upstream = $2 AND kind = $3 AND id = $4 RETURNING owner"
_FORGET = """
DELETE FROM dragoman_owners WHERE seen < $1 AND (upstream, kind, id) IN
  (SELECT upstream, kind, id FROM dragoman_owners WHERE seen < $1 LIMIT $2)
"""


class OwnedId(NamedTuple):
    """An id of an agent, as columns hold it (``texts.written``): at most a few hundred characters each."""

    upstream: str
    kind: str
    id: str


class SqlOwners:
    """Owners of ids. ``retention``: seconds after its last use that an id is remembered. ``clock``: of the epoch."""

    def __init__(self, database: Database, *, retention: float, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self.retention = retention
        self._claims = _CLAIMS
        self._next = 0.0

    async def claim(self, key: OwnedId, owner: str) -> str:
        """Who has an id, which is ``owner`` if nobody did. It is kept on return. Raises ``UnavailableError``."""
        now = self._clock()
        await self._forget(now)
        [(found,)] = await self._database.fetch(_CLAIM, *key, owner, now)
        return str(found)

    async def find(self, key: OwnedId) -> str | None:
        """Who has an id, None if nobody has. Raises ``UnavailableError``."""
        rows = await self._database.fetch(_FIND, self._clock(), *key)
        return str(rows[0][0]) if rows else None

    async def _forget(self, now: float) -> None:
        self._claims += 1
        if self._claims < _CLAIMS and now < self._next:
            return
        self._claims, self._next = 0, now + _SECONDS
        try:
            await self._database.execute(_FORGET, now - self.retention, _CHUNK)
        except Exception:  # the claim itself says what is wrong, if that is more than bad luck
            log.warning("old ids could not be forgotten; the next sweep will", exc_info=True)
