"""A send that returns at once, for an agent that always waits and does not stream.

Rules of this module:

- An agent that answers within ``grace`` seconds is quick enough: its reply is the answer. Else the caller gets a task
  under an id of our own, SUBMITTED, and the agent is waited for behind its back, as long as its reply may take.
- From then on the task goes by either id, see ``aliases``. Answers to our id show our id.
- While the agent has not answered, such a task can be looked at and followed; it cannot be canceled or sent to, for
  nobody knows yet what the agent calls it.
- A caller who leaves while it waits cancels nothing: the agent is waited for all the same.
- A message to a task that exists needs no id of ours: the caller gets the task as the agent shows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

from msgspec.structs import replace

from ...dialects.base import Dialect
from ...errors import (
    A2AError,
    TaskNotCancelableError,
    UnavailableError,
    UnsupportedOperationError,
)
from ...model import (
    CANCEL_TASK,
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    SUBSCRIBE_TO_TASK,
    TERMINAL,
    GetTaskRequest,
    ListTaskPushNotificationConfigsResponse,
    Req,
    Res,
    SendMessageRequest,
    SendMessageResponse,
    Streaming,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    Unary,
)
from ...runtime.lifecycle import trim
from ...service import A2AService, AnyOperation, Context, EventStream
from ...store.base import Owner
from ..background import Background, report, unhurried
from ..layer import Layer
from .aliases import (
    BEAT,
    Alias,
    Records,
    alias_of,
    answered,
    beating,
    failed,
    is_own,
    is_pending,
    new_own_id,
    pending,
    renamed,
    shown,
)
from .blocking import returns_at_once
from .polling import Questions, follow

log = logging.getLogger(__name__)
GRACE = 0.25  # seconds
_SHUT_DOWN = "The gateway was shut down before the agent answered: what it did is not known"
_UNCHANGED: frozenset[AnyOperation] = frozenset({GET_EXTENDED_AGENT_CARD, LIST_TASKS})
_BY_ID: frozenset[AnyOperation] = frozenset({GET_TASK, CANCEL_TASK})
_BY_TASK_ID: frozenset[AnyOperation] = frozenset(
    {CREATE_PUSH_CONFIG, GET_PUSH_CONFIG, LIST_PUSH_CONFIGS, DELETE_PUSH_CONFIG}
)


class Detached(Layer):
    """Answers those who do not want to wait with tasks of our own. ``caller_of`` tells whose they are."""

    def __init__(
        self,
        inner: A2AService,
        records: Records,
        background: Background,
        questions: Questions,
        caller_of: Callable[[Context], str],
        *,
        grace: float = GRACE,
    ) -> None:
        super().__init__(inner)
        self._records = records
        self._background = background
        self._questions = questions.over(self)
        self._caller_of = caller_of
        self._grace = grace

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: an id of ours may be in anything that names a task."""
        return op in _UNCHANGED and super().passes(dialect, op)

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        found: Coroutine[Any, Any, Any]
        if op is SEND_MESSAGE:
            found = self._send(cast(SendMessageRequest, request), ctx)
        elif op in _BY_ID and is_own(cast(GetTaskRequest, request).id):
            found = self._by_id(op, cast(GetTaskRequest, request), ctx)
        elif op in _BY_TASK_ID and is_own(cast(TaskPushNotificationConfig, request).task_id):
            found = self._push(op, cast(TaskPushNotificationConfig, request), ctx)
        else:
            found = self.inner.call(op, request, ctx)
        return cast("Coroutine[Any, Any, Res]", found)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        if op is SUBSCRIBE_TO_TASK and is_own(cast(SubscribeToTaskRequest, request).id):
            return self._subscribe(cast(SubscribeToTaskRequest, request), ctx)
        return self.inner.stream(op, request, ctx)

    # -- sending

    async def _send(self, request: SendMessageRequest, ctx: Context) -> SendMessageResponse:
        request, alias = await self._translated(request, ctx)
        own = unhurried(ctx)
        work = self._background.start(self.inner.call(SEND_MESSAGE, request, own), "send", ctx)
        done, _ = await asyncio.wait((work,), timeout=self._grace if returns_at_once(request) else None)
        if done:
            reply = work.result()
            report(own, ctx)
            return _shown_as(reply, alias)
        if request.message.task_id:
            return await self._as_it_is(request, alias, ctx)
        return SendMessageResponse(task=await self._begun(work, request, ctx))

    async def _begun(self, work: asyncio.Task[SendMessageResponse], request: SendMessageRequest, ctx: Context) -> Task:
        """A task of our own for work that goes on."""
        task = pending(new_own_id(), request.message.context_id)
        owner = self._owner(ctx)
        await self._records.save(owner, beating(task))
        self._background.start(self._finish(owner, task, work), "answer")
        wanted = request.configuration.history_length if request.configuration else None
        return trim(replace(task, history=(request.message,)), wanted)

    async def _finish(self, owner: Owner, task: Task, work: asyncio.Task[SendMessageResponse]) -> None:
        try:
            while not (await asyncio.wait((work,), timeout=BEAT))[0]:
                await self._save(owner, beating(task))
        except asyncio.CancelledError:
            await self._save(owner, failed(task, _SHUT_DOWN))
            raise
        try:
            record = answered(task, work.result())
        except asyncio.CancelledError:
            record = failed(task, _SHUT_DOWN)
        except A2AError as error:
            record = failed(task, f"The agent refused the message: {error.message}")
        except Exception as error:
            log.warning("a send in the background failed: %s", error)
            record = failed(task, "The agent gave no answer: what it did is not known")
        await self._save(owner, record)

    async def _save(self, owner: Owner, record: Task) -> None:
        try:
            await self._records.save(owner, record)
        except UnavailableError as error:
            log.warning("the record of a task could not be kept: %s", error)

    async def _as_it_is(self, request: SendMessageRequest, alias: Alias | None, ctx: Context) -> SendMessageResponse:
        """A task that exists, while the agent is at work for the message to it."""
        wanted = request.configuration.history_length if request.configuration else None
        asked = GetTaskRequest(tenant=request.tenant, id=request.message.task_id, history_length=wanted)
        task = await self.inner.call(GET_TASK, asked, ctx)
        return _shown_as(SendMessageResponse(task=task), alias)

    async def _translated(self, request: SendMessageRequest, ctx: Context) -> tuple[SendMessageRequest, Alias | None]:
        """The request with the agent's ids for ours, and the alias of its task if it has one of ours."""
        message = request.message
        alias = await self._alias(message.task_id, ctx)
        if alias is not None:
            message = replace(message, task_id=alias.task_id)
        context = await self._alias(message.context_id, ctx)
        if context is not None:
            message = replace(message, context_id=context.context_id or message.context_id)
        if any(map(is_own, message.reference_task_ids)):
            named = [(one, await self._alias(one, ctx)) for one in message.reference_task_ids]
            message = replace(
                message, reference_task_ids=tuple(known.task_id if known else one for one, known in named)
            )
        return (request if message is request.message else replace(request, message=message)), alias

    async def _reference(self, task_id: str, ctx: Context) -> str:
        alias = await self._alias(task_id, ctx)
        return alias.task_id if alias else task_id

    async def _alias(self, own: str, ctx: Context) -> Alias | None:
        """The agent's ids for one of ours, None if it is none of ours."""
        record = await self._record(own, ctx)
        if record is None:
            return None
        alias = alias_of(record)
        if alias is None:
            why = "The agent has not answered yet" if is_pending(record) else f"The task is {record.status.state.name}"
            raise UnsupportedOperationError(f"{why}: there is nothing to refer to")
        return alias

    # -- everything that names a task

    async def _by_id(self, op: AnyOperation, request: GetTaskRequest, ctx: Context) -> Task:
        there = cast("Unary[Any, Task]", op)
        record = await self._record(request.id, ctx)
        if record is None:
            return await self.inner.call(there, request, ctx)
        alias = alias_of(record)
        if alias is not None:
            return renamed(await self.inner.call(there, replace(request, id=alias.task_id), ctx), alias)
        if op is CANCEL_TASK:
            why = "The agent has not said yet what it calls it" if is_pending(record) else "The task is over"
            raise TaskNotCancelableError(why)
        return shown(record)

    async def _push(self, op: AnyOperation, request: TaskPushNotificationConfig, ctx: Context) -> Any:
        there = cast("Unary[Any, Any]", op)
        record = await self._record(request.task_id, ctx)
        if record is None:
            return await self.inner.call(there, request, ctx)
        alias = alias_of(record)
        if alias is None:
            raise UnavailableError("The agent has not said yet what it calls this task", retry_after=1.0)
        reply = await self.inner.call(there, replace(request, task_id=alias.task_id), ctx)
        if isinstance(reply, TaskPushNotificationConfig):
            return replace(reply, task_id=alias.own)
        if isinstance(reply, ListTaskPushNotificationConfigsResponse):
            return replace(reply, configs=tuple(replace(one, task_id=alias.own) for one in reply.configs))
        return reply

    async def _subscribe(self, request: SubscribeToTaskRequest, ctx: Context) -> EventStream:
        task = await self._by_id(GET_TASK, GetTaskRequest(tenant=request.tenant, id=request.id), ctx)
        if task.status.state in TERMINAL:
            raise UnsupportedOperationError(f"The task is {task.status.state.name}: nothing follows; GetTask has it")
        return follow(self._questions, ctx, task, ends=False)

    async def _record(self, own: str, ctx: Context) -> Task | None:
        """What is known of an id of ours; None for other ids, those that another gateway made among them."""
        return await self._records.find(self._owner(ctx), own) if is_own(own) else None

    def _owner(self, ctx: Context) -> Owner:
        return self._records.owner(ctx.tenant, self._caller_of(ctx))


def _shown_as(reply: SendMessageResponse, alias: Alias | None) -> SendMessageResponse:
    if alias is None or reply.task is None or reply.task.id != alias.task_id:
        return reply
    return SendMessageResponse(task=renamed(reply.task, alias))
