"""0.3 of the ``kind`` shape as nearly every peer writes it, read straight into structs.

Rules of this module:

- It is a strict net in front of :mod:`.up`, and two to three times as fast. What it does not take (an unknown key, a
  null, a file, metadata of a part, a word that no 0.3 peer should write) it leaves alone: None says so, and
  :mod:`.up`, which knows every shape, reads it. What both read comes out the same.
- So nothing is forgiven or lost here, and nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..model import (
    Artifact,
    JsonObject,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskState,
    TaskStatus,
)
from .enums import STATE_TO_KIND
from .losses import REFERENCES
from .reading import FAILURES, may_be_deep


class _Plain(msgspec.Struct, rename="camel", forbid_unknown_fields=True, tag_field="kind", gc=False): ...


class _Text(_Plain, tag="text"):
    text: str


class _Data(_Plain, tag="data"):
    data: dict[str, Any]


class _Message(_Plain, tag="message"):
    message_id: str
    role: str
    parts: tuple[_Text | _Data, ...]
    context_id: str = ""
    task_id: str = ""
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class _Untagged(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False): ...


class _Status(_Untagged):
    state: str
    message: _Message | None = None
    timestamp: str | None = None


class _Artifact(_Untagged):
    artifact_id: str
    parts: tuple[_Text | _Data, ...]
    name: str = ""
    description: str = ""
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()


class _Task(_Plain, tag="task"):
    id: str
    status: _Status
    context_id: str = ""
    artifacts: tuple[_Artifact, ...] = ()
    history: tuple[_Message, ...] = ()
    metadata: JsonObject | None = None


class _Send(_Untagged):
    message: _Message


class _Odd(Exception):
    """Raised by what is well formed and yet not plain."""


_STATES = {word: state for state, word in STATE_TO_KIND.items() if state is not TaskState.UNSPECIFIED}
_ROLES = {"user": Role.USER, "agent": Role.AGENT}
_GIVE_UP = (*FAILURES, KeyError, _Odd)


def _parts(parts: tuple[_Text | _Data, ...]) -> tuple[Part, ...]:
    return tuple([Part(text=p.text) if type(p) is _Text else Part(data=p.data) for p in parts])  # type: ignore[union-attr]


def _message(m: _Message) -> Message:
    meta = m.metadata
    if meta is not None and REFERENCES in meta:
        raise _Odd
    return Message(
        message_id=m.message_id,
        context_id=m.context_id,
        task_id=m.task_id,
        role=_ROLES[m.role],
        parts=_parts(m.parts),
        metadata=meta,
        extensions=m.extensions,
        reference_task_ids=m.reference_task_ids,
    )


def _status(s: _Status) -> TaskStatus:
    message, time = s.message, s.timestamp
    if message is not None and not (message.message_id or message.parts):
        raise _Odd  # it says nothing
    if time is not None and not (len(time) == 24 and time[23] == "Z" and time[19] == "."):
        raise _Odd  # not canonical
    return TaskStatus(state=_STATES[s.state], message=None if message is None else _message(message), timestamp=time)


def _artifact(a: _Artifact) -> Artifact:
    return Artifact(
        artifact_id=a.artifact_id,
        name=a.name,
        description=a.description,
        parts=_parts(a.parts),
        metadata=a.metadata,
        extensions=a.extensions,
    )


def _task(t: _Task) -> Task:
    return Task(
        id=t.id,
        context_id=t.context_id,
        status=_status(t.status),
        artifacts=tuple(map(_artifact, t.artifacts)),
        history=tuple(map(_message, t.history)),
        metadata=t.metadata,
    )


def _sent(reply: _Task | _Message) -> SendMessageResponse:
    if isinstance(reply, _Task):
        return SendMessageResponse(task=_task(reply))
    return SendMessageResponse(message=_message(reply))


_read_task = msgspec.json.Decoder(_Task).decode
_read_sent = msgspec.json.Decoder(_Task | _Message).decode
_read_send = msgspec.json.Decoder(_Send).decode

#: By operation: reads the 0.3 structs, makes those of 1.0.
_REPLIES: dict[str, Callable[[bytes], Any]] = {
    "SendMessage": lambda body: _sent(_read_sent(body)),
    "GetTask": lambda body: _task(_read_task(body)),
    "CancelTask": lambda body: _task(_read_task(body)),
}


def reply(op: str, body: bytes) -> Any | None:
    """A plain reply; None if it is not plain, or if the operation has no plain form here."""
    read = _REPLIES.get(op)
    if read is None:
        return None
    try:
        return read(body)
    except _GIVE_UP:
        return None


def send(body: bytes) -> SendMessageRequest | None:
    """A message to send, and nothing besides it; None if it is not plain."""
    if may_be_deep(body):
        return None
    try:
        return SendMessageRequest(message=_message(_read_send(body).message))
    except _GIVE_UP:
        return None
