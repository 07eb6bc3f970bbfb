"""Waiting for something to become true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LIMIT = 10.0  # seconds


async def until(check: Callable[[], object]) -> None:
    """Wait until ``check()`` is true; fails after :data:`LIMIT`."""
    async with asyncio.timeout(LIMIT):
        while not check():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)
