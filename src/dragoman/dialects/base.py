"""What a dialect is: one shape of messages, read into and written from the canonical model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..model import Operation
from ..protocol.operations import Version
from ..protocol.wellknown import rounded


class Notes:
    """What happened while one message was read or written.

    ``forgiven``: leniencies that reading needed, as short texts. ``lost``: names of rows of the loss table
    (``dialects.losses``) that writing or reading met. ``final``: the event that was read ends its 0.3 stream.
    """

    __slots__ = ("final", "forgiven", "lost")

    def __init__(self) -> None:
        self.forgiven: list[str] = []
        self.lost: list[str] = []
        self.final = False


def encoded(encode: Callable[[Any], bytes], message: Any, notes: Notes | None) -> bytes:
    """A message in protobuf; whether integers lost digits there goes into ``notes``."""
    before = rounded.count
    body = encode(message)
    if rounded.count != before and notes is not None:
        notes.lost.append("large-integers")
    return body


class Dialect(Protocol):
    """Message bytes of one shape <-> canonical structs, per operation.

    A reply of a streaming operation is one event. Reading is strict first and lenient when that fails; what was
    forgiven goes into ``notes``, as does what a translation loses.
    """

    @property
    def version(self) -> Version: ...

    def load_request(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read a caller's message. Raises ``JSONParseError`` or ``InvalidParamsError`` naming the field."""
        ...

    def dump_request(self, op: Operation[Any, Any], request: Any, notes: Notes | None = None) -> bytes:
        """Write a message to an agent."""
        ...

    def load_reply(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read an agent's message. Raises ``PeerError`` if it cannot be understood."""
        ...

    def dump_reply(self, op: Operation[Any, Any], reply: Any, notes: Notes | None = None) -> bytes:
        """Write a message to a caller."""
        ...

    def reads_as(self, other: Dialect) -> bool:
        """Whether messages written in the other dialect are messages of this one, for sure."""
        ...

    def answering(self, body: bytes) -> Dialect:
        """The dialect to answer a request in, when its body shows that the caller writes a variant."""
        ...
