"""google.protobuf Timestamp, Struct and Value on the wire, as RFC 3339 text and JSON values in Python.

Rules of this module:

- Numbers are doubles on the wire: integral ones up to 2**53 come back as ``int``, others as ``float``. JSON has no NaN
  and no infinity, so both are refused in both directions; integers beyond 2**53 lose digits, as in every peer.
- A value of no kind reads as null. Lists and tuples are both written as lists; keys must be text.
- Times read with three fraction digits and ``Z``; what is finer than a millisecond is cut off (1.0 §5.6.1).
- ``depth`` counts the messages that may still nest, map entries included, as protobuf's own readers do; deeper content
  is refused both ways, since a peer would not read it.
- Each reader has a short path for what every writer produces; whatever else protobuf allows goes through
  :func:`_unusual_value`, which rewrites it into the usual form.
"""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime
from functools import lru_cache
from math import isfinite
from struct import Struct as Packing
from typing import Any

from .protobuf import Malformed, entry, foreign, head, heads, skip, to_varint, unknown, varint, write_entry

_DOUBLE = Packing("<d")
_MAX_EXACT = 2.0**53
_NULL, _NUMBER, _STRING, _BOOL, _STRUCT, _LIST = 8, 17, 26, 32, 42, 50
_KINDS = frozenset({_NULL, _NUMBER, _STRING, _BOOL, _STRUCT, _LIST})
_VALUE_NUMBERS = frozenset({0, 1, 2, 3, 4, 5, 6})
_ONE_NUMBER = frozenset({0, 1})
_TIME_NUMBERS = frozenset({0, 1, 2})
_STRING_HEADS = heads(_STRING)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_TWO_DIGITS = tuple(f"{number:02}" for number in range(60))


def read_timestamp(buf: bytes, pos: int, end: int, depth: int) -> str:
    """A Timestamp as UTC text with milliseconds."""
    seconds = nanos = 0
    while pos < end:
        tag, pos = varint(buf, pos)
        if tag == 8:
            seconds, pos = varint(buf, pos)
        elif tag == 16:
            nanos, pos = varint(buf, pos)
        else:
            foreign(tag, _TIME_NUMBERS)
            pos = skip(buf, pos, tag)
    if pos != end:
        raise IndexError
    if nanos >= 10**9:  # negative numbers are huge ones here
        raise Malformed("nanos out of range")
    days, rest = divmod(seconds - 2**64 if seconds >> 63 else seconds, 86400)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    two = _TWO_DIGITS
    return f"{_day(days)}T{two[hour]}:{two[minute]}:{two[second]}.{nanos // 1000000:03}Z"


@lru_cache(maxsize=8)
def _day(days: int) -> str:
    try:
        return date.fromordinal(_EPOCH_DAY + days).isoformat()
    except (ValueError, OverflowError):
        raise Malformed("time out of range") from None


