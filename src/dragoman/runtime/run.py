"""One task while something happens to it: the agent's work, who waits for it, who watches it.

Rules of this module:

- The work runs in an asyncio task of its own, never in that of a request: a caller who goes away ends its wait and
  nothing else. One task has one handler at a time.
- A settled state (terminal or interrupted) is stored before anybody hears of it; what happens in between is stored
  before it is listed.
- A run is in ``Runs.live`` as long as its handler runs, somebody waits, or somebody watches. After that the store
  has all there is.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from ..errors import A2AError, InternalError, TaskNotCancelableError, UnavailableError
from ..model import (
    Artifact,
    JsonObject,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from ..service import Context
from ..store.base import Owner, Store
from .agent import Agent, Content, Turn, as_parts
from .hub import Feed, Subscription
from .lifecycle import Draft, LifecycleError, is_settled, is_terminal, trim
from .stamps import Clock, new_id

log = logging.getLogger("dragoman.runtime")

_SUBMITTED = TaskState.SUBMITTED
_WORKING = TaskState.WORKING
_COMPLETED = TaskState.COMPLETED
_FAILED = TaskState.FAILED
_CANCELED = TaskState.CANCELED
_AUTH_REQUIRED = TaskState.AUTH_REQUIRED
_USER = Role.USER
_AGENT = Role.AGENT

FAILED_TEXT = "The agent could not finish this task because of an internal error."
STOPPED_TEXT = "The agent was shut down before it could finish this task."

#: How a run ended for who waits: with a task or with a direct message.
Answer = Task | Message


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how much an engine waits and holds; times in seconds.

    ``cancel_wait``: how long CancelTask waits for the handler to stop. ``interrupted``: how long a stream of a task
    that waits for somebody stays open without an event. ``queue``: events held for one reader before the agent waits
    for it. ``patience``: how long one reader may hold up the agent in all. ``shutdown``: how long closing waits for
    handlers that were told to stop.
    """

    cancel_wait: float = 2.0
    interrupted: float = 300.0
    queue: int = 256
    patience: float = 10.0
    shutdown: float = 5.0


