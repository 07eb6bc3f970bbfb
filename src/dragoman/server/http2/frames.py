"""The words of HTTP/2: frame and error codes, and a request's head read from its header block. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from struct import Struct
from typing import Final, NamedTuple
from urllib.parse import unquote

from .hpack import encode

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEAD = Struct(">BHBBL")  # 24-bit length as two fields, type, flags, stream
SETTING = Struct(">HL")  # one setting
UINT32 = Struct(">L")

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = range(5)
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(5, 10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR, SETTINGS_TIMEOUT = range(5)
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR = range(5, 10)
ENHANCE_YOUR_CALM = 11
MAX_WINDOW = 2**31 - 1
DEFAULT_WINDOW = 65_535  # both ways, until something else is said; a connection's is never less
BODILESS = frozenset((204, 304))  # statuses of responses that have none
FRAME_SIZE = 16_384  # what we accept: the default, so no setting has to say it
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+").fullmatch
_VALUE = re.compile(rb"(?![ \t])[^\r\n\0]*(?<![ \t])").fullmatch
_TARGET = re.compile(rb"[/*][\x21-\xff]*").fullmatch
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_PSEUDO = frozenset((b":method", b":scheme", b":path"))
_HOP_BY_HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))


GRPC_TOO_LARGE: Final = (
    (b"content-type", b"application/grpc"), (b"grpc-status", b"8"), (b"grpc-message", b"metadata too large"),
)  # fmt: skip


class Fault(Exception):
    """The peer broke the protocol: the connection ends with this code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Head(NamedTuple):
    """A request's header block, read: the parts of an ASGI scope that depend on nothing else."""

    method: str
    scheme: str
    path: str
    raw_path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]
    length: int


def read_head(fields: list[tuple[bytes, bytes]]) -> Head | None:
    """Section 8.3; ``None`` for a malformed request."""
    pseudo: dict[bytes, bytes] = {}
    headers: list[tuple[bytes, bytes]] = []
    length = -1
    for name, value in fields:
        if name[:1] == b":":
            if headers or name in pseudo or not _VALUE(value):
                return None
            pseudo[name] = value
            continue
        if name in _HOP_BY_HOP or not _NAME(name) or not _VALUE(value) or (name == b"te" and value != b"trailers"):
            return None
        if name == b"content-length":
            if not value.isdigit() or len(value) > 18 or length not in (-1, int(value)):
                return None
            length = int(value)
        headers.append((name, value))
    authority = pseudo.pop(b":authority", None)
    if authority is not None:
        headers = [(b"host", authority), *(field for field in headers if field[0] != b"host")]
    target = pseudo.get(b":path", b"")
    if pseudo.keys() != _PSEUDO or not _TARGET(target) or not _TOKEN(pseudo[b":method"]):
        return None
    raw_path, _, query = target.partition(b"?")
    path = unquote(raw_path.decode("latin-1"))
    return Head(
        pseudo[b":method"].decode("latin-1"),
        pseudo[b":scheme"].decode("latin-1"),
        path,
        raw_path,
        query,
        headers,
        length,
    )


@lru_cache(maxsize=512)
def write_block(fields: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """What an app wants to send as a header block. It means the same on every connection, so it is made once.

    Raises ``ValueError`` for a field that no header may have: a proxy that writes it as HTTP/1.1 would split it.
    """
    lower = [(name.lower(), value.strip(b" \t")) for name, value in fields]
    for name, value in lower:
        if not _NAME(name) or not _VALUE(value):
            raise ValueError(f"not a header field: {name!r}: {value!r}")
    return encode([field for field in lower if field[0] not in _HOP_BY_HOP])


STATUS: Final = tuple(encode([(b":status", b"%d" % status)]) for status in range(600))


def unpad(payload: bytes) -> bytes:
    if not payload or payload[0] >= len(payload):
        raise Fault(PROTOCOL_ERROR, "bad padding")
    return payload[1 : len(payload) - payload[0]]
