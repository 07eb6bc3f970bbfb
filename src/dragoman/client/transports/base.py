"""What a transport is: the bytes of one message to a peer, and the bytes of its reply back.

Rules of this module:

- A transport knows framing through its codec and no model. It sends what it is given once, and never again, except
  where the peer said that no route took the request.
- What the peer answers as an error is raised as ``A2AError``, broken protocol as ``PeerError``, and the absence of
  an answer as ``TransportError``, whose ``sent`` says whether anything can have arrived.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from ...protocol.messages import Header
from ...service import ByteStream, Context


class Transport(Protocol):
    """A connection pool to one interface of a peer.

    ``headers``: extra fields of this call, lower-case names. ``timeout``: seconds; for the whole of a unary call,
    for the opening of a stream. ``ctx`` takes what the reply says besides its message: extensions activated.
    """

    def unary(
        self, op: str, body: bytes, headers: Sequence[Header], timeout: float, ctx: Context
    ) -> Coroutine[Any, Any, bytes]: ...

    def stream(
        self, op: str, body: bytes, headers: Sequence[Header], timeout: float, ctx: Context
    ) -> Coroutine[Any, Any, ByteStream]: ...

    async def aclose(self) -> None:
        """Close the connections; calls under way fail."""
        ...


def activated(text: str) -> tuple[str, ...]:
    """The URIs of an extensions header (1.0 §3.2.6)."""
    return tuple(uri for uri in map(str.strip, text.split(",")) if uri)
