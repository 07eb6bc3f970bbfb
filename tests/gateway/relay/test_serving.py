"""Delivering by itself: over a real outbox, to nobody in particular."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dragoman.gateway.relay.serving import Counts, Pace, Serving
from dragoman.model import TaskPushNotificationConfig
from dragoman.runtime.notice import FORMS
from dragoman.runtime.webhooks import Answer
from dragoman.store.opening import open_database
from dragoman.store.outbox import Change, Registration, Scope, Tell, Watch
from dragoman.store.sql.outbox import Outbox
from dragoman.store.sql.schema import migrate

START = 1_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class Receivers:
    """Take everything, at once or, at the host ``slow``, when it is ``open``."""

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.asked: list[str] = []
        self.more = asyncio.Event()
        self.open = asyncio.Event()

    async def ask(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        host = urlsplit(url).hostname or ""
        self.asked.append(host)
        if host.startswith("slow"):
            await self.open.wait()
        self.taken.append(host)
        self.more.set()
        return Answer(204)

    async def until(self, host: str, number: int, clock: Clock, *, step: float = 1.0) -> None:
        """Let time pass until a host has taken so many."""
        async with asyncio.timeout(20):
            while self.taken.count(host) < number:
                clock.now += step
                self.more.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.more.wait(), 0.01)

    async def aclose(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def outbox_with(path: Path, clock: Clock, *hosts: str) -> AsyncIterator[Outbox]:
    """An outbox with a line and a delivery for each host."""
    database = await open_database(f"sqlite:{path / 'outbox.db'}")
    try:
        await migrate(database)
        outbox = Outbox(database, clock=clock)
        for number, host in enumerate(hosts):
            name = str(number)
            config = TaskPushNotificationConfig(id=name, url=f"https://{host}/{number}")
            watch = Watch(id=name, scope=Scope("agent", "", ""), reference=name, secret="s", task_id=name)
            await outbox.open(watch, Registration(id=name, watch_id=name, config=config, version="1.0"))
            await outbox.change(name, lambda state, line=name: Change(tell=(Tell(line, b"{}"),)))  # type: ignore[misc]
        yield outbox
    finally:
        await database.aclose()


async def test_what_was_put_down_before_the_clock_was_put_back_is_delivered_soon(tmp_path: Path) -> None:
    clock, post = Clock(), Receivers()
    async with outbox_with(tmp_path, clock, "quick") as outbox:
        clock.now -= 3600.0
        serving = Serving(outbox, post, FORMS, Counts(), pace=Pace(poll=0.01, lease=1e5), clock=clock)
        await serving.start()
        await post.until("quick", 1, clock, step=30.0)
        await serving.aclose()
        assert clock.now < START  # long before the clock has caught up


@pytest.mark.parametrize("most", [16, 32])
async def test_a_host_that_does_not_answer_holds_up_no_other(tmp_path: Path, most: int) -> None:
    clock, post = Clock(), Receivers()
    async with outbox_with(tmp_path, clock, *["slow"] * 3 * most, *["quick"] * 5) as outbox:
        serving = Serving(outbox, post, FORMS, Counts(), pace=Pace(poll=0.01, lease=1e5, in_flight=most), clock=clock)
        await serving.start()
        await post.until("quick", 5, clock)
        assert post.asked.count("slow") == most // 2  # alone it may have so much; the others found their turn
        post.open.set()
        await post.until("slow", 3 * most, clock)
        await serving.aclose()
        assert post.taken.count("slow") == 3 * most
