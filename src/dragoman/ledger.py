"""What translations lost, counted and said: the first loss of a kind as a warning, the others for whoever listens.

Where an operator wants it, a loss is a refusal: of a request before it is sent, of a reply in place of it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from contextvars import ContextVar
from typing import Literal, Protocol

from .dialects.losses import LOSSES
from .errors import UnsupportedOperationError

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
    """Counts by name of the row of ``dialects.losses``; ``where`` says between whom, ``side`` on whose side.

    ``refuse``: names of losses that no message may meet.
    """

    def __init__(self, where: str, side: Side = "agent", refuse: Collection[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self.refuse = frozenset(refuse)
        self._where = where
        self._side: Side = side

    def enter(self, operation: str, names: Sequence[str]) -> None:
        """Note that a message of ``operation`` met these losses.

        Raises ``UnsupportedOperationError`` if one of them is refused.
        """
        for name in names:
            level = logging.INFO if name in self.counts else logging.WARNING
            self.counts[name] += 1
            log.log(level, "%s, %s: %s %s: %s", self._where, operation, name, LOSSES[name].outcome, LOSSES[name].text)
        if names and (listening := listener.get()) is not None:
            listening.lost(self._side, names)
        if self.refuse and (refused := self.refuse.intersection(names)):
            told = "; ".join(f"{name}: {LOSSES[name].text}" for name in sorted(refused))
            raise UnsupportedOperationError(f"{operation} would lose something, which is refused here: {told}")
