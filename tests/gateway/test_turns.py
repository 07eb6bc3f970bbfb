"""Turns: how many at a time, who is next, and that each is given back once however the wait for it ends."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import UnavailableError
from dragoman.gateway.turns import Turns
from tests.gateway.waiting import until


async def waiting(turns: Turns, count: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(turns.take()) for _ in range(count)]
    await until(lambda: turns.waiting == count)
    return tasks


async def test_no_more_than_there_are_go_at_a_time() -> None:
    turns = Turns(2, patience=10)
    assert [turns.take_now() for _ in range(3)] == [True, True, False]
    turns.give_back()
    assert turns.take_now()


async def test_who_waits_longest_is_next_and_nobody_overtakes() -> None:
    turns = Turns(1, patience=10, waiting=3)
    turns.take_now()
    order: list[int] = []

    async def take(number: int) -> None:
        await turns.take()
        order.append(number)

    tasks = [asyncio.create_task(take(number)) for number in range(3)]
    await until(lambda: turns.waiting == 3)
    for _ in range(3):
        turns.give_back()
        assert not turns.take_now()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert (order, turns.taken) == ([0, 1, 2], 1)
    turns.give_back()
    assert turns.taken == 0


@pytest.mark.parametrize("patience", [0, 0.01], ids=["none", "a little"])
async def test_who_waits_too_long_is_told_when_to_come_back(patience: float) -> None:
    turns = Turns(1, patience=patience)
    turns.take_now()
    with pytest.raises(UnavailableError) as raised:
        await turns.take()
    assert raised.value.retry_after == 1.0
    assert turns.waiting == 0
    turns.give_back()
    assert turns.take_now()


async def test_a_callers_own_deadline_ends_its_wait() -> None:
    turns = Turns(1, patience=1000)
    turns.take_now()
    with pytest.raises(UnavailableError):
        await turns.take(asyncio.get_running_loop().time() + 0.01)


async def test_only_so_many_may_wait() -> None:
    turns = Turns(1, patience=1000, waiting=1)
    turns.take_now()
    (first,) = await waiting(turns, 1)
    with pytest.raises(UnavailableError):
        await turns.take()
    turns.give_back()
    await first


async def test_a_waiter_who_is_gone_is_passed_over() -> None:
    turns = Turns(1, patience=1000, waiting=2)
    turns.take_now()
    first, second = await waiting(turns, 2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    turns.give_back()
    await second
    assert (turns.taken, turns.waiting) == (1, 0)


async def test_a_turn_that_reaches_a_waiter_in_the_moment_it_goes_is_not_lost() -> None:
    turns = Turns(1, patience=1000)
    turns.take_now()
    (first,) = await waiting(turns, 1)
    turns.give_back()  # hands it over
    first.cancel()  # before it could run
    with pytest.raises(asyncio.CancelledError):
        await first
    assert turns.taken == 0
    assert turns.take_now()


async def test_turns_add_up_after_a_crowd_of_which_many_leave() -> None:
    turns = Turns(5, patience=1000, waiting=200)

    async def one(number: int) -> None:
        await turns.take()
        try:
            await asyncio.sleep(0)
        finally:
            turns.give_back()

    tasks = [asyncio.create_task(one(number)) for number in range(200)]
    for step in range(40):
        await asyncio.sleep(0)
        tasks[step * 5].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (turns.taken, turns.waiting) == (0, 0)
