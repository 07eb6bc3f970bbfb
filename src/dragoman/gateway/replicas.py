"""One replica of an agent: the client that calls it, how it fares, and when its card is looked at again.

Rules of this module:

- A client is closed when it was replaced and the last call and stream on it has ended, never before.
- Every call is judged: connections that fail, times that run out, and *unavailable* (502 to 504) speak against the
  replica, any other answer for it, an error that the caller made included. Broken protocol says neither.
- The card is looked at when its freshness ends; at once, but not too often, when calls fail in a way that a new card
  would explain; and again and again, ever further apart, while it cannot be had. Until there is another the last one
  stands.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ..client.client import Client
from ..client.failover import Interfaces
from ..client.resolve import Found
from ..errors import (
    DeadlineExceededError,
    DragomanError,
    MethodNotFoundError,
    PeerError,
    TransportError,
    UnavailableError,
    VersionNotSupportedError,
)
from ..model import GET_TASK, SEND_MESSAGE, SEND_STREAMING_MESSAGE
from ..service import AnyOperation, Context
from .breaker import Breaker
from .config import Upstream
from .freshness import Pace

log = logging.getLogger(__name__)

#: Operations that every agent has: one that does not know them speaks another version than its card said.
_OF_ALL: frozenset[AnyOperation] = frozenset({SEND_MESSAGE, SEND_STREAMING_MESSAGE, GET_TASK})
_AGAINST = (TransportError, UnavailableError, DeadlineExceededError)
#: Looks in a row that find no card before the replica counts as away.
LASTING = 3


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between attempts to reach an upstream: ``first``, doubled each time up to ``most``."""

    first: float = 1.0
    most: float = 60.0

    def delay(self, attempt: int) -> float:
        """How long to wait after attempt number ``attempt``, counted from 0: between half and all of its time."""
        return min(self.first * 2.0 ** min(attempt, 30), self.most) * random.uniform(0.5, 1.0)


class Line:
    """A client, and how many calls and streams use it."""

    def __init__(self, client: Client, close: Callable[[Client], None]) -> None:
        self.client = client
        self.users = 0
        self._close: Callable[[Client], None] | None = close
        self._retired = False

    def leave(self) -> None:
        """A user is done."""
        self.users -= 1
        if self._retired and not self.users:
            self._end()

    def retire(self) -> None:
        """There is another one; close this when nobody uses it any more."""
        self._retired = True
        if not self.users:
            self._end()

    def _end(self) -> None:
        close, self._close = self._close, None
        if close is not None:
            close(self.client)


@dataclass(frozen=True, slots=True)
class Means:
    """What a replica needs. ``resolve`` and ``connect`` fetch its card and make a client of it; ``changed`` is told of
    another client, ``looked`` of every look, ``tell`` in words of what an operator wants to know."""

    resolve: Callable[[str, Found | None], Awaitable[Found]]
    connect: Callable[[str, Found], Awaitable[Client]]
    changed: Callable[[], None]
    looked: Callable[[], None]
    tell: Callable[[str], None]
    backoff: Backoff = field(default_factory=Backoff)
    pace: Pace = field(default_factory=Pace)


