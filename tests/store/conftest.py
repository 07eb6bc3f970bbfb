"""Databases for the tests of what is durable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dragoman.store.opening import open_database
from dragoman.store.sql.database import Database

from .postgres_server import Missing, PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    pytest.importorskip("asyncpg")
    try:
        server = PostgresServer()
    except Missing as reason:
        pytest.skip(str(reason))
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    return postgres_server.database()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'dragoman.db'}"


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await open_database(database_url)
    yield database
    await database.aclose()
