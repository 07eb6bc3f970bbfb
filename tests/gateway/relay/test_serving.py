"""Delivering by itself: over a real outbox, to nobody in particular."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dragoman.gateway.relay.serving import Counts, Pace, Serving
from dragoman.model import TaskPushNotificationConfig
from dragoman.runtime.notice import FORMS
from dragoman.runtime.webhooks import Answer
from dragoman.store.opening import open_database
from dragoman.store.outbox import Change, Registration, Scope, Tell, Watch
from dragoman.store.sql.outbox import Outbox
from dragoman.store.sql.schema import migrate


class Took:
    """Takes everything."""

    def __init__(self) -> None:
        self.something = asyncio.Event()

    async def ask(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self.something.set()
        return Answer(204)

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_what_was_put_down_before_the_clock_was_put_back_is_delivered_soon(tmp_path: Path) -> None:
    now = 1_000_000.0
    database = await open_database(f"sqlite:{tmp_path / 'outbox.db'}")
    await migrate(database)
    outbox = Outbox(database, clock=lambda: now)
    config = TaskPushNotificationConfig(id="c", url="https://h.example/x")
    watch = Watch(id="w", scope=Scope("agent", "", ""), reference="r", secret="s", task_id="t")
    await outbox.open(watch, Registration(id="r", watch_id="w", config=config, version="1.0"))
    await outbox.change("w", lambda state: Change(tell=(Tell("r", b"{}"),)))
    now -= 3600.0
    post = Took()
    serving = Serving(outbox, post, FORMS, Counts(), pace=Pace(poll=0.01, lease=1e5), clock=lambda: now)
    await serving.start()
    try:
        async with asyncio.timeout(10):
            while not post.something.is_set():
                now += 30.0
                with suppress(TimeoutError):
                    await asyncio.wait_for(post.something.wait(), 0.01)
    finally:
        await serving.aclose()
        await database.aclose()
    assert now < 1_000_000.0  # long before the clock has caught up
