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
from collections.abc import Coroutine
from dataclasses import dataclass

from msgspec.structs import replace

from ..errors import A2AError, InternalError, TaskNotCancelableError, TaskNotFoundError, UnavailableError
from ..model import (
    Artifact,
    JsonObject,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
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
        """Start the handler on a message, once the previous one ended.

        A previous one that waits for a credential is canceled: the message is what it waits for, or replaces it.
        """
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
            if is_settled(self.draft.state):
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

    def close(self) -> None:
        """End every stream: cleanly if the task waits for somebody, else with an error."""
        error = UnavailableError(STOPPED_TEXT)
        if self.draft is not None and is_settled(self.draft.state):
            self._end_feed()
        self.abort(error)

    # -- for the turn ------------------------------------------------------------------------------------------

    async def say(self, turn: Turn, parts: tuple[Part, ...], metadata: JsonObject | None) -> None:
        self._check(turn)
        if self.draft is not None:
            raise LifecycleError("a task exists, so the agent speaks through its status, not in a direct message")
        self._said = True
        message = Message(message_id=new_id(), context_id=self.context_id, role=_AGENT, parts=parts, metadata=metadata)
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
            await self._surely(self._stopped(turn))
        except Exception as error:
            await self._surely(self._failed(turn, error))
        finally:
            if self._turn is turn:
                self._leave()

    def _leave(self) -> None:
        self._runner = self._turn = self._stop = None
        if self.draft is not None and is_terminal(self.draft.state):
            self._settle()  # again, if a cancellation came between the store and the waiters
        self.runs.release(self)

    async def _finish(self, turn: Turn) -> None:
        """The handler returned."""
        if self._turn is not turn or self._said:
            return
        draft = self.draft or await self._create(turn)
        if not is_settled(draft.state):
            await self._move(_CANCELED if self._stop is _CANCELED else _COMPLETED)

    async def _stopped(self, turn: Turn) -> None:
        """The handler was canceled: by CancelTask, by a shutdown, by a newer message, or by something of its own."""
        if self._turn is not turn or self._said:
            return
        if self._stop is None:
            await self._failed(turn, RuntimeError("the handler was canceled, and not by the engine"))
        elif self.draft is None:
            self.abort(UnavailableError(STOPPED_TEXT))
        elif self._stop is _CANCELED and not is_terminal(self.draft.state):
            await self._move(_CANCELED)
        elif not is_settled(self.draft.state):
            await self._move(_FAILED, (Part(text=STOPPED_TEXT),))

    async def _failed(self, turn: Turn, error: Exception) -> None:
        """The handler raised."""
        text = error.message if isinstance(error, A2AError) else FAILED_TEXT
        if not isinstance(error, A2AError):
            log.error("The handler of task %s raised", self.id, exc_info=error)
        if self._turn is not turn or self._said:
            return
        if self.draft is None and isinstance(error, A2AError):
            self.abort(error)
            return
        draft = self.draft or await self._create(turn)
        if not is_terminal(draft.state):
            await self._move(_FAILED, (Part(text=text),))

    async def _surely(self, ending: Coroutine[None, None, None]) -> None:
        """Whoever waits must hear of an end, also when the store fails."""
        try:
            await ending
        except Exception:
            log.exception("The end of task %s could not be stored", self.id)
            self.abort(InternalError())

    async def _stop_and_wait(self) -> None:
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self.stop(_CANCELED)
        try:
            await asyncio.wait((waiter,), timeout=self.runs.limits.cancel_wait)
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        if waiter.done():
            waiter.result()

    # -- changes -----------------------------------------------------------------------------------------------

    def _check(self, turn: Turn) -> None:
        if self._turn is not turn or self._said:
            raise LifecycleError("this turn is over: it was answered with a message, or a newer message took over")

    def free_artifact_id(self) -> str:
        """An artifact id that the task does not have yet."""
        return "artifact-1" if self.draft is None else self.draft.free_artifact_id()

    async def _create(self, turn: Turn) -> Draft:
        status = TaskStatus(state=_SUBMITTED, timestamp=self.runs.clock())
        history = (self._received(turn.message),)
        draft = self.draft = Draft(Task(id=self.id, context_id=self.context_id, status=status, history=history))
        self.dirty = True
        if self.feed is not None:
            self.feed.publish(StreamResponse(task=trim(draft.snapshot(), self.opening_history)))
        if self.webhook is not None:
            await self.runs.store.save_config(self.owner, self.webhook)
        if self._first is not None and not self._first.done():
            self._first.set_result(None)
        return draft

    async def _move(self, state: TaskState, parts: tuple[Part, ...] = (), metadata: JsonObject | None = None) -> None:
        draft = self.draft
        assert draft is not None
        message = self._message(parts, metadata) if parts else None
        status = TaskStatus(state=state, message=message, timestamp=self.runs.clock())
        draft.move(status)
        settled = is_settled(state)
        self.dirty = not settled
        if settled:
            await self.runs.store.save(self.owner, draft.snapshot())
        feed = self.feed
        if feed is not None:
            feed.publish(self._status_event(status))
            if not settled:
                self._disarm()
                if feed.full:
                    await feed.room()
        if settled:
            self._settle()

    def _settle(self) -> None:
        assert self.draft is not None
        if self._waiters:
            task = self.draft.snapshot()
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_result(task)
            self._waiters.clear()
        if self.feed is not None:
            if self.draft.state is _AUTH_REQUIRED:
                self._arm()
            else:
                self._end_feed()

    def _end_feed(self, error: A2AError | None = None) -> None:
        self._disarm()
        if self.feed is not None:
            self.feed.end(error)
            self.feed = None

    def _unwatched(self) -> None:
        self._end_feed()
        self.runs.release(self)

    def _arm(self) -> None:
        """A stream of an interrupted task does not stay open for ever."""
        if self._idle is None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self.runs.limits.interrupted, self._unwatched)

    def _disarm(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _received(self, message: Message) -> Message:
        """A message of the caller as it enters the history: with the ids that it may have left out (1.0 §3.4.3)."""
        if message.task_id == self.id and message.context_id == self.context_id:
            return message
        return replace(message, task_id=self.id, context_id=self.context_id)

    def _message(self, parts: tuple[Part, ...], metadata: JsonObject | None) -> Message:
        return Message(
            message_id=new_id(),
            context_id=self.context_id,
            task_id=self.id,
            role=_AGENT,
            parts=parts,
            metadata=metadata,
        )

    def _status_event(self, status: TaskStatus) -> StreamResponse:
        return StreamResponse(
            status_update=TaskStatusUpdateEvent(task_id=self.id, context_id=self.context_id, status=status)
        )


class Runs:
    """Every run of an engine, and the way to a task wherever it is."""

    def __init__(self, agent: Agent, store: Store, limits: Limits, clock: Clock) -> None:
        self.agent = agent
        self.store = store
        self.limits = limits
        self.clock = clock
        self.live: dict[str, Run] = {}
        self.closed = False

    def new(self, owner: Owner, context_id: str) -> Run:
        """A run for a task that may come to be."""
        if self.closed:
            raise UnavailableError("The agent is shutting down")
        return Run(self, owner, new_id(), context_id or new_id())

    async def find(self, owner: Owner, task_id: str) -> Run:
        """The run of a task, at work or at rest. Raises ``TaskNotFoundError``."""
        run = self.live.get(task_id)
        if run is None:
            task = await self.store.get(owner, task_id)
            run = self.live.get(task_id)  # somebody may have been faster
            if run is None and task is not None:
                return Run(self, owner, task.id, task.context_id, Draft(task))
        if run is None or run.draft is None or run.owner != owner:
            raise not_found(task_id)
        return run

    async def task(self, owner: Owner, task_id: str) -> Task:
        """The task as it is. Raises ``TaskNotFoundError``."""
        run = self.live.get(task_id)
        if run is not None and run.draft is not None and run.owner == owner:
            return run.draft.snapshot()
        task = await self.store.get(owner, task_id)
        if task is None:
            raise not_found(task_id)
        return task

    async def flush(self, owner: Owner) -> None:
        """Store what changed since it was last stored, so that it is listed."""
        for run in list(self.live.values()):
            if run.dirty and run.draft is not None and run.owner == owner:
                run.dirty = False
                await self.store.save(owner, run.draft.snapshot())

    def release(self, run: Run) -> None:
        """Forget the run if nothing happens in it any more."""
        if run.idle:
            self.live.pop(run.id, None)

    async def aclose(self) -> None:
        """Stop every handler, wait for them a little, and end every stream and every wait."""
        self.closed = True
        handlers = [handler for run in self.live.values() if (handler := run.stop(_FAILED)) is not None]
        if handlers:
            await asyncio.wait(handlers, timeout=self.limits.shutdown)
        for run in list(self.live.values()):
            run.close()


def not_found(task_id: str) -> TaskNotFoundError:
    """What a caller hears of a task that is not, or not theirs."""
    return TaskNotFoundError(metadata={"taskId": task_id})


def _not_cancelable(task: Task) -> TaskNotCancelableError:
    state = task.status.state.value
    return TaskNotCancelableError(f"The task is in {state}", metadata={"taskId": task.id, "state": state})
