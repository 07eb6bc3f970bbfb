"""Cancellations that a library does not hear."""

from __future__ import annotations

import asyncio
from types import TracebackType


class Heeding:
    """Sees to it that a cancellation of the current task ends the block.

    pyreqwest awaits in Rust: what is ready there at the very moment of a cancellation is returned, or raised, in its
    place, and a loop around it would go on for ever. Only cancellations that come within the block count.
    """

    __slots__ = ("_before", "_task")

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in one
        self._task = task
        self._before = task.cancelling()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task.cancelling() > self._before and (error is None or isinstance(error, Exception)):
            raise asyncio.CancelledError from None
