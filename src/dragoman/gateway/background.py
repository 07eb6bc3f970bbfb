"""What goes on when the caller for whom it was begun has left.

Rules of this module:

- A client that goes away cancels nothing: what an agent was asked to do is not part of the request that asked for it.
- What goes on for a caller stays on its account until it ends, and there is only so much of it, of one caller and in
  all. Who shows nothing is one caller, whose share is half of everything.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from ..errors import RateLimitedError, UnavailableError
from ..service import Context

T = TypeVar("T")
MOST = 10_000
MOST_OF_ONE = 1_000
_BUSY = 1.0  # seconds after which who was refused may try again


class Background:
    """Tasks of the gateway's own. Whoever made it closes it. ``most``: tasks for callers, ``of_one``: for one that was
    verified."""

    def __init__(self, *, most: int = MOST, of_one: int = MOST_OF_ONE) -> None:
        self._running: set[asyncio.Task[Any]] = set()
        self._most = most
        self._of_one = of_one
        self._by_caller: Counter[str] = Counter()
        self._for_callers = 0

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, T], name: str, ctx: Context | None = None) -> asyncio.Task[T]:
        """Begin to run ``work``. What it raises is for whoever awaits the task; nobody has to. ``ctx``: of the caller
        for whom it is, None if it is our own. Raises ``RateLimitedError``, ``UnavailableError`` if there is too much
        already; ``work`` is closed then."""
        if ctx is not None:
            try:
                self._admit(ctx.caller.name)
            except BaseException:
                work.close()
                raise
        task = asyncio.create_task(work, name=f"dragoman-{name}")
        self._running.add(task)
        task.add_done_callback(self._ended)
        if ctx is not None:
            self._by_caller[ctx.caller.name] += 1
            self._for_callers += 1
            release = ctx.lease.share() if ctx.lease is not None else None
            task.add_done_callback(partial(self._give_back, ctx.caller.name, release))
        return task

    async def outlasting(self, work: Coroutine[Any, Any, T], name: str, ctx: Context) -> T:
        """The result of ``work``, which goes on if whoever waits here is cancelled. Raises as :meth:`start`."""
        return await asyncio.shield(self.start(work, name, ctx))

    async def aclose(self) -> None:
        """Cancel what is still running, and wait for it."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _admit(self, caller: str) -> None:
        if self._for_callers >= self._most:
            raise UnavailableError("The gateway has too much to wait for already", retry_after=_BUSY)
        if self._by_caller[caller] >= (self._of_one if caller else self._most // 2):
            raise RateLimitedError("Too much is going on for this caller already", retry_after=_BUSY)

    def _give_back(self, caller: str, release: Callable[[], None] | None, _: asyncio.Task[Any]) -> None:
        self._for_callers -= 1
        self._by_caller[caller] -= 1
        if not self._by_caller[caller]:
            del self._by_caller[caller]
        if release is not None:
            release()

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
