"""Keeps the callers of an agent apart that the agent itself cannot tell apart (1.0 §13.1).

Who was verified by the gateway is, for the agent, the gateway. So it is the gateway that remembers which caller an id
was told to. Rules of this module:

- A task that is not known to be the caller's does not exist for it, whoever asks for what. All who show nothing are one
  caller.
- A context of another caller is refused. One that nobody has is the caller's from then on: clients may make up ids.
- Ids are learnt from replies and events, and kept, before they are handed on. A task that is another caller's is never
  handed on; of a context that an agent uses for several callers the first one stays the owner.
- The agent's own list is never asked for, since it has everybody's tasks.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, cast

from msgspec.structs import replace

from ..dialects.base import Dialect
from ..errors import InvalidAgentResponseError, InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from ..model import (
    CANCEL_TASK,
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    ListTasksResponse,
    Message,
    Req,
    Res,
    SendMessageRequest,
    SendMessageResponse,
    Streaming,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatusUpdateEvent,
    Unary,
)
from ..service import A2AService, AnyOperation, Context, EventStream
from .layer import Layer
from .owners import Owners, context_key, task_key

_BY_ID: frozenset[AnyOperation] = frozenset({GET_TASK, CANCEL_TASK, SUBSCRIBE_TO_TASK})
_BY_TASK_ID: frozenset[AnyOperation] = frozenset(
    {CREATE_PUSH_CONFIG, GET_PUSH_CONFIG, LIST_PUSH_CONFIGS, DELETE_PUSH_CONFIG}
)
_SENDS: frozenset[AnyOperation] = frozenset({SEND_MESSAGE, SEND_STREAMING_MESSAGE})
_NAMING = _BY_ID | _BY_TASK_ID | _SENDS | {LIST_TASKS}


class Owned(Layer):
    """The agent ``name``, of which each caller sees what is its own. ``lists``: whether ``inner`` lists the caller's
    tasks without the agent; if not, there is no list."""

    def __init__(self, inner: A2AService, owners: Owners, name: str, *, lists: bool) -> None:
        super().__init__(inner)
        self._owners = owners
        self._name = name
        self._lists = lists
        owners.isolated.add(name)

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        return self._call(op, request, ctx) if op in _NAMING else self.inner.call(op, request, ctx)

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        await self._check(op, request, ctx)
        return _OwnedEvents(await self.inner.stream(op, request, ctx), self, ctx)

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: no for what names a task."""
        return op not in _NAMING and super().passes(dialect, op)

    async def _call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        await self._check(op, request, ctx)
        reply = await self.inner.call(op, request, ctx)
        if isinstance(reply, ListTasksResponse):
            own = [task for task in reply.tasks if await self.take(task.id, task.context_id, ctx)]
            return reply if len(own) == len(reply.tasks) else cast("Res", replace(reply, tasks=tuple(own)))
        told = (reply.task or reply.message) if isinstance(reply, SendMessageResponse) else reply
        if isinstance(told, Task | Message):
            await self.learn(*_ids(told), ctx)
        return reply

    # -- what a caller names

    async def _check(self, op: AnyOperation, request: Any, ctx: Context) -> None:
        """Raises ``TaskNotFoundError``, ``InvalidParamsError``, ``UnsupportedOperationError``, ``UnavailableError``."""
        if op in _SENDS:
            for task_id in dict.fromkeys(_named(request)):
                await self._check_task(task_id, ctx)
            await self._check_context(request.message.context_id, ctx)
        elif op in _BY_ID:
            await self._check_task(request.id, ctx)
        elif op in _BY_TASK_ID:
            await self._check_task(request.task_id, ctx)
        elif op is LIST_TASKS and not self._lists:
            raise UnsupportedOperationError("The agent's list has the tasks of all callers, and no other is kept")

    async def _check_task(self, task_id: str, ctx: Context) -> None:
        if not await self._owners.owns(task_key(self._name, ctx.tenant, task_id), ctx.caller.name):
            raise TaskNotFoundError

    async def _check_context(self, context_id: str, ctx: Context) -> None:
        if context_id and not await self._owners.claim(context_key(self._name, context_id), ctx.caller.name):
            why = "belongs to another caller"
            raise InvalidParamsError(f"message.contextId {why}", violations=(("message.contextId", why),))

    # -- what it is told

    async def learn(self, task_id: str, context_id: str, ctx: Context) -> None:
        """Keep ids that this caller is about to be told. Raises ``InvalidAgentResponseError`` for another's task,
        ``UnavailableError`` if they cannot be kept."""
        if not await self.take(task_id, context_id, ctx):
            raise InvalidAgentResponseError("The agent answered with a task of another caller")

    async def take(self, task_id: str, context_id: str, ctx: Context) -> bool:
        """Keep ids, as far as they are not another caller's; whether the task is not. Empty ones are none."""
        owner = ctx.caller.name
        if task_id and not await self._owners.claim(task_key(self._name, ctx.tenant, task_id), owner):
            return False
        if context_id:
            await self._owners.claim(context_key(self._name, context_id), owner)
        return True


class _OwnedEvents(EventStream):
    """A stream whose ids are learnt before its events are handed on."""

    def __init__(self, source: EventStream, owned: Owned, ctx: Context) -> None:
        self._source = source
        self._owned = owned
        self._ctx = ctx
        self._learnt = ("", "")

    async def batch(self) -> Sequence[StreamResponse]:
        events = await self._source.batch()
        for event in events:
            told = event.task or event.status_update or event.artifact_update or event.message
            if told is not None and (ids := _ids(told)) != self._learnt:
                await self._owned.learn(*ids, self._ctx)
                self._learnt = ids
        return events

    async def aclose(self) -> None:
        await self._source.aclose()


def _ids(told: Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> tuple[str, str]:
    """The ids of task and context in something."""
    return (told.id if isinstance(told, Task) else told.task_id), told.context_id


def _named(request: SendMessageRequest) -> Iterator[str]:
    """The tasks that a send refers to."""
    if request.message.task_id:
        yield request.message.task_id
    yield from request.message.reference_task_ids
    push = request.configuration.task_push_notification_config if request.configuration else None
    if push is not None and push.task_id:
        yield push.task_id
