"""A send that returns at once, for an agent that always waits but streams: the first Task of a stream is the answer.

Rules of this module:

- The stream is followed to its end behind the caller's back, so that nothing is cancelled by closing it. Of more than
  ``MOST`` at a time the further ones are closed after their first event; an agent that keeps to the specification goes
  on with their tasks all the same.
- A Message, or an error before the first event, is the answer as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, cast

from ...dialects.base import Dialect
from ...errors import DragomanError, PeerError, UnavailableError
from ...model import (
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    Req,
    Res,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    Unary,
)
from ...runtime.lifecycle import trim
from ...service import A2AService, AnyOperation, Context
from ..background import Background, report, unhurried
from ..layer import Layer
from .blocking import returns_at_once

log = logging.getLogger(__name__)
MOST = 1_000
Answer = asyncio.Future[SendMessageResponse]


class Leading(Layer):
    """Answers those who do not want to wait with the first Task of a stream."""

    def __init__(self, inner: A2AService, background: Background) -> None:
        super().__init__(inner)
        self._background = background
        self._following = 0

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        if op is SEND_MESSAGE and returns_at_once(cast(SendMessageRequest, request)):
            return cast("Coroutine[Any, Any, Res]", self._send(cast(SendMessageRequest, request), ctx))
        return self.inner.call(op, request, ctx)

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: no for what may have to be turned into a stream."""
        return op is not SEND_MESSAGE and super().passes(dialect, op)

    async def _send(self, request: SendMessageRequest, ctx: Context) -> SendMessageResponse:
        own = unhurried(ctx)
        answer: Answer = asyncio.get_running_loop().create_future()
        self._background.start(self._follow(request, own, answer), "stream", ctx)
        reply = await answer
        report(own, ctx)
        return reply

    async def _follow(self, request: SendMessageRequest, ctx: Context, answer: Answer) -> None:
        try:
            stream = await self.inner.stream(SEND_STREAMING_MESSAGE, request, ctx)
        except Exception as error:
            _settle(answer, error)
            return
        except asyncio.CancelledError:
            _settle(answer, UnavailableError("The gateway is shutting down"))
            raise
        self._following += 1
        try:
            async for event in stream:
                if not answer.done():
                    _settle(answer, _answer(event, request))
                if self._following > MOST:
                    return
        except DragomanError as error:
            log.debug("a stream that nobody reads broke: %s", error)
            _settle(answer, error)
        finally:
            self._following -= 1
            _settle(answer, PeerError("The stream ended without an event"))
            await stream.aclose()


def _answer(event: StreamResponse, request: SendMessageRequest) -> SendMessageResponse | PeerError:
    wanted = request.configuration.history_length if request.configuration else None
    if event.task is not None:
        return SendMessageResponse(task=trim(event.task, wanted))
    if event.message is not None:
        return SendMessageResponse(message=event.message)
    return PeerError("The stream did not begin with a Task")


def _settle(answer: Answer, outcome: SendMessageResponse | Exception) -> None:
    """Give the caller its answer, if it still waits for one."""
    if answer.done():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
