"""Every message of every call in the log, redacted. For debugging: it decodes what would pass as bytes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from ...dialects.base import Dialect
from ...model import Req, Res, Streaming, StreamResponse, Unary
from ...service import A2AService, AnyOperation, Context, EventStream, Stream
from ..layer import Layer
from .redaction import shown

log = logging.getLogger("dragoman.bodies")


class Bodied(Layer):
    """The service of the agent ``upstream``, its messages logged."""

    def __init__(self, inner: A2AService, upstream: str) -> None:
        super().__init__(inner)
        self._upstream = upstream

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """Nothing: it has to be seen."""
        return False

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """As ``A2AService.call``."""
        self._say("request", op, request)
        try:
            reply = await self.inner.call(op, request, ctx)
        except Exception as error:
            self._broke(op, error)
            raise
        self._say("reply", op, reply)
        return reply

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        self._say("request", op, request)
        try:
            return _Events(await self.inner.stream(op, request, ctx), self, op)
        except Exception as error:
            self._broke(op, error)
            raise

    def _say(self, what: str, op: AnyOperation, message: Any) -> None:
        log.info("%s %s %s: %s", self._upstream, op.name, what, msgspec.json.encode(shown(message)).decode())

    def _broke(self, op: AnyOperation, error: Exception) -> None:
        log.info("%s %s error: %s: %s", self._upstream, op.name, type(error).__name__, error)


class _Events(Stream[StreamResponse]):
    def __init__(self, inner: EventStream, layer: Bodied, op: AnyOperation) -> None:
        self._inner = inner
        self._layer = layer
        self._op = op

    async def batch(self) -> Sequence[StreamResponse]:
        try:
            events = await self._inner.batch()
        except Exception as error:
            self._layer._broke(self._op, error)
            raise
        for event in events:
            self._layer._say("event", self._op, event)
        return events

    async def aclose(self) -> None:
        await self._inner.aclose()
