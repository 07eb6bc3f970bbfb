"""``historyLength: 0`` toward a 0.3 agent, which cannot be told: 0 means no limit there, so it is left out of the
request, and the history is cut from the reply on our side."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from ..model import GetTaskRequest, SendMessageRequest, SendMessageResponse, StreamResponse, Task

T = TypeVar("T")


def wants_none(request: Any) -> bool:
    """Whether a request asks for tasks without their history (1.0 §3.2.4)."""
    match request:
        case GetTaskRequest():
            return request.history_length == 0
        case SendMessageRequest():
            return request.configuration is not None and request.configuration.history_length == 0
    return False


def without_history(reply: T) -> T:
    """The reply or event with no history in its task, if it has one."""
    match reply:
        case Task():
            return msgspec.structs.replace(reply, history=())
        case SendMessageResponse() | StreamResponse() if reply.task is not None:
            return msgspec.structs.replace(reply, task=without_history(reply.task))
    return reply
