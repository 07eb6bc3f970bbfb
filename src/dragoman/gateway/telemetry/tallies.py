"""Counting: plain numbers, kept by the event loop's thread alone.

They are read when somebody asks for the metrics, which is seldom; they are written with every call, so that a call pays
for a few additions and no lock. A snapshot is made in the loop, and becomes text elsewhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from .catalog import EVENTS, SECONDS


class Counted(NamedTuple):
    """The value of a counter or gauge: the metric's name, its labels' values in their order."""

    name: str
    labels: tuple[str, ...]
    value: float


class Spread(NamedTuple):
    """The value of a histogram: how many in each bucket, the last for what is above all bounds, and their sum."""

    name: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


Reading = Counted | Spread


class Histogram:
    """Values counted by size."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value, in the first bucket whose bound is not below it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def read(self, name: str, labels: tuple[str, ...]) -> Spread:
        """What it holds now."""
        return Spread(name, labels, self.bounds, tuple(self.counts), self.total)


class Tally:
    """Calls of one operation between two faces of one agent."""

    __slots__ = ("events", "labels", "outcomes", "seconds")

    def __init__(self, labels: tuple[str, ...], *, streaming: bool) -> None:
        self.labels = labels
        self.outcomes: dict[str, int] = {}
        self.seconds = Histogram(SECONDS)
        self.events = Histogram(EVENTS) if streaming else None

    def add(self, outcome: str, seconds: float, events: int) -> None:
        """Count a call that is over."""
        outcomes = self.outcomes
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        self.seconds.add(seconds)
        if self.events is not None:
            self.events.add(events)

    def read(self) -> Iterator[Reading]:
        """What it holds now."""
        for outcome, number in self.outcomes.items():
            yield Counted("dragoman_calls_total", (*self.labels, outcome), number)
        yield self.seconds.read("dragoman_call_seconds", self.labels)
        if self.events is not None:
            yield self.events.read("dragoman_stream_events", self.labels)
