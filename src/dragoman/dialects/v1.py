"""The 1.0 dialects: ProtoJSON (JSON-RPC and HTTP+JSON) and protobuf (gRPC).

Rules of this module:

- JSON is decoded straight into structs, one decoder per operation and side. Only a body that this refuses is parsed to
  a tree, made to fit (:mod:`.lenient`) and converted.
- A reply that the strict decoder refuses may also be 0.3, in whole or in part: a peer whose card says 1.0 and whose
  wire is older, or one that is between the versions. It is read as what it is.
- Writing has REQUIRED fields always and others only when set, and never a key that the proto lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from .. import model
from ..model import OPERATIONS, AgentCard, Operation
from ..protocol.fields import table
from ..protocol.operations import Version
from ..protocol.wire import MissingField, WireError, WireFormat
from . import checks
from .base import Dialect, Notes, encoded
from .cards import checked_card, load_card
from .lenient import fit
from .reading import (
    FAILURES,
    Unparsable,
    Unreadable,
    blame,
    call_tree,
    may_be_deep,
    refuse,
    shallow,
    structure,
    tree,
)
from .trees import camelised
from .up import Reading
from .up_calls import REPLIES

_encode = msgspec.json.Encoder().encode
_REQUESTS = {op.name: msgspec.json.Decoder(op.request).decode for op in OPERATIONS.values()}
_REPLIES = {op.name: msgspec.json.Decoder(op.response).decode for op in OPERATIONS.values()}
_EMPTY = type(None)


@dataclass(frozen=True, slots=True)
class JsonDialect:
    """1.0 as ProtoJSON."""

    @property
    def version(self) -> Version:
        return "1.0"

    def load_request(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read a caller's message. Raises ``JSONParseError``, ``InvalidParamsError``."""
        try:
            try:
                request = _REQUESTS[op.name](body)
            except FAILURES:
                request = _forgiven_request(op, body, notes)
            else:
                if may_be_deep(body):
                    shallow(msgspec.json.decode(body))
            return checks.request(op.name, request)
        except (Unparsable, Unreadable) as error:
            raise refuse(error) from error

    def dump_request(self, op: Operation[Any, Any], request: Any, notes: Notes | None = None) -> bytes:
        """Write a message to an agent."""
        return _encode(request)

    def load_reply(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read an agent's message, of either version. Raises ``PeerError``."""
        if op.response is _EMPTY:
            return None
        if op.response is AgentCard:
            return load_card(body, notes)
        try:
            try:
                reply = _REPLIES[op.name](body)
            except FAILURES:
                reply = _forgiven_reply(op, body, notes)
            return checks.reply(reply, notes)
        except (Unparsable, Unreadable) as error:
            raise blame(error, op.name, body) from error

    def dump_reply(self, op: Operation[Any, Any], reply: Any, notes: Notes | None = None) -> bytes:
        """Write a message to a caller."""
        return b"{}" if op.response is _EMPTY else _encode(reply)

    def reads_as(self, other: Dialect) -> bool:
        """As ``Dialect.reads_as``."""
        return self is other

    def answering(self, body: bytes) -> Dialect:
        """This dialect."""
        return self


def _forgiven_request(op: Operation[Any, Any], body: bytes, notes: Notes | None) -> Any:
    notes = notes if notes is not None else Notes()
    message = call_tree(body)
    if type(message) is dict:
        _refuse_03_ids(message, op)
        if op.request is model.TaskPushNotificationConfig:
            message = _unwrapped(message, notes)
    return structure(fit(message, op.request, reply=False, notes=notes), op.request)


def _refuse_03_ids(message: dict[str, Any], op: Operation[Any, Any]) -> None:
    """``id`` of a push config call is the task's in 0.3 and the config's in 1.0: nothing to guess about."""
    if "pushNotificationConfigId" in message and "id" in message and "taskId" not in message:
        text = "is required; these are 0.3 parameters, where id is the task: 1.0 takes taskId and id, the config's"
        raise Unreadable(("taskId", text))


def _unwrapped(message: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """A webhook config inside ``config`` or ``pushNotificationConfig``, as samples have it, made flat."""
    for key in ("config", "pushNotificationConfig", "push_notification_config"):
        inner = message.get(key)
        if type(inner) is dict:
            notes.forgiven.append(f"{key} unwrapped")
            outer = {name: value for name, value in message.items() if name != key}
            return _unwrapped({**inner, **outer}, notes)
    return message


def _forgiven_reply(op: Operation[Any, Any], body: bytes, notes: Notes | None) -> Any:
    notes = notes if notes is not None else Notes()
    message = camelised(shallow(tree(body)))
    if b'"kind"' in body:
        notes.forgiven.append("kind, a key of 0.3, in a 1.0 reply")
    up = REPLIES.get(op.name)
    if up is not None:
        message = up(message, Reading(notes, modern=True))
    message = fit(message, op.response, reply=True, notes=notes)
    if not notes.forgiven:
        notes.forgiven.append("a shape of 0.3 in a 1.0 reply")
    return structure(message, op.response)


@dataclass(frozen=True, slots=True)
class ProtobufDialect:
    """1.0 as protobuf."""

    @property
    def version(self) -> Version:
        return "1.0"

    def load_request(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read a caller's message. Raises ``JSONParseError`` if it is not protobuf, ``InvalidParamsError``."""
        try:
            return checks.request(op.name, _decoder(op.request.__name__)(body))
        except MissingField as error:
            raise refuse(Unreadable((error.field, "is required"))) from error
        except WireError as error:
            raise refuse(Unparsable(str(error), "protobuf")) from error
        except Unreadable as error:
            raise refuse(error) from error

    def dump_request(self, op: Operation[Any, Any], request: Any, notes: Notes | None = None) -> bytes:
        """Write a message to an agent."""
        return encoded(_encoder(op.request.__name__), request, notes)

    def load_reply(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read an agent's message. Raises ``PeerError``."""
        if op.response is _EMPTY:
            return None
        try:
            reply = _decoder(op.response.__name__)(body)
            return checked_card(reply, body) if op.response is AgentCard else checks.reply(reply, notes)
        except WireError as error:
            raise blame(Unparsable(str(error), "protobuf"), op.name, body) from error
        except Unreadable as error:
            raise blame(error, op.name, body) from error

    def dump_reply(self, op: Operation[Any, Any], reply: Any, notes: Notes | None = None) -> bytes:
        """Write a message to a caller."""
        return b"" if op.response is _EMPTY else encoded(_encoder(op.response.__name__), reply, notes)

    def reads_as(self, other: Dialect) -> bool:
        """As ``Dialect.reads_as``."""
        return self is other

    def answering(self, body: bytes) -> Dialect:
        """This dialect."""
        return self


@cache
def _format(*, lenient: bool = False) -> WireFormat:
    """Messages and enums of the table bear the names of the model's classes."""
    rows = table("1.0")
    classes = {name: getattr(model, name) for name in (*rows.messages, *rows.enums)}
    return WireFormat(rows, classes, lenient=lenient)


@cache
def _decoder(message: str) -> Callable[[bytes], Any]:
    """A card may lack its capabilities; any other REQUIRED message is what tells a reply from nothing."""
    return _format(lenient=message == "AgentCard").decoder(message)


@cache
def _encoder(message: str) -> Callable[[Any], bytes]:
    return _format().encoder(message)


JSON = JsonDialect()
PROTOBUF = ProtobufDialect()
