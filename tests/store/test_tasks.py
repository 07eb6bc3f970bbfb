"""What a durable store forgets, and how it finds things."""

from __future__ import annotations

import logging
import re

import pytest

from dragoman.errors import UnavailableError
from dragoman.model import Task, TaskPushNotificationConfig, TaskState, TaskStatus
from dragoman.store.base import Cursor, TaskQuery, Webhook
from dragoman.store.opening import open_database
from dragoman.store.sql.database import Database
from dragoman.store.sql.tasks import SqlStore, _listing

ADA = ("", "ada")
BOB = ("", "bob")
EVE = ("", "eve")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def task(id: str, state: TaskState = TaskState.COMPLETED) -> Task:
    return Task(id=id, context_id="c", status=TaskStatus(state=state, timestamp="2026-01-01T00:00:00.000Z"))


def webhook(task_id: str) -> Webhook:
    return Webhook(TaskPushNotificationConfig(id="k", task_id=task_id, url="https://h"), "1.0")


async def kept(store: SqlStore, owner: tuple[str, str] = ADA) -> list[str]:
    return [one.id for one in (await store.list(owner, TaskQuery())).tasks]


async def save(store: SqlStore, clock: Clock, *tasks: Task, owner: tuple[str, str] = ADA) -> None:
    """Save them a second apart, and let what each leads to happen."""
    for one in tasks:
        clock.now += 1
        await store.save(owner, one)
        await store.save_config(owner, webhook(one.id))
        await store.settled()


async def test_a_task_that_was_not_saved_for_long_is_forgotten(database: Database, clock: Clock) -> None:
    store = SqlStore(database, retention=100, clock=clock)
    await save(store, clock, task("a"), task("b", TaskState.WORKING), task("c"), owner=EVE)
    clock.now += 98
    await save(store, clock, task("c"), owner=EVE)  # just over 100 after the first
    assert await kept(store, EVE) == ["b", "c"]
    clock.now += 97
    await save(store, clock, task("d"))
    assert await kept(store, EVE) == ["c"]
    assert [len(await store.configs(EVE, id)) for id in "abc"] == [0, 0, 1]


async def test_a_store_without_retention_keeps_everything(database: Database, clock: Clock) -> None:
    store = SqlStore(database, clock=clock)
    await save(store, clock, task("a"))
    clock.now += 10**9
    await save(store, clock, task("b"))
    assert await kept(store) == ["a", "b"]


async def test_a_webhook_whose_task_never_came_is_forgotten_too(database: Database, clock: Clock) -> None:
    store = SqlStore(database, retention=100, clock=clock)
    await store.save_config(ADA, webhook("never"))
    clock.now += 101
    await save(store, clock, task("a"))
    assert await store.configs(ADA, "never") == ()
    assert await store.configs(ADA, "a") == (webhook("a"),)


async def test_above_the_limit_the_longest_terminal_tasks_go_first(database: Database, clock: Clock) -> None:
    store = SqlStore(database, limit=2, clock=clock)
    await save(store, clock, task("a", TaskState.INPUT_REQUIRED), task("b"), task("c"))
    assert await kept(store) == ["a", "c"]
    await save(store, clock, task("a"), task("d"))
    assert await kept(store) == ["a", "d"]
    assert [len(await store.configs(ADA, id)) for id in "abcd"] == [1, 0, 0, 1]


async def test_when_no_task_is_terminal_the_longest_unchanged_goes(database: Database, clock: Clock) -> None:
    store = SqlStore(database, limit=2, clock=clock)
    await save(store, clock, *(task(id, TaskState.WORKING) for id in "abc"))
    assert await kept(store) == ["b", "c"]


async def test_the_limit_counts_the_tasks_of_everybody_and_nobody_pushes_out_those_of_others(
    database: Database, clock: Clock
) -> None:
    store = SqlStore(database, limit=20, clock=clock)
    await save(store, clock, *(task(f"e{number}") for number in range(5)), owner=EVE)
    await save(store, clock, *(task(f"b{number}") for number in range(6)), owner=BOB)
    await save(store, clock, *(task(f"a{number}") for number in range(100)))
    found = [len(await kept(store, owner)) for owner in (EVE, BOB, ADA)]
    assert found == [5, 6, 9]
    assert await kept(store, ADA) == [f"a{number}" for number in range(91, 100)]


async def test_who_is_alone_has_it_all(database: Database, clock: Clock) -> None:
    store = SqlStore(database, limit=2, clock=clock)
    await save(store, clock, task("b"), task("c"), task("d"))
    assert await kept(store) == ["c", "d"]


async def test_many_tasks_go_at_once(database: Database, clock: Clock) -> None:
    old = SqlStore(database, clock=clock)
    for number in range(1203):
        await old.save(ADA, task(str(number)))
    await save(SqlStore(database, limit=150, clock=clock), clock, task("last"))
    page = await old.list(ADA, TaskQuery())
    assert (page.total, await old.get(ADA, "last")) == (150, task("last"))


async def test_a_sweep_that_fails_is_made_up_for_and_hurts_no_save(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqlStore(database, limit=1, clock=clock)
    await save(store, clock, task("a"))

    def fails() -> None:
        raise UnavailableError

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(database, "transaction", fails)
        await save(store, clock, task("b"))
    assert "the next sweep will" in caplog.text
    assert await kept(store) == ["a", "b"]
    await save(store, clock, task("c"))
    assert await kept(store) == ["c"]


@pytest.mark.parametrize(("limit", "retention"), [(0, None), (None, 0.0)])
async def test_bounds_that_keep_nothing_are_refused(
    database: Database, limit: int | None, retention: float | None
) -> None:
    with pytest.raises(ValueError, match="must be"):
        SqlStore(database, limit=limit, retention=retention)


async def test_a_store_closes_the_database_only_if_it_is_its_own(database: Database) -> None:
    await SqlStore(database).aclose()
    assert await database.fetch("SELECT 1") == [(1,)]
    await SqlStore(database, closing=True).aclose()
    with pytest.raises(UnavailableError):
        await database.fetch("SELECT 1")


@pytest.mark.parametrize("flags", [(), ("after",), ("context",), ("context", "after"), ("state",), ("since", "after")])
async def test_a_list_reads_an_index_and_sorts_nothing(sqlite_url: str, flags: tuple[str, ...]) -> None:
    database = await open_database(sqlite_url)
    for sql in _listing(*(name in flags for name in ("context", "state", "since", "after"))):
        count = max(map(int, re.findall(r"\$(\d+)", sql)))
        plan = [str(row[3]) for row in await database.fetch(f"EXPLAIN QUERY PLAN {sql}", *[1] * count)]
        assert len(plan) == 1  # no sorting behind it
        assert re.match(r"SEARCH dragoman_tasks USING (COVERING )?INDEX \w+ \(tenant=\? AND owner=\?", plan[0])
    await database.aclose()


async def test_a_page_far_behind_is_what_it_would_be_in_the_whole(database: Database, clock: Clock) -> None:
    store = SqlStore(database, clock=clock)
    await save(store, clock, *(task(f"{number:02}") for number in range(30)))
    page = await store.list(ADA, TaskQuery(after=Cursor("2026-01-01T00:00:00.000Z", "19"), limit=5))
    assert ([one.id for one in page.tasks], page.total, page.more) == (["20", "21", "22", "23", "24"], 30, True)
