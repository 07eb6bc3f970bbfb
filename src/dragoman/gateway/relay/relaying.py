"""An agent whose webhooks the gateway serves.

Rules of this module:

- The operations on webhooks are answered here; the agent is asked whether there is such a task where nothing here
  proves it. The agent itself knows of one webhook: our callback, with a secret of its own.
- A webhook inside a send is taken out of it, and our callback put in its place. Which task that is for is told by the
  reply, or by the first notification, whichever comes first.
- The caller's credentials go along with what the agent is asked on its behalf; nothing of them is kept. So a callback
  is removed at the agent with the caller's own when the caller removes its last webhook, and after the end of its
  task with the gateway's, if it has any, or the agent needs none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

from msgspec.structs import replace

from ...errors import A2AError, DragomanError, InvalidParamsError, PushNotificationNotSupportedError
from ...model import (
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    Req,
    Res,
    SendMessageRequest,
    SendMessageResponse,
    Streaming,
    StreamResponse,
    Task,
    TaskPushNotificationConfig,
    Unary,
)
from ...runtime.configs import chosen, complete, paged
from ...service import A2AService, AnyOperation, Context, EventStream
from ...store.outbox import Registration, Scope, Watch
from ..background import unhurried
from .inline import Inline, inline_config
from .reading import callback
from .relay import Relay
from .webhooks import Webhooks, repeated, shown

log = logging.getLogger("dragoman.relay")

_PATIENCE = 5.0  # seconds that a look at a task, or a clean-up, may take


class Relaying(Inline):
    """Serves the webhooks of the agent ``name``. ``caller_of``: see ``identity.owner_of``. ``removes``: whether the
    gateway itself may ask the agent to forget a callback."""

    def __init__(
        self, inner: A2AService, relay: Relay, name: str, caller_of: Callable[[Context], str], *, removes: bool
    ) -> None:
        super().__init__(inner)
        self._relay = relay
        self._webhooks = Webhooks(relay, name, caller_of)
        self._answers: dict[AnyOperation, Callable[[Any, Context], Coroutine[Any, Any, Any]]] = {
            CREATE_PUSH_CONFIG: self._create,
            GET_PUSH_CONFIG: self._get,
            LIST_PUSH_CONFIGS: self._list,
            DELETE_PUSH_CONFIG: self._delete,
        }
        relay.removing.pop(name, None)
        if removes:
            relay.removing[name] = self._remove

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        answer = self._answers.get(op)
        if answer is not None:
            return answer(request, ctx)
        if op is SEND_MESSAGE and inline_config(cast(SendMessageRequest, request)) is not None:
            return cast("Coroutine[Any, Any, Res]", self._send(cast(SendMessageRequest, request), ctx))
        return self.inner.call(op, request, ctx)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        if op is SEND_STREAMING_MESSAGE and inline_config(cast(SendMessageRequest, request)) is not None:
            return self._send_streaming(cast(SendMessageRequest, request), ctx)
        return self.inner.stream(op, request, ctx)

    # -- the four operations

    async def _create(self, request: TaskPushNotificationConfig, ctx: Context) -> TaskPushNotificationConfig:
        config = complete(request, request.task_id)
        await self._webhooks.admit(config)
        scope = self._webhooks.scope(request, ctx)
        async with self._webhooks.turn(scope, config.task_id):
            states = await self._webhooks.of(scope, config.task_id)
            if await self._webhooks.join(states, config, ctx.version) is not None:
                return config
            watch = await self._register(scope, config, ctx)
        await self._look(watch, request, ctx)
        return config

    async def _register(self, scope: Scope, config: TaskPushNotificationConfig, ctx: Context) -> Watch:
        """Have the agent call us, for the sake of a task's first webhook."""
        watch, made = await self._webhooks.open(scope, config.task_id, config, ctx.version)
        ours = callback(made, self._relay.callbacks, id=watch.id, task_id=config.task_id, tenant=config.tenant)
        try:
            await self.inner.call(CREATE_PUSH_CONFIG, ours, ctx)
        except BaseException as error:
            self._relay.background.start(self._webhooks.forget(watch.id), "forget-webhook")
            if isinstance(error, InvalidParamsError):  # nothing in it but the callback is new to the agent
                raise self._unwanted(error) from error
            raise
        return watch

    async def _look(self, watch: Watch, request: TaskPushNotificationConfig, ctx: Context) -> None:
        """How the task is now: what a notification adds to, and whether one will come at all."""
        try:
            async with asyncio.timeout(_PATIENCE):
                asked = GetTaskRequest(tenant=request.tenant, id=request.task_id)
                task = await self.inner.call(GET_TASK, asked, unhurried(ctx))
        except (DragomanError, TimeoutError) as error:
            log.info("A task with a new webhook cannot be looked at: %s", error)
            return
        await self._webhooks.look(watch.id, task)

    async def _get(self, request: GetTaskPushNotificationConfigRequest, ctx: Context) -> TaskPushNotificationConfig:
        return chosen(await self._shown(request, ctx), request.task_id, request.id)

    async def _list(
        self, request: ListTaskPushNotificationConfigsRequest, ctx: Context
    ) -> ListTaskPushNotificationConfigsResponse:
        known = await self._shown(request, ctx)
        if not known:
            await self._check_task(request, ctx)
        return paged(known, request)

    async def _delete(self, request: DeleteTaskPushNotificationConfigRequest, ctx: Context) -> None:
        states = await self._webhooks.of(self._webhooks.scope(request, ctx), request.task_id)
        if not any(state.lines for state in states):
            await self._check_task(request, ctx)
        for state in states:
            found = [one.registration for one in state.lines if one.registration.config.id == request.id]
            for one in found:
                await self._webhooks.leave(one)
            if found and len(found) == len(state.lines):
                await self._webhooks.forget(state.watch.id)
                await self._withdraw(state.watch, request.task_id, ctx)

    async def _shown(self, request: Any, ctx: Context) -> list[TaskPushNotificationConfig]:
        scope = self._webhooks.scope(request, ctx)
        states = await self._webhooks.of(scope, request.task_id)
        return [shown(line.registration.config, request.task_id, scope) for state in states for line in state.lines]

    async def _check_task(self, request: Any, ctx: Context) -> None:
        """Raises ``TaskNotFoundError`` if the caller has no such task."""
        await self.inner.call(
            GET_TASK, GetTaskRequest(tenant=request.tenant, id=request.task_id, history_length=1), ctx
        )

    # -- webhooks inside sends

    async def _send(self, request: SendMessageRequest, ctx: Context) -> SendMessageResponse:
        sent, watch, joined = await self._exchanged(request, ctx)
        try:
            reply = await self.inner.call(SEND_MESSAGE, sent, ctx)
        except A2AError as error:
            await self._refused(watch, joined)
            if watch is not None and _is_about_callback(error):
                raise self._unwanted(error) from error
            raise
        if watch is not None:
            await self._bind(watch, reply.task)
        return reply

    async def _send_streaming(self, request: SendMessageRequest, ctx: Context) -> EventStream:
        sent, watch, joined = await self._exchanged(request, ctx)
        try:
            stream = await self.inner.stream(SEND_STREAMING_MESSAGE, sent, ctx)
        except A2AError as error:
            await self._refused(watch, joined)
            if watch is not None and _is_about_callback(error):
                raise self._unwanted(error) from error
            raise
        return stream if watch is None else _Binding(stream, lambda task: self._bind(watch, task))

    async def _exchanged(
        self, request: SendMessageRequest, ctx: Context
    ) -> tuple[SendMessageRequest, Watch | None, Registration | None]:
        """The send with our callback in place of its webhook, or with none if the agent has it already; the callback,
        or the webhook that joined the one that is there."""
        config, task_id = inline_config(request), request.message.task_id
        assert config is not None  # that is why we are here
        one = complete(config, task_id)
        await self._webhooks.admit(one)
        scope = self._webhooks.scope(request, ctx)
        if task_id:
            states = await self._webhooks.of(scope, task_id)
            if repeated(states, config):
                return _with(request, None), None, None
            joined = await self._webhooks.join(states, one, ctx.version)
            if joined is not None:
                return _with(request, None), None, joined
        watch, made = await self._webhooks.open(scope, task_id, one, ctx.version)
        ours = callback(made, self._relay.callbacks, id=watch.id, tenant=config.tenant)
        return _with(request, ours), watch, None

    async def _bind(self, watch: Watch, task: Task | None) -> None:
        if task is None:
            await self._webhooks.refused(watch.id)  # a Message: there is no task to be told of
        else:
            await self._webhooks.bind(watch.id, task)

    async def _refused(self, watch: Watch | None, joined: Registration | None) -> None:
        if watch is not None:
            await self._webhooks.refused(watch.id)
        if joined is not None:
            await self._webhooks.leave(joined)

    # -- our callbacks at the agent

    def _unwanted(self, error: A2AError) -> PushNotificationNotSupportedError:
        """What a caller is told when the agent would not have our callback, which is no fault of its webhook's."""
        log.warning("The agent does not take the callback %s...: %s", self._relay.callbacks, error)
        return PushNotificationNotSupportedError("The agent behind this gateway does not take the gateway's callback")

    async def _withdraw(self, watch: Watch, task_id: str, ctx: Context) -> None:
        asked = DeleteTaskPushNotificationConfigRequest(tenant=watch.scope.tenant, task_id=task_id, id=watch.id)
        try:
            async with asyncio.timeout(_PATIENCE):
                await self.inner.call(DELETE_PUSH_CONFIG, asked, unhurried(ctx))
        except (DragomanError, TimeoutError) as error:
            log.info("A callback could not be removed at its agent: %s", error)

    async def _remove(self, watch: Watch, task_id: str) -> None:
        """As ``relay.Remove``."""
        await self._withdraw(watch, task_id, Context(tenant=watch.scope.tenant))


def _is_about_callback(error: A2AError) -> bool:
    if not isinstance(error, InvalidParamsError):
        return False
    return any(field.endswith("url") or "otification" in field for field, _ in error.violations)


def _with(request: SendMessageRequest, config: TaskPushNotificationConfig | None) -> SendMessageRequest:
    assert request.configuration is not None  # it had a webhook
    return replace(request, configuration=replace(request.configuration, task_push_notification_config=config))


class _Binding(EventStream):
    """A stream whose first event says which task a callback is for."""

    def __init__(self, source: EventStream, bind: Callable[[Task | None], Coroutine[Any, Any, None]]) -> None:
        self._source = source
        self._bind: Callable[[Task | None], Coroutine[Any, Any, None]] | None = bind

    async def batch(self) -> Sequence[StreamResponse]:
        events = await self._source.batch()
        if self._bind is not None and events:
            bind, self._bind = self._bind, None
            await bind(events[0].task)  # a stream begins with a task or a message
        return events

    async def aclose(self) -> None:
        await self._source.aclose()
