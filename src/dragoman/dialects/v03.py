"""The 0.3 dialect of JSON-RPC: objects told apart by ``kind`` (0.3 §6, §7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from ..model import SEND_MESSAGE, Operation
from ..protocol.operations import Version
from . import checks, legacy, plain
from .base import Dialect, Notes
from .down import Writing
from .reading import Unreadable, call_tree, refuse, tree
from .up import Reading

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class KindDialect:
    """0.3 as objects with ``kind``.

    ``blocking_default``: what SendMessage means without ``blocking``; True waits, as callers of the JSON-RPC servers
    in the field are used to.
    """

    blocking_default: bool = True

    @property
    def version(self) -> Version:
        return "0.3"

    def load_request(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read a caller's message. Raises ``JSONParseError``, ``InvalidParamsError``."""
        if op is SEND_MESSAGE and self.blocking_default:
            request = plain.send(body)
            if request is not None:
                try:
                    return checks.request(op.name, request)
                except Unreadable as error:
                    raise refuse(error) from error
        return legacy.load_request(op, body, call_tree, self._reading(notes))

    def dump_request(self, op: Operation[Any, Any], request: Any, notes: Notes | None = None) -> bytes:
        """Write a message to an agent. Raises ``UnsupportedOperationError`` for what 0.3 has no operation for."""
        return _encode(legacy.request_tree(op, request, Writing(notes, kind=True)))

    def load_reply(self, op: Operation[Any, Any], body: bytes, notes: Notes | None = None) -> Any:
        """Read an agent's message. Raises ``PeerError``."""
        reply = plain.reply(op.name, body)
        return legacy.load_reply(op, body, tree, self._reading(notes)) if reply is None else reply

    def dump_reply(self, op: Operation[Any, Any], reply: Any, notes: Notes | None = None) -> bytes:
        """Write a message to a caller."""
        return _encode(legacy.reply_tree(op, reply, Writing(notes, kind=True)))

    def reads_as(self, other: Dialect) -> bool:
        """As ``Dialect.reads_as``."""
        return self is other

    def answering(self, body: bytes) -> Dialect:
        """This dialect."""
        return self

    def _reading(self, notes: Notes | None) -> Reading:
        return Reading(notes if notes is not None else Notes(), blocking=self.blocking_default)


JSON = KindDialect()
