"""What the 0.3 dialects share: trees up into structs, structs down into trees.

Rules of this module:

- A tree is reshaped once and converted. When that fails it is reshaped again from the body, with snake_case names in
  camelCase first, and then made to fit.
- Requests and replies are checked like those of 1.0: a face of 0.3 promises no less to a service.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import model
from ..errors import UnsupportedOperationError
from ..model import AgentCard, Operation
from . import checks, down_calls, up_calls
from .cards import down_card, up_card
from .down import Writing
from .lenient import fit
from .reading import Unparsable, Unreadable, blame, refuse, shallow, structure
from .trees import camelised
from .up import Reading

Parse = Callable[[bytes], Any]
EMPTY = type(None)


def load_request(op: Operation[Any, Any], body: bytes, parse: Parse, reading: Reading) -> Any:
    """Read a 0.3 request. Raises ``JSONParseError``, ``InvalidParamsError``, ``UnsupportedOperationError``."""
    up = up_calls.REQUESTS.get(op.name)
    if up is None:
        raise UnsupportedOperationError(f"0.3 has no {op.name}")
    try:
        try:
            request = structure(up(parse(body), reading), op.request)
        except Unreadable:
            message = up(camelised(shallow(parse(body))), reading)
            request = structure(fit(message, op.request, reply=False, notes=reading.notes), op.request)
        return _checked(op, request)
    except (Unparsable, Unreadable) as error:
        raise refuse(error) from error


def _checked(op: Operation[Any, Any], request: Any) -> Any:
    """Get of a webhook config may leave out which one: 0.3 means the first."""
    if op is model.GET_PUSH_CONFIG and request.task_id and not request.id:
        return request
    return checks.request(op.name, request)


def load_reply(op: Operation[Any, Any], body: bytes, parse: Parse, reading: Reading) -> Any:
    """Read a 0.3 reply. Raises ``PeerError``, ``UnsupportedOperationError``."""
    if op.name not in up_calls.REQUESTS:
        raise UnsupportedOperationError(f"0.3 has no {op.name}")
    if op.response is EMPTY:
        return None
    try:
        if op.response is AgentCard:
            return up_card(shallow(parse(body)), reading.notes, body)
        up = up_calls.REPLIES[op.name]
        try:
            reply = structure(up(parse(body), reading), op.response)
        except Unreadable:
            message = up(camelised(shallow(parse(body))), reading)
            reply = structure(fit(message, op.response, reply=True, notes=reading.notes), op.response)
        return checks.reply(reply, reading.notes)
    except (Unparsable, Unreadable) as error:
        raise blame(error, op.name, body) from error


def request_tree(op: Operation[Any, Any], request: Any, writing: Writing) -> Any:
    """A request as 0.3 has it. Raises ``UnsupportedOperationError`` if 0.3 has no such operation."""
    down = down_calls.REQUESTS.get(op.name)
    if down is None:
        writing.lose("list-tasks")
        raise UnsupportedOperationError(f"0.3 has no {op.name}")
    return down(request, writing)


def reply_tree(op: Operation[Any, Any], reply: Any, writing: Writing) -> Any:
    """A reply as 0.3 has it. Raises ``UnsupportedOperationError``, ``VersionNotSupportedError`` (cards)."""
    if op.response is AgentCard:
        return down_card(reply, writing)
    down = down_calls.REPLIES.get(op.name)
    if down is None:
        raise UnsupportedOperationError(f"0.3 has no {op.name}")
    return down(reply, writing)
