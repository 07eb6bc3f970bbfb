"""Which task and context a call was about, for its record and its span.

Rules of this module:

- Of decoded messages the request says it, and the reply where the task is made by the call.
- Bytes that pass undecoded stay so: JSON is looked into for its ids alone, protobuf not at all, and the record of such
  a call has none.
- What is not seen is left out; nothing fails because of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...model import Req, Res, Streaming, StreamResponse, Unary
from ...service import AnyOperation, ByteStream, Context, EventStream, Item, Stream
from ..layer import Layer
from .watch import Watched, watched


class _Inner(msgspec.Struct, rename="camel"):
    """What may stand inside of an envelope: a task, a message or an event."""

    id: str = ""
    task_id: str = ""
    context_id: str = ""


class _Outer(_Inner, rename="camel"):
    """Any message of either version, as far as its ids."""

    kind: str = ""
    name: str = ""
    task: _Inner | None = None
    message: _Inner | None = None
    msg: _Inner | None = None
    status_update: _Inner | None = None
    artifact_update: _Inner | None = None


_peek = msgspec.json.Decoder(_Outer, strict=False)
_ONE_TASK = frozenset({"GetTask", "CancelTask", "SubscribeToTask"})


class Identified(Layer):
    """A service whose calls say what they are about."""

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """As ``A2AService.call``."""
        call = watched()
        if call is None:
            return await self.inner.call(op, request, ctx)
        _of_message(call, request)
        reply = await self.inner.call(op, request, ctx)
        _of_message(call, reply)
        return reply

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        call = watched()
        if call is None:
            return await self.inner.stream(op, request, ctx)
        _of_message(call, request)
        stream = await self.inner.stream(op, request, ctx)
        return stream if _known(call) else _First(stream, call)

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """As ``PassThrough.exchange``."""
        call = None if ctx.binding == "GRPC" else watched()
        if call is None:
            return await self._through.exchange(op, body, ctx)
        _of_bytes(call, body)
        reply = await self._through.exchange(op, body, ctx)
        if not _known(call):
            _of_bytes(call, reply)
        return reply

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """As ``PassThrough.exchange_stream``."""
        call = None if ctx.binding == "GRPC" else watched()
        if call is None:
            return await self._through.exchange_stream(op, body, ctx)
        _of_bytes(call, body)
        stream = await self._through.exchange_stream(op, body, ctx)
        return stream if _known(call) else _First(stream, call)


class _First(Stream[Item]):
    """A stream whose first items are looked at."""

    def __init__(self, inner: Stream[Item], call: Watched) -> None:
        self._inner = inner
        self._call: Watched | None = call

    async def batch(self) -> Sequence[Item]:
        items = await self._inner.batch()
        if (call := self._call) is not None and items:
            self._call = None
            first: object = items[0]
            if isinstance(first, bytes):
                _of_bytes(call, first)
            else:
                _of_message(call, first)
        return items

    async def aclose(self) -> None:
        await self._inner.aclose()


def _known(call: Watched) -> bool:
    return bool(call.task and call.context)


def _note(call: Watched, task: str, context: str) -> None:
    call.task = call.task or task
    call.context = call.context or context


def _of_message(call: Watched, message: Any) -> None:
    """Of a request, a reply or an event of the canonical model."""
    if isinstance(message, StreamResponse):
        inner: Any = message.task or message.message or message.status_update or message.artifact_update
    else:
        inner = getattr(message, "task", None) or getattr(message, "message", None) or message
    task = getattr(inner, "task_id", "")
    if not task and call.op.name in _ONE_TASK | _MAKING:
        task = getattr(inner, "id", "")
    _note(call, task, getattr(inner, "context_id", ""))


#: Operations whose reply may be the task that they made.
_MAKING = frozenset({"SendMessage", "SendStreamingMessage"})


def _of_bytes(call: Watched, body: bytes) -> None:
    try:
        outer = _peek.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    inner: _Inner = outer.task or outer.message or outer.msg or outer.status_update or outer.artifact_update or outer
    told = inner.task_id
    if not told and call.op.name in _ONE_TASK | _MAKING:
        told = inner.id or outer.name.removeprefix("tasks/")
    _note(call, told, inner.context_id)
