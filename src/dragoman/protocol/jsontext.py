"""What the JSON codecs share: checks of JSON text before anything decodes it, and slicing of objects.

Rules of this module:

- A check costs next to nothing on the bodies that usually come (plain ASCII, few brackets).
- Slicing finds the members of one object and leaves their values as the bytes they are.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import msgspec
from msgspec import Raw

from ..errors import JSONParseError

#: Objects and arrays inside each other that are read; protobuf's own readers stop at 100 too.
MAX_DEPTH = 100

#: Bytes of a peer's reply that an error shows.
EXCERPT = 200

_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
#: Brackets as the signed bytes +1 and -1.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_members: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
encode = msgspec.json.encode


def check(body: bytes) -> None:
    """Raise ``JSONParseError`` if ``body`` is not UTF-8 or nests deeper than :data:`MAX_DEPTH`."""
    if not body.isascii():
        try:
            str(body, "utf-8")
        except UnicodeDecodeError as e:
            raise JSONParseError("Invalid JSON payload: not UTF-8") from e
    if len(body) > 2 * MAX_DEPTH and body.count(b"{") + body.count(b"[") > MAX_DEPTH and _depth_exceeds(body):
        raise JSONParseError(f"Invalid JSON payload: nested deeper than {MAX_DEPTH}")


def _depth_exceeds(body: bytes) -> bool:
    """Whether brackets outside strings nest too deep: take the strings out, then add up what opens and closes."""
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    steps = b"".join(unescaped.split(b'"')[::2]).translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > MAX_DEPTH


def members(body: bytes) -> dict[str, Raw]:
    """The members of the JSON object ``body``. Raises ``JSONParseError``, or ``TypeError`` if it is no object."""
    try:
        return _members.decode(body)
    except msgspec.ValidationError as e:
        raise TypeError("a JSON object is expected") from e
    except (msgspec.DecodeError, RecursionError) as e:
        raise JSONParseError(f"Invalid JSON payload: {e}") from e


def value(body: bytes | Raw) -> Any:
    """Any JSON value. Raises ``JSONParseError``."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as e:
        raise JSONParseError(f"Invalid JSON payload: {e}") from e


def media_type(field: bytes) -> bytes:
    """A Content-Type without parameters, in lower case."""
    return field.partition(b";")[0].strip().lower()


def is_json(field: bytes) -> bool:
    """Whether a Content-Type is one that JSON comes under; a missing one is (1.0 §11.1, read leniently)."""
    if field in (b"application/json", b"application/a2a+json", b""):
        return True
    bare = media_type(field)
    return bare == b"application/json" or (bare.startswith(b"application/") and bare.endswith(b"+json"))


def excerpt(body: bytes) -> str:
    """The start of what a peer sent, for an error message."""
    return body[:EXCERPT].decode("utf-8", "replace")
