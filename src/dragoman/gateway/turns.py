"""How many calls, or streams, an agent is given at a time, and the waiting for a turn.

Rules of this module:

- First come, first served. A turn that is given back goes to whoever waits longest; nobody overtakes.
- The wait is bounded: in time, and in how many wait. Who is beyond either is refused with UnavailableError.
- A turn is given back exactly once for each that was taken; one that was handed to a waiter who is gone goes on to the
  next.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ..errors import UnavailableError


class Turns:
    """``most`` turns at a time. ``patience``: seconds that a caller waits for one; ``waiting``: callers that may,
    default as many as there are turns. ``what``: of what, for the refusal."""

    def __init__(self, most: int, *, patience: float, waiting: int | None = None, what: str = "calls") -> None:
        self.taken = 0
        self.most = most
        self._patience = patience
        self._waiting = most if waiting is None else waiting
        self._what = what
        self._line: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._line)

    def take_now(self) -> bool:
        """Take a turn if that needs no waiting."""
        if self.taken >= self.most or self._line:
            return False
        self.taken += 1
        return True

    async def take(self, deadline: float | None = None) -> None:
        """Take a turn, waiting for it; ``deadline`` is of the caller, on the loop's clock. Raises
        ``UnavailableError``."""
        if self.take_now():
            return
        if len(self._line) >= self._waiting or not self._patience:
            raise self._refusal()
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience
        mine: asyncio.Future[None] = loop.create_future()
        self._line.append(mine)
        try:
            async with asyncio.timeout_at(until if deadline is None else min(until, deadline)):
                await mine
        except TimeoutError:
            self._leave(mine)
            raise self._refusal() from None
        except BaseException:
            self._leave(mine)
            raise

    def give_back(self) -> None:
        """A turn is over; it goes to whoever is next in line."""
        while self._line:
            next_one = self._line.popleft()
            if not next_one.done():
                next_one.set_result(None)
                return
        self.taken -= 1

    def _leave(self, mine: asyncio.Future[None]) -> None:
        """Whoever waited goes: out of the line, or with the turn that it got in the same moment."""
        if mine.done() and not mine.cancelled():
            self.give_back()
        else:
            mine.cancel()
            if mine in self._line:
                self._line.remove(mine)

    def _refusal(self) -> UnavailableError:
        after = max(1.0, self._patience)
        return UnavailableError(f"The agent has all the {self._what} that it is given at a time", retry_after=after)
