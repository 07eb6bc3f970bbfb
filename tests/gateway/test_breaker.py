"""When a replica is left alone: the states of its breaker, on a clock that the test turns."""

from __future__ import annotations

import pytest

from dragoman.gateway.breaker import Breaker
from dragoman.gateway.config import Breaker as Rule


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(Rule(failures=3, first=2, most=6), clock=clock)


def fail(breaker: Breaker, times: int = 1) -> list[bool]:
    return [breaker.failed(breaker.enter()) for _ in range(times)]


def test_it_opens_after_so_many_failures_in_a_row(breaker: Breaker) -> None:
    assert fail(breaker, 2) == [False, False]
    breaker.succeeded()
    assert fail(breaker, 3) == [False, False, True]
    assert (breaker.state, breaker.wait()) == ("open", 2.0)


def test_after_its_time_one_call_tries_and_the_others_wait(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 2
    assert (breaker.state, breaker.wait()) == ("half-open", 0.0)
    assert breaker.enter() is True
    assert breaker.wait() == 1.0


def test_a_success_closes_it_and_its_time_begins_anew(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 2
    breaker.enter()
    assert breaker.succeeded() is True
    assert (breaker.state, breaker.succeeded()) == ("closed", False)
    assert fail(breaker, 3)[-1] and breaker.wait() == 2.0


def test_its_time_is_doubled_for_each_trial_that_fails_up_to_a_limit(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, 3)
    waits = []
    for _ in range(4):
        waits.append(breaker.wait())
        clock.now += breaker.wait()
        fail(breaker)
    assert waits == [2, 4, 6, 6]


def test_a_trial_of_which_nothing_was_learnt_is_given_back(breaker: Breaker, clock: Clock) -> None:
    fail(breaker, 3)
    clock.now += 2
    breaker.abandoned(breaker.enter())
    assert breaker.wait() == 0.0


def test_calls_that_were_under_way_when_it_opened_tell_nothing_new(breaker: Breaker, clock: Clock) -> None:
    under_way = breaker.enter()
    fail(breaker, 3)
    clock.now += 1
    assert breaker.failed(under_way) is False
    assert breaker.wait() == 1.0
    assert breaker.succeeded() is True


def test_it_waits_as_long_as_the_other_side_asks_up_to_the_limit(breaker: Breaker) -> None:
    fail(breaker, 2)
    assert breaker.failed(False, retry_after=5) is True
    assert breaker.wait() == 5.0
    other = Breaker(Rule(failures=1, first=1, most=6), clock=Clock())
    other.failed(False, retry_after=3600)
    assert other.wait() == 6.0
