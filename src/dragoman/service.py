"""The one interface of the project: an A2A agent, wherever and whatever it is.

The engine that runs a user's agent is an :class:`A2AService`; so is a client of a remote agent; a middleware takes
one and gives one. The gateway is a server over a client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from .dialects.base import Dialect
from .dialects.files import Files
from .model import Operation, Req, Res, Streaming, StreamResponse, Unary
from .protocol.messages import NO_HEADERS, Headers
from .protocol.operations import Binding, Version

AnyOperation: TypeAlias = Operation[Any, Any]


class Caller(Protocol):
    """Who is asking: a verified principal, or nobody in particular."""

    @property
    def name(self) -> str: ...

    @property
    def consumed(self) -> frozenset[bytes]:
        """Lower-case names of the header fields that verified it: they were meant for us, and go no further."""
        ...


class Anonymous:
    """The caller of a server that verifies nobody."""

    name = ""
    consumed: frozenset[bytes] = frozenset()


ANONYMOUS = Anonymous()


class Lease(Protocol):
    """What is open on a caller's account while a request is served."""

    def share(self) -> Callable[[], None]:
        """Keep it open on behalf of what goes on beside the request, until the result is called, once."""
        ...


class Context(msgspec.Struct, kw_only=True, eq=False):
    """What travels beside one request, inwards, and beside its reply, outwards. (A struct because it is made fast.)

    Inwards: ``version`` and ``binding`` that the caller speaks, ``tenant``, ``headers`` as they came, ``extensions``
    (URIs that the caller activates), ``caller``, ``deadline`` (seconds on the event loop's clock, None = none),
    ``base_url`` (where the caller reached us; set where a card is asked for), ``lease`` (None if nothing is counted),
    ``files`` (how its caller keeps files, where that is a question).
    Outwards: ``activated`` (URIs that were), ``retry_after`` (seconds).
    """

    version: Version = "1.0"
    binding: Binding | None = None
    tenant: str = ""
    headers: Headers = NO_HEADERS
    extensions: tuple[str, ...] = ()
    caller: Caller = ANONYMOUS
    deadline: float | None = None
    base_url: str = ""
    lease: Lease | None = None
    files: Files | None = None
    activated: tuple[str, ...] = ()
    retry_after: float | None = None


Item = TypeVar("Item")


class Stream(ABC, Generic[Item]):
    """The items of one stream, in order. Whoever opened it closes it; the garbage collector never does.

    ``async for`` gives one item at a time; :meth:`batch` gives all that are ready, which is cheaper on a wire.
    """

    _pending: Sequence[Item] = ()
    _next: int = 0

    @abstractmethod
    async def batch(self) -> Sequence[Item]:
        """Wait for at least one item and return all that are ready; empty once the stream has ended.

        Raises ``A2AError`` (or ``PeerError``, ``TransportError``) if the stream broke.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """End the stream on this side. The task that it follows goes on."""

    def __aiter__(self) -> Stream[Item]:
        return self

    async def __anext__(self) -> Item:
        if self._next >= len(self._pending):
            self._pending, self._next = await self.batch(), 0
            if not self._pending:
                raise StopAsyncIteration
        self._next += 1
        return self._pending[self._next - 1]


EventStream: TypeAlias = Stream[StreamResponse]
ByteStream: TypeAlias = Stream[bytes]


class A2AService(Protocol):
    """An A2A agent over the canonical model."""

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """Answer one operation. Raises ``A2AError``; a remote one also ``PeerError`` and ``TransportError``."""
        ...

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """Open a stream. Raises as :meth:`call` for whatever goes wrong before the first event."""
        ...


@runtime_checkable
class PassThrough(Protocol):
    """What a service offers on top when it can take and give message bytes of a dialect undecoded."""

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """Whether a message of this operation, as it is in that dialect, needs no change on its way."""
        ...

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """As :meth:`A2AService.call`, over message bytes."""
        ...

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """As :meth:`A2AService.stream`, over message bytes."""
        ...


Middleware: TypeAlias = Callable[[A2AService], A2AService]
