"""The gateway's heart: an A2AService in front of a client of somebody else's agent.

Rules of this module:

- Translation is not here: the server's dialect reads, the client's dialect writes.
- Bytes pass undecoded where caller and upstream speak one dialect and nothing in the message has to change.
- What cannot cross is refused with the error that names it, or carried as the loss table says.
- Only the caller's credentials and trace context go on (``forwarding``), and only the upstream's A2A facts come back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ..client.client import Client
from ..dialects.base import Dialect
from ..errors import PushNotificationNotSupportedError, TaskNotFoundError
from ..model import (
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_PUSH_CONFIG,
    LIST_PUSH_CONFIGS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCard,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Req,
    Res,
    SendMessageRequest,
    Streaming,
    TaskPushNotificationConfig,
    Unary,
)
from ..service import AnyOperation, ByteStream, Context, EventStream
from .forwarding import forward, forwarded_names
from .passing import PassedStream, sound_json

_PUSH: frozenset[AnyOperation] = frozenset({CREATE_PUSH_CONFIG, GET_PUSH_CONFIG, LIST_PUSH_CONFIGS, DELETE_PUSH_CONFIG})
#: Never passed as bytes: the card is rewritten, and a subscription is taken up again when it breaks.
_DECODED: frozenset[AnyOperation] = frozenset({GET_EXTENDED_AGENT_CARD, SUBSCRIBE_TO_TASK})
_SENDS: frozenset[AnyOperation] = frozenset({SEND_MESSAGE, SEND_STREAMING_MESSAGE})


class Gateway:
    """An agent of somebody else, as an :class:`A2AService`.

    ``client``: connected to the upstream; it is closed by whoever made it. ``forwarded``: names of header fields
    that go on to the upstream besides credentials and trace context.
    """

    def __init__(self, client: Client, *, forwarded: Iterable[str] = ()) -> None:
        self._client = client
        self._names = forwarded_names(client.card, forwarded)

    @property
    def card(self) -> AgentCard:
        """The upstream's card, less its signatures: they do not cover what the gateway makes of it."""
        return msgspec.structs.replace(self._client.card, signatures=())

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """As ``A2AService.call``."""
        self._refuse_push(op, request, ctx)
        outward = self._outward(ctx)
        if isinstance(request, GetTaskPushNotificationConfigRequest) and not request.id:
            request = await self._first_config(request, outward)  # type: ignore[assignment]  # same class
        reply = await self._client.call(op, request, outward)
        self._inward(outward, ctx)
        return reply

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        self._refuse_push(op, request, ctx)
        outward = self._outward(ctx)
        stream = await self._client.stream(op, request, outward)
        self._inward(outward, ctx)
        return stream

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """Whether bytes may pass: one dialect on both sides, no tenant to write in, nothing to be seen inside."""
        remote = self._client.remote
        return dialect is remote.dialect and not remote.tenant and op not in _DECODED

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """As ``PassThrough.exchange``."""
        outward = self._outward(ctx)
        reply = await self._client.exchange(op, body, outward)
        self._inward(outward, ctx)
        return reply if outward.binding == "GRPC" else sound_json(reply)

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """As ``PassThrough.exchange_stream``."""
        outward = self._outward(ctx)
        client = self._client
        stream = await client.exchange_stream(op, body, outward)
        self._inward(outward, ctx)
        return PassedStream(stream, op, client.dialect, None if client.face.binding == "GRPC" else sound_json)

    def _outward(self, ctx: Context) -> Context:
        binding, version = self._client.remote.face
        return Context(
            version=version,
            binding=binding,
            tenant=ctx.tenant,
            headers=forward(ctx.headers, self._names),
            extensions=ctx.extensions,
            caller=ctx.caller,
            deadline=ctx.deadline,
        )

    @staticmethod
    def _inward(outward: Context, ctx: Context) -> None:
        ctx.activated = outward.activated
        ctx.retry_after = outward.retry_after

    def _refuse_push(self, op: AnyOperation, request: Any, ctx: Context) -> None:
        """A webhook gets the payloads of the version it was registered in, which only the upstream's own is."""
        upstream = self._client.remote.face.version
        if ctx.version == upstream or not (op in _PUSH or (op in _SENDS and _inline_config(request))):
            return
        raise PushNotificationNotSupportedError(
            f"The agent behind this gateway speaks {upstream} and would notify in {upstream}: "
            f"register the webhook in {upstream}"
        )

    async def _first_config(
        self, request: GetTaskPushNotificationConfigRequest, ctx: Context
    ) -> GetTaskPushNotificationConfigRequest:
        """A 0.3 caller may ask for a task's config without naming it; 1.0 needs the name."""
        if self._client.face.version == "0.3":
            return request
        listing = ListTaskPushNotificationConfigsRequest(task_id=request.task_id, tenant=request.tenant)
        configs = (await self._client.call(LIST_PUSH_CONFIGS, listing, ctx)).configs
        if not configs:
            raise TaskNotFoundError("The task has no push notification config")
        return msgspec.structs.replace(request, id=configs[0].id)


def _inline_config(request: SendMessageRequest) -> TaskPushNotificationConfig | None:
    return request.configuration.task_push_notification_config if request.configuration else None
