"""gRPC framing of both versions over plain HTTP/2 requests (1.0 §10, 0.3 §3.2.2, the gRPC HTTP/2 protocol).

Rules of this module:

- A message is a flag byte, four bytes of length, and its bytes; a request holds exactly one.
- What went wrong stands in trailers. An error before the first message goes out as headers alone ("trailers-only").
- When to come back stands in the details of 1.0, and in ``grpc-retry-pushback-ms`` on both.
- 1.0 tells its error in ``grpc-status-details-bin``; 0.3 has the error's name before the message text.
- gzip, deflate and identity are read, bounded by the limit for messages; nothing is compressed.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping
from urllib.parse import quote, unquote

from ..errors import (
    GRPC_CODES,
    GRPC_NAMES,
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidRequestError,
    MethodNotFoundError,
    PeerError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from . import details as rpc
from . import status
from .jsontext import excerpt, media_type
from .messages import Call, Header, Headers, HttpRequest, HttpResponse, Rejected
from .operations import GRPC_SERVICE, VERSIONS, WIRE, Version
from .refusals import EncodingNotSupportedError, MessageTooLargeError, VerbNotAllowedError
from .replies import field_value, plain_status, unreadable
from .verdict import Evidence

CONTENT_TYPE = b"application/grpc"
MAX_MESSAGE = 16 * 1024 * 1024

_TYPE: Header = (b"content-type", CONTENT_TYPE)
_OK: Header = (b"grpc-status", b"0")
_CLIENT_HEADERS = Headers((_TYPE, (b"te", b"trailers")))
#: ``wbits`` of zlib by the name of an encoding.
_ENCODINGS = {b"gzip": 31, b"deflate": 15}
_ACCEPTED = b"identity,gzip,deflate"
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
#: What a grpc-message holds as it is: printable ASCII but the percent sign.
_PLAIN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
#: Characters of a message, and bytes of details, that fit peers' header limits (commonly 8 KiB).
_MAX_TEXT, _MAX_DETAILS = 1000, 4096


class Grpc:
    """The gRPC codec of one version. ``max_message``: bytes of a message once decompressed."""

    __slots__ = ("_cures", "_ops", "_paths", "max_message", "version")

    keep_alive = b""

    def __init__(self, version: Version, max_message: int = MAX_MESSAGE) -> None:
        self.version: Version = version
        self.max_message = max_message
        self._paths = _paths(version)
        self._ops = {path: op for op, path in self._paths.items()}
        self._cures = {path: other for other in VERSIONS if other != version for path in _paths(other).values()}

    # server half

    def read_call(self, request: HttpRequest) -> Call:
        """Take the frame off. Raises ``Rejected``."""
        try:
            return Call(self._op(request), self._message(request))
        except A2AError as error:
            raise Rejected(error) from error

    def read_id(self, request: HttpRequest) -> bytes:
        """gRPC has no ids."""
        return b""

    def read_timeout(self, headers: Headers) -> float | None:
        """Seconds of ``grpc-timeout``; None if it is absent or cannot be read."""
        field = headers.get(b"grpc-timeout")
        if not field:
            return None
        text = field.decode("latin-1").strip()
        digits, unit = text[:-1], _UNITS.get(text[-1:])
        if unit is None or not (digits.isascii() and digits.isdigit() and len(digits) <= 8):
            return None
        return int(digits) * unit

    def write_result(self, call: Call, body: bytes) -> HttpResponse:
        """One message, and trailers that say OK."""
        return HttpResponse(200, [_TYPE], frame(body), [_OK])

    def write_error(self, error: A2AError, id: bytes = b"null") -> HttpResponse:
        """Headers alone, with the status in them."""
        headers = [_TYPE, *self.trailers(error)]
        if isinstance(error, EncodingNotSupportedError):
            headers.append((b"grpc-accept-encoding", _ACCEPTED))
        if isinstance(error, UnauthenticatedError):
            headers.append((b"www-authenticate", field_value(error.challenge)))
        return HttpResponse(200, headers)

    def stream_head(self, call: Call) -> HttpResponse:
        """Head of a stream; messages and trailers follow."""
        return HttpResponse(200, [_TYPE])

    def write_event(self, call: Call, body: bytes) -> bytes:
        """One message of a stream."""
        return frame(body)

    def write_stream_error(self, call: Call, error: A2AError) -> bytes:
        """Nothing: trailers say it."""
        return b""

    def refuse_stream(self, call: Call, error: A2AError) -> HttpResponse:
        """The answer to a streaming call that failed before its first event: that of any call."""
        return self.write_error(error)

    def trailers(self, error: A2AError | None = None) -> list[Header]:
        """The status of a call (1.0 §10.6)."""
        if error is None:
            return [_OK]
        if self.version == "1.0":
            name, text = error.row.grpc, status.message(error, "1.0")[:_MAX_TEXT]
        else:
            name, text = error.row.grpc03, status.message03_grpc(error)[:_MAX_TEXT]
        out = status_fields(name, text)
        if self.version == "1.0":
            out += _details_field(GRPC_CODES[name], text, error)
        if error.retry_after is not None:
            out.append((_PUSHBACK.encode(), b"%d" % max(0, math.ceil(error.retry_after * 1000))))
        return out

    # client half

    def write_call(self, op: str, body: bytes, *, id: int = 1, tenant: str = "") -> HttpRequest:
        """One framed message. Raises ``UnsupportedOperationError`` if this version has no such operation."""
        path = self._paths.get(op)
        if path is None:
            raise UnsupportedOperationError(f"A2A {self.version} has no {op}")
        return HttpRequest("POST", path, "", _CLIENT_HEADERS, frame(body))

    def read_result(self, op: str, response: HttpResponse) -> bytes:
        """The one message of a reply. Raises the ``A2AError`` of its trailers, or ``PeerError``."""
        headers = Headers(response.headers)
        told = Headers(response.trailers) if response.trailers else headers
        code = told.get(b"grpc-status")
        if not code.isdigit():
            raise plain_status(response, self.version) or unreadable(response, "a gRPC reply")
        if code != b"0":
            message = unquote(told.text("grpc-message"))
            trailers = {name.lower().decode("latin-1"): value for name, value in told.raw}
            if packed := trailers.get(_DETAILS):
                trailers[_DETAILS] = _decoded(packed)
            raise self.read_status(int(code), message, trailers, op)
        try:
            return _one_message(response.body, headers.get(b"grpc-encoding"), self.max_message)
        except A2AError as error:
            raise PeerError(f"a gRPC reply cannot be read: {error}", excerpt=excerpt(response.body)) from error

    def read_event(self, op: str, data: bytes, id: int = 1) -> bytes:
        """The message itself: its frame is off, and errors come in trailers."""
        return data

    def read_status(self, code: int, message: str, trailers: Mapping[str, bytes | str], op: str = "") -> A2AError:
        """The error that a gRPC status is.

        ``message``: percent-decoded. ``trailers``: by lower-case name; values of ``-bin`` names as bytes, or as
        their base64 text.
        """
        found = Evidence(self.version, op, message, grpc=GRPC_NAMES.get(code, "UNKNOWN"))
        packed = trailers.get(_DETAILS)
        if packed:
            try:
                raw = packed if isinstance(packed, bytes) else rpc.from_base64(packed)
                _, text, found.details = rpc.read_status(raw)
            except ValueError:
                text = ""  # broken details: the status and its message still stand
            found.message = text or message
        error = found.error() or InternalError(message)
        if error.retry_after is None:
            error.retry_after = _pushback(trailers.get(_PUSHBACK))
        if not message and error.message == InternalError.row.title:
            error.message = f"gRPC status {found.grpc}"
        return error

    # parts of reading a call

    def _op(self, request: HttpRequest) -> str:
        op = self._ops.get(request.path)
        if op is None:
            raise self._unknown(request.path)
        if request.method != "POST":
            raise VerbNotAllowedError("gRPC calls are POST requests", allow=("POST",))
        return op

    def _message(self, request: HttpRequest) -> bytes:
        headers = request.headers
        kind = headers.get(b"content-type")
        if kind != CONTENT_TYPE and media_type(kind) not in (CONTENT_TYPE, b"application/grpc+proto"):
            raise ContentTypeNotSupportedError(f"Content-Type {kind.decode('latin-1')!r} is not application/grpc")
        body = request.body
        if body[:1] == b"\0" and len(body) - 5 == int.from_bytes(body[1:5], "big") <= self.max_message:
            return body[5:]
        return _one_message(body, headers.get(b"grpc-encoding"), self.max_message)

    def _unknown(self, path: str) -> MethodNotFoundError:
        other = self._cures.get(path)
        if other is None:
            return MethodNotFoundError(f"Method not found: {path[:200]}")
        return MethodNotFoundError(f"{path} is a {other} method, which this interface does not serve")


_DETAILS = "grpc-status-details-bin"
#: Milliseconds after which a call may be tried again (gRPC's own retry design, A6).
_PUSHBACK = "grpc-retry-pushback-ms"


def frame(message: bytes) -> bytes:
    """``message`` in its frame, uncompressed."""
    return b"".join((b"\0", len(message).to_bytes(4, "big"), message))


def status_fields(name: str, text: str) -> list[Header]:
    """The trailers of a call that failed: the name of its status, and a text for people."""
    return [(b"grpc-status", b"%d" % GRPC_CODES[name]), (b"grpc-message", quote(text, safe=_PLAIN).encode())]


def whole_frames(received: bytes, limit: int = MAX_MESSAGE) -> int:
    """How many bytes at the front of ``received`` are complete frames. Raises ``MessageTooLargeError`` as soon as a
    frame says that it will be."""
    at = 0
    while len(received) >= at + 5:
        size = int.from_bytes(received[at + 1 : at + 5], "big")
        if size > limit:
            raise MessageTooLargeError(f"The message is larger than {limit} bytes")
        if len(received) < at + 5 + size:
            break
        at += 5 + size
    return at


def read_frames(body: bytes, encoding: bytes = b"", limit: int = MAX_MESSAGE) -> list[bytes]:
    """The messages in ``body``. Raises ``InvalidRequestError`` for broken frames, ``MessageTooLargeError``, and
    ``EncodingNotSupportedError``."""
    messages, at = [], 0
    while at < len(body):
        flag, end = body[at], at + 5 + int.from_bytes(body[at + 1 : at + 5], "big")
        if len(body) < at + 5 or flag > 1:
            raise InvalidRequestError("The body is no sequence of gRPC messages")
        if end - at - 5 > limit:
            raise MessageTooLargeError(f"The message is larger than {limit} bytes")
        if end > len(body):
            raise InvalidRequestError("The gRPC message is cut off")
        data = body[at + 5 : end]
        messages.append(_decompressed(data, encoding, limit) if flag else data)
        at = end
    return messages


def _one_message(body: bytes, encoding: bytes, limit: int) -> bytes:
    messages = read_frames(body, encoding, limit)
    if len(messages) != 1:
        raise InvalidRequestError(f"Exactly one message is expected, not {len(messages)}")
    return messages[0]


def _decompressed(data: bytes, encoding: bytes, limit: int) -> bytes:
    if encoding in (b"", b"identity"):
        raise InvalidRequestError("The message is flagged as compressed, and grpc-encoding does not say how")
    wbits = _ENCODINGS.get(encoding)
    if wbits is None:
        shown = encoding[:40].decode("latin-1")
        raise EncodingNotSupportedError(f"grpc-encoding {shown!r} is not read; {_ACCEPTED.decode()} are")
    unpacker = zlib.decompressobj(wbits)
    try:
        message = unpacker.decompress(data, limit + 1)
    except zlib.error as e:
        raise InvalidRequestError(f"The message cannot be decompressed: {e}") from e
    if len(message) > limit:
        raise MessageTooLargeError(f"The message is larger than {limit} bytes once decompressed")
    if not unpacker.eof:
        raise InvalidRequestError("The compressed message is cut off")
    return message


def _details_field(code: int, text: str, error: A2AError) -> list[Header]:
    """The status details, unless nothing is in them; only what A2A itself defines if all would be too much."""
    details = status.details(error)
    if not details:
        return []
    packed = rpc.write_status(code, text, details)
    if len(packed) > _MAX_DETAILS:
        packed = rpc.write_status(code, text, details[:1])
    if len(packed) > _MAX_DETAILS:
        packed = rpc.write_status(code, text, [{**details[0], "metadata": {}}])
    return [(_DETAILS.encode(), base64.b64encode(packed).rstrip(b"="))]


def _pushback(value: bytes | str | None) -> float | None:
    text = value.decode("latin-1") if isinstance(value, bytes) else value or ""
    return int(text) / 1000 if text.isascii() and text.isdigit() and len(text) < 12 else None


def _decoded(packed: bytes) -> bytes:
    try:
        return rpc.from_base64(packed)
    except ValueError:
        return b"\xff"  # no Status: read_status goes on without details


def _paths(version: Version) -> dict[str, str]:
    return {op: f"/{GRPC_SERVICE[version]}/{row.grpc}" for op, row in WIRE[version].items()}