class Run:
    """One task at work; ``draft`` is None until the agent makes the task exist."""

    __slots__ = (
        "_first",
        "_idle",
        "_runner",
        "_said",
        "_started",
        "_stop",
        "_turn",
        "_waiters",
        "context_id",
        "dirty",
        "draft",
        "feed",
        "id",
        "opening_history",
        "owner",
        "runs",
        "webhook",
    )

    def __init__(self, runs: Runs, owner: Owner, id: str, context_id: str, draft: Draft | None = None) -> None:
        self.runs = runs
        self.owner = owner
        self.id = id
        self.context_id = context_id
        self.draft = draft
        self.dirty = False
        self.feed: Feed | None = None
        self.webhook: TaskPushNotificationConfig | None = None
        self.opening_history: int | None = None
        self._turn: Turn | None = None
        self._runner: asyncio.Task[None] | None = None
        self._started = False
        self._said = False
        self._stop: TaskState | None = None
        self._waiters: list[asyncio.Future[Answer]] = []
        self._first: asyncio.Future[Message | None] | None = None
        self._idle: asyncio.TimerHandle | None = None

    # -- for the engine ----------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing happens here, so that the store has all there is."""
        return self._runner is None and self.feed is None and not self._waiters

    @property
    def stopping(self) -> bool:
        """Whether the handler was told to stop."""
        return self._stop is not None

    def begin(self, turn: Turn) -> None:
        """Start the handler on a message. One that still runs ends first; it is canceled if it waits for a credential."""
        previous = self._runner
        if previous is not None and self.draft is not None and self.draft.state is _AUTH_REQUIRED:
            previous.cancel()
        self._turn = turn
        self._started = False
        self.runs.live[self.id] = self
        self._runner = asyncio.get_running_loop().create_task(self._work(turn, previous))

    def resume(self, turn: Turn) -> None:
        """Start the handler on a further message to an interrupted task, which is WORKING from here on."""
        assert self.draft is not None
        self.begin(turn)
        status = TaskStatus(state=_WORKING, timestamp=self.runs.clock())
        self.draft.move(status)
        self.draft.remember(self._received(turn.message))
        self.dirty = True
        self._disarm()
        if self.feed is not None:
            self.feed.publish(self._status_event(status))

    async def answer(self) -> Answer:
        """Wait until the task settles or the agent answers with a message. Raises ``A2AError`` if neither comes."""
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return await waiter

    async def first_sign(self) -> Answer:
        """As :meth:`answer`, but the task only has to exist."""
        if self.draft is None:
            self._first = asyncio.get_running_loop().create_future()
            message = await self._first
            if message is not None:
                return message
        assert self.draft is not None
        return self.draft.snapshot()

    def watch(self, history_length: int | None = None) -> Subscription:
        """A stream that starts with the task as it is, or as it will be when it comes into being."""
        if self.feed is None:
            limits = self.runs.limits
            self.feed = Feed(limits.queue, limits.patience, self._unwatched)
            self.runs.live[self.id] = self
        subscription = self.feed.join()
        if self.draft is None:
            self.opening_history = history_length
        else:
            subscription.push(StreamResponse(task=trim(self.draft.snapshot(), history_length)))
            if self.draft.state is not _WORKING and is_settled(self.draft.state):
                self._arm()
        return subscription

    async def cancel(self) -> Task:
        """Stop the work and wait a little for it. Raises ``TaskNotCancelableError`` if the task ends otherwise."""
        draft = self.draft
        assert draft is not None
        if is_terminal(draft.state):
            raise _not_cancelable(draft.snapshot())
        self.runs.live[self.id] = self
        if self._runner is None:
            await self._move(_CANCELED)
            self.runs.release(self)
        else:
            await self._stop_and_wait()
        task = draft.snapshot()
        if task.status.state is not _CANCELED and is_terminal(task.status.state):
            raise _not_cancelable(task)
        return task

    def stop(self, state: TaskState) -> asyncio.Task[None] | None:
        """Tell the handler, if one runs, to stop; the task goes to ``state`` when it has."""
        self._stop = state
        if self._runner is not None and self._started:
            self._runner.cancel()
        return self._runner

    def abort(self, error: A2AError) -> None:
        """Give everybody who waits an error instead of a task."""
        for waiter in (*self._waiters, self._first):
            if waiter is not None and not waiter.done():
                waiter.set_exception(error)
        self._waiters.clear()
        self._end_feed(error)

    # -- for the turn ------------------------------------------------------------------------------------------

    async def say(self, turn: Turn, parts: tuple[Part, ...], metadata: JsonObject | None) -> None:
        self._check(turn)
        if self.draft is not None:
            raise LifecycleError("a task exists, so the agent speaks through its status, not in a direct message")
        self._said = True
        message = Message(
            message_id=new_id(), context_id=self.context_id, role=_AGENT, parts=_some(parts), metadata=metadata
        )
        for waiter in (*self._waiters, self._first):
            if waiter is not None and not waiter.done():
                waiter.set_result(message)
        self._waiters.clear()
        if self.feed is not None:
            self.feed.publish(StreamResponse(message=message))
            self._end_feed()

    async def move(self, turn: Turn, state: TaskState, content: Content, metadata: JsonObject | None) -> None:
        self._check(turn)
        if self.draft is None:
            await self._create(turn)
        await self._move(state, as_parts(content) if content else (), metadata)

    async def put(self, turn: Turn, artifact: Artifact, append: bool, last_chunk: bool) -> None:
        self._check(turn)
        draft = self.draft or await self._create(turn)
        append = append and draft.holds(artifact.artifact_id)
        draft.put(artifact, append)
        self.dirty = True
        feed = self.feed
        if feed is not None:
            feed.publish(
                StreamResponse(
                    artifact_update=TaskArtifactUpdateEvent(
                        task_id=self.id,
                        context_id=self.context_id,
                        artifact=artifact,
                        append=append,
                        last_chunk=last_chunk,
                    )
                )
            )
            if feed.full:
                await feed.room()

    # -- the work ----------------------------------------------------------------------------------------------

    async def _work(self, turn: Turn, previous: asyncio.Task[None] | None) -> None:
        self._started = True
        try:
            if previous is not None:
                await asyncio.wait((previous,))
            if self._stop is not None:
                raise asyncio.CancelledError
            await self.runs.agent.handler(turn)
            await self._finish(turn)
        except asyncio.CancelledError:
            await self._end(turn, self._stopped(turn))
        except Exception as error:
            await self._end(turn, self._failed(turn, error))
        finally:
            if self._turn is turn:
                self._runner = self._turn = self._stop = None
                self.runs.release(self)
