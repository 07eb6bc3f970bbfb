"""The bucket of calls of one caller."""

from __future__ import annotations

import pytest

from dragoman.security.allowance import Allowance, Limits


def granted(allowance: Allowance, now: float, asked: int) -> int:
    return sum(allowance.take(now) == 0 for _ in range(asked))


def test_a_burst_is_granted_and_then_the_rate() -> None:
    allowance = Allowance(Limits(calls_per_second=8, burst=4), 0)
    assert granted(allowance, 0, 20) == 4
    assert granted(allowance, 0.5, 20) == 4
    assert granted(allowance, 0.625, 20) == 1
    assert granted(allowance, 1000, 20) == 4


def test_a_refusal_says_when_the_next_call_is_granted() -> None:
    allowance = Allowance(Limits(calls_per_second=0.5, burst=1), 0)
    assert allowance.take(0) == 0
    assert allowance.take(0) == 2
    assert allowance.take(1) == 1
    assert allowance.take(2) == 0


def test_without_a_rate_everything_is_granted() -> None:
    assert granted(Allowance(Limits(), 0), 0, 1_000) == 1_000


@pytest.mark.parametrize("limits", [Limits(), Limits(calls_per_second=1, burst=2)])
def test_at_rest_is_who_has_nothing_open_and_nothing_used_up(limits: Limits) -> None:
    allowance = Allowance(limits, 0)
    assert allowance.at_rest(0)
    allowance.take(0)
    assert allowance.at_rest(0) is (limits.calls_per_second is None)
    assert allowance.at_rest(1)
    allowance.streams += 1
    assert not allowance.at_rest(9)
    allowance.streams -= 1
    allowance.calls += 1
    assert not allowance.at_rest(9)


def test_other_limits_do_not_give_back_what_was_used() -> None:
    allowance = Allowance(Limits(calls_per_second=1, burst=10), 0)
    assert granted(allowance, 0, 8) == 8
    allowance.limit(Limits(calls_per_second=1, burst=9))
    assert granted(allowance, 0, 9) == 1
    allowance.limit(Limits(calls_per_second=1, burst=2))
    assert granted(allowance, 0, 9) == 0
