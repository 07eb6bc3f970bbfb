"""What one caller may use at a time: a bucket of calls, calls at once, streams at once.

Pure counting, on a clock that whoever asks reads.
"""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Of one caller, None = without limit. ``calls_per_second`` on the long run, ``burst`` at once; ``calls`` and
    ``streams`` open at the same time."""

    calls_per_second: float | None = None
    burst: int = 1
    calls: int | None = None
    streams: int | None = None


class Allowance:
    """What is left of one caller's limits. ``now``: seconds on a clock that never goes back."""

    __slots__ = ("calls", "limits", "streams", "tokens", "updated")

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self.calls = 0
        self.streams = 0
        self.tokens = float(limits.burst)
        self.updated = now

    def take(self, now: float) -> float:
        """Use one call. 0 if it is granted, else the seconds until it will be."""
        rate = self.limits.calls_per_second
        if rate is None:
            return 0.0
        self._fill(rate, now)
        if self.tokens >= 1:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) / rate

    def at_rest(self, now: float) -> bool:
        """Whether nothing is open and nothing used up: then a new allowance would be the same."""
        if self.calls or self.streams:
            return False
        rate = self.limits.calls_per_second
        if rate is None:
            return True
        self._fill(rate, now)
        return self.tokens >= self.limits.burst

    def limit(self, limits: Limits) -> None:
        """Other limits from now on; what is open stays open."""
        used = self.limits.burst - self.tokens
        self.limits = limits
        self.tokens = max(0.0, limits.burst - used)

    def _fill(self, rate: float, now: float) -> None:
        self.tokens = min(float(self.limits.burst), self.tokens + (now - self.updated) * rate)
        self.updated = now
