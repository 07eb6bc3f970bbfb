"""The engine: a user's agent as an A2A service, all eleven operations.

Rules of this module:

- A request is judged before anything happens: required extensions, capabilities, its own fields, then the task.
- Tasks belong to the tenant and the caller's name; those of others do not exist (1.0 §13.1).
- A message to a task that waits resumes it; to one that is final or at work it is refused (UnsupportedOperation).
- Tasks live in the store; work in progress lives in this process and is lost with it.
- Webhooks are called by the courier that the engine is given; without one their configs are only kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias, TypeVar

from msgspec.structs import replace

from ..errors import (
    A2AError,
    DeadlineExceededError,
    ExtendedAgentCardNotConfiguredError,
    ExtensionSupportRequiredError,
    InvalidParamsError,
    MethodNotFoundError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    UnsupportedOperationError,
)
from ..model import (
    CANCEL_TASK,
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCard,
    AgentInterface,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Operation,
    Req,
    Res,
    Role,
    SendMessageRequest,
    SendMessageResponse,
    Streaming,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    Unary,
)
from ..service import Context, EventStream
from ..store.base import Owner, Store, Webhook
from ..store.memory import MemoryStore
from . import configs
from .agent import Agent, Turn
from .audience import Answer
from .hub import Subscription
from .lifecycle import Draft, is_terminal, trim
from .listing import read_query, write_page
from .modes import InputModes
from .push import Courier
from .run import Run
from .runs import Limits, Runs
from .stamps import Clock, utc_now

Waited = TypeVar("Waited")
_NOBODY = Role.UNSPECIFIED
Handle: TypeAlias = Callable[[Any, Context], Coroutine[Any, Any, Any]]


class _Tenanted(Protocol):
    @property
    def tenant(self) -> str: ...


class Engine:
    """Runs an agent as an :class:`~dragoman.service.A2AService`.

    ``store``: where tasks are kept, default a new :class:`MemoryStore`; it stays open when the engine closes.
    ``pusher``: delivers to webhooks; it stays open too.
    ``limits``: how long it waits and how much it holds. ``clock``: the time of every status.
    ``check_input_modes``: refuse parts that state a media type which the card does not list (1.0 §3.1.1).
    ``interfaces``: what the extended card lists if it lists nothing itself; a server sets it.
    """

    def __init__(
        self,
        agent: Agent,
        store: Store | None = None,
        *,
        pusher: Courier | None = None,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        clock: Clock = utc_now,
        check_input_modes: bool = True,
        interfaces: tuple[AgentInterface, ...] = (),
    ) -> None:
        self.agent = agent
        self.store = store or MemoryStore()
        self.interfaces = interfaces
        self._runs = Runs(agent, self.store, limits, clock, pusher)
        modes = InputModes(agent.card)
        self._modes = modes if check_input_modes and not modes.any else None
        extensions = agent.card.capabilities.extensions
        self._known = {extension.uri for extension in extensions if extension.uri}
        self._required = {extension.uri for extension in extensions if extension.uri and extension.required}
        self._handles: dict[Operation[Any, Any], Handle] = {
            SEND_MESSAGE: self._send,
            SEND_STREAMING_MESSAGE: self._send_streaming,
            GET_TASK: self._get,
            LIST_TASKS: self._list,
            CANCEL_TASK: self._cancel,
            SUBSCRIBE_TO_TASK: self._subscribe,
            CREATE_PUSH_CONFIG: self._create_config,
            GET_PUSH_CONFIG: self._get_config,
            LIST_PUSH_CONFIGS: self._list_configs,
            DELETE_PUSH_CONFIG: self._delete_config,
            GET_EXTENDED_AGENT_CARD: self._get_extended_card,
        }

    @property
    def card(self) -> AgentCard:
        """The agent's public card, as the agent wrote it."""
        return self.agent.card

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """Answer one operation. Raises ``A2AError``."""
        handle = self._handles.get(op)
        if handle is None or ctx.extensions or self._required:
            handle = self._handle(op, ctx)
        reply: Res = await handle(request, ctx)
        return reply

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """Open a stream once its first event is there. Raises ``A2AError`` for what comes instead of it."""
        if not self.card.capabilities.streaming:
            raise UnsupportedOperationError("This agent does not stream (capabilities.streaming)")
        events: EventStream = await self._handle(op, ctx)(request, ctx)
        return events

    async def aclose(self) -> None:
        """Stop the work: running tasks fail with a word about it, streams end, and new messages are refused."""
        await self._runs.aclose()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _handle(self, op: Operation[Any, Any], ctx: Context) -> Handle:
        """What answers an operation, the extensions settled. Raises if there is no such thing, or one is missing."""
        handle = self._handles.get(op)
        if handle is None:
            raise MethodNotFoundError(f"There is no operation {op.name}")
        if ctx.extensions:
            ctx.activated = tuple(uri for uri in ctx.extensions if uri in self._known)
        if self._required and op is not GET_EXTENDED_AGENT_CARD and not self._required.issubset(ctx.activated):
            missing = ", ".join(sorted(self._required.difference(ctx.activated)))
            raise ExtensionSupportRequiredError(
                f"This agent requires the extension {missing}", metadata={"extensions": missing}
            )
        return handle

    # -- messages ----------------------------------------------------------------------------------------------

    async def _send(self, request: SendMessageRequest, ctx: Context) -> SendMessageResponse:
        run = await self._start(request, ctx)
        configuration = request.configuration
        sign = _first_sign(run) if configuration is not None and configuration.return_immediately else run.wait()
        answer = await (sign if ctx.deadline is None else _until(ctx.deadline, sign))
        length = None if configuration is None else configuration.history_length
        if isinstance(answer, Message):
            return SendMessageResponse(message=answer)
        return SendMessageResponse(task=answer if length is None else trim(answer, length))

    async def _send_streaming(self, request: SendMessageRequest, ctx: Context) -> Subscription:
        run = await self._start(request, ctx)
        configuration = request.configuration
        subscription = run.watch(None if configuration is None else configuration.history_length)
        try:
            await _until(ctx.deadline, subscription.ready())
        except BaseException:
            await subscription.aclose()
            raise
        return subscription

    async def _start(self, request: SendMessageRequest, ctx: Context) -> Run:
        """Judge a message and start the agent on it; nothing of the agent has run when this returns."""
        owner = _owner(request, ctx)
        self._check_send(request)
        pusher = self._runs.courier
        message = request.message
        configuration = request.configuration
        webhook = None if configuration is None else configuration.task_push_notification_config
        if webhook is not None and pusher is not None:
            await pusher.admit(webhook)
        if message.task_id:
            return await self._resume(owner, request, ctx, webhook)
        run = self._runs.new(owner, message.context_id)
        if webhook is not None:
            run.webhook = Webhook(configs.complete(webhook, run.id), ctx.version)
        run.begin(Turn(run, request, ctx, message))
        return run

    async def _resume(
        self, owner: Owner, request: SendMessageRequest, ctx: Context, webhook: TaskPushNotificationConfig | None
    ) -> Run:
        message = request.message
        run, draft = await self._resumable(owner, message)
        if webhook is not None:
            kept = await configs.inline(self.store, owner, run.id, webhook, ctx.version)
            await configs.keep(self.store, owner, kept)
        if webhook is not None or self._runs.courier is not None:
            await self._runs.wake(owner, run.id)
            run, draft = await self._resumable(owner, message)  # somebody may have been faster
        run.resume(draft, Turn(run, request, ctx, message, draft.snapshot()))
        return run

    async def _resumable(self, owner: Owner, message: Message) -> tuple[Run, Draft]:
        run, draft = await self._runs.find(owner, message.task_id)
        if message.context_id not in ("", run.context_id):
            raise InvalidParamsError(violations=(("message.contextId", "is not the context of the task"),))
        if draft.terminal:
            raise _unsupported("The task is final; send a message without taskId to start a new one", draft)
        if not draft.settled or run.stopping:
            raise _unsupported("The task is at work; wait until it is final or asks for input", draft)
        return run, draft

    def _check_send(self, request: SendMessageRequest) -> None:
        message = request.message
        configuration = request.configuration
        if not message.parts or not message.message_id or message.role is _NOBODY:
            raise InvalidParamsError(violations=tuple(_message_violations(message)))
        if self._modes is not None:
            self._modes.check(message.parts)
        if configuration is None:
            return
        if configuration.history_length is not None:
            _check_history(configuration.history_length, "configuration.historyLength")
        if configuration.task_push_notification_config is not None:
            self._check_push()

    # -- tasks -------------------------------------------------------------------------------------------------

    async def _get(self, request: GetTaskRequest, ctx: Context) -> Task:
        length = request.history_length
        if length is not None:
            _check_history(length, "historyLength")
        task = await self._runs.task(_owner(request, ctx), request.id)
        return task if length is None else trim(task, length)

    async def _list(self, request: ListTasksRequest, ctx: Context) -> ListTasksResponse:
        owner = _owner(request, ctx)
        query = read_query(request, owner)
        await self._runs.flush(owner)
        return write_page(request, owner, query, await self.store.list(owner, query))

    async def _cancel(self, request: CancelTaskRequest, ctx: Context) -> Task:
        owner = _owner(request, ctx)
        task = await self._runs.task(owner, request.id)
        allows = self.agent.on_cancel
        if allows is not None and not is_terminal(task.status.state) and not await allows(task):
            raise TaskNotCancelableError("The agent refuses to cancel this task", metadata={"taskId": task.id})
        if not is_terminal(task.status.state):
            await self._runs.wake(owner, task.id)
        run, draft = await self._runs.find(owner, request.id)
        return await run.cancel(draft)

    async def _subscribe(self, request: SubscribeToTaskRequest, ctx: Context) -> Subscription:
        run, draft = await self._runs.find(_owner(request, ctx), request.id)
        if not draft.terminal:
            return run.watch()
        if ctx.version == "0.3":  # whose clients are told the end rather than an error
            subscription = Subscription(None)
            subscription.push(StreamResponse(task=draft.snapshot()))
            return subscription
        raise _unsupported("The task is final; use GetTask", draft)

    # -- webhook configs ---------------------------------------------------------------------------------------

    async def _create_config(self, request: TaskPushNotificationConfig, ctx: Context) -> TaskPushNotificationConfig:
        owner = await self._config_owner(request, request.task_id, ctx)
        config = configs.complete(request, request.task_id)
        pusher = self._runs.courier
        if pusher is not None:
            await pusher.admit(config)
        webhook = Webhook(config, ctx.version)
        await configs.keep(self.store, owner, webhook)
        if pusher is not None:
            await self._follow(owner, webhook)
        return config

    async def _follow(self, owner: Owner, webhook: Webhook) -> None:
        """Deliver to a new webhook. If the task became final before it was there, it is told so."""
        run, draft = await self._runs.find(owner, webhook.config.task_id)
        if draft.terminal or run.id in self._runs.live:
            self._runs.follow(owner, webhook, draft if draft.terminal else None)
            self._runs.rest(run.id)

    async def _get_config(
        self, request: GetTaskPushNotificationConfigRequest, ctx: Context
    ) -> TaskPushNotificationConfig:
        owner = await self._config_owner(request, request.task_id, ctx)
        return await configs.get(self.store, owner, request.task_id, request.id)

    async def _list_configs(
        self, request: ListTaskPushNotificationConfigsRequest, ctx: Context
    ) -> ListTaskPushNotificationConfigsResponse:
        owner = await self._config_owner(request, request.task_id, ctx)
        return await configs.page(self.store, owner, request)

    async def _delete_config(self, request: DeleteTaskPushNotificationConfigRequest, ctx: Context) -> None:
        owner = await self._config_owner(request, request.task_id, ctx)
        await self.store.delete_config(owner, request.task_id, request.id)
        if self._runs.courier is not None:
            self._runs.courier.forget(request.task_id, request.id)

    async def _config_owner(self, request: _Tenanted, task_id: str, ctx: Context) -> Owner:
        self._check_push()
        owner = _owner(request, ctx)
        await self._runs.task(owner, task_id)
        return owner

    def _check_push(self) -> None:
        if not self.card.capabilities.push_notifications:
            raise PushNotificationNotSupportedError()

    # -- card --------------------------------------------------------------------------------------------------

    async def _get_extended_card(self, request: GetExtendedAgentCardRequest, ctx: Context) -> AgentCard:
        if not self.card.capabilities.extended_agent_card:
            raise UnsupportedOperationError("This agent has no extended card (capabilities.extendedAgentCard)")
        card = self.agent.extended_card
        if card is None:
            raise ExtendedAgentCardNotConfiguredError()
        return card if card.supported_interfaces else replace(card, supported_interfaces=self.interfaces)


