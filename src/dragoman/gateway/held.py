"""Streams on the accounts of callers: until they are closed, or their caller may not have them any more.

Rules of this module:

- A stream is given back exactly once.
- A caller who is not known any more after a reload, or may not call that agent or operation, loses the streams that it
  has: each ends with an error that says why, as a call would. Streams of others notice nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import A2AError
from ..service import AnyOperation, Item, Stream


class Held(Stream[Item]):
    """A stream of ``op`` of the agent ``upstream`` that ``caller`` has; ``release`` is called once it is closed."""

    def __init__(
        self,
        inner: Stream[Item],
        release: Callable[[], None],
        caller: str,
        op: AnyOperation,
        upstream: str,
        among: set[Held[Any]],
    ) -> None:
        self.caller, self.op, self.upstream = caller, op, upstream
        self._inner = inner
        self._release: Callable[[], None] | None = release
        self._among = among
        self._reading: asyncio.Task[Any] | None = None
        self._ended: A2AError | None = None
        among.add(self)

    async def batch(self) -> Sequence[Item]:
        if self._ended is not None:
            raise self._ended
        self._reading = asyncio.current_task()
        try:
            return await self._inner.batch()
        except asyncio.CancelledError:
            if self._ended is None or self._reading is None or self._reading.uncancel():
                raise  # it is not, or not only, us
            raise self._ended from None
        finally:
            self._reading = None

    def end(self, error: A2AError) -> None:
        """Have whoever reads get this error, now and from now on."""
        self._ended = error
        if self._reading is not None:
            self._reading.cancel()

    async def aclose(self) -> None:
        release, self._release = self._release, None
        self._among.discard(self)
        if release is not None:
            release()
        await self._inner.aclose()
