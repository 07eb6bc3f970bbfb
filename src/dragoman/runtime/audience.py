"""Everybody who waits for a task or watches it.

Rules of this module:

- Who waits has a future, who watches a subscription; with neither, nothing is held.
- A wait ends with the task once it is settled, with the agent's direct message, or with an error.
- It is a struct because one is made for every message, and nothing else is made as fast.
- Streams end when the task is final or asks for input. While it waits for an authorization they stay open, and so
  does a stream that was opened on a waiting task, but only for so long without an event (1.0 §3.1.6, §7.6.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from ..errors import A2AError
from ..model import Message, StreamResponse, Task
from .hub import Feed, Subscription

#: How a wait ends: with a task, or with a direct message.
Answer = Task | Message


class Audience(msgspec.Struct, kw_only=True, eq=False):
    """Who waits for and who watches one task."""

    feed: Feed | None = None
    _waiters: tuple[asyncio.Future[Answer], ...] = ()
    _first: asyncio.Future[Message | None] | None = None
    _timer: asyncio.TimerHandle | None = None

    def wait(self) -> asyncio.Future[Answer]:
        """A future that has the task once it settles."""
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters += (waiter,)
        return waiter

    def stop_waiting(self, waiter: asyncio.Future[Answer]) -> None:
        """Forget a future of :meth:`wait`."""
        self._waiters = tuple(other for other in self._waiters if other is not waiter)

    def wait_for_first(self) -> asyncio.Future[Message | None]:
        """A future that ends when the task exists (None) or the agent answers with a message."""
        self._first = asyncio.get_running_loop().create_future()
        return self._first

    def join(self, queue: int, patience: float, on_empty: Callable[[], None]) -> Subscription:
        """A subscription to what will be published."""
        if self.feed is None:
            self.feed = Feed(queue, patience, on_empty)
        return self.feed.join()

    def tell_first(self, message: Message | None = None) -> None:
        """The task exists (None), or never will because the agent answered with a message."""
        if self._first is not None and not self._first.done():
            self._first.set_result(message)

    def tell_settled(self, task: Task) -> None:
        """The task is terminal or interrupted."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(task)
        self._waiters = ()

    def tell_message(self, message: Message) -> None:
        """The agent answered with a message, and that is all."""
        self.tell_first(message)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(message)
        self._waiters = ()
        if self.feed is not None:
            self.feed.publish(StreamResponse(message=message))
            self.end()

    def tell_error(self, error: A2AError) -> None:
        """Neither a task nor a message will come."""
        for waiter in (*self._waiters, self._first):
            if waiter is not None and not waiter.done():
                waiter.set_exception(error)
        self._waiters = ()
        self.end(error)

    def end(self, error: A2AError | None = None) -> None:
        """End every stream, cleanly or with an error."""
        self.disarm()
        if self.feed is not None:
            self.feed.end(error)
            self.feed = None

    def arm(self, seconds: float, on_time: Callable[[], None]) -> None:
        """Call ``on_time`` unless :meth:`disarm` is called within ``seconds``."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, on_time)

    def disarm(self) -> None:
        """Something happened."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
