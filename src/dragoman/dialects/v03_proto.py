"""The 0.3 dialects in the proto shape: proto-JSON (HTTP+JSON) and protobuf (gRPC) of ``a2a.v1``.

Rules of this module:

- The 0.3 text does not settle which shape HTTP+JSON has. Most peers write proto-JSON, some the ``kind`` shape: both
  are read, object by object, and a request is answered in the shape that it came in.
- protobuf is read into trees of the proto shape, so gRPC and HTTP+JSON are one dialect but for the bytes.
- ``blocking`` has no presence here: absent is false, return at once.
- The extended card has the 0.3 JSON shape on HTTP+JSON, as nearly all peers have it; either is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import msgspec

from ..model import CREATE_PUSH_CONFIG, GET_EXTENDED_AGENT_CARD, Operation
from ..protocol.fields import table
from ..protocol.operations import Version
from ..protocol.wire import WireError, WireFormat
from . import legacy, v03
from .base import Dialect, Notes, encoded
from .down import Writing
from .files import BYTES, Between, Files, alike
from .reading import FAILURES, Unparsable, call_tree, tree
from .up import Reading

_encode = msgspec.json.Encoder().encode
_KIND = v03.KindDialect(blocking_default=False)


@dataclass(frozen=True, slots=True)
class ProtoShape:
    """What both dialects share, whose files have two forms.

    ``files``: how the peer keeps the bytes of files. ``bare_configs``: what creates a webhook is its config alone; off,
    the whole request of the proto, which most servers want. ``extras``: write what was added to the proto after its
    release (metadata of parts, names of files); off for peers that refuse unknown keys.
    """

    files: Files = BYTES
    extras: bool = True
    bare_configs: bool = False

    @property
    def version(self) -> Version:
        return "0.3"

    def keeping(self, files: Files) -> Self:
        """The same for another peer."""
        return replace(self, files=files)

    def beside(self, other: Files) -> Self:
        """The same for one message, from or to a peer whose files have two forms as well."""
        return replace(self, files=Between(self.files, other)) if self.files.form is None else self

    def reads_as(self, other: Dialect) -> bool:
        """Whether messages written in the other dialect are messages of this one, for sure."""
        if not isinstance(other, ProtoShape) or type(self) is not type(other):
            return False
        return self.extras == other.extras and alike(self.files, other.files)

    def _reading(self, notes: Notes | None) -> Reading:
        notes = notes if notes is not None else Notes()
        return Reading(notes, proto=True, blocking=False, files=self.files)

    def _writing(self, notes: Notes | None) -> Writing:
        return Writing(notes, extras=self.extras, files=self.files, bare_configs=self.bare_configs)


@dataclass(frozen=True, slots=True)
class ProtoJsonDialect(ProtoShape):
    """0.3 as proto-JSON."""

    def load_request(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read a caller's message, of either shape. Raises ``JSONParseError``, ``InvalidParamsError``."""
        return legacy.load_request(op, body, call_tree, self._reading(notes))

    def dump_request(self, op: Operation[Any, Any], request: Any, notes: Notes | None = None) -> bytes:
        """Write a message to an agent. Raises ``UnsupportedOperationError``, ``InvalidParamsError`` (``/`` in ids)."""
        return _encode(legacy.request_tree(op, request, self._writing(notes)))

    def load_reply(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read an agent's message, of either shape. Raises ``PeerError``."""
        return legacy.load_reply(op, body, tree, self._reading(notes))

    def dump_reply(self, op: Operation[Any, Any], reply: Any, notes: Notes | None = None) -> bytes:
        """Write a message to a caller."""
        writing = Writing(notes, kind=True) if op is GET_EXTENDED_AGENT_CARD else self._writing(notes)
        return _encode(legacy.reply_tree(op, reply, writing))

    def otherwise(self, op: Operation[Any, Any]) -> Self | None:
        """How to say it to an agent that finds it invalid: what is posted to create a webhook is not agreed on."""
        return replace(self, bare_configs=True) if op is CREATE_PUSH_CONFIG and not self.bare_configs else None

    def answering(self, body: bytes) -> Dialect:
        """The kind shape for a caller who writes it, else this dialect."""
        return _KIND if _has_kind(body) else self


def _has_kind(body: bytes) -> bool:
    """Whether a request is in the kind shape. A search of the bytes settles it for callers who write the other."""
    if b'"kind"' not in body and b'"parts"' not in body:
        return False
    try:
        request = msgspec.json.decode(body)
    except FAILURES:
        return False
    message = request.get("message") if type(request) is dict else None
    if type(message) is not dict:
        return False
    content = message.get("content")
    parts = content if type(content) is list else ()
    return bool(message.keys() & {"kind", "parts"}) or any(type(p) is dict and "kind" in p for p in parts)


@dataclass(frozen=True, slots=True)
class ProtobufDialect(ProtoShape):
    """0.3 as protobuf."""

    def load_request(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read a caller's message. Raises ``JSONParseError`` if it is not protobuf, ``InvalidParamsError``."""
        return legacy.load_request(op, body, _parser(_request_type(op)), self._reading(notes))

    def dump_request(self, op: Operation[Any, Any], request: Any, notes: Notes | None = None) -> bytes:
        """Write a message to an agent. Raises ``UnsupportedOperationError``, ``InvalidParamsError`` (``/`` in ids)."""
        message = legacy.request_tree(op, request, self._writing(notes))
        return encoded(_encoder(_request_type(op)), message, notes)

    def load_reply(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read an agent's message. Raises ``PeerError``."""
        if op.response is legacy.EMPTY:
            return None
        return legacy.load_reply(op, body, _parser(_reply_type(op)), self._reading(notes))

    def dump_reply(self, op: Operation[Any, Any], reply: Any, notes: Notes | None = None) -> bytes:
        """Write a message to a caller."""
        if op.response is legacy.EMPTY:
            return b""
        message = legacy.reply_tree(op, reply, self._writing(notes))
        return encoded(_encoder(_reply_type(op)), message, notes)

    def answering(self, body: bytes) -> Dialect:
        """This dialect."""
        return self


#: Messages that the 0.3 proto calls otherwise than 1.0.
_REQUEST_TYPES = {
    "CreateTaskPushNotificationConfig": "CreateTaskPushNotificationConfigRequest",
    "SubscribeToTask": "TaskSubscriptionRequest",
    "ListTaskPushNotificationConfigs": "ListTaskPushNotificationConfigRequest",
    "GetExtendedAgentCard": "GetAgentCardRequest",
}
_REPLY_TYPES = {"ListTaskPushNotificationConfigs": "ListTaskPushNotificationConfigResponse"}


def _request_type(op: Operation[Any, Any]) -> str:
    return _REQUEST_TYPES.get(op.name, op.request.__name__)


def _reply_type(op: Operation[Any, Any]) -> str:
    return _REPLY_TYPES.get(op.name, op.response.__name__)


@cache
def _format() -> WireFormat:
    return WireFormat(table("0.3"))


@cache
def _encoder(message: str) -> Callable[[Any], bytes]:
    return _format().encoder(message)


@cache
def _decoder(message: str) -> Callable[[bytes], Any]:
    return _format().decoder(message)


def _parser(message: str) -> Callable[[bytes], Any]:
    def parse(body: bytes) -> Any:
        try:
            return _decoder(message)(body)
        except WireError as error:
            raise Unparsable(str(error), "protobuf") from error

    return parse


JSON = ProtoJsonDialect()
PROTOBUF = ProtobufDialect()
