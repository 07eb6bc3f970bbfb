"""What PostgreSQL alone does: it can go away, and come back."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from dragoman.errors import ConfigError, DragomanError, InvalidParamsError, UnavailableError
from dragoman.model import Task, TaskState, TaskStatus
from dragoman.store.base import TaskQuery
from dragoman.store.opening import open_database, open_store

from .postgres_server import PostgresServer

ADA = ("", "ada")


def task(id: str) -> Task:
    return Task(id=id, status=TaskStatus(state=TaskState.WORKING))


async def test_a_restart_of_the_server_is_survived(postgres_server: PostgresServer, postgres_url: str) -> None:
    store = await open_store(postgres_url)
    await asyncio.gather(*(store.save(ADA, task(str(number))) for number in range(20)))
    await asyncio.to_thread(postgres_server.stop)
    try:
        for attempt in (store.save(ADA, task("x")), store.delete(ADA, "1")):
            with pytest.raises(UnavailableError):
                await attempt
        with pytest.raises(UnavailableError):
            await open_database(postgres_url)
    finally:
        await asyncio.to_thread(postgres_server.start)
    await store.save(ADA, task("y"))
    assert (await store.list(ADA, TaskQuery())).total == 21
    await store.aclose()


async def test_a_transaction_that_the_server_cut_off_is_unavailable(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    database = await open_database(postgres_url)
    with pytest.raises(UnavailableError):
        async with database.transaction() as session:
            [(backend,)] = await session.fetch("SELECT pg_backend_pid()")
            await database.fetch("SELECT pg_terminate_backend($1)", backend)
            await session.fetch("SELECT 1")
    assert await database.fetch("SELECT 1") == [(1,)]
    await database.aclose()


async def test_an_argument_of_the_wrong_type_is_a_mistake_of_ours(postgres_url: str) -> None:
    database = await open_database(postgres_url)
    with pytest.raises(Exception, match="expected str") as raised:
        await database.fetch("SELECT * FROM dragoman_tasks WHERE id = $1", 1)
    assert not isinstance(raised.value, DragomanError)
    await database.aclose()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("@/postgres", ":s3cret@/nowhere"), ConfigError),
        (("ada@", "eve:s3cret@"), ConfigError),
        (("ada@/postgres?host=", "ada:s3cret@/postgres?host=/nowhere"), UnavailableError),
        (("ada@/postgres?host=", "ada:s3cret@/postgres?port=s3cret&host="), ConfigError),
        (("ada@/postgres?", "ada:s3cret@/postgres?sslmode=s3cret&"), ConfigError),
    ],
)
async def test_a_password_is_in_no_error(
    postgres_url: str, change: tuple[str, str], expected: type[DragomanError]
) -> None:
    with pytest.raises(expected) as raised:
        await open_database(postgres_url.replace(*change))
    said = [line for line in traceback.format_exception(raised.value) if "Error" in line.split(":")[0]]
    assert not any("s3cret" in line for line in said)


async def test_the_password_may_come_apart_from_the_address(postgres_url: str) -> None:
    database = await open_database(postgres_url, "s3cret")
    assert await database.fetch("SELECT 1") == [(1,)]
    await database.aclose()


@pytest.mark.parametrize("text", ["a\0b", "".join(chr(0x4E00 + n) for n in range(9000))])
async def test_a_text_that_it_cannot_hold_is_refused_as_what_it_is(postgres_url: str, text: str) -> None:
    database = await open_database(postgres_url)
    with pytest.raises(InvalidParamsError):
        await database.execute(
            "INSERT INTO dragoman_owners (upstream, kind, id, owner, seen) VALUES ($1, '', '', '', 0)", text
        )
    await database.aclose()