def write_timestamp(text: str, depth: int) -> bytes:
    """RFC 3339 text as a Timestamp. Text without a zone is taken as UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = _unusual_time(text)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    seconds = since.days * 86400 + since.seconds
    nanos = since.microseconds // 1000 * 1000000
    return (head(8, seconds) if seconds else b"") + (head(16, nanos) if nanos else b"")


def _unusual_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip().upper())  # RFC 3339 allows small t and z
    except ValueError:
        raise Malformed(f"{text[:40]!r} is no RFC 3339 time") from None


def read_struct(buf: bytes, pos: int, end: int, depth: int) -> dict[str, Any]:
    """A Struct as a dict."""
    if depth < 0:
        raise Malformed("nested too deeply")
    fields: dict[str, Any] = {}
    while pos < end:
        if buf[pos] != 10:
            pos = unknown(buf, pos, _ONE_NUMBER)
            continue
        size = buf[pos + 1]
        pos += 2
        if size > 127:
            size, pos = varint(buf, pos - 1)
        stop = pos + size
        if size > 3 and buf[pos] == 10 and buf[pos + 1] < 128:  # the usual entry: a short key, then the value
            at = pos + 2 + buf[pos + 1]
            if at + 1 < stop and buf[at] == 18:
                length, start = varint(buf, at + 1)
                if start + length == stop:
                    fields[buf[pos + 2 : at].decode()] = read_value(buf, start, stop, depth - 2)
                    pos = stop
                    continue
        key, value = entry(buf, pos, stop, merge=True)
        fields[key] = read_value(value, 0, len(value), depth - 2)
        pos = stop
    if pos != end:
        raise IndexError
    return fields


def _read_list(buf: bytes, pos: int, end: int, depth: int) -> list[Any]:
    if depth < 0:
        raise Malformed("nested too deeply")
    values: list[Any] = []
    while pos < end:
        if buf[pos] != 10:
            pos = unknown(buf, pos, _ONE_NUMBER)
            continue
        size, pos = varint(buf, pos + 1)
        values.append(read_value(buf, pos, pos + size, depth - 1))
        pos += size
    if pos != end:
        raise IndexError
    return values


def read_value(buf: bytes, pos: int, end: int, depth: int) -> Any:
    """A Value as ``None``, bool, int, float, str, list or dict."""
    if depth < 0:
        raise Malformed("nested too deeply")
    if pos == end:
        return None
    tag = buf[pos]
    if tag in (_STRING, _STRUCT, _LIST):
        size, start = varint(buf, pos + 1)
        if start + size == end:
            if tag == _STRING:
                return buf[start:end].decode()
            read = read_struct if tag == _STRUCT else _read_list
            return read(buf, start, end, depth - 1)
    elif tag == _NUMBER and pos + 9 == end:
        number: float = _DOUBLE.unpack(buf[pos + 1 : end])[0]
        if number.is_integer() and -_MAX_EXACT <= number <= _MAX_EXACT:
            return int(number)
        return _finite(number)
    elif pos + 2 == end and buf[pos + 1] < 128:
        if tag == _BOOL:
            return buf[pos + 1] != 0
        if tag == _NULL:
            return None
    return _unusual_value(buf, pos, end, depth)


def _unusual_value(buf: bytes, pos: int, end: int, depth: int) -> Any:
    """A Value with several members, unknown fields or long varints: the last member decides, structs and lists join."""
    kind = 0
    contents: list[bytes] = []
    while pos < end:
        tag, pos = varint(buf, pos)
        start, pos = pos, skip(buf, pos, tag)
        if tag not in _KINDS:
            foreign(tag, _VALUE_NUMBERS)
            continue
        if tag & 7 == 2:
            _, start = varint(buf, start)
        if tag != kind or tag not in (_STRUCT, _LIST):
            contents.clear()
        contents.append(buf[start:pos])
        kind = tag
    if pos != end or pos > len(buf):
        raise IndexError
    content = b"".join(contents)
    if kind == _BOOL:
        return varint(content, 0)[0] != 0
    if kind in (0, _NULL):
        return None
    usual = head(kind, len(content)) + content if kind & 7 == 2 else to_varint(kind) + content
    return read_value(usual, 0, len(usual), depth)


def _finite(number: float) -> float:
    if not isfinite(number):
        raise Malformed(f"{number} is not a JSON number")
    return number


def write_struct(fields: dict[str, Any], depth: int) -> bytes:
    """A dict as a Struct, in its own order."""
    if depth < 0:
        raise Malformed("nested too deeply")
    out: list[bytes] = []
    for key, value in fields.items():
        name, content = key.encode(), write_value(value, depth - 2)
        if len(name) < 120 > len(content):
            pair = b"\n%c%b\x12%c%b" % (len(name), name, len(content), content)
        else:
            pair = write_entry(key, content)
        out += head(10, len(pair)), pair
    return b"".join(out)


class _Rounded(threading.local):
    """How many integers lost digits, since a Value has none but doubles."""

    count = 0


#: For who wants to know, before and after a message.
rounded = _Rounded()


def write_value(value: Any, depth: int) -> bytes:
    """A JSON value as a Value."""
    if depth < 0:
        raise Malformed("nested too deeply")
    if isinstance(value, str):
        text = value.encode()
        return _STRING_HEADS[len(text)] + text if len(text) < 128 else head(_STRING, len(text)) + text
    if value is None:
        return b"\x08\x00"
    if isinstance(value, bool):
        return b"\x20\x01" if value else b"\x20\x00"
    if isinstance(value, int | float):
        number = _finite(float(value))
        if number != value:
            rounded.count += 1
        return b"\x11" + _DOUBLE.pack(number)
    if isinstance(value, dict):
        content = write_struct(value, depth - 1)
        return head(_STRUCT, len(content)) + content
    if isinstance(value, list | tuple):
        content = _write_list(value, depth - 1)
        return head(_LIST, len(content)) + content
    raise Malformed(f"{type(value).__name__} is not a JSON value")


def _write_list(values: list[Any] | tuple[Any, ...], depth: int) -> bytes:
    if depth < 0:
        raise Malformed("nested too deeply")
    out: list[bytes] = []
    for value in values:
        content = write_value(value, depth - 1)
        out += head(10, len(content)), content
    return b"".join(out)
