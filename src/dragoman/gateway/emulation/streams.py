"""Streaming and subscribing for an agent that does neither.

Rules of this module:

- What the agent can do itself is left to it. An agent whose card declares streaming is asked to subscribe; it is
  polled only if it does not know the operation, or refuses it for a task that is not terminal.
- A message is sent once, and goes on being sent if its caller leaves.
- A stream begins with the Task, or is one Message (1.0 §3.1.2). Subscribing to a terminal task is refused (§3.1.6).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, cast

from msgspec.structs import replace

from ...dialects.base import Dialect
from ...errors import MethodNotFoundError, UnsupportedOperationError
from ...model import (
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    TERMINAL,
    GetTaskRequest,
    Message,
    Req,
    SendMessageConfiguration,
    SendMessageRequest,
    Streaming,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
)
from ...runtime.lifecycle import trim
from ...service import A2AService, AnyOperation, Context, EventStream
from ..background import Background, report, unhurried
from ..layer import Layer
from .polling import LATEST, Followed, Questions, follow


class Streams(Layer):
    """Answers SendStreamingMessage and SubscribeToTask by asking for the task again and again.

    ``sends``, ``subscribes``: whether the agent lacks them for certain. ``unsure``: whether it may lack subscribing
    although it streams.
    """

    def __init__(
        self,
        inner: A2AService,
        questions: Questions,
        background: Background,
        *,
        sends: bool,
        subscribes: bool,
        unsure: bool = False,
    ) -> None:
        super().__init__(inner)
        self._questions = questions
        self._background = background
        self._sends = sends
        self._subscribes = subscribes
        self._unsure = unsure

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        if op is SEND_STREAMING_MESSAGE and self._sends:
            return self._send(cast(SendMessageRequest, request), ctx)
        if op is SUBSCRIBE_TO_TASK and self._subscribes:
            return self._subscribe(cast(SubscribeToTaskRequest, request), ctx)
        if op is SUBSCRIBE_TO_TASK and self._unsure:
            return self._try_subscribe(cast(SubscribeToTaskRequest, request), ctx)
        return self.inner.stream(op, request, ctx)

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: no for what is made up for."""
        if op is SEND_STREAMING_MESSAGE and self._sends:
            return False
        if op is SUBSCRIBE_TO_TASK and (self._subscribes or self._unsure):
            return False
        return super().passes(dialect, op)

    async def _send(self, request: SendMessageRequest, ctx: Context) -> EventStream:
        configuration = request.configuration or SendMessageConfiguration()
        wanted = configuration.history_length
        length = wanted if wanted is None else max(wanted, LATEST)
        at_once = replace(configuration, return_immediately=True, history_length=length)
        own = unhurried(ctx)
        sending = self.inner.call(SEND_MESSAGE, replace(request, configuration=at_once), own)
        reply = await self._background.outlasting(sending, "send", ctx)
        report(own, ctx)
        if reply.task is None:
            return Followed(None, StreamResponse(message=reply.message), None, self._questions.pace)
        return follow(self._questions, ctx, trim(reply.task, wanted), _with(reply.task, request.message))

    async def _subscribe(self, request: SubscribeToTaskRequest, ctx: Context) -> EventStream:
        task = await self._questions.ask(GetTaskRequest(tenant=request.tenant, id=request.id), ctx)
        if task.status.state in TERMINAL:
            raise UnsupportedOperationError(f"The task is {task.status.state.name}: nothing follows; GetTask has it")
        return follow(self._questions, ctx, task, ends=False)

    async def _try_subscribe(self, request: SubscribeToTaskRequest, ctx: Context) -> EventStream:
        """A refusal was about the task if that is terminal, else about the operation, and not worth a second try."""
        try:
            return await self.inner.stream(SUBSCRIBE_TO_TASK, request, ctx)
        except (UnsupportedOperationError, MethodNotFoundError):
            stream = await self._subscribe(request, ctx)
        self._subscribes = True
        return stream


def _with(task: Task, message: Message) -> Task:
    """The task as its sender knows it: with the message, wherever the agent keeps it."""
    if any(one.message_id == message.message_id for one in task.history):
        return task
    return replace(task, history=(*task.history, message))
