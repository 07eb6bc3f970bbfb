"""A send that waits, for an agent that always returns at once.

Rules of this module:

- A caller who wants to wait gets the task once it is terminal or interrupted (1.0 §3.2.2), with the history that was
  asked for.
- It waits as long as the agent may take to reply, and never beyond the caller's deadline; then, or when the agent
  cannot be asked any more, the answer is what is known of the task, which goes on.
- An agent that waits by itself is never asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

from ...dialects.base import Dialect
from ...errors import DragomanError
from ...model import (
    INTERRUPTED,
    SEND_MESSAGE,
    TERMINAL,
    GetTaskRequest,
    Req,
    Res,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    Unary,
)
from ...runtime.lifecycle import trim
from ...service import A2AService, AnyOperation, Context
from ..layer import Layer
from ..snapshots import merged
from .polling import Questions

_RESTS = TERMINAL | INTERRUPTED
_MARGIN = 0.2  # of the time until a deadline: what it takes to bring the answer home
_MOST_MARGIN = 1.0  # second


def returns_at_once(request: SendMessageRequest) -> bool:
    """Whether the caller does not want to wait."""
    return request.configuration is not None and request.configuration.return_immediately


class Blocking(Layer):
    """Waits for tasks. ``patience``: seconds that a whole call may take."""

    def __init__(self, inner: A2AService, questions: Questions, patience: float) -> None:
        super().__init__(inner)
        self._questions = questions
        self._patience = patience

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        if op is SEND_MESSAGE and not returns_at_once(cast(SendMessageRequest, request)):
            return cast("Coroutine[Any, Any, Res]", self._send(cast(SendMessageRequest, request), ctx))
        return self.inner.call(op, request, ctx)

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: no for what may have to be waited for."""
        return op is not SEND_MESSAGE and super().passes(dialect, op)

    async def _send(self, request: SendMessageRequest, ctx: Context) -> SendMessageResponse:
        until = self._until(ctx)
        reply = await self.inner.call(SEND_MESSAGE, request, ctx)
        if reply.task is None or reply.task.status.state in _RESTS:
            return reply
        wanted = request.configuration.history_length if request.configuration else None
        return SendMessageResponse(task=await self._settled(reply.task, wanted, until, ctx))

    def _until(self, ctx: Context) -> float:
        now = asyncio.get_running_loop().time()
        if ctx.deadline is None:
            return now + self._patience
        return min(now + self._patience, ctx.deadline - min(_MARGIN * (ctx.deadline - now), _MOST_MARGIN))

    async def _settled(self, task: Task, wanted: int | None, until: float, ctx: Context) -> Task:
        watch = self._questions.watch(task.id, ctx, 0)
        try:
            async with asyncio.timeout_at(until):
                while task.status.state not in _RESTS:
                    task = merged(task, await watch.look())
                if wanted != 0:
                    request = GetTaskRequest(tenant=ctx.tenant, id=task.id, history_length=wanted)
                    return await self._questions.ask(request, ctx)
        except (TimeoutError, DragomanError):
            pass  # the task exists, whatever became of the question
        return trim(task, wanted)
