"""A process that saves tasks, to be killed or left to its work: URL, name of the owner, number of tasks.

Prints the id of each task once its save has returned.
"""

from __future__ import annotations

import asyncio
import os
import sys

from dragoman.model import Task, TaskState, TaskStatus
from dragoman.store.base import Store
from dragoman.store.opening import open_store

WIDTH = 20


async def write(store: Store, owner: str, ids: range) -> None:
    for number in ids:
        await store.save(("", owner), Task(id=str(number), status=TaskStatus(state=TaskState.COMPLETED)))
        os.write(1, b"%d\n" % number)


async def main(url: str, owner: str, tasks: str) -> None:
    store = await open_store(url)
    await asyncio.gather(*(write(store, owner, range(first, int(tasks), WIDTH)) for first in range(WIDTH)))
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
