"""What every store must do; each implementation runs through the same tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from dragoman.model import Artifact, Message, Part, Role, Task, TaskPushNotificationConfig, TaskState, TaskStatus
from dragoman.store.base import Cursor, Store, TaskQuery, Webhook
from dragoman.store.memory import MemoryStore
from dragoman.store.opening import open_store

STORES = ("memory", "sqlite", "postgres")
ADA = ("acme", "ada")
OTHERS = [("acme", "eve"), ("other", "ada"), ("", "ada"), ("acme", ""), ("ada", "acme")]


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    if request.param == "memory":
        store: Store = MemoryStore()
    else:
        store = await open_store(request.getfixturevalue(f"{request.param}_url"))
    yield store
    await store.aclose()


def task(id: str, second: int | None = 0, state: TaskState = TaskState.COMPLETED, context: str = "c") -> Task:
    timestamp = None if second is None else f"2026-01-01T00:00:{second:02d}.000Z"
    return Task(id=id, context_id=context, status=TaskStatus(state=state, timestamp=timestamp))


def webhook(id: str, task_id: str = "t", url: str = "https://h") -> Webhook:
    return Webhook(TaskPushNotificationConfig(id=id, task_id=task_id, url=url), "0.3")


async def ids(store: Store, query: TaskQuery) -> list[str]:
    return [one.id for one in (await store.list(ADA, query)).tasks]


async def test_a_saved_task_comes_back_as_it_was(store: Store) -> None:
    await store.save(ADA, task("t"))
    assert await store.get(ADA, "t") == task("t")
    assert await store.get(ADA, "other") is None


async def test_saving_again_replaces(store: Store) -> None:
    await store.save(ADA, task("t", state=TaskState.WORKING))
    await store.save(ADA, task("t", 1))
    assert await store.get(ADA, "t") == task("t", 1)
    assert (await store.list(ADA, TaskQuery())).total == 1


@pytest.mark.parametrize("other", OTHERS)
async def test_owners_see_nothing_of_each_other(store: Store, other: tuple[str, str]) -> None:
    await store.save(ADA, task("t"))
    await store.save_config(ADA, webhook("k"))
    await store.delete(other, "t")
    await store.delete_config(other, "t", "k")
    assert await store.get(other, "t") is None
    assert await store.list(other, TaskQuery()) == ((), 0, False)
    assert await store.configs(other, "t") == ()
    assert await store.get(ADA, "t") == task("t")
    assert await store.configs(ADA, "t") == (webhook("k"),)


async def test_two_owners_may_have_tasks_of_one_id(store: Store) -> None:
    await store.save(ADA, task("t", 1))
    await store.save(OTHERS[0], task("t", 2))
    assert await store.get(ADA, "t") == task("t", 1)


async def test_a_deleted_task_takes_its_configs_along(store: Store) -> None:
    await store.save(ADA, task("t"))
    await store.save_config(ADA, webhook("k"))
    await store.delete(ADA, "t")
    await store.delete(ADA, "t")
    assert await store.get(ADA, "t") is None
    assert await store.configs(ADA, "t") == ()


async def test_tasks_are_listed_newest_first_then_by_id_and_those_without_a_time_last(store: Store) -> None:
    for one in (task("b", 1), task("x", None), task("c", 2), task("a", 1), task("w", None)):
        await store.save(ADA, one)
    assert await ids(store, TaskQuery()) == ["c", "a", "b", "w", "x"]


async def test_ids_are_ordered_by_code_point(store: Store) -> None:
    for id in ("b", "é", "B", "a", "_", "-"):
        await store.save(ADA, task(id, 1))
    assert await ids(store, TaskQuery()) == ["-", "B", "_", "a", "b", "é"]


@pytest.mark.parametrize("odd", ["", "a\0b", "a\1\2b", "a\1b", "%_'\"", "𝔘", "x" * 2000])
async def test_any_text_is_a_name_of_its_own(store: Store, odd: str) -> None:
    for name in ("ab", odd):
        await store.save(("", name), task(name, context=name))
        await store.save_config(("", name), webhook(name, name))
    page = await store.list(("", odd), TaskQuery(context_id=odd or "x", after=Cursor("2027", odd)))
    assert [one.id for one in page.tasks] == ([odd] if odd else [])
    assert await store.get(("", odd), odd) == task(odd, context=odd)
    assert await store.configs(("", odd), odd) == (webhook(odd, odd),)
    await store.delete(("", odd), odd)
    assert await store.get(("", odd), odd) is None
    assert await store.get(("", "ab"), "ab") == task("ab", context="ab")


async def test_a_task_keeps_everything_that_it_has(store: Store) -> None:
    parts = (
        Part(text=""),
        Part(raw=b"\0\xff", filename="f"),
        Part(data=None),
        Part(data={"n": [1.5, -(2**53), "é\0"]}),
    )
    message = Message(message_id="m", role=Role.AGENT, parts=parts, metadata={"a": {}})
    whole = msgspec.structs.replace(
        task("t"), artifacts=(Artifact(artifact_id="a", parts=parts),), history=(message,), metadata={"b": [True, None]}
    )
    await store.save(ADA, whole)
    assert await store.get(ADA, "t") == whole


async def test_of_saves_made_at_once_the_last_counts(store: Store) -> None:
    states = [task("t", second % 60, TaskState.WORKING) for second in range(100)]
    await asyncio.gather(*(store.save(ADA, one) for one in states))
    assert await store.get(ADA, "t") == states[-1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (TaskQuery(context_id="d"), ["d1"]),
        (TaskQuery(state=TaskState.WORKING), ["w1"]),
        (TaskQuery(since="2026-01-01T00:00:02.000Z"), ["w1", "d1"]),
        (TaskQuery(since="2026-01-01T00:00:02.000Z", state=TaskState.COMPLETED), ["d1"]),
        (TaskQuery(context_id="none"), []),
    ],
)
async def test_filters_hold_together(store: Store, query: TaskQuery, expected: list[str]) -> None:
    for one in (task("a", 1), task("d1", 2, context="d"), task("w1", 3, TaskState.WORKING), task("n", None)):
        await store.save(ADA, one)
    page = await store.list(ADA, query)
    assert ([one.id for one in page.tasks], page.total, page.more) == (expected, len(expected), False)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
async def test_pages_join_to_the_whole_list_whatever_their_size(store: Store, size: int) -> None:
    saved = [task(id, second) for id, second in zip("gbcadef", (1, 1, 2, 2, 2, None, None), strict=True)]
    for one in saved:
        await store.save(ADA, one)
    whole = await ids(store, TaskQuery())
    seen: list[str] = []
    query = TaskQuery(limit=size)
    while True:
        page = await store.list(ADA, query)
        assert page.total == 7
        seen += [one.id for one in page.tasks]
        if not page.more:
            break
        last = page.tasks[-1]
        query = TaskQuery(limit=size, after=Cursor(last.status.timestamp or "", last.id))
    assert seen == whole


async def test_a_cursor_works_though_its_task_is_gone(store: Store) -> None:
    for id in "abc":
        await store.save(ADA, task(id, 1))
    await store.delete(ADA, "b")
    assert await ids(store, TaskQuery(after=Cursor("2026-01-01T00:00:01.000Z", "b"))) == ["c"]


async def test_configs_keep_the_order_of_their_creation(store: Store) -> None:
    for id in ("z", "a", "m"):
        await store.save_config(ADA, webhook(id))
    newer = webhook("z", url="https://h/newer")
    await store.save_config(ADA, newer)
    assert await store.configs(ADA, "t") == (newer, webhook("a"), webhook("m"))
    await store.delete_config(ADA, "t", "a")
    await store.delete_config(ADA, "t", "a")
    assert await store.configs(ADA, "t") == (newer, webhook("m"))
    assert await store.configs(ADA, "other") == ()


NAMES = ["a" * 6000, "a" * 6000 + "b", "a\0b", "a\1\2b", "ä" * 3000, "\1" * 200]


async def test_names_of_any_length_and_characters_are_told_apart(store: Store) -> None:
    for name in NAMES:
        await store.save((name, "ada"), task(name, context=name))
        await store.save_config((name, "ada"), webhook(name, name))
    for name in NAMES:
        owner = (name, "ada")
        assert await store.get(owner, name) == task(name, context=name)
        assert await store.configs(owner, name) == (webhook(name, name),)
        assert (await store.list(owner, TaskQuery(context_id=name))).tasks == (task(name, context=name),)
    await store.delete_config((NAMES[0], "ada"), NAMES[0], NAMES[0])
    await store.delete((NAMES[1], "ada"), NAMES[1])
    assert await store.configs((NAMES[0], "ada"), NAMES[0]) == ()
    assert await store.get((NAMES[1], "ada"), NAMES[1]) is None


async def test_pages_go_on_behind_a_task_of_a_long_name(store: Store) -> None:
    for name in NAMES:
        await store.save(ADA, task(name))
    found: list[Task] = []
    query = TaskQuery(limit=1)
    while (page := await store.list(ADA, query)).more:
        found += page.tasks
        query = TaskQuery(limit=1, after=Cursor("2026-01-01T00:00:00.000Z", page.tasks[-1].id))
    assert {one.id for one in (*found, *page.tasks)} == set(NAMES)
