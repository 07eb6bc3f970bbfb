"""One task while an agent works on it.

Rules of this module:

- The work runs in an asyncio task of its own, never in that of a request: a caller who goes away ends its wait and
  nothing else. One task has one handler at a time.
- A settled state (terminal or interrupted) is stored before anybody hears of it; what happens in between is stored
  before it is listed.
- What an agent did wrong fails its task and is logged; nobody outside sees a traceback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..errors import A2AError, InternalError, TaskNotCancelableError, UnavailableError
from ..model import (
    Artifact,
    JsonObject,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from ..store.base import Owner, Webhook
from .agent import Content, Turn, as_parts
from .audience import Answer, Audience
from .hub import Subscription
from .lifecycle import Draft, LifecycleError, is_settled, trim
from .stamps import new_id

if TYPE_CHECKING:
    from .runs import Runs

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


class Run(Audience, kw_only=True, eq=False):
    """One task at work.

    ``draft``: None until the agent makes the task exist. ``dirty``: whether the store is behind. ``opening_history``:
    how much history the stream that began the task wants to see. ``webhook``: what to keep and to follow as soon as
    the task exists.
    """

    runs: Runs
    owner: Owner
    id: str
    context_id: str
    draft: Draft | None = None
    dirty: bool = False
    opening_history: int | None = None
    webhook: Webhook | None = None
    _turn: Turn | None = None
    _runner: asyncio.Task[None] | None = None
    _stop: TaskState | None = None
    _started: bool = False
    _said: bool = False

    # -- what the engine asks for ------------------------------------------------------------------------------

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
        if previous is not None and self.draft is not None and self.draft.status.state is _AUTH_REQUIRED:
            previous.cancel()
        self._turn = turn
        self._started = False
        self.runs.live[self.id] = self
        self._runner = asyncio.get_running_loop().create_task(self._work(turn, previous))

    def resume(self, draft: Draft, turn: Turn) -> None:
        """Start the handler on a further message to an interrupted task, which is WORKING from here on."""
        self.begin(turn)
        status = TaskStatus(state=_WORKING, timestamp=self.runs.clock())
        draft.move(status)
        draft.remember(self._received(turn.message))
        self.dirty = True
        self.disarm()
        if self.feed is not None:
            self.feed.publish(self._status_event(status))
        if self.runs.webhooks:
            self._notify(draft, self._status_event(status))

    def watch(self, history_length: int | None = None) -> Subscription:
        """A stream that starts with the task as it is, or as it will be when it comes into being."""
        limits = self.runs.limits
        self.runs.live[self.id] = self
        subscription = self.join(limits.queue, limits.patience, self._unwatched)
        if self.draft is None:
            self.opening_history = history_length
        else:
            subscription.push(StreamResponse(task=trim(self.draft.snapshot(), history_length)))
            if self.draft.settled:
                self.arm(limits.interrupted, self._unwatched)
        return subscription

    async def cancel(self, draft: Draft) -> Task:
        """Stop the work and wait a little for it. Raises ``TaskNotCancelableError`` if the task ends otherwise."""
        if not draft.terminal:
            self.runs.live[self.id] = self
            if self._runner is None:
                await self.change(None, _CANCELED)
                self.runs.release(self)
            else:
                await self._stop_and_wait()
            if not draft.terminal or draft.status.state is _CANCELED:
                return draft.snapshot()
        state = draft.status.state.value
        raise TaskNotCancelableError(f"The task is in {state}", metadata={"taskId": self.id, "state": state})

    def stop(self, state: TaskState) -> asyncio.Task[None] | None:
        """Tell the handler, if one runs, to stop; the task goes to ``state`` when it has."""
        self._stop = state
        if self._runner is not None and self._started:
            self._runner.cancel()
        return self._runner

    def close(self) -> None:
        """End every stream and wait: cleanly if the task waits for somebody, else with an error."""
        if self.draft is not None and self.draft.settled:
            self.end()
        self.tell_error(UnavailableError(STOPPED_TEXT))

    # -- what a turn asks for ----------------------------------------------------------------------------------

    def check(self, turn: Turn) -> None:
        """Raises ``LifecycleError`` if the turn has nothing to say any more."""
        if self._turn is not turn or self._said:
            raise LifecycleError("this turn is over: it was answered with a message, or a newer message took over")

    def say(self, parts: tuple[Part, ...], metadata: JsonObject | None) -> None:
        """Answer with a message instead of a task."""
        if self.draft is not None:
            raise LifecycleError("a task exists, so the agent speaks through its status, not in a direct message")
        self._said = True
        self.tell_message(
            Message(message_id=new_id(), context_id=self.context_id, role=_AGENT, parts=parts, metadata=metadata)
        )

    async def create(self, turn: Turn) -> Draft:
        """Make the task exist."""
        status = TaskStatus(state=_SUBMITTED, timestamp=self.runs.clock())
        draft = self.draft = Draft(self.id, self.context_id, status, [self._received(turn.message)])
        self.dirty = True
        if self.feed is not None:
            self.feed.publish(StreamResponse(task=trim(draft.snapshot(), self.opening_history)))
        if self.webhook is not None:
            await self.runs.store.save_config(self.owner, self.webhook)
            self.runs.follow(self.owner, self.webhook, draft)
        if self._first is not None:
            self.tell_first()
        return draft

    async def change(
        self, turn: Turn | None, state: TaskState, content: Content = (), metadata: JsonObject | None = None
    ) -> None:
        """Give the task a status; the turn, if one asks for it, makes the task exist.

        Raises ``LifecycleError`` if the turn is over or the state may not follow.
        """
        draft = self.draft
        if turn is not None:
            self.check(turn)
            draft = draft or await self.create(turn)
        assert draft is not None
        message = self._message(as_parts(content), metadata) if content else None
        status = TaskStatus(state=state, message=message, timestamp=self.runs.clock())
        draft.move(status)
        feed = self.feed
        self.dirty = True
        if is_settled(state):
            await self.runs.store.save(self.owner, draft.snapshot())
            self.dirty = False
            if feed is not None:
                feed.publish(self._status_event(status))
            if self.runs.webhooks:
                self._notify(draft, self._status_event(status))
            self._settle(draft)
            return
        if self.runs.webhooks:
            self._notify(draft, self._status_event(status))
        if feed is not None:
            self.disarm()
            feed.publish(self._status_event(status))
            if feed.full:
                await feed.room()

    def put(self, draft: Draft, artifact: Artifact, append: bool, last_chunk: bool) -> None:
        """Give the task an artifact or a chunk of one; who tells more than its feed has room for has to wait."""
        append = append and draft.holds(artifact.artifact_id)
        draft.put(artifact, append)
        self.dirty = True
        feed = self.feed
        if feed is None and not self.runs.webhooks:
            return
        update = TaskArtifactUpdateEvent(
            task_id=self.id, context_id=self.context_id, artifact=artifact, append=append, last_chunk=last_chunk
        )
        event = StreamResponse(artifact_update=update)
        self._notify(draft, event)
        if feed is not None:
            feed.publish(event)

    # -- the work ----------------------------------------------------------------------------------------------

    async def _work(self, turn: Turn, previous: asyncio.Task[None] | None) -> None:
        self._started = True
        try:
            if previous is not None:
                await asyncio.wait((previous,))
            if self._stop is not None:
                raise asyncio.CancelledError
            await self.runs.agent.handler(turn)
            left_open = self.draft is None or not self.draft.settled
            if left_open and self._turn is turn and not self._said:
                await self.change(turn, _CANCELED if self._stop is _CANCELED else _COMPLETED)
        except asyncio.CancelledError:
            await self._surely(self._stopped(turn))
        except Exception as error:
            await self._surely(self._failed(turn, error))
        finally:
            if self._turn is turn:
                self._runner = self._turn = self._stop = None
                self.runs.release(self)

    async def _stopped(self, turn: Turn) -> None:
        """The handler was canceled: by CancelTask, by a shutdown, by a newer message, or by something of its own."""
        if self._turn is not turn or self._said:
            return
        if self._stop is None:
            await self._failed(turn, RuntimeError("the handler was canceled, and not by the engine"))
        elif self.draft is None:
            self.tell_error(UnavailableError(STOPPED_TEXT))
        elif self._stop is _CANCELED and not self.draft.terminal:
            await self.change(turn, _CANCELED)
        elif not self.draft.settled:
            await self.change(turn, _FAILED, STOPPED_TEXT)

    async def _failed(self, turn: Turn, error: Exception) -> None:
        """The handler raised."""
        text = error.message if isinstance(error, A2AError) else FAILED_TEXT
        if not isinstance(error, A2AError):
            log.error("The handler of task %s raised", self.id, exc_info=error)
        if self._turn is not turn or self._said:
            return
        if self.draft is None and isinstance(error, A2AError):
            self.tell_error(error)
            return
        if self.draft is None or not self.draft.terminal:
            await self.change(turn, _FAILED, text)

    async def _surely(self, ending: Coroutine[None, None, None]) -> None:
        """Whoever waits must hear of an end, also when the store fails."""
        try:
            await ending
            if self.dirty and self.draft is not None and self.draft.settled:  # an end that was not stored
                await self.runs.store.save(self.owner, self.draft.snapshot())
                self.dirty = False
                if self.runs.webhooks:
                    self._notify(self.draft, self._status_event(self.draft.status))
                self._settle(self.draft)
        except Exception:
            log.exception("The end of task %s could not be stored", self.id)
            self.tell_error(InternalError())

    async def _stop_and_wait(self) -> None:
        waiter: asyncio.Future[Answer] = self.wait()
        self.stop(_CANCELED)
        try:
            await asyncio.wait((waiter,), timeout=self.runs.limits.cancel_wait)
        finally:
            self.stop_waiting(waiter)
        if waiter.done():
            waiter.result()

    # -- details -----------------------------------------------------------------------------------------------

    def _settle(self, draft: Draft) -> None:
        if self._waiters:
            self.tell_settled(draft.snapshot())
        if self.feed is not None:
            if draft.status.state is _AUTH_REQUIRED:
                self.arm(self.runs.limits.interrupted, self._unwatched)
            else:
                self.end()

    def _notify(self, draft: Draft, event: StreamResponse) -> None:
        """Put an event on the lines of the task's webhooks, which takes no time."""
        lines = self.runs.webhooks.get(self.id)
        if lines is not None:
            lines.tell(event, draft)

    def _unwatched(self) -> None:
        self.end()
        self.runs.release(self)

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
