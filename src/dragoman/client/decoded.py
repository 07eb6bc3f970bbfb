"""Message bytes for a service that takes none of their dialect: read, asked, and the reply written in it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..dialects.base import Dialect
from ..model import Streaming, Unary
from ..service import A2AService, AnyOperation, ByteStream, Context, EventStream


async def exchanged(service: A2AService, dialect: Dialect, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
    """One call by bytes of ``dialect``. Raises as ``A2AService.call``."""
    request = dialect.load_request(op, body)
    return dialect.dump_reply(op, await service.call(cast("Unary[Any, Any]", op), request, ctx))


async def exchanged_stream(
    service: A2AService, dialect: Dialect, op: AnyOperation, body: bytes, ctx: Context
) -> ByteStream:
    """One stream by bytes of ``dialect``. Raises as ``A2AService.stream``."""
    request = dialect.load_request(op, body)
    return Dumped(await service.stream(cast("Streaming[Any]", op), request, ctx), dialect, op)


class Dumped(ByteStream):
    """The events of a stream as bytes of a dialect."""

    def __init__(self, inner: EventStream, dialect: Dialect, op: AnyOperation) -> None:
        self._inner = inner
        self._dialect = dialect
        self._op = op

    async def batch(self) -> Sequence[bytes]:
        dump, op = self._dialect.dump_reply, self._op
        return [dump(op, event) for event in await self._inner.batch()]

    async def aclose(self) -> None:
        await self._inner.aclose()
