"""What translations lost, counted and said: the first loss of a kind as a warning, the others for whoever listens."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Literal, Protocol

from .dialects.losses import LOSSES

log = logging.getLogger(__name__)

#: On whose side a translation happens: toward whoever calls us, or toward the agent that we call.
Side = Literal["caller", "agent"]


class Listener(Protocol):
    """Who wants to know of the losses of one call."""

    def lost(self, side: Side, names: Sequence[str]) -> None:
        """These were met on that side; names as in ``dialects.losses``."""
        ...


#: Who listens to the call that is at work.
listener: ContextVar[Listener | None] = ContextVar("dragoman_listener", default=None)


class Ledger:
    """Counts by name of the row of ``dialects.losses``; ``where`` says between whom, ``side`` on whose side."""

    def __init__(self, where: str, side: Side = "agent") -> None:
        self.counts: Counter[str] = Counter()
        self._where = where
        self._side: Side = side

    def enter(self, operation: str, names: Sequence[str]) -> None:
        """Note that a message of ``operation`` met these losses."""
        for name in names:
            level = logging.INFO if name in self.counts else logging.WARNING
            self.counts[name] += 1
            log.log(level, "%s, %s: %s %s: %s", self._where, operation, name, LOSSES[name].outcome, LOSSES[name].text)
        if names and (listening := listener.get()) is not None:
            listening.lost(self._side, names)
