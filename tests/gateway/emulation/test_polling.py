"""How often an agent is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.errors import RateLimitedError, UnavailableError
from dragoman.gateway.config import Config, Polling, Upstream, completed
from dragoman.gateway.config.checks import complaints
from dragoman.gateway.emulation.polling import Pace, Questions
from dragoman.model import Task, TaskState, TaskStatus
from dragoman.service import Context

TASK = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))
STEADY = Pace(first=0.25, most=1.0, growth=2.0, jitter=0.0, tries=3)


class Agent:
    """Answers with what it is given, an error or the task; counts how many ask at once."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asking = 0
        self.most = 0

    async def call(self, op: Any, request: Any, ctx: Context) -> Any:
        self.asking += 1
        self.most = max(self.most, self.asking)
        await asyncio.sleep(0)
        self.asking -= 1
        if self.errors:
            raise self.errors.pop(0)
        return TASK

    async def stream(self, op: Any, request: Any, ctx: Context) -> Any:
        raise NotImplementedError


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited, which take no time here."""
    found: list[float] = []
    really = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds:
            found.append(seconds)
        await really(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return found


async def test_intervals_grow_up_to_the_longest_and_begin_anew(slept: list[float]) -> None:
    watch = Questions(Agent(), STEADY).watch("t", Context(), 0)
    for _ in range(4):
        assert await watch.look() == TASK
    watch.hurry()
    await watch.look()
    assert slept == [0.25, 0.5, 1.0, 1.0, 0.25]


async def test_failures_are_counted_in_a_row(slept: list[float]) -> None:
    later = UnavailableError("later")
    watch = Questions(Agent(later, later), STEADY).watch("t", Context(), 0)
    assert await watch.look() == TASK
    watch = Questions(Agent(later, later, later), STEADY).watch("t", Context(), 0)
    with pytest.raises(UnavailableError):
        await watch.look()


async def test_an_agent_that_says_when_to_come_back_is_left_alone_until_then(slept: list[float]) -> None:
    watch = Questions(Agent(RateLimitedError(retry_after=7.0)), STEADY).watch("t", Context(), 0)
    await watch.look()
    assert slept == [0.25, 7.0]


async def test_only_so_many_ask_at_once_whichever_layer_they_ask_for(slept: list[float]) -> None:
    agent = Agent()
    some = Questions(agent, STEADY, at_once=3)
    others = some.over(agent)
    await asyncio.gather(*(one.watch("t", Context(), 0).look() for one in [some, others] * 10))
    assert agent.most == 3


def test_intervals_are_spread() -> None:
    pace = Pace(jitter=0.5)
    found = {pace.spread(1.0) for _ in range(50)}
    assert len(found) > 1 and all(0.5 <= one <= 1.5 for one in found)


def test_a_first_interval_beyond_the_longest_is_a_mistake() -> None:
    one = Upstream(url="http://agent.example", polling=Polling(first=9, most=5))
    found = complaints(completed(Config(upstream=(one,))))
    assert [path for path, _ in found] == [("upstream", 0, "polling", "first")]
