"""The limit of the store in memory."""

from __future__ import annotations

import pytest

from dragoman.model import Task, TaskPushNotificationConfig, TaskState, TaskStatus
from dragoman.store.base import TaskQuery, Webhook
from dragoman.store.memory import MemoryStore

ADA = ("", "ada")
BOB = ("", "bob")
EVE = ("", "eve")


def task(id: str, state: TaskState = TaskState.COMPLETED) -> Task:
    return Task(id=id, context_id="c", status=TaskStatus(state=state, timestamp="2026-01-01T00:00:00.000Z"))


async def kept(store: MemoryStore, owner: tuple[str, str] = ADA) -> list[str]:
    return [one.id for one in (await store.list(owner, TaskQuery())).tasks]


async def test_above_the_limit_the_longest_terminal_task_goes_first() -> None:
    store = MemoryStore(limit=2)
    await store.save(ADA, task("a", TaskState.INPUT_REQUIRED))
    await store.save(ADA, task("b"))
    await store.save(ADA, task("c"))
    assert await kept(store) == ["a", "c"]
    await store.save(ADA, task("a"))  # terminal only now
    await store.save(ADA, task("d"))
    assert await kept(store) == ["a", "d"]


async def test_when_no_task_is_terminal_the_oldest_goes() -> None:
    store = MemoryStore(limit=2)
    for id in "abc":
        await store.save(ADA, task(id, TaskState.INPUT_REQUIRED))
    assert await kept(store) == ["b", "c"]


async def test_the_limit_counts_the_tasks_of_everybody_and_nobody_pushes_out_those_of_others() -> None:
    store = MemoryStore(limit=20)
    for owner, number in ((EVE, 5), (BOB, 6), (ADA, 100)):
        for one in range(number):
            await store.save(owner, task(f"t{one:03}"))
    assert [len(await kept(store, owner)) for owner in (EVE, BOB, ADA)] == [5, 6, 9]
    assert await kept(store, ADA) == [f"t{one:03}" for one in range(91, 100)]


async def test_saving_a_task_again_does_not_count_twice() -> None:
    store = MemoryStore(limit=2)
    await store.save(ADA, task("a"))
    for _ in range(5):
        await store.save(ADA, task("b", TaskState.WORKING))
    assert await kept(store) == ["a", "b"]


async def test_a_deleted_task_makes_room() -> None:
    store = MemoryStore(limit=2)
    await store.save(ADA, task("a"))
    await store.save(ADA, task("b"))
    await store.delete(ADA, "a")
    await store.save(ADA, task("c"))
    assert await kept(store) == ["b", "c"]
    await store.save(ADA, task("d"))
    assert await kept(store) == ["c", "d"]


async def test_an_evicted_task_takes_its_configs_along() -> None:
    store = MemoryStore(limit=1)
    await store.save(ADA, task("a"))
    config = TaskPushNotificationConfig(id="k", task_id="a", url="https://h")
    await store.save_config(ADA, Webhook(config, "1.0"))
    assert len(await store.configs(ADA, "a")) == 1
    await store.save(ADA, task("b"))
    assert await store.configs(ADA, "a") == ()


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        MemoryStore(limit=0)