def _owner(request: _Tenanted, ctx: Context) -> Owner:
    tenant = request.tenant
    if ctx.tenant and tenant != ctx.tenant:
        if tenant:
            raise InvalidParamsError(violations=(("tenant", "is not the tenant that the request was sent to"),))
        tenant = ctx.tenant
    return tenant, ctx.caller.name


def _message_violations(message: Message) -> list[tuple[str, str]]:
    rows = (
        (not message.parts, "message.parts", "must have at least one part"),
        (not message.message_id, "message.messageId", "must not be empty"),
        (message.role is _NOBODY, "message.role", "must be ROLE_USER"),
    )
    return [(field, text) for wrong, field, text in rows if wrong]


def _check_history(length: int, field: str) -> None:
    if length < 0:
        raise InvalidParamsError(violations=((field, "must not be negative"),))


def _unsupported(text: str, draft: Draft) -> A2AError:
    return UnsupportedOperationError(text, metadata={"taskId": draft.id, "state": draft.status.state.value})


async def _first_sign(run: Run) -> Answer:
    """Wait until the task exists or the agent answers with a message."""
    if run.draft is None:
        message = await run.wait_for_first()
        if message is not None:
            return message
    assert run.draft is not None
    return run.draft.snapshot()


async def _until(deadline: float | None, waiting: Awaitable[Waited]) -> Waited:
    """The caller's deadline ends its wait and never the task."""
    if deadline is None:
        return await waiting
    try:
        async with asyncio.timeout_at(deadline):
            return await waiting
    except TimeoutError:
        raise DeadlineExceededError() from None
