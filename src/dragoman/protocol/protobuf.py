"""The protobuf wire format below the level of messages: varints, tags, map entries, and what cannot be read.

Rules of this module:

- ``pos`` and ``end`` are offsets into one buffer that is never copied; a function returns where it stopped.
- Nothing here checks ``end``: the reader of a message compares once, after its last field. Running off the buffer is
  an ``IndexError``, which that reader turns into a :class:`WireError` together with :class:`Malformed` and bad UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Set
from functools import cache
from typing import NamedTuple

_UINT64 = 2**64 - 1
_MAX_TAG = 2**32 - 1


class WireError(ValueError):
    """Bytes that are no such message, or a value that its field cannot hold; the text names message and field."""


class MissingField(WireError):
    """A REQUIRED sub-message is absent. ``message``: its owner; ``field``: its JSON name."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(f"{message}.{field}: required, but absent")
        self.message = message
        self.field = field


class Malformed(Exception):
    """Something wrong at a place that only the reader or writer of the message around it can name."""


#: What reading bad bytes and writing unfit values raises before somebody names the place.
UNREADABLE = (IndexError, UnicodeDecodeError, Malformed, struct.error)
UNWRITABLE = (UnicodeEncodeError, Malformed, OverflowError, AttributeError, TypeError, KeyError)


def unreadable(error: Exception, message: str, name: str) -> WireError:
    """The error to raise for one of :data:`UNREADABLE`, met at the field ``name`` of ``message``."""
    if isinstance(error, IndexError | struct.error):
        return WireError(f"{message}.{name}: cut short")
    if isinstance(error, UnicodeDecodeError):
        return WireError(f"{message}.{name}: text is not UTF-8")
    return WireError(f"{message}.{name}: {error}")


def varint(buf: bytes, pos: int) -> tuple[int, int]:
    """The unsigned 64-bit number at ``pos``, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = buf[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _UINT64, pos
    raise Malformed("varint of more than ten bytes")


def to_varint(value: int) -> bytes:
    """``value`` as a varint; negative numbers take ten bytes."""
    value &= _UINT64
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def head(tag: int, size: int) -> bytes:
    """A tag and the varint behind it: a length, or a number."""
    if tag < 128 and 0 <= size < 16384:  # nearly always
        return bytes((tag, size)) if size < 128 else bytes((tag, size & 127 | 128, size >> 7))
    return to_varint(tag) + to_varint(size)


@cache
def heads(tag: int) -> tuple[bytes, ...]:
    """:func:`head` of ``tag`` for every one-byte varint, to be indexed with it."""
    return tuple(head(tag, size) for size in range(128))


def int32(value: int) -> int:
    """A varint as int32: what stands above 32 bits is cut off, as protobuf does."""
    value &= 0xFFFFFFFF
    return value - 2**32 if value >> 31 else value


def write_int32(tag: int, value: int) -> bytes:
    """A tag and an int32 behind it."""
    if not -(2**31) <= value < 2**31:
        raise Malformed(f"{value} is no int32")
    return head(tag, value)


def wide_tag(buf: bytes, pos: int) -> tuple[int, int, int]:
    """A tag of several bytes, the byte behind it, and where that ends."""
    tag, pos = varint(buf, pos)
    return tag, buf[pos], pos + 1


def unknown(buf: bytes, pos: int, known: Set[int]) -> int:
    """Where the field ends that starts at ``pos`` with a tag that the message does not have."""
    tag, pos = varint(buf, pos)
    foreign(tag, known)
    return skip(buf, pos, tag)


def foreign(tag: int, known: Set[int]) -> None:
    """Let an unknown field pass; ``known`` are numbers (0 among them) whose wire type would have been another."""
    if tag >> 3 in known or tag > _MAX_TAG:
        raise Malformed(f"wire type {tag & 7} does not fit" if tag >> 3 else "field number 0")


def skip(buf: bytes, pos: int, tag: int) -> int:
    """Where the field of ``tag`` ends whose content starts at ``pos``, groups included."""
    groups: list[int] = []
    while True:
        kind = tag & 7
        if kind == 0:
            _, pos = varint(buf, pos)
        elif kind == 1:
            pos += 8
        elif kind == 2:
            size, pos = varint(buf, pos)
            pos += size
        elif kind == 3:
            groups.append(tag >> 3)
        elif kind == 4:
            if not groups or groups.pop() != tag >> 3:
                raise Malformed("end of a group that was not begun")
        elif kind == 5:
            pos += 4
        else:
            raise Malformed(f"wire type {kind} does not exist")
        if not groups:
            return pos
        tag, pos = varint(buf, pos)


def entry(buf: bytes, pos: int, end: int, merge: bool) -> tuple[str, bytes]:
    """Key and value bytes of a map entry. ``merge``: values are messages, which join when one comes twice."""
    key = b""
    values: list[bytes] = []
    while pos < end:
        tag, pos = varint(buf, pos)
        start = pos
        if tag in (10, 18):
            size, start = varint(buf, pos)
            pos = start + size
            content = buf[start:pos]
            if tag == 10:
                key = content
            elif merge:
                values.append(content)
            else:
                values = [content]
        else:
            foreign(tag, _ENTRY)
            pos = skip(buf, pos, tag)
    if pos != end:
        raise IndexError
    return key.decode(), b"".join(values)


_ENTRY = frozenset({0, 1, 2})


def write_entry(key: str, value: bytes) -> bytes:
    """A map entry, as protobuf writes it: key and value always, even when empty."""
    name = key.encode()
    return head(10, len(name)) + name + head(18, len(value)) + value


class Single(NamedTuple):
    """A field that keeps one value: ``merge`` if occurrences join, ``rivals``: tags that unset it, and it them."""

    merge: bool
    rivals: tuple[int, ...] = ()


def merged(buf: bytes, pos: int, end: int, singles: Mapping[int, Single]) -> tuple[bytes, int, int]:
    """A message rewritten so that none of ``singles`` occurs twice, as (buffer, pos, end).

    Concatenating two encodings of a message is how protobuf defines merging it, so that is all there is to do.
    """
    rest: list[bytes] = []
    kept: dict[int, list[bytes]] = {}
    while pos < end:
        start = pos
        tag, pos = varint(buf, pos)
        single = singles.get(tag)
        if single is None:
            pos = skip(buf, pos, tag)
            rest.append(buf[start:pos])
            continue
        for rival in single.rivals:
            kept.pop(rival, None)
        size, pos = varint(buf, pos)
        content = buf[pos : pos + size]
        pos += size
        if single.merge:
            kept.setdefault(tag, []).append(content)
        else:
            kept[tag] = [content]
    for tag, contents in kept.items():
        joined = b"".join(contents)
        rest += head(tag, len(joined)), joined
    whole = b"".join(rest)
    return whole, 0, len(whole)
