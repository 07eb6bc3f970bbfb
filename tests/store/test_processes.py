"""What is kept when processes are killed, or share a database."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from dragoman.store.base import TaskQuery
from dragoman.store.opening import open_store

CHILD = Path(__file__).with_name("writing_child.py")


async def child(url: str, owner: str, tasks: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), url, owner, str(tasks), stdout=asyncio.subprocess.PIPE
    )


async def test_what_was_saved_is_there_after_the_process_was_killed(database_url: str) -> None:
    process = await child(database_url, "ada", 1_000_000)
    assert process.stdout is not None
    saved = [await process.stdout.readline() for _ in range(300)]
    process.kill()
    saved += [line async for line in process.stdout]
    await process.wait()
    store = await open_store(database_url)
    for line in saved:
        if line.endswith(b"\n"):  # the last may be cut
            assert await store.get(("", "ada"), line.decode().strip()) is not None
    assert (await store.list(("", "ada"), TaskQuery(limit=1))).total >= 300
    await store.aclose()


async def test_processes_share_a_database_from_its_first_moment(database_url: str) -> None:
    names = ("ada", "eve", "joe")
    processes = [await child(database_url, name, 300) for name in names]
    written = [await process.communicate() for process in processes]
    assert [out.count(b"\n") for out, _ in written] == [300] * 3
    store = await open_store(database_url)
    for name in names:
        assert (await store.list(("", name), TaskQuery())).total == 300
    await store.aclose()
