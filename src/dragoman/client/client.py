"""The client: eleven typed methods over any ``A2AService``; :func:`connect` makes one of a url.

::

    async with connect("https://agent.example", bearer=token) as agent:
        reply = await agent.send_text("What is the time?")

A :class:`Client` is an ``A2AService`` itself, so it can stand behind a server, which makes a gateway.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, TypedDict, Unpack

from .. import model as m
from ..dialects.base import Dialect
from ..errors import A2AError, ConfigError, PushNotificationNotSupportedError, UnsupportedOperationError
from ..faces import Face
from ..model import Req, Res, Streaming, Unary
from ..protocol.messages import Headers
from ..service import A2AService, AnyOperation, ByteStream, Context, EventStream
from .connect import Connecting, connect
from .failover import Interfaces
from .hybrids import Hybrid
from .options import Limits, Resume, Timeouts, Tls
from .remote import Remote, sendable

__all__ = ["CallOptions", "Client", "Connecting", "Limits", "Resume", "Timeouts", "Tls", "connect", "user_message"]

#: The capability that a card must declare for an operation, and what is raised without it (1.0 §3.3.4).
_NEEDS: dict[AnyOperation, tuple[str, type[A2AError]]] = {
    m.SEND_STREAMING_MESSAGE: ("streaming", UnsupportedOperationError),
    m.SUBSCRIBE_TO_TASK: ("streaming", UnsupportedOperationError),
    m.CREATE_PUSH_CONFIG: ("push_notifications", PushNotificationNotSupportedError),
    m.GET_PUSH_CONFIG: ("push_notifications", PushNotificationNotSupportedError),
    m.LIST_PUSH_CONFIGS: ("push_notifications", PushNotificationNotSupportedError),
    m.DELETE_PUSH_CONFIG: ("push_notifications", PushNotificationNotSupportedError),
    m.GET_EXTENDED_AGENT_CARD: ("extended_agent_card", UnsupportedOperationError),
}


class CallOptions(TypedDict, total=False):
    """What one call may be given besides its request.

    ``headers``: sent with it. ``extensions``: URIs to activate for it. ``timeout``: seconds, at most the connection's
    own ``Timeouts.reply``.
    """

    headers: Mapping[str, str]
    extensions: Iterable[str]
    timeout: float


def user_message(text: str, *, task_id: str = "", context_id: str = "") -> m.Message:
    """A user's message of one text part, under an id of its own."""
    return m.Message(
        message_id=uuid.uuid4().hex,
        role=m.Role.USER,
        parts=(m.Part(text=text),),
        task_id=task_id,
        context_id=context_id,
    )


