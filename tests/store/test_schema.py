"""How the tables come to be, and to be newer."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import ConfigError
from dragoman.store.opening import open_database
from dragoman.store.sql import schema
from dragoman.store.sql.database import Database, Row

VERSIONS = "SELECT version FROM dragoman_schema ORDER BY version"
EXTRA = "-- Of a later version; it says so.\nCREATE TABLE extra (\n  id {serial},\n  a {text}, b {blob}, c {time}\n);\n"


def later(monkeypatch: pytest.MonkeyPatch, text: str) -> int:
    """A version after this one, whose file has this text."""
    version = schema.newest() + 1
    files = {**schema._files(), version: text}
    monkeypatch.setattr(schema, "_files", lambda: files)
    return version


async def fetch(url: str, sql: str) -> list[Row]:
    database = await open_database(url)
    try:
        return await database.fetch(sql)
    finally:
        await database.aclose()


async def test_an_empty_database_gets_every_version_once(database_url: str) -> None:
    expected = [(version,) for version in range(1, schema.newest() + 1)]
    assert await fetch(database_url, VERSIONS) == expected
    assert await fetch(database_url, VERSIONS) == expected


async def test_those_who_open_an_empty_database_at_once_do_it_together(database_url: str) -> None:
    databases = await asyncio.gather(*(open_database(database_url) for _ in range(5)))
    assert len(await databases[0].fetch(VERSIONS)) == schema.newest()
    for database in databases:
        await database.aclose()


async def test_an_older_schema_is_brought_up_to_date(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await fetch(database_url, VERSIONS)
    newer = later(monkeypatch, EXTRA)
    assert (await fetch(database_url, VERSIONS))[-1] == (newer,)
    database = await open_database(database_url)
    sql = "INSERT INTO extra (a, b, c) VALUES ($1, $2, $3) RETURNING id, a, b, c"
    assert await database.fetch(sql, "x", b"\0", 1764560845.123456) == [(1, "x", b"\0", 1764560845.123456)]
    await database.aclose()


async def test_a_newer_schema_is_refused(database_url: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        newer = later(patch, EXTRA)
        await fetch(database_url, VERSIONS)
    with pytest.raises(ConfigError, match=f"has schema {newer}, .* knows {newer - 1}"):
        await open_database(database_url)


async def test_a_version_is_applied_whole_or_not_at_all(database_url: str) -> None:
    await fetch(database_url, VERSIONS)
    with pytest.MonkeyPatch.context() as patch:
        later(patch, EXTRA + "nonsense;\n")
        with pytest.raises(Exception, match="nonsense"):
            await open_database(database_url)
    assert (await fetch(database_url, VERSIONS))[-1] == (schema.newest(),)
    with pytest.raises(Exception, match="extra"):
        await fetch(database_url, "SELECT * FROM extra")


async def test_every_version_has_its_file() -> None:
    assert sorted(schema._files()) == list(range(1, schema.newest() + 1))


async def test_statements_of_the_tables_run_on_both_engines(database: Database) -> None:
    assert await database.fetch("SELECT COUNT(*) FROM dragoman_tasks") == [(0,)]
