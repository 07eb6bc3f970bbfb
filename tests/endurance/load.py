"""Healthy load: calls whose answer is compared, and streams in which no event may be missing."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman.client.client import Client
from dragoman.errors import DragomanError
from dragoman.model import Artifact, StreamResponse, TaskState

#: Whether an error at this moment has a cause that the run itself made; empty if not.
Explain = Callable[[str, Exception], str]


def nothing(where: str, error: Exception) -> str:
    """No error is explained."""
    return ""


class WrongAnswer(Exception):
    """An answer that is not the one to this call, or a stream that lacks an event."""


@dataclass(slots=True)
class Tally:
    """``seconds``: of each call, the last 100,000. ``gap``: the longest time between two events of a stream."""

    explain: Explain = nothing
    calls: int = 0
    streams: int = 0
    events: int = 0
    gap: float = 0.0
    seconds: list[float] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: Counter[str] = field(default_factory=Counter)

    def failed(self, where: str, error: Exception) -> None:
        """Book an error."""
        reason = self.explain(where, error)
        if reason:
            self.explained[f"{where}: {type(error).__name__} ({reason})"] += 1
        else:
            self.unexplained[f"{where}: {type(error).__name__}: {str(error)[:160]}"] += 1

    def answered(self, began: float) -> None:
        """Book a call."""
        self.calls += 1
        if len(self.seconds) < 100_000:
            self.seconds.append(time.monotonic() - began)

    def quantile(self, part: float) -> float:
        """Seconds within which that part of the calls was answered."""
        ordered = sorted(self.seconds) or [0.0]
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


async def call(client: Client, where: str, tally: Tally) -> None:
    """One message whose echo must be its own."""
    word = uuid.uuid4().hex
    began = time.monotonic()
    try:
        task = (await client.send_text(f"echo {word}")).task
        if task is None or task.status.state is not TaskState.COMPLETED or text_of(task.artifacts) != word:
            raise WrongAnswer(f"{word} was answered with {task}")
        tally.answered(began)
    except (DragomanError, WrongAnswer) as error:
        tally.failed(where, error)


async def keep_calling(client: Client, where: str, tally: Tally, until: asyncio.Event, pause: float = 0.0) -> None:
    """One call after the other."""
    while not until.is_set():
        await call(client, where, tally)
        await _wait(until, pause)


async def follow(client: Client, where: str, tally: Tally, until: asyncio.Event, ticks: int) -> None:
    """One stream of ``ticks`` numbers, none missing, to its end or until told."""
    counter = Counting()
    tally.streams += 1
    try:
        stream = await client.stream_text(f"ticks {ticks}")
        ending = asyncio.ensure_future(until.wait())
        try:
            while True:
                events = await _unless(ending, stream.batch())
                if events is None:
                    return
                if not events:
                    break
                tally.events += len(events)
                tally.gap = max(tally.gap, counter.see(events))
        finally:
            ending.cancel()
            await stream.aclose()
        if counter.next != ticks:
            raise WrongAnswer(f"a stream ended after {counter.next} of {ticks} numbers")
    except (DragomanError, WrongAnswer) as error:
        tally.failed(where, error)


async def _unless(ending: asyncio.Future[Any], batch: Coroutine[Any, Any, Sequence[StreamResponse]]) -> Any:
    """What the batch gives, None if the run ends before."""
    waiting = asyncio.ensure_future(batch)
    try:
        await asyncio.wait((waiting, ending), return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else None
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def keep_following(client: Client, where: str, tally: Tally, until: asyncio.Event, ticks: int) -> None:
    """One stream after the other."""
    while not until.is_set():
        await follow(client, where, tally, until, ticks)
        await _wait(until, 0.05)


class Counting:
    """The numbers of a stream of ticks. ``next``: the one that must come."""

    def __init__(self) -> None:
        self.next = 0
        self._last = time.monotonic()

    def see(self, events: Iterable[StreamResponse]) -> float:
        """Check them; the time since the last ones. Raises ``WrongAnswer`` for a gap."""
        for event in events:
            if event.artifact_update is not None:
                for number in numbers((event.artifact_update.artifact,)):
                    if number > self.next:
                        raise WrongAnswer(f"{number} came instead of {self.next}")
                    self.next = max(self.next, number + 1)
            elif event.task is not None and (seen := numbers(event.task.artifacts)):
                self.next = max(self.next, seen[-1] + 1)
        now = time.monotonic()
        gap, self._last = now - self._last, now
        return gap


def numbers(artifacts: Iterable[Artifact]) -> list[int]:
    return [int(word) for word in text_of(artifacts).split()]


def text_of(artifacts: Iterable[Artifact]) -> str:
    return "".join(part.text for one in artifacts for part in one.parts if isinstance(part.text, str))


async def _wait(until: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await until.wait()
    except TimeoutError:
        return
