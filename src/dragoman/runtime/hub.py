"""From one task to everybody who watches it.

Rules of this module:

- Every subscription of a task gets the same events in the same order (1.0 §3.5.2), and one that closes leaves the
  others and the task alone.
- Nothing is ever left out of a stream. A subscription that holds ``queue`` events makes the agent wait for its
  reader, but only for ``patience`` seconds in all; after that it is cut off: its reader still gets what was held and
  then an ``UnavailableError``, never a clean end.
- A task that nobody watches has no feed; a subscription has a future only while somebody waits on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..errors import A2AError, UnavailableError
from ..model import StreamResponse
from ..service import EventStream


class Subscription(EventStream):
    """The events of one task for one reader; :meth:`batch` gives all that are ready."""

    def __init__(self, feed: Feed | None, patience: float = 0.0) -> None:
        self._feed = feed
        self._patience = patience
        self._events: list[StreamResponse] = []
        self._error: A2AError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def push(self, event: StreamResponse) -> int:
        """Hold one more event; returns how many are held."""
        self._events.append(event)
        _wake(self._waiter)
        return len(self._events)

    def end(self, error: A2AError | None = None) -> None:
        """Nothing more will come; the reader gets ``error``, if any, after what is held."""
        self._feed = None
        self._error = error
        _wake(self._waiter)
        _wake(self._room)

    async def ready(self) -> None:
        """Wait for the first event. Raises the error that came instead."""
        while not self._events and self._feed is not None:
            await self._wait()
        if not self._events and self._error is not None:
            raise self._error

    async def batch(self) -> Sequence[StreamResponse]:
        while not self._events:
            if self._feed is None:
                if self._error is not None:
                    raise self._error
                return ()
            await self._wait()
        events, self._events = self._events, []
        if self._room is not None:
            _wake(self._room)
            self._room = None
        return events

    async def aclose(self) -> None:
        feed = self._feed
        self._events, self._pending = [], ()
        self.end()
        if feed is not None:
            feed.leave(self)

    async def make_room(self, queue: int) -> None:
        """Wait until fewer than ``queue`` events are held; cut the reader off when patience is at its end."""
        loop = asyncio.get_running_loop()
        while len(self._events) >= queue and self._feed is not None:
            if self._patience <= 0:
                self._cut(self._feed)
                return
            if self._room is None:
                self._room = loop.create_future()
            start = loop.time()
            await asyncio.wait((self._room,), timeout=self._patience)
            self._patience -= loop.time() - start

    def _cut(self, feed: Feed) -> None:
        self.end(UnavailableError("The reader of this stream was too slow; subscribe to the task again"))
        feed.leave(self)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


class Feed:
    """The subscriptions of one task. ``on_empty`` is called when the last reader left by itself."""

    __slots__ = ("_on_empty", "_patience", "_queue", "_subscriptions", "full")

    def __init__(self, queue: int, patience: float, on_empty: Callable[[], None]) -> None:
        self._queue = queue
        self._patience = patience
        self._on_empty = on_empty
        self._subscriptions: tuple[Subscription, ...] = ()
        self.full = False

    def join(self) -> Subscription:
        """A new subscription, which gets whatever is published from now on."""
        subscription = Subscription(self, self._patience)
        self._subscriptions += (subscription,)
        return subscription

    def leave(self, subscription: Subscription) -> None:
        """Publish to this subscription no more."""
        self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)
        if not self._subscriptions:
            self._on_empty()

    def publish(self, event: StreamResponse) -> None:
        """Give the event to everybody. If that made :attr:`full` true, the agent awaits :meth:`room` next."""
        for subscription in self._subscriptions:
            if subscription.push(event) >= self._queue:
                self.full = True

    async def room(self) -> None:
        """Wait for readers that are behind."""
        self.full = False
        for subscription in self._subscriptions:
            await subscription.make_room(self._queue)

    def end(self, error: A2AError | None = None) -> None:
        """End every subscription, cleanly or with an error."""
        for subscription in self._subscriptions:
            subscription.end(error)
        self._subscriptions = ()


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