class Replica:
    """The agent at one url. ``line`` is None until it was reached, and ``error`` says why the last look failed."""

    def __init__(self, url: str, config: Upstream, means: Means) -> None:
        self.url = url
        self.breaker = Breaker(config.breaker)
        self.line: Line | None = None
        self.error: DragomanError | None = None
        self.last_error: DragomanError | None = None
        self.calls = 0
        self.streams = 0
        self.connects = 0  # so far
        self.failures = 0
        self.lists = True  # whether it may know ListTasks
        self.missed = 0  # looks in a row that found no card
        self.next_look = means.backoff.first  # seconds
        self.looked = False
        self._refresh = config.refresh
        self._means = means
        self._found: Found | None = None
        self._doubt = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> int:
        """Calls and streams that it has at the moment."""
        return self.calls + self.streams

    @property
    def reachable(self) -> bool:
        """Whether calls go to it, as far as is known."""
        return self.line is not None and self.breaker.state != "open" and self.missed < LASTING

    # -- calls

    def enter(self) -> tuple[Line, bool]:
        """Use it for a call; gives the line to use, to be left by whoever asked, and whether the call is a trial.
        Raises ``UnavailableError`` at once if it is away, with the time after which to come back."""
        wait = self.breaker.wait()
        if self.line is None or wait:
            raise self.away()
        self.line.users += 1
        return self.line, self.breaker.enter()

    def away(self) -> UnavailableError:
        """What a caller is told while it is."""
        return UnavailableError("The agent behind this gateway cannot be reached", retry_after=self.retry_after)

    @property
    def retry_after(self) -> float:
        """Seconds after which a caller may come back."""
        return max(1.0, self.breaker.wait() if self.line is not None else self.next_look)

    def answered(self) -> None:
        """A call came back with an answer."""
        self.missed = 0
        if self.breaker.succeeded():
            self._means.tell(f"{self.url} answers again")

    def failed(self, error: Exception, op: AnyOperation, ctx: Context, trial: bool) -> None:
        """A call ended in an error: judge it."""
        if isinstance(error, _AGAINST):
            self.last_error = error
        if isinstance(error, TransportError) and error.timed_out and _was_hurried(ctx):
            self.breaker.abandoned(trial)
        elif isinstance(error, _AGAINST):
            self._against(error, trial)
        elif isinstance(error, PeerError) or not isinstance(error, DragomanError):
            self.breaker.abandoned(trial)
        else:
            self.answered()
        if isinstance(error, TransportError | VersionNotSupportedError) or (
            isinstance(error, MethodNotFoundError) and op in _OF_ALL
        ):
            self._doubt.set()

    def broke(self, error: DragomanError) -> None:
        """An open stream broke."""
        if isinstance(error, _AGAINST):
            self.last_error = error
            self._against(error, trial=False)
            self._doubt.set()

    def _against(self, error: DragomanError, trial: bool) -> None:
        self.failures += 1
        asked = error.retry_after if isinstance(error, UnavailableError) else None
        if self.breaker.failed(trial, retry_after=asked):
            self._means.tell(f"{self.url} is left alone for {self.breaker.wait():.0f} seconds: {error}")

    # -- the card

    def start(self) -> None:
        """Begin to look at its card, now and again."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="dragoman-upstream-card")

    async def look(self) -> None:
        """Look at its card once, and connect anew if it is another. Raises what ``Means.resolve`` and ``Means.connect``
        do."""
        self._doubt.clear()
        try:
            found = await self._means.resolve(self.url, self._found)
            if self._found is None or self.line is None or _differs(found, self._found):
                await self._connect(found)
            elif isinstance(interfaces := self.line.client.service, Interfaces):
                interfaces.prefer_first()
        except DragomanError as error:
            self.error = error
            self.missed += 1
            self.failures += 1
            raise
        finally:
            self.looked = True
            self._means.looked()
        self._found, self.error, self.missed = found, None, 0

    async def _connect(self, found: Found) -> None:
        client = await self._means.connect(self.url, found)
        before, self.line = self.line, Line(client, self._close)
        self.lists = True
        self.connects += 1
        if before is not None:
            before.retire()
        self._means.changed()

    async def _keep(self) -> None:
        attempt = 0
        if self._found is None:
            attempt = await self._kept(attempt)
        else:  # it was looked at before this began
            self.next_look = self._means.pace.wait(self._found.fields, self._refresh)
        while True:
            if self.error is not None:
                await asyncio.sleep(self.next_look)
            else:
                await self._due()
            attempt = await self._kept(attempt)

    async def _due(self) -> None:
        """Until the next look at a card that is there."""
        floor = min(self._means.pace.floor, self.next_look)
        await asyncio.sleep(floor)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.next_look - floor):
                await self._doubt.wait()

    async def _kept(self, attempt: int) -> int:
        """One look; gives how many in a row have failed by now."""
        known = self.line is not None
        try:
            await self.look()
        except DragomanError as error:
            self.next_look = self._means.backoff.delay(attempt)
            if not attempt and not known:
                self._means.tell(f"{error}. It is tried again until it answers")
            elif attempt + 1 == LASTING and known:
                self._means.tell(f"its card cannot be had any more, the last one stands: {error}")
        except Exception:  # a fault of ours with one upstream must not end the attempts, nor the others
            log.exception("upstream %s", self.url)
            self.next_look = self._means.backoff.most
        else:
            if attempt and (not known or attempt >= LASTING):
                self._means.tell(f"it answers now, {where(self.line)}")
            assert self._found is not None  # it was just found
            self.next_look = self._means.pace.wait(self._found.fields, self._refresh)
            return 0
        return attempt + 1

    # -- the end

    async def stop(self) -> None:
        """Look no more."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)

    async def aclose(self) -> None:
        """Close its connections, whoever uses them."""
        await self.stop()
        line, self.line = self.line, None
        if line is not None:
            await line.client.aclose()
        await asyncio.gather(*self._closing)

    def _close(self, client: Client) -> None:
        task = asyncio.ensure_future(client.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def where(line: Line | None) -> str:
    """Over what and at which url a line calls, in words."""
    return f"over {line.client.face} at {line.client.interface.url}" if line is not None else "nowhere"


def _differs(one: Found, other: Found) -> bool:
    return one.card != other.card or one.url != other.url


def _was_hurried(ctx: Context) -> bool:
    """Whether the time that ran out was the caller's, not ours."""
    return ctx.deadline is not None and asyncio.get_running_loop().time() >= ctx.deadline - 0.01
