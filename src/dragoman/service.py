"""The one interface of the project: an A2A agent, wherever and whatever it is.

The engine that runs a user's agent is an :class:`A2AService`; so is a client of a remote agent; a middleware takes
one and gives one. The gateway is a server over a client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from .model import Operation, Req, Res, Streaming, StreamResponse, Unary
from .protocol.messages import NO_HEADERS, Headers
from .protocol.operations import Binding, Version


class Caller(Protocol):
    """Who is asking: a verified principal, or nobody in particular."""

    @property
    def name(self) -> str: ...


class Anonymous:
    """The caller of a server that verifies nobody."""

    name = ""


ANONYMOUS = Anonymous()


class Context:
    """What travels beside one request, inwards, and beside its reply, outwards.

    Inwards: ``version`` and ``binding`` that the caller speaks, ``tenant``, ``headers`` as they came, ``extensions``
    (URIs that the caller activates), ``caller``, ``deadline`` (seconds on the event loop's clock, None = none).
    Outwards: ``activated`` (URIs that were), ``retry_after`` (seconds).
    """

    __slots__ = (
        "activated",
        "binding",
        "caller",
        "deadline",
        "extensions",
        "headers",
        "retry_after",
        "tenant",
        "version",
    )

    def __init__(
        self,
        *,
        version: Version = "1.0",
        binding: Binding | None = None,
        tenant: str = "",
        headers: Headers = NO_HEADERS,
        extensions: tuple[str, ...] = (),
        caller: Caller = ANONYMOUS,
        deadline: float | None = None,
    ) -> None:
        self.version: Version = version
        self.binding = binding
        self.tenant = tenant
        self.headers = headers
        self.extensions = extensions
        self.caller = caller
        self.deadline = deadline
        self.activated: tuple[str, ...] = ()
        self.retry_after: float | None = None


class EventStream(ABC):
    """The events of one stream, in order. Whoever opened it closes it; the garbage collector never does.

    ``async for`` gives one event at a time; :meth:`batch` gives all that are ready, which is cheaper on a wire.
    """

    _pending: Sequence[StreamResponse] = ()
    _next: int = 0

    @abstractmethod
    async def batch(self) -> Sequence[StreamResponse]:
        """Wait for at least one event and return all that are ready; empty once the stream has ended.

        Raises ``A2AError`` (or ``PeerError``, ``TransportError``) if the stream broke.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """End the stream on this side. The task that it follows goes on."""

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> StreamResponse:
        if self._next >= len(self._pending):
            self._pending, self._next = await self.batch(), 0
            if not self._pending:
                raise StopAsyncIteration
        self._next += 1
        return self._pending[self._next - 1]


class A2AService(Protocol):
    """An A2A agent over the canonical model."""

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """Answer one operation. Raises ``A2AError``; a remote one also ``PeerError`` and ``TransportError``."""
        ...

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """Open a stream. Raises as :meth:`call` for whatever goes wrong before the first event."""
        ...


Middleware: TypeAlias = Callable[[A2AService], A2AService]
AnyOperation: TypeAlias = Operation[Any, Any]
