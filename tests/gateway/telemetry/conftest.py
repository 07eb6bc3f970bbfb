"""A gateway that is looked at, in front of our own server on a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman.gateway.config import Auth, Config, Observe, Store, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.switchboard import Switchboard
from dragoman.gateway.telemetry.calls import CallRecord
from dragoman.gateway.telemetry.tallies import Counted
from tests.gateway.fronts import Upstream, upstream


@dataclass
class Seen:
    """A gateway before one agent, and what it wrote into the record of calls."""

    board: Switchboard
    behind: Upstream
    records: list[CallRecord]

    def readings(self) -> dict[tuple[str, ...], float]:
        """Counters and gauges by name and labels."""
        found = self.board.common.telemetry.readings()
        return {(one.name, *one.labels): one.value for one in found if isinstance(one, Counted)}


Look = Callable[..., AbstractAsyncContextManager[Seen]]


@asynccontextmanager
async def looked_at(observe: Observe | None = None, auth: Auth | None = None, **options: Any) -> AsyncIterator[Seen]:
    """``options`` are the upstream's."""
    watching = observe or Observe(calls=True, metrics=True)
    async with upstream() as behind:
        one = Configured(name="alpha", url=f"http://127.0.0.1:{behind.port}", index=False, push="direct", **options)
        async with Switchboard(
            completed(Config(upstream=(one,), observe=watching, auth=auth, store=Store(url="memory")))
        ) as board:
            records: list[CallRecord] = []
            board.common.telemetry.calls = records.append
            yield Seen(board, behind, records)


@pytest.fixture
def look() -> Look:
    return looked_at
