"""Bodies to JSON trees, trees to structs, and what went wrong said in the caller's terms.

Rules of this module:

- Text that is no JSON (bad UTF-8 and lone surrogates included) and nesting beyond ``MAX_DEPTH`` is :class:`Unparsable`;
  JSON of another shape is :class:`Unreadable`, which names the field.
- A caller is told through ``JSONParseError`` and ``InvalidParamsError``; of a peer we say ``PeerError``.
- A field is named in camelCase with dots, from the top of the message: ``message.parts[0].text``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ..errors import InvalidParamsError, JSONParseError, PeerError

T = TypeVar("T")
Violation = tuple[str, str]

#: Arrays and objects within each other; protobuf's own readers stop here too.
MAX_DEPTH = 100
#: What the decoders raise.
FAILURES = (msgspec.DecodeError, RecursionError)

_EXCERPT = 200


class Unparsable(Exception):
    """Raised when a body is no text of its ``form``, JSON or protobuf."""

    def __init__(self, text: str, form: str = "JSON") -> None:
        super().__init__(text)
        self.form = form


class Unreadable(Exception):
    """Raised when JSON does not have the shape of the message that it should be."""

    def __init__(self, *violations: Violation) -> None:
        super().__init__("; ".join(f"{field}: {text}" if field else text for field, text in violations))
        self.violations = violations


def tree(body: bytes) -> Any:
    """Parse JSON text into dicts and lists. Raises ``Unparsable``, or ``Unreadable`` for a number out of range."""
    try:
        return msgspec.json.decode(body)
    except msgspec.ValidationError as error:
        raise Unreadable(violation(error)) from error
    except FAILURES as error:
        raise Unparsable(str(error)) from error


def call_tree(body: bytes) -> Any:
    """As :func:`tree`, for a request: depth is limited, and nothing at all or ``null`` is an empty message, as some
    callers write it."""
    value = tree(body) if body.strip() else None
    if may_be_deep(body):
        shallow(value)
    return {} if value is None else value


def shallow(value: Any) -> Any:
    """Return a tree that is not too deep. Raises ``Unparsable`` for one that is."""
    if is_deep(value):
        raise Unparsable(f"nested more than {MAX_DEPTH} deep")
    return value


def may_be_deep(body: bytes) -> bool:
    """Whether a body has brackets enough to be too deep: false for almost every request, at the cost of a count."""
    return len(body) > 2 * MAX_DEPTH and body.count(b"{") + body.count(b"[") > MAX_DEPTH


def is_deep(value: Any) -> bool:
    """Whether a tree is nested more than ``MAX_DEPTH`` deep. Walks level by level, so depth costs no stack."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in _children(node) if type(child) in (dict, list)]
        if not level:
            return False
    return True


def _children(node: Any) -> Any:
    if type(node) is dict:
        return node.values()
    return node if type(node) is list else ()


def structure(value: Any, kind: type[T]) -> T:
    """Turn a tree into a struct. Raises ``Unreadable`` naming the field, ``Unparsable`` for depth."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Unreadable(violation(error)) from error
    except RecursionError as error:
        raise Unparsable("nested too deep") from error


def violation(error: msgspec.ValidationError) -> Violation:
    """The field that a decoder complains about, and its complaint."""
    text, _, place = str(error).partition(" - at ")
    field = place.strip("`").removeprefix("$").removeprefix(".")
    for start, said in _MISSING:
        if text.startswith(start):
            name = text[len(start) :].strip("`")
            return (f"{field}.{name}" if field else name), said
    return field, text.replace("`", "")


_MISSING = (("Object missing required field ", "is required"), ("Object contains unknown field ", "is unknown"))


def refuse(error: Unparsable | Unreadable) -> JSONParseError | InvalidParamsError:
    """What to answer a caller whose message could not be read."""
    if isinstance(error, Unparsable):
        return JSONParseError(f"Invalid {error.form} payload: {error}")
    return InvalidParamsError(f"Invalid parameters: {error}", violations=error.violations)


def blame(error: Unparsable | Unreadable, operation: str, body: bytes) -> PeerError:
    """What to say of a peer whose reply could not be read."""
    what = f"is not {error.form}" if isinstance(error, Unparsable) else "cannot be understood"
    return PeerError(f"the reply to {operation} {what}: {error}", excerpt=excerpt(body))


def excerpt(body: bytes) -> str:
    """The start of a body, for people."""
    return body[:_EXCERPT].decode("utf-8", "replace")