class Client:
    """An agent, by typed methods. ``service``: any; those of :func:`connect` also have a face and an interface.

    ``card``: what the agent says of itself, None if nobody knows; replaced by the extended card once that was
    fetched. ``check_card``: refuse calls whose capability ``card`` does not declare, without asking the agent.
    ``hybrid``: how the agent departs from the specification, if that is known, and ``hybrid_known_by``: from what.
    """

    def __init__(
        self,
        service: A2AService,
        card: m.AgentCard | None = None,
        *,
        check_card: bool = True,
        hybrid: Hybrid | None = None,
        hybrid_known_by: str = "",
    ) -> None:
        self.service = service
        self.hybrid_known_by = hybrid_known_by
        self._hybrid = hybrid
        self._card = card
        self._check = check_card and card is not None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of a remote agent; another service is its maker's to close."""
        if isinstance(self.service, Interfaces):
            await self.service.aclose()

    # -- what it is connected to

    @property
    def card(self) -> m.AgentCard:
        """The agent's card. Raises ``ConfigError`` if this client was made without one."""
        if self._card is None:
            raise ConfigError("This client was made of a service without a card")
        return self._card

    @property
    def face(self) -> Face:
        """Version and binding in use; they change if the interface cannot be reached and the card has another."""
        return self._remote.candidate.face

    @property
    def hybrid(self) -> Hybrid | None:
        """How the agent departs from the specification, None if it does not or nobody knows."""
        return self._hybrid

    @property
    def dialect(self) -> Dialect:
        """The shape of messages over :attr:`face`, which :meth:`exchange` takes and gives."""
        return self._remote.remote.dialect

    @property
    def interface(self) -> m.AgentInterface:
        """The interface in use, its url as it is called."""
        return self._remote.candidate.interface

    @property
    def remote(self) -> Remote:
        """The client of the interface in use; another one after a failover."""
        return self._remote.remote

    @property
    def _remote(self) -> Interfaces:
        if not isinstance(self.service, Interfaces):
            raise ConfigError("This client is not one of a remote agent: it has no interface")
        return self.service

    @property
    def tenant(self) -> str:
        """The tenant that is written into every request, empty if none is."""
        return self._remote.remote.tenant

    # -- A2AService, and bytes

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """See ``A2AService.call``. ``ctx.headers`` are sent."""
        if self._check:
            self._require(op)
        return self.service.call(op, request, ctx)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """See ``A2AService.stream``. ``ctx.headers`` are sent."""
        if self._check:
            self._require(op)
        return self.service.stream(op, request, ctx)

    def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, bytes]:
        """One call by message bytes of the dialect of :attr:`face`, as it is when this is called."""
        if self._check:
            self._require(op)
        return self._remote.exchange(op, body, ctx)

    def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, ByteStream]:
        """One stream by message bytes of the dialect of :attr:`face`, as it is when this is called."""
        if self._check:
            self._require(op)
        return self._remote.exchange_stream(op, body, ctx)

    def _require(self, op: AnyOperation) -> None:
        need = _NEEDS.get(op)
        if need is not None and not getattr(self.card.capabilities, need[0]):
            raise need[1](
                f"{op.name}: the card of {self.card.name!r} does not declare {need[0]} (check_card=False asks)"
            )

    # -- the eleven operations

    async def send_message(
        self, request: m.SendMessageRequest | m.Message | str, **options: Unpack[CallOptions]
    ) -> m.SendMessageResponse:
        """Send a message and wait for its task to come to rest, or for a direct answer (1.0 §3.1.1)."""
        return await self.call(m.SEND_MESSAGE, _sending(request), _context(options))

    async def send_streaming_message(
        self, request: m.SendMessageRequest | m.Message | str, **options: Unpack[CallOptions]
    ) -> EventStream:
        """Send a message and follow what comes of it (1.0 §3.1.2). Close the stream when done with it."""
        return await self.stream(m.SEND_STREAMING_MESSAGE, _sending(request), _context(options))

    async def get_task(self, request: m.GetTaskRequest | str, **options: Unpack[CallOptions]) -> m.Task:
        """The task of a request or an id (1.0 §3.1.3)."""
        request = m.GetTaskRequest(id=request) if isinstance(request, str) else request
        return await self.call(m.GET_TASK, request, _context(options))

    async def list_tasks(
        self, request: m.ListTasksRequest | None = None, **options: Unpack[CallOptions]
    ) -> m.ListTasksResponse:
        """One page of tasks, newest status first (1.0 §3.1.4). 0.3 has no such operation."""
        return await self.call(m.LIST_TASKS, request or m.ListTasksRequest(), _context(options))

    async def cancel_task(self, request: m.CancelTaskRequest | str, **options: Unpack[CallOptions]) -> m.Task:
        """Ask for a task to be cancelled; its state says whether it was (1.0 §3.1.5)."""
        request = m.CancelTaskRequest(id=request) if isinstance(request, str) else request
        return await self.call(m.CANCEL_TASK, request, _context(options))

    async def subscribe_to_task(
        self, request: m.SubscribeToTaskRequest | str, **options: Unpack[CallOptions]
    ) -> EventStream:
        """Follow a task that is not terminal, from its present state on (1.0 §3.1.6)."""
        request = m.SubscribeToTaskRequest(id=request) if isinstance(request, str) else request
        return await self.stream(m.SUBSCRIBE_TO_TASK, request, _context(options))

    async def create_task_push_notification_config(
        self, request: m.TaskPushNotificationConfig, **options: Unpack[CallOptions]
    ) -> m.TaskPushNotificationConfig:
        """Register a webhook for a task (1.0 §3.1.7)."""
        return await self.call(m.CREATE_PUSH_CONFIG, request, _context(options))

    async def get_task_push_notification_config(
        self, request: m.GetTaskPushNotificationConfigRequest, **options: Unpack[CallOptions]
    ) -> m.TaskPushNotificationConfig:
        """One webhook of a task (1.0 §3.1.8)."""
        return await self.call(m.GET_PUSH_CONFIG, request, _context(options))

    async def list_task_push_notification_configs(
        self, request: m.ListTaskPushNotificationConfigsRequest | str, **options: Unpack[CallOptions]
    ) -> m.ListTaskPushNotificationConfigsResponse:
        """The webhooks of a task, by request or task id (1.0 §3.1.9)."""
        request = m.ListTaskPushNotificationConfigsRequest(task_id=request) if isinstance(request, str) else request
        return await self.call(m.LIST_PUSH_CONFIGS, request, _context(options))

    async def delete_task_push_notification_config(
        self, request: m.DeleteTaskPushNotificationConfigRequest, **options: Unpack[CallOptions]
    ) -> None:
        """Remove a webhook; removing it again is no error (1.0 §3.1.10)."""
        await self.call(m.DELETE_PUSH_CONFIG, request, _context(options))

    async def get_extended_agent_card(
        self, request: m.GetExtendedAgentCardRequest | None = None, **options: Unpack[CallOptions]
    ) -> m.AgentCard:
        """The card for callers who authenticate; from then on it is :attr:`card` (1.0 §3.1.11)."""
        request = request or m.GetExtendedAgentCardRequest()
        self._card = await self.call(m.GET_EXTENDED_AGENT_CARD, request, _context(options))
        return self._card

    # -- shorter

    async def send_text(
        self, text: str, *, task_id: str = "", context_id: str = "", **options: Unpack[CallOptions]
    ) -> m.SendMessageResponse:
        """Send a text, in a task or a context if one is given."""
        return await self.send_message(user_message(text, task_id=task_id, context_id=context_id), **options)

    async def stream_text(
        self, text: str, *, task_id: str = "", context_id: str = "", **options: Unpack[CallOptions]
    ) -> EventStream:
        """Send a text and follow what comes of it."""
        return await self.send_streaming_message(user_message(text, task_id=task_id, context_id=context_id), **options)


def _sending(request: m.SendMessageRequest | m.Message | str) -> m.SendMessageRequest:
    if isinstance(request, m.SendMessageRequest):
        return request
    return m.SendMessageRequest(message=user_message(request) if isinstance(request, str) else request)


def _context(options: CallOptions) -> Context:
    timeout = options.get("timeout")
    return Context(
        headers=Headers(sendable(options.get("headers") or {})),
        extensions=tuple(options.get("extensions", ())),
        deadline=None if timeout is None else asyncio.get_running_loop().time() + timeout,
    )
