"""What SQLite alone does: one file, one thread, several statements in a commit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, UnavailableError
from dragoman.store.sql import sqlite_thread
from dragoman.store.sql.sqlite import SqliteDatabase

INSERT = "INSERT INTO things (id, name) VALUES ($1, $2)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.db"


@pytest.fixture
async def things(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteDatabase]:
    monkeypatch.setattr(sqlite_thread, "BUSY", 0.05)
    database = await SqliteDatabase.open(str(path))
    await database.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)")
    yield database
    await database.aclose()


def other(path: Path) -> sqlite3.Connection:
    """As another process would open it."""
    return sqlite3.connect(path, isolation_level=None)


async def test_statements_that_wait_share_a_commit(things: SqliteDatabase, path: Path) -> None:
    reader = other(path)

    def commits() -> int:  # as another connection sees them, each changes it
        return int(reader.execute("PRAGMA data_version").fetchone()[0])

    before = commits()
    await asyncio.gather(*(things.execute(INSERT, id, "a") for id in range(100)))
    assert reader.execute("SELECT COUNT(*) FROM things").fetchone() == (100,)
    frames = (path.parent / "x.db-wal").stat().st_size // 4096
    assert commits() != before
    assert frames < 20  # pages written; a commit of its own for each would have been a page for each
    reader.close()


async def test_a_reader_of_another_process_waits_for_nobody(things: SqliteDatabase, path: Path) -> None:
    reader = other(path)
    async with things.transaction() as session:
        await session.execute(INSERT, 1, "a")
        assert reader.execute("SELECT COUNT(*) FROM things").fetchone() == (0,)
    assert reader.execute("SELECT COUNT(*) FROM things").fetchone() == (1,)
    reader.close()


async def test_a_file_that_another_process_has_locked_is_unavailable_until_it_is_free(
    things: SqliteDatabase, path: Path
) -> None:
    writer = other(path)
    writer.execute("BEGIN IMMEDIATE")
    failed = await asyncio.gather(*(things.execute(INSERT, id, "a") for id in (1, 2)), return_exceptions=True)
    assert [type(one) for one in failed] == [UnavailableError] * 2
    assert failed[0] is not failed[1]
    with pytest.raises(UnavailableError):
        async with things.transaction():
            pytest.fail("entered")
    assert await things.fetch("SELECT * FROM things") == []
    writer.execute("COMMIT")
    writer.close()
    assert await things.execute(INSERT, 1, "a") == 1


async def test_a_full_disk_is_unavailable_and_undoes_the_whole_commit(things: SqliteDatabase) -> None:
    [(pages,)] = await things.fetch("PRAGMA page_count")
    await things.fetch(f"PRAGMA max_page_count = {pages + 2}")
    done = await asyncio.gather(
        things.execute(INSERT, 1, "small"),
        things.execute(INSERT, 2, "x" * 100_000),
        things.execute(INSERT, 3, "small"),
        return_exceptions=True,
    )
    kept = [id for (id,) in await things.fetch("SELECT id FROM things ORDER BY id")]
    assert kept == [id for id, one in enumerate(done, 1) if one == 1]
    assert isinstance(done[1], UnavailableError)
    await things.fetch(f"PRAGMA max_page_count = {pages + 1000}")
    assert await things.execute(INSERT, 2, "x" * 100_000) == 1


async def test_who_stops_waiting_does_not_stop_the_others(things: SqliteDatabase) -> None:
    writes = [asyncio.create_task(things.execute(INSERT, id, "a")) for id in range(3)]
    await asyncio.sleep(0)
    writes[1].cancel()
    done = await asyncio.gather(*writes, return_exceptions=True)
    assert [done[0], done[2]] == [1, 1]
    assert isinstance(done[1], asyncio.CancelledError)


async def test_calls_happen_in_the_order_in_which_they_were_made(things: SqliteDatabase) -> None:
    await things.execute(INSERT, 1, "")
    add = "UPDATE things SET name = name || $1 WHERE id = 1 RETURNING name"
    rows = await asyncio.gather(*(things.fetch(add, letter) for letter in "abcdef"))
    assert rows[-1] == [("abcdef",)]


@pytest.fixture
def no_database(path: Path) -> Path:
    path.write_bytes(b"something else" * 1000)
    return path


async def test_what_is_no_database_is_refused(no_database: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.db cannot be opened as a SQLite database: file is not a database"):
        await SqliteDatabase.open(str(no_database))
