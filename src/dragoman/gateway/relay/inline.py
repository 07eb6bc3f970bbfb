"""Seeing the sends that bring a webhook, while all others still pass undecoded.

Rules of this module:

- Whether a send brings one is told from its bytes, for the cost of a search. Where that is in doubt it is decoded: a
  JSON body that spells a key with escapes, a protobuf body that cannot be walked.
- What was decoded goes the way of every message, and its answer is written in the dialect in which it came.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, cast

from ...dialects.base import Dialect
from ...model import (
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_PUSH_CONFIG,
    LIST_PUSH_CONFIGS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SendMessageRequest,
    Streaming,
    TaskPushNotificationConfig,
    Unary,
)
from ...protocol.fields import table
from ...protocol.operations import VERSIONS, Version
from ...protocol.protobuf import Malformed, skip, varint
from ...service import A2AService, AnyOperation, ByteStream, Context, EventStream
from ..layer import Layer

PUSH: frozenset[AnyOperation] = frozenset({CREATE_PUSH_CONFIG, GET_PUSH_CONFIG, LIST_PUSH_CONFIGS, DELETE_PUSH_CONFIG})
SENDS: frozenset[AnyOperation] = frozenset({SEND_MESSAGE, SEND_STREAMING_MESSAGE})


def inline_config(request: SendMessageRequest) -> TaskPushNotificationConfig | None:
    """The webhook that a send brings, None if it brings none."""
    return request.configuration.task_push_notification_config if request.configuration else None


def may_bring_webhook(body: bytes, version: Version, *, protobuf: bool) -> bool:
    """Whether a send has a webhook in it; sometimes yes where it has none, never the other way."""
    if not protobuf:
        return b"otification" in body or b"\\u" in body  # which every name of the key has; a long one is found fast
    if b"://" not in body:
        return False  # whatever stands in it, it is no webhook that anybody could call
    outer, inner = _TAGS[version]
    try:
        return any(_spans(body, *span, inner) for span in _spans(body, 0, len(body), outer))
    except (Malformed, IndexError):
        return True


def _number(version: Version, message: str, *types: str) -> int:
    return next(field.number for field in table(version).messages[message] if field.type in types)


#: Tags of the configuration in a send, and of the webhook in that.
_TAGS = {
    version: (
        _number(version, "SendMessageRequest", "SendMessageConfiguration") << 3 | 2,
        _number(version, "SendMessageConfiguration", "PushNotificationConfig", "TaskPushNotificationConfig") << 3 | 2,
    )
    for version in VERSIONS
}


def _spans(body: bytes, pos: int, end: int, wanted: int) -> list[tuple[int, int]]:
    """Where the sub-messages of a tag stand between two places."""
    found = []
    while pos < end:
        tag, pos = varint(body, pos)
        start, pos = pos, skip(body, pos, tag)
        if tag == wanted:
            found.append((varint(body, start)[1], pos))
    return found


class Inline(Layer):
    """A layer that gets every operation on webhooks decoded, and every send that brings one."""

    def __init__(self, inner: A2AService) -> None:
        super().__init__(inner)
        self._dialect: Dialect | None = None

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``."""
        if op in PUSH or not super().passes(dialect, op):
            return False
        self._dialect = dialect  # there is but one that passes
        return True

    def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, bytes]:
        """As ``PassThrough.exchange``."""
        dialect = self._dialect
        if dialect is not None and op is SEND_MESSAGE and _may_bring(body, dialect, ctx):
            return self._decoded(op, body, ctx, dialect)
        return super().exchange(op, body, ctx)

    def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, ByteStream]:
        """As ``PassThrough.exchange_stream``."""
        dialect = self._dialect
        if dialect is not None and op is SEND_STREAMING_MESSAGE and _may_bring(body, dialect, ctx):
            return self._decoded_stream(op, body, ctx, dialect)
        return super().exchange_stream(op, body, ctx)

    async def _decoded(self, op: AnyOperation, body: bytes, ctx: Context, dialect: Dialect) -> bytes:
        request = _loaded(op, body, ctx, dialect)
        return dialect.dump_reply(op, await self.call(cast("Unary[Any, Any]", op), request, ctx))

    async def _decoded_stream(self, op: AnyOperation, body: bytes, ctx: Context, dialect: Dialect) -> ByteStream:
        request = _loaded(op, body, ctx, dialect)
        return _Written(await self.stream(cast("Streaming[Any]", op), request, ctx), op, dialect)


def _may_bring(body: bytes, dialect: Dialect, ctx: Context) -> bool:
    return may_bring_webhook(body, dialect.version, protobuf=ctx.binding == "GRPC")


def _loaded(op: AnyOperation, body: bytes, ctx: Context, dialect: Dialect) -> Any:
    request = dialect.load_request(op, body)
    if not ctx.tenant:
        ctx.tenant = request.tenant
    return request


class _Written(ByteStream):
    """Events as the messages of a dialect."""

    def __init__(self, source: EventStream, op: AnyOperation, dialect: Dialect) -> None:
        self._source = source
        self._op = op
        self._dialect = dialect

    async def batch(self) -> Sequence[bytes]:
        dump, op = self._dialect.dump_reply, self._op
        return [dump(op, event) for event in await self._source.batch()]

    async def aclose(self) -> None:
        await self._source.aclose()
