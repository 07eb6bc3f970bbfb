"""Who claimed an id first, over both engines."""

from __future__ import annotations

import asyncio

from dragoman.store.opening import open_database
from dragoman.store.sql.owners import OwnedId, SqlOwners

KEY = OwnedId("agent", "task", "t")


async def test_of_many_that_claim_an_id_at_once_one_has_it(database_url: str) -> None:
    databases = [await open_database(database_url) for _ in range(2)]
    owners = [SqlOwners(one, retention=60) for one in databases]
    assert await owners[0].find(KEY) is None
    names = [f"caller{number}" for number in range(20)]
    found = await asyncio.gather(*(owners[number % 2].claim(KEY, name) for number, name in enumerate(names)))
    assert len(set(found)) == 1 and found[0] in names
    assert [await one.find(KEY) for one in owners] == [found[0]] * 2
    for one in databases:
        await one.aclose()


async def test_an_id_that_nobody_made_use_of_is_forgotten(database_url: str) -> None:
    database, now = await open_database(database_url), [1000.0]
    owners = SqlOwners(database, retention=100, clock=lambda: now[0])
    await owners.claim(KEY, "alice")
    now[0] += 101
    assert await owners.claim(OwnedId("agent", "context", "c"), "bob") == "bob"
    assert await owners.find(KEY) is None
    await database.aclose()
