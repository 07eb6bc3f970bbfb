"""Which caller an id of an agent was told to first: what was lately asked for in memory, the rest in the database.

Rules of this module:

- An owner never changes while an id is remembered, so what is in memory is good; it is asked for again now and then,
  which keeps an id that is made use of from being forgotten.
- What was claimed is written before anybody hears of it.
- Ids of tasks belong to a tenant. Those of contexts do not: callers make them up, and an agent may heed no tenant.
- Without a database only ``limit`` ids are remembered, those used last.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from ..store.sql.owners import OwnedId, SqlOwners
from ..store.sql.texts import written

_FRESH = 3_600.0  # seconds
#: Ids in memory: some 500 bytes each. With a database behind it, that is for speed; without, it is all there is.
_CACHED, _ALL = 10_000, 100_000


class Owners:
    """Owners of ids. ``isolated``: names of the agents whose ids are remembered. ``limit``: ids in memory,
    by default 10,000 before a database and 100,000 without. ``clock``: seconds, never going back."""

    def __init__(
        self, kept: SqlOwners | None = None, *, limit: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.isolated: set[str] = set()
        self._kept = kept
        self._limit = limit or (_ALL if kept is None else _CACHED)
        self._clock = clock
        self._fresh = min(_FRESH, kept.retention / 4) if kept is not None else float("inf")
        self._known: OrderedDict[OwnedId, tuple[str, float]] = OrderedDict()

    async def claim(self, key: OwnedId, owner: str) -> bool:
        """Whether an id is this owner's, which it is from now on if it was nobody's. Raises ``UnavailableError``."""
        owner = written(owner)
        found = self._remembered(key)
        if found is None:
            found = owner if self._kept is None else await self._kept.claim(key, owner)
            self._remember(key, found)
        return found == owner

    async def owns(self, key: OwnedId, owner: str) -> bool:
        """Whether an id is known to be this owner's. Raises ``UnavailableError``."""
        found = self._remembered(key)
        if found is None and self._kept is not None:
            found = await self._kept.find(key)
            if found is not None:
                self._remember(key, found)
        return found == written(owner)

    def _remembered(self, key: OwnedId) -> str | None:
        found = self._known.get(key)
        if found is None or found[1] < self._clock():
            return None
        self._known.move_to_end(key)
        return found[0]

    def _remember(self, key: OwnedId, owner: str) -> None:
        self._known[key] = owner, self._clock() + self._fresh
        self._known.move_to_end(key)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


def task_key(upstream: str, tenant: str, task_id: str) -> OwnedId:
    """The key of a task. (A name of an agent has no slash.)"""
    return OwnedId(written(f"{upstream}/{tenant}"), "task", written(task_id))


def context_key(upstream: str, context_id: str) -> OwnedId:
    """The key of a context."""
    return OwnedId(written(upstream), "context", written(context_id))
