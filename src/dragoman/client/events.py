"""The events of a remote stream, made whole: it begins with a Task, and a break in it is taken up again.

Rules of this module:

- A stream that ends after a terminal or interrupted state, after a lone Message, or at a 0.3 ``final`` is complete.
  Any other end is a break, never a silent one.
- A break is answered by SubscribeToTask once the task is known, as often as :class:`Resume` says. A task that cannot
  be subscribed to any more has ended: GetTask then gives its last state, and the stream ends.
- What a break hid is told as updates, each artifact whole and then the status: some clients take one Task a stream.
- Subscribing that gives no event at all is followed by GetTask, for whether the task is unknown.
- 1.0 streams begin with a Task (or a Message). Where the peer begins with an update, a Task is put in front: as
  GetTask gives it when the task was there before, else made of what the update says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dialects.base import Notes
from ..errors import (
    DragomanError,
    InvalidParamsError,
    PeerError,
    TaskNotFoundError,
    TransportError,
    UnavailableError,
    UnsupportedOperationError,
)
from ..model import (
    GET_TASK,
    INTERRUPTED,
    SUBSCRIBE_TO_TASK,
    TERMINAL,
    GetTaskRequest,
    Streaming,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from ..service import ByteStream, Context, EventStream
from .history import without_history

if TYPE_CHECKING:
    from .remote import Remote

_RESTS = TERMINAL | INTERRUPTED
#: What a peer answers when a task cannot be followed any more (1.0 §3.1.6; some 0.3 peers say InvalidParams).
_ENDED = (UnsupportedOperationError, InvalidParamsError)
#: What a stream may break with and still be taken up again.
_BREAKS = (TransportError, UnavailableError)


class RemoteStream(EventStream):
    """The events of SendStreamingMessage or SubscribeToTask at a peer."""

    def __init__(self, remote: Remote, op: Streaming[Any], request: Any, ctx: Context) -> None:
        self._remote = remote
        self._op = op
        self._request = request
        self._ctx = ctx
        self._source: ByteStream | None = None
        self._notes = Notes()
        self._ready: Sequence[StreamResponse] = ()
        self._task_id = ""
        self._complete = False
        self._done = False
        self._attempts = 0
        self._bare = remote.cuts_history(request)
        self._dialect = remote.speaking(ctx)

    async def open(self) -> None:
        """Open the stream and wait for its first events. Raises what the peer answers in their place."""
        self._source = await self._remote.open(self._op, self._request, self._ctx)
        try:
            first = await self._first()
            self._ready = await self._led(first, self._op, self._request)
        except BaseException:
            await self.aclose()
            raise

    async def _first(self) -> Sequence[StreamResponse]:
        """The first events. Some peers just drop the connection for a task that they do not know: GetTask says so."""
        broken: DragomanError = PeerError(f"The stream of {self._op.name} ended without an event")
        try:
            if first := await self._read():
                return first
        except _BREAKS as error:
            broken = error
        if self._op is SUBSCRIBE_TO_TASK:
            await self._raise_unknown(self._request.id, broken)
        raise broken

    async def _raise_unknown(self, task_id: str, broken: DragomanError) -> None:
        try:
            await self._remote.call(GET_TASK, GetTaskRequest(id=task_id), self._ctx)
        except TaskNotFoundError as unknown:
            raise unknown from broken
        except DragomanError:
            return  # what broke the stream says more

    async def batch(self) -> Sequence[StreamResponse]:
        ready, self._ready = self._ready, ()
        while not ready and not self._done:
            ready = await self._more()
        return tuple(map(without_history, ready)) if self._bare else ready

    async def aclose(self) -> None:
        self._done = True
        await self._close_source()

    async def _close_source(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            await source.aclose()

    # -- reading

    async def _more(self) -> Sequence[StreamResponse]:
        try:
            events = await self._read()
        except _BREAKS as broken:
            return await self._resumed(broken)
        if events:
            self._attempts = 0
            return events
        if not self._complete:
            return await self._resumed(TransportError("The stream ended before its task came to rest"))
        await self.aclose()
        return ()

    async def _read(self) -> Sequence[StreamResponse]:
        """The next events, empty at the end of the peer's stream."""
        if self._source is None:
            return ()
        events: list[StreamResponse] = []
        for raw in await self._source.batch():
            event: StreamResponse = self._dialect.load_reply(self._op, raw, self._notes)
            if self._notes.forgiven or self._notes.lost:
                self._remote.read(self._op, self._notes)
            self._follow(event)
            events.append(event)
            if self._notes.final:
                await self.aclose()
                break
        return events

    def _follow(self, event: StreamResponse) -> None:
        if event.task is not None:
            self._task_id = event.task.id
            self._complete = event.task.status.state in _RESTS
        elif event.status_update is not None:
            self._task_id = event.status_update.task_id
            self._complete = event.status_update.status.state in _RESTS
        elif event.artifact_update is not None:
            self._task_id = event.artifact_update.task_id
        elif not self._task_id:
            self._complete = True

    # -- a Task in front

    async def _led(
        self, events: Sequence[StreamResponse], op: Streaming[Any], request: Any
    ) -> Sequence[StreamResponse]:
        first = events[0]
        if first.task is not None or first.message is not None:
            return events
        task = _made_of(first)
        if op is SUBSCRIBE_TO_TASK or request.message.task_id:
            task = await self._get_task(task)
        if self._remote.behaviour.note is not None:
            self._remote.behaviour.note(f"{op.name}: the stream did not begin with a Task; one was put in front")
        return (StreamResponse(task=task), *events)

    async def _get_task(self, otherwise: Task) -> Task:
        try:
            return await self._remote.call(GET_TASK, GetTaskRequest(id=otherwise.id), self._ctx)
        except DragomanError:
            return otherwise

    # -- after a break

    async def _resumed(self, broken: DragomanError) -> Sequence[StreamResponse]:
        await self._close_source()
        loop, behaviour = asyncio.get_running_loop(), self._remote.behaviour
        end = loop.time() + behaviour.reply  # all attempts together wait no longer than one call would
        while self._task_id and self._attempts < behaviour.resume.tries and loop.time() < end:
            await asyncio.sleep(behaviour.resume.delay(self._attempts))
            self._attempts += 1
            try:
                async with asyncio.timeout_at(end):
                    return await self._subscribe()
            except (*_BREAKS, TimeoutError):
                await self._close_source()
            except _ENDED:
                return await self._last_state(broken)
            except DragomanError as error:
                await self.aclose()
                raise broken from error
        await self.aclose()
        raise broken

    async def _subscribe(self) -> Sequence[StreamResponse]:
        request = SubscribeToTaskRequest(id=self._task_id)
        self._source = await self._remote.open(SUBSCRIBE_TO_TASK, request, self._ctx)
        events = await self._read()
        if not events:
            raise TransportError("The stream ended before its first event")
        first, *more = await self._led(events, SUBSCRIBE_TO_TASK, request)
        return (*_caught_up(first.task), *more) if first.task else (first, *more)

    async def _last_state(self, broken: DragomanError) -> Sequence[StreamResponse]:
        await self.aclose()
        try:
            task = await self._remote.call(GET_TASK, GetTaskRequest(id=self._task_id), self._ctx)
        except DragomanError as error:
            raise broken from error
        if task.status.state not in _RESTS:  # it goes on, where nobody can follow it
            raise broken
        return _caught_up(task)


def _caught_up(task: Task) -> Sequence[StreamResponse]:
    """The state of a task as updates to whatever was known of it."""
    ended = task.status.state in TERMINAL
    whole = [
        TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, artifact=artifact, last_chunk=ended)
        for artifact in task.artifacts
    ]
    status = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=task.status)
    return (*(StreamResponse(artifact_update=one) for one in whole), StreamResponse(status_update=status))


def _made_of(event: StreamResponse) -> Task:
    """The least Task that an update tells of."""
    if event.status_update is not None:
        update = event.status_update
        return Task(id=update.task_id, context_id=update.context_id, status=update.status)
    assert event.artifact_update is not None  # the dialects give exactly one member
    chunk = event.artifact_update
    return Task(id=chunk.task_id, context_id=chunk.context_id, status=TaskStatus(state=TaskState.WORKING))
