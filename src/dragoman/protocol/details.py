"""google.rpc detail objects: ProtoJSON <-> protobuf, and the Status that holds them (1.0 §10.6, google/rpc/*.proto).

Rules of this module:

- :data:`TYPES` has a row per message; the place of a field in its row is its protobuf number.
- A detail of a type without a row keeps its bytes, as ``{"@type": ..., "value": base64}``.
- Reading ignores unknown fields and raises ``ValueError`` on broken bytes; writing leaves empty fields out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

Detail: TypeAlias = dict[str, Any]
Form: TypeAlias = "Literal['text', 'texts', 'map', 'duration'] | tuple[Field, ...]"
Field: TypeAlias = tuple[str, Form]

PREFIX = "type.googleapis.com/"
ERROR_INFO = PREFIX + "google.rpc.ErrorInfo"
BAD_REQUEST = PREFIX + "google.rpc.BadRequest"
RETRY_INFO = PREFIX + "google.rpc.RetryInfo"

#: Fields of each message in the order of their numbers. A tuple as form: repeated messages of that shape.
TYPES: dict[str, tuple[Field, ...]] = {
    ERROR_INFO: (("reason", "text"), ("domain", "text"), ("metadata", "map")),
    BAD_REQUEST: (("fieldViolations", (("field", "text"), ("description", "text"), ("reason", "text"))),),
    RETRY_INFO: (("retryDelay", "duration"),),
    PREFIX + "google.rpc.DebugInfo": (("stackEntries", "texts"), ("detail", "text")),
    PREFIX + "google.rpc.QuotaFailure": (("violations", (("subject", "text"), ("description", "text"))),),
    PREFIX + "google.rpc.PreconditionFailure": (
        ("violations", (("type", "text"), ("subject", "text"), ("description", "text"))),
    ),
    PREFIX + "google.rpc.RequestInfo": (("requestId", "text"), ("servingData", "text")),
    PREFIX + "google.rpc.ResourceInfo": (
        ("resourceType", "text"),
        ("resourceName", "text"),
        ("owner", "text"),
        ("description", "text"),
    ),
    PREFIX + "google.rpc.Help": (("links", (("description", "text"), ("url", "text"))),),
    PREFIX + "google.rpc.LocalizedMessage": (("locale", "text"), ("message", "text")),
}
#: The longest protobuf duration, about 10,000 years.
_MAX_SECONDS = 315_576_000_000.0
_PAIR: tuple[Field, ...] = (("key", "text"), ("value", "text"))


def write_status(code: int, message: str, details: list[Detail]) -> bytes:
    """A google.rpc.Status as protobuf. A detail of an unknown type is left out unless it carries its bytes."""
    head = (b"\x08" + _varint(code) if code else b"") + (_chunk(2, message.encode()) if message else b"")
    return head + b"".join(_chunk(3, packed) for packed in map(_pack, details) if packed)


def read_status(data: bytes) -> tuple[int, str, list[Detail]]:
    """Code, message and details of a google.rpc.Status. Raises ``ValueError`` if the bytes are broken."""
    code, message, details = 0, "", []
    for number, item in _items(data):
        if number == 1 and isinstance(item, int):
            code = item
        elif number == 2 and isinstance(item, bytes):
            message = item.decode()
        elif number == 3 and isinstance(item, bytes):
            details.append(_unpack(item))
    return code, message, details


def seconds(text: str) -> float | None:
    """A ProtoJSON duration (``"1.5s"``) as seconds; None if it is none, or negative."""
    try:
        value = float(text.removesuffix("s"))
    except ValueError:
        return None
    return value if 0 <= value < _MAX_SECONDS else None


def duration(value: float) -> str:
    """Seconds as ProtoJSON duration."""
    return f"{value:.3f}".rstrip("0").rstrip(".") + "s"


def _pack(detail: Detail) -> bytes:
    url = str(detail.get("@type", ""))
    if shape := TYPES.get(url):
        return _chunk(1, url.encode()) + _chunk(2, _write(shape, detail))
    try:
        return _chunk(1, url.encode()) + _chunk(2, base64.b64decode(detail["value"], validate=True))
    except (KeyError, TypeError, ValueError):
        return b""


def _unpack(any_bytes: bytes) -> Detail:
    parts = {number: item for number, item in _items(any_bytes) if isinstance(item, bytes)}
    url, data = parts.get(1, b"").decode(), parts.get(2, b"")
    if shape := TYPES.get(url):
        return {"@type": url, **_read(shape, data)}
    return {"@type": url, "value": base64.b64encode(data).decode()}


def _write(shape: tuple[Field, ...], source: Detail) -> bytes:
    out = b""
    for number, (name, form) in enumerate(shape, 1):
        if not (item := source.get(name)):
            continue
        if form == "text":
            out += _chunk(number, str(item).encode())
        elif form == "texts":
            out += b"".join(_chunk(number, str(text).encode()) for text in item)
        elif form == "map":
            out += b"".join(_chunk(number, _write(_PAIR, {"key": k, "value": v})) for k, v in item.items())
        elif form == "duration":
            out += _chunk(number, _write_duration(seconds(str(item)) or 0.0))
        else:
            out += b"".join(_chunk(number, _write(form, element)) for element in item)
    return out


def _read(shape: tuple[Field, ...], data: bytes) -> Detail:
    out: Detail = {}
    for number, item in _items(data):
        if number > len(shape) or not isinstance(item, bytes):
            continue
        name, form = shape[number - 1]
        if form == "text":
            out[name] = item.decode()
        elif form == "texts":
            out.setdefault(name, []).append(item.decode())
        elif form == "map":
            pair = _read(_PAIR, item)
            out.setdefault(name, {})[pair.get("key", "")] = pair.get("value", "")
        elif form == "duration":
            out[name] = duration(_read_duration(item))
        else:
            out.setdefault(name, []).append(_read(form, item))
    return out


def _write_duration(value: float) -> bytes:
    whole, nanos = divmod(round(value * 1000), 1000)
    return (b"\x08" + _varint(whole) if whole else b"") + (b"\x10" + _varint(nanos * 1_000_000) if nanos else b"")


def _read_duration(data: bytes) -> float:
    parts = {number: item for number, item in _items(data) if isinstance(item, int)}
    return parts.get(1, 0) + parts.get(2, 0) / 1e9


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _chunk(number: int, data: bytes) -> bytes:
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _items(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values: an int for varints, bytes for all else."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            number, at = _read_varint(data, at)
            yield tag >> 3, number
            continue
        if wire == 2:
            size, at = _read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at + size > len(data):
            raise ValueError("truncated")
        yield tag >> 3, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise ValueError("truncated varint")


def from_base64(text: str | bytes) -> bytes:
    """Bytes of a ``-bin`` header, padded or not. Raises ``ValueError``."""
    raw = text.encode("latin-1") if isinstance(text, str) else text
    try:
        return base64.b64decode(raw + b"=" * (-len(raw) % 4), validate=True)
    except binascii.Error as e:
        raise ValueError(str(e)) from e
