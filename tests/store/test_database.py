"""What both engines do alike."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import UnavailableError
from dragoman.store.sql.database import Database

INSERT = "INSERT INTO things (id, name) VALUES ($1, $2)"
NAMES = "SELECT name FROM things ORDER BY id"


@pytest.fixture
async def things(database: Database) -> Database:
    await database.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
    return database


async def names(database: Database) -> list[str]:
    return [name for (name,) in await database.fetch(NAMES)]


async def test_parameters_go_by_their_number(things: Database) -> None:
    await things.execute("INSERT INTO things (name, id) VALUES ($2, $1)", 1, "a")
    await things.execute(INSERT, 2, "b")
    assert await things.fetch("SELECT id, name FROM things WHERE id = $1 OR id = $1 + 1", 1) == [(1, "a"), (2, "b")]


async def test_the_rows_that_were_written_are_counted(things: Database) -> None:
    assert await things.execute(INSERT, 1, "a") == 1
    assert await things.execute(INSERT, 2, "b") == 1
    assert await things.execute("UPDATE things SET name = $1", "c") == 2
    assert await things.execute("DELETE FROM things WHERE id = $1", 7) == 0
    assert await things.execute("CREATE TABLE others (id INTEGER)") == 0


async def test_what_a_statement_returns_is_fetched_and_kept(things: Database) -> None:
    assert await things.fetch(INSERT + " RETURNING id, name", 1, "a") == [(1, "a")]
    assert await names(things) == ["a"]


async def test_many_rows_are_written_all_or_none(things: Database) -> None:
    await things.execute_many(INSERT, [(1, "a"), (2, "b")])
    with pytest.raises(Exception, match=r"(?i)unique"):
        await things.execute_many(INSERT, [(3, "c"), (4, "d"), (1, "e")])
    await things.execute_many(INSERT, [])
    assert await names(things) == ["a", "b"]


async def test_a_statement_that_fails_takes_no_other_along(things: Database) -> None:
    rows = [(1, "a"), (2, "b"), (1, "again"), (3, "c")]
    done = await asyncio.gather(*(things.execute(INSERT, *row) for row in rows), return_exceptions=True)
    many = await asyncio.gather(
        things.execute_many(INSERT, [(4, "d"), (1, "again")]), things.execute(INSERT, 5, "e"), return_exceptions=True
    )
    assert sorted(await names(things)) == sorted(["a" if done[0] == 1 else "again", "b", "c", "e"])
    assert sum(isinstance(one, Exception) and not isinstance(one, UnavailableError) for one in [*done, *many]) == 2


async def test_a_transaction_is_kept_whole(things: Database) -> None:
    async with things.transaction() as session:
        assert await session.execute(INSERT, 1, "a") == 1
        await session.execute_many(INSERT, [(2, "b"), (3, "c")])
        assert await session.fetch(NAMES) == [("a",), ("b",), ("c",)]
    assert await names(things) == ["a", "b", "c"]


@pytest.mark.parametrize("reason", [ValueError, OSError, asyncio.CancelledError])
async def test_a_transaction_that_is_left_by_an_exception_never_was(
    things: Database, reason: type[BaseException]
) -> None:
    with pytest.raises(reason):
        async with things.transaction() as session:
            await session.execute(INSERT, 1, "a")
            raise reason
    assert await names(things) == []


async def test_a_transaction_whose_statement_fails_never_was(things: Database) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"):
        async with things.transaction() as session:
            await session.execute(INSERT, 1, "a")
            await session.execute(INSERT, 1, "b")
    assert await names(things) == []


async def test_who_is_cancelled_in_a_transaction_leaves_nothing_and_blocks_nobody(things: Database) -> None:
    inside = asyncio.Event()

    async def begin() -> None:
        async with things.transaction() as session:
            await session.execute(INSERT, 1, "a")
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(begin())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await things.execute(INSERT, 1, "b") == 1
    assert await names(things) == ["b"]


async def test_cancelling_at_any_moment_leaves_a_database_that_works(things: Database) -> None:
    async def change(id: int) -> None:
        async with things.transaction() as session:
            await session.execute(INSERT, id, "a")
            await session.execute("DELETE FROM things WHERE id = $1", id)

    for turns in range(12):
        tasks = [asyncio.create_task(change(1)), asyncio.create_task(things.execute(INSERT, 100 + turns, "b"))]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await things.execute(INSERT, 2, "c")
    assert (await names(things))[0] == "c"


async def test_calls_made_at_once_all_happen(things: Database) -> None:
    async def add(id: int) -> None:
        if id % 10:
            await things.execute(INSERT, id, str(id))
        else:
            async with things.transaction() as session:
                await session.execute(INSERT, id, str(id))

    await asyncio.gather(*map(add, range(300)))
    assert len(await names(things)) == 300


async def test_rows_that_somebody_works_on_are_passed_over(things: Database) -> None:
    if things.engine == "sqlite":
        assert things.locking == ""  # where nobody else is in a transaction
        return
    await things.execute_many(INSERT, [(1, "a"), (2, "b")])
    first = "SELECT id FROM things ORDER BY id LIMIT 1" + things.locking
    async with things.transaction() as one, things.transaction() as other:
        assert [await one.fetch(first), await other.fetch(first)] == [[(1,)], [(2,)]]


async def test_a_closed_database_is_unavailable(things: Database) -> None:
    await things.aclose()
    with pytest.raises(UnavailableError):
        await things.fetch(NAMES)
    with pytest.raises(UnavailableError):
        async with things.transaction():
            pass


async def test_closing_finishes_what_was_asked_for(database: Database, database_url: str) -> None:
    await database.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
    writes = [asyncio.create_task(database.execute(INSERT, id, "a")) for id in range(5)]
    await asyncio.sleep(0)
    await database.aclose()
    assert await asyncio.gather(*writes) == [1] * 5
