"""The gateway's heart: an A2AService in front of a client of somebody else's agent.

Rules of this module:

- Translation is not here: the server's dialect reads, the client's dialect writes.
- Bytes pass undecoded where caller and upstream speak one dialect and nothing in the message has to change.
- What cannot cross is refused with the error that names it, or carried as the loss table says.
- Only the caller's credentials and trace context go on (``forwarding``), and only the upstream's A2A facts come back.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

import msgspec

from ..client.hybrids import Hybrid
from ..client.remote import Remote
from ..dialects.base import Dialect
from ..errors import TaskNotFoundError
from ..faces import Face
from ..model import (
    CREATE_PUSH_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    LIST_PUSH_CONFIGS,
    SUBSCRIBE_TO_TASK,
    AgentCard,
    AgentInterface,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Req,
    Res,
    Streaming,
    Unary,
)
from ..service import AnyOperation, ByteStream, Context, EventStream
from .forwarding import Passing, forwarded_names
from .mending import Mending
from .passing import PassedStream, sound_json

#: Never passed as bytes: the card is rewritten, a subscription is taken up again when it breaks, and what creates a
#: webhook has two shapes over 0.3 HTTP+JSON.
_DECODED: frozenset[AnyOperation] = frozenset({GET_EXTENDED_AGENT_CARD, SUBSCRIBE_TO_TASK, CREATE_PUSH_CONFIG})


def _quiet(said: str) -> None:
    """Nobody listens."""


class Connected(Protocol):
    """What the gateway needs of whatever is connected to the upstream: a client, or a pool of them."""

    @property
    def card(self) -> AgentCard: ...

    @property
    def face(self) -> Face: ...

    @property
    def interface(self) -> AgentInterface: ...

    @property
    def dialect(self) -> Dialect: ...

    @property
    def remote(self) -> Remote: ...

    @property
    def hybrid(self) -> Hybrid | None: ...

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]: ...

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]: ...

    def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, bytes]: ...

    def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, ByteStream]: ...


class Gateway:
    """An agent of somebody else, as an :class:`A2AService`.

    ``client``: connected to the upstream; it is closed by whoever made it. ``forwarded``: names of header fields
    that go on to the upstream besides credentials and trace context. ``credentials``: those that verified a caller
    here go on too. ``tell`` hears what was found out about the agent.
    """

    def __init__(
        self,
        client: Connected,
        *,
        forwarded: Iterable[str] = (),
        credentials: bool = False,
        tell: Callable[[str], None] = _quiet,
    ) -> None:
        self._client = client
        self._mending = Mending(tell, needed=client.hybrid is not None and client.hybrid.mends)
        self._names = Passing(forwarded_names(client.card, forwarded), credentials=credentials)

    @property
    def card(self) -> AgentCard:
        """The upstream's card, less its signatures: they do not cover what the gateway makes of it."""
        return msgspec.structs.replace(self._client.card, signatures=())

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """As ``A2AService.call``."""
        outward = self._outward(ctx)
        if isinstance(request, GetTaskPushNotificationConfigRequest) and not request.id:
            request = await self._first_config(request, outward)  # type: ignore[assignment]  # same class
        reply = await self._client.call(op, request, outward)
        self._inward(outward, ctx)
        return reply

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        outward = self._outward(ctx)
        stream = await self._client.stream(op, request, outward)
        self._inward(outward, ctx)
        return stream

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """Whether bytes may pass: one dialect on both sides, no tenant to write in, nothing to be seen inside."""
        remote = self._client.remote
        return (
            remote.dialect.reads_as(dialect) and not remote.tenant and op not in _DECODED and not self._mending.needed
        )

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """As ``PassThrough.exchange``."""
        outward, dialect = self._outward(ctx), self._client.dialect
        reply = await self._client.exchange(op, body, outward)
        self._inward(outward, ctx)
        return reply if outward.binding == "GRPC" else self._mending.looked_into(op, dialect, sound_json(reply))

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """As ``PassThrough.exchange_stream``."""
        outward = self._outward(ctx)
        dialect, sound = self._client.dialect, None if outward.binding == "GRPC" else sound_json
        stream = await self._client.exchange_stream(op, body, outward)
        self._inward(outward, ctx)
        passed = PassedStream(stream, op, dialect, sound, self._mending)
        await passed.open()
        return passed

    def _outward(self, ctx: Context) -> Context:
        binding, version = self._client.remote.face
        return Context(
            version=version,
            binding=binding,
            tenant=ctx.tenant,
            headers=self._names.forward(ctx.headers, ctx.caller.consumed),
            extensions=ctx.extensions,
            caller=ctx.caller,
            deadline=ctx.deadline,
            files=ctx.files,
        )

    @staticmethod
    def _inward(outward: Context, ctx: Context) -> None:
        ctx.activated = outward.activated
        ctx.retry_after = outward.retry_after

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
