"""When a replica that fails is left alone, and when it is tried again.

Rules of this module (pure; the clock is given):

- *closed*: calls go through. So many failures in a row, and it is *open*: none does, for a time. Then it is
  *half-open*: one call tries. If that fails the time is doubled, up to a limit; any success closes it.
- Which outcome is a failure is the caller's to say. A call of which nothing was learnt gives its trial back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeAlias

from .config import Breaker as Rule

State: TypeAlias = Literal["closed", "open", "half-open"]


class Breaker:
    """The breaker of one replica. ``clock``: seconds, never going back."""

    def __init__(self, rule: Rule, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rule = rule
        self._clock = clock
        self._failures = 0
        self._wait = rule.first
        self._until: float | None = None  # None while it is closed
        self._trying = False
        self.opened = 0  # times

    @property
    def state(self) -> State:
        """As it is now."""
        if self._until is None:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    def wait(self) -> float:
        """Seconds until a call may go through; 0 if one may now."""
        if self._until is None:
            return 0.0
        left = self._until - self._clock()
        return max(left, 1.0) if self._trying else max(left, 0.0)

    def enter(self) -> bool:
        """A call goes through, which :meth:`wait` allowed; whether it is the one that tries."""
        if self._until is None:
            return False
        self._trying = True
        return True

    def succeeded(self) -> bool:
        """A call was answered; whether that closed it."""
        self._failures = 0
        if self._until is None:
            return False
        self._until, self._trying, self._wait = None, False, self._rule.first
        return True

    def failed(self, trial: bool, *, retry_after: float | None = None) -> bool:
        """A call was not; whether that opened it. ``trial``: what :meth:`enter` gave. ``retry_after``: seconds that
        the other side asked for."""
        if self._until is not None:
            if trial:
                self._open(retry_after)
            return False  # else it was under way when this opened, and tells nothing new
        self._failures += 1
        if self._failures < self._rule.failures:
            return False
        self._open(retry_after)
        return True

    def abandoned(self, trial: bool) -> None:
        """A call told nothing: it was given up, or was no fault of the replica."""
        if trial:
            self._trying = False

    def _open(self, retry_after: float | None) -> None:
        self.opened += 1
        asked = min(retry_after or 0.0, self._rule.most)
        self._until = self._clock() + max(self._wait, asked)
        self._wait = min(self._wait * 2, self._rule.most)
        self._trying = False
