"""What translations lost, counted and said: the first loss of a kind as a warning, the others for whoever listens."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from .dialects.losses import LOSSES

log = logging.getLogger(__name__)


class Ledger:
    """Counts by name of the row of ``dialects.losses``; ``where`` says between whom."""

    def __init__(self, where: str) -> None:
        self.counts: Counter[str] = Counter()
        self._where = where

    def enter(self, operation: str, names: Sequence[str]) -> None:
        """Note that a message of ``operation`` met these losses."""
        for name in names:
            level = logging.INFO if name in self.counts else logging.WARNING
            self.counts[name] += 1
            log.log(level, "%s, %s: %s %s: %s", self._where, operation, name, LOSSES[name].outcome, LOSSES[name].text)
