"""The tasks that passed through the gateway, and where they are kept.

Rules of this module:

- Seeing a task costs its call next to nothing: it is put down in memory and written a little later, many at a time.
  Whoever wants to read waits until what was seen before is written.
- What waits to be written is bounded, by number of tasks and by bytes of messages that are not decoded yet. Beyond
  that nothing is taken down; a task that went on meanwhile is brought up to date when it is listed.
- An older snapshot never takes the place of a newer one (``snapshots``), however late it comes.
- A status without a timestamp gets that of its first sight: a list has an order, and an end of what it remembers.
- A store that fails for a while keeps what is to be written waiting, not its callers.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from ..errors import A2AError, UnavailableError
from ..model import StreamResponse, Task
from ..runtime.lifecycle import Draft, absorb
from ..runtime.stamps import Clock, utc_now
from ..store.base import Owner, Store, TaskPage, TaskQuery
from .snapshots import merged

log = logging.getLogger(__name__)

Key: TypeAlias = tuple[Owner, str]
#: Something that was not decoded yet: how many bytes, and what decodes it.
Undecoded: TypeAlias = tuple[int, Callable[[], None]]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """``tasks`` and ``bytes`` that wait to be written at most. ``pause``: seconds between a sight and its writing;
    ``retry``: after a failure of the store. ``slice``: tasks written, or messages decoded, before others get a turn."""

    tasks: int = 20_000
    bytes: int = 32 * 1024 * 1024
    pause: float = 0.05
    retry: float = 1.0
    slice: int = 20


class Seen:
    """Tasks by owner, as they were last seen. Closing it writes what waits; the store is its maker's to close."""

    def __init__(self, store: Store, *, bounds: Bounds = Bounds(), clock: Clock = utc_now) -> None:  # noqa: B008
        self._store = store
        self._bounds = bounds
        self._clock = clock
        self._waiting: dict[Key, Sighting] = {}
        self._undecoded: deque[Undecoded] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self._writing = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._closed = False
        self.dropped = 0

    # -- taking down

    def see(self, owner: Owner, task: Task) -> None:
        """A whole task."""
        sighting = self._sighting(owner, task.id)
        if sighting is not None:
            sighting.see(task)

    def forget(self, owner: Owner, task_id: str) -> None:
        """A task that is no more."""
        sighting = self._sighting(owner, task_id)
        if sighting is not None:
            sighting.gone()

    def follow(self, owner: Owner) -> Following:
        """Takes down the events of one stream."""
        return Following(self, owner)

    def later(self, size: int, decode: Callable[[], None]) -> None:
        """Call ``decode``, which sees something, when there is time; ``size``: bytes that it holds."""
        if self._bytes + size > self._bounds.bytes or len(self._undecoded) >= self._bounds.tasks:
            self._drop()
            return
        self._undecoded.append((size, decode))
        self._bytes += size
        self._stir()

    def _sighting(self, owner: Owner, task_id: str) -> Sighting | None:
        key = owner, task_id
        found = self._waiting.get(key)
        if found is None:
            if len(self._waiting) >= self._bounds.tasks:
                self._drop()
                return None
            found = self._waiting[key] = Sighting()
            self._stir()
        return found

    def _drop(self) -> None:
        self.dropped += 1
        if self.dropped == 1:
            log.warning("more tasks pass than can be written: some are not taken down")

    def _stir(self) -> None:
        self._wake.set()
        if self._writer is None and not self._closed:  # calls that are cut at the end may still see something
            self._writer = asyncio.create_task(self._keep_writing(), name="dragoman-index")

    # -- reading

    async def list(self, owner: Owner, query: TaskQuery) -> TaskPage:
        """A page of what was seen until now. Raises ``UnavailableError``."""
        await self.flush()
        return await self._store.list(owner, query)

    async def flush(self) -> None:
        """Write what was seen until now. Raises ``UnavailableError`` if the store cannot be written."""
        async with self._writing:
            await self._decode()
            waiting, self._waiting = self._waiting, {}
            try:
                while waiting:
                    await self._write(waiting)
            finally:
                if waiting:
                    self._put_back(waiting)

    async def aclose(self) -> None:
        """Write what waits, if that can be done, and stop."""
        self._closed = True
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.gather(self._writer, return_exceptions=True)
            self._writer = None
        try:
            await self.flush()
        except UnavailableError as error:
            log.warning("%d tasks of the index could not be written: %s", len(self._waiting), error)

    # -- writing

    async def _keep_writing(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(self._bounds.pause)
            self._wake.clear()
            try:
                await self.flush()
            except UnavailableError as error:
                log.warning("the index cannot be written now: %s", error)
                self._wake.set()
                await asyncio.sleep(self._bounds.retry)

    async def _decode(self) -> None:
        for number in range(len(self._undecoded)):
            size, decode = self._undecoded.popleft()
            self._bytes -= size
            decode()
            if number % self._bounds.slice == self._bounds.slice - 1:
                await asyncio.sleep(0)

    async def _write(self, waiting: dict[Key, Sighting]) -> None:
        """Write some, at once so that a store may join them, and take them out of ``waiting``."""
        some = list(islice(waiting.items(), self._bounds.slice))
        outcomes = await asyncio.gather(*(self._keep(*key, one) for key, one in some), return_exceptions=True)
        failure: UnavailableError | None = None
        for (key, _), outcome in zip(some, outcomes, strict=True):
            if isinstance(outcome, UnavailableError):
                failure = outcome
                continue
            if isinstance(outcome, A2AError):
                log.warning("a task could not be written: %s", outcome)
            elif outcome is not None:  # a task that the store cannot take must not keep the others from it
                log.error("a task could not be written", exc_info=outcome)
            del waiting[key]
        if failure is not None:
            raise failure

    async def _keep(self, owner: Owner, task_id: str, sighting: Sighting) -> None:
        task = sighting.task()
        if task is None:
            await self._store.delete(owner, task_id)
            return
        known = None if sighting.anew else await self._store.get(owner, task_id)
        task = self._stamped(task, known)
        if known is not None:
            task = merged(known, task)
        if task != known:
            await self._store.save(owner, task)

    def _stamped(self, task: Task, known: Task | None) -> Task:
        status = task.status
        if status.timestamp:
            return task
        same = known is not None and replace(known.status, timestamp=None) == status
        time = known.status.timestamp if same and known is not None else self._clock()
        return replace(task, status=replace(status, timestamp=time))

    def _put_back(self, waiting: dict[Key, Sighting]) -> None:
        """What was not written waits on, under what was seen meanwhile."""
        newer, self._waiting = self._waiting, waiting
        for key, sighting in newer.items():
            self._waiting[key] = self._waiting[key].then(sighting) if key in self._waiting else sighting


class Sighting:
    """What was seen of one task since it was last written. ``anew``: it was gone in between, so that nothing older
    counts."""

    __slots__ = ("_growing", "_task", "anew")

    def __init__(self) -> None:
        self._task: Task | None = None
        self._growing: Following | None = None
        self.anew = False

    def see(self, task: Task) -> None:
        known = self.task()
        self._task = task if known is None else merged(known, task)
        self._growing = None

    def grow(self, stream: Following) -> None:
        """A stream has told more; its snapshot is made when it is needed."""
        if self._growing is not stream:
            self._task = self.task()
            self._growing = stream

    def gone(self) -> None:
        self._task, self._growing, self.anew = None, None, True

    def task(self) -> Task | None:
        """The task, None if it is gone."""
        if self._growing is None:
            return self._task
        grown = self._growing.snapshot()
        return grown if self._task is None else merged(self._task, grown)

    def then(self, later: Sighting) -> Sighting:
        """This, and what was seen after it."""
        task = later.task()
        if later.anew:
            return later
        if task is not None:
            self.see(task)
        return self


class Following:
    """The task of one stream, put together of its events."""

    def __init__(self, seen: Seen, owner: Owner) -> None:
        self._seen = seen
        self._owner = owner
        self._draft: Draft | None = None

    def take(self, events: Sequence[StreamResponse]) -> None:
        """The next events."""
        for event in events:
            if self._draft is not None:
                self._draft = absorb(self._draft, event)
            elif event.task is not None:
                self._draft = Draft.of(event.task)
        if self._draft is not None:
            sighting = self._seen._sighting(self._owner, self._draft.id)
            if sighting is not None:
                sighting.grow(self)

    def snapshot(self) -> Task:
        """The task as it is by now."""
        assert self._draft is not None  # it was told of by a sighting
        return self._draft.snapshot()
