"""A service in front of another, which lets everything through as it is; what gateways are put together of.

A layer overrides what it has to see. Where it must see the messages of an operation, ``passes`` says no for it, and
they come decoded, through ``call`` and ``stream``.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from ..dialects.base import Dialect
from ..errors import ConfigError
from ..model import Req, Res, Streaming, Unary
from ..service import A2AService, AnyOperation, ByteStream, Context, EventStream, PassThrough


class Layer:
    """An :class:`A2AService`, and a ``PassThrough`` where ``inner`` is one."""

    def __init__(self, inner: A2AService) -> None:
        self.inner = inner
        self._passing = inner if isinstance(inner, PassThrough) else None

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        return self.inner.call(op, request, ctx)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        return self.inner.stream(op, request, ctx)

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``."""
        return self._passing is not None and self._passing.passes(dialect, op)

    def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, bytes]:
        """As ``PassThrough.exchange``."""
        return self._through.exchange(op, body, ctx)

    def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, ByteStream]:
        """As ``PassThrough.exchange_stream``."""
        return self._through.exchange_stream(op, body, ctx)

    @property
    def _through(self) -> PassThrough:
        if self._passing is None:
            raise ConfigError("This service takes no bytes: passes() says so")
        return self._passing
