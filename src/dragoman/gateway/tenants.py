"""The 1.0 tenant by which a request names an upstream: where it is found, and that the upstream does not see it.

Rules of this module:

- Only the one field is looked for; all else of a message stays the bytes that it was, unknown fields included.
- Of a field that comes twice the last one counts, as everywhere in protobuf.
- What cannot be read has no tenant: whoever gets it will say what is wrong with it.
- Only a name of ours is taken out. Whatever else a request calls its tenant is the agent's (1.0 §5.5).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from msgspec.structs import replace

from ..errors import A2AError
from ..model import OPERATIONS, Req, Res, Streaming, Unary
from ..protocol import jsontext
from ..protocol.fields import table
from ..protocol.grpc import read_frames
from ..protocol.operations import GRPC_SERVICE, WIRE
from ..protocol.protobuf import UNREADABLE, skip, varint
from ..service import A2AService, AnyOperation, ByteStream, Context, EventStream
from .layer import Layer

#: By operation, the number of the tenant in its protobuf request.
_FIELDS: dict[str, int] = {
    op: next(field.number for field in table("1.0").messages[OPERATIONS[op].request.__name__] if field.name == "tenant")
    for op in WIRE["1.0"]
}
_OPS: dict[str, str] = {f"/{GRPC_SERVICE['1.0']}/{row.grpc}": op for op, row in WIRE["1.0"].items()}


def of_grpc(path: str, body: bytes, encoding: bytes) -> str:
    """The tenant of a framed gRPC request, empty if it has none."""
    op = _OPS.get(path)
    if op is None:
        return ""
    try:
        (message,) = read_frames(body, encoding)
    except (A2AError, ValueError):
        return ""
    return split_protobuf(op, message)[0]


def split_protobuf(op: str, message: bytes) -> tuple[str, bytes]:
    """The tenant of a request, and the request without it; itself if it has none."""
    kept, tenant, pos, wanted = [], b"", 0, _FIELDS[op] << 3 | 2
    try:
        while pos < len(message):
            start = pos
            tag, pos = varint(message, pos)
            content = pos
            pos = skip(message, pos, tag)
            if tag == wanted:
                size, content = varint(message, content)
                tenant = message[content : content + size]
            else:
                kept.append(message[start:pos])
        if pos != len(message):
            return "", message
        return (tenant.decode(), b"".join(kept)) if tenant else ("", message)
    except UNREADABLE:
        return "", message


def of_json_rpc(body: bytes) -> str:
    """The tenant in the params of a JSON-RPC request, empty if it has none."""
    if b'"tenant"' not in body:
        return ""
    try:
        jsontext.check(body)
        return split_json(bytes(jsontext.members(body)["params"]))[0]
    except (A2AError, TypeError, KeyError):
        return ""


def split_json(message: bytes) -> tuple[str, bytes]:
    """The tenant of a request, and the request without it; itself if it has none."""
    if b'"tenant"' not in message:
        return "", message
    try:
        members = jsontext.members(message)
        tenant = jsontext.value(members.pop("tenant"))
    except (A2AError, TypeError, KeyError):
        return "", message
    return (tenant, jsontext.encode(members)) if isinstance(tenant, str) and tenant else ("", message)


class Nameless(Layer):
    """A service that does not see by which ``name`` requests were led to it."""

    def __init__(self, inner: A2AService, name: str) -> None:
        super().__init__(inner)
        self._name = name

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        return self.inner.call(op, self._unnamed(request, ctx), ctx)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        return self.inner.stream(op, self._unnamed(request, ctx), ctx)

    def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, bytes]:
        """As ``PassThrough.exchange``."""
        return self._through.exchange(op, self._unnamed_bytes(op, body, ctx), ctx)

    def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, ByteStream]:
        """As ``PassThrough.exchange_stream``."""
        return self._through.exchange_stream(op, self._unnamed_bytes(op, body, ctx), ctx)

    def _unnamed(self, request: Req, ctx: Context) -> Req:
        if ctx.tenant == self._name:
            ctx.tenant = ""
        named: Any = request
        return replace(named, tenant="") if named.tenant == self._name else request

    def _unnamed_bytes(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        if ctx.tenant == self._name:
            ctx.tenant = ""
        if ctx.version != "1.0":
            return body
        tenant, rest = split_protobuf(op.name, body) if ctx.binding == "GRPC" else split_json(body)
        return rest if tenant == self._name else body
