"""What goes on when the caller for whom it was begun has left.

A client that goes away cancels nothing: what an agent was asked to do is not part of the request that asked for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from msgspec.structs import replace

from ..service import Context

T = TypeVar("T")


class Background:
    """Tasks of the gateway's own. Whoever made it closes it."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Begin to run ``work``. What it raises is for whoever awaits the task; nobody has to."""
        task = asyncio.create_task(work, name=f"dragoman-{name}")
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def outlasting(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """The result of ``work``, which goes on if whoever waits here is cancelled."""
        return await asyncio.shield(self.start(work, name))

    async def aclose(self) -> None:
        """Cancel what is still running, and wait for it."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain when nobody waits any more


def unhurried(ctx: Context) -> Context:
    """The context for a call that outlasts its caller's: the same caller and credentials, no deadline."""
    return replace(ctx, deadline=None, activated=(), retry_after=None)


def report(inner: Context, ctx: Context) -> None:
    """Hand on what an inner call said beside its reply."""
    ctx.activated, ctx.retry_after = inner.activated, inner.retry_after
