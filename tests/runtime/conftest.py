"""Engines that are closed when a test ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from dragoman.model import Task
from dragoman.runtime.agent import Handler
from tests.runtime.bench import Bench, Open, open_bench


@pytest.fixture
async def bench() -> AsyncIterator[Open]:
    """Makes a bench for a handler."""
    opened: list[Bench] = []

    def open(handler: Handler, *, on_cancel: Callable[[Task], Awaitable[bool]] | None = None, **more: Any) -> Bench:
        opened.append(open_bench(handler, on_cancel=on_cancel, **more))
        return opened[-1]

    yield open
    for one in opened:
        await one.engine.aclose()
