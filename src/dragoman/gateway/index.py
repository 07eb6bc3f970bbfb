"""ListTasks for an agent that has no such operation, answered from the tasks that passed through the gateway.

Rules of this module:

- An agent that has it is asked. Of 0.3 no agent has; one of 1.0 is found out by its refusal, and only from then on
  are its tasks taken down: who has the operation pays nothing for those who lack it.
- A caller lists the tasks that it sent to, looked at, followed or canceled itself, under its own tenant (1.0 §13.1).
- Bytes of messages that pass undecoded still do: what is in them is looked at afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from ..dialects.base import Dialect
from ..errors import DragomanError, MethodNotFoundError, TaskNotFoundError, UnsupportedOperationError
from ..model import (
    CANCEL_TASK,
    GET_TASK,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Req,
    Res,
    SendMessageResponse,
    Streaming,
    StreamResponse,
    Task,
    Unary,
)
from ..service import A2AService, AnyOperation, ByteStream, Context, EventStream
from ..store.base import Owner
from .layer import Layer
from .listed import Listing
from .seen import Following, Seen

_TELLING: frozenset[AnyOperation] = frozenset(
    {SEND_MESSAGE, GET_TASK, CANCEL_TASK, SEND_STREAMING_MESSAGE, SUBSCRIBE_TO_TASK}
)


class Index:
    """The tasks that were seen of all agents, and which agents' tasks are taken down.

    ``days``: how long a task is listed after its last change. ``recording``: names of the agents that have no list of
    their own.
    """

    def __init__(self, seen: Seen, *, days: float = 30.0) -> None:
        self.seen = seen
        self.recording: set[str] = set()
        self._days = days

    def see(self, upstream: str, tenant: str, caller: str, task: Task) -> None:
        """Take down a task that came another way, such as a notification. ``caller``: see ``identity.owner_of``."""
        if upstream in self.recording:
            self.seen.see(owner(upstream, tenant, caller), task)

    def since(self) -> str:
        """The canonical time before which nothing is listed."""
        earliest = datetime.fromtimestamp(time.time() - self._days * 86_400, UTC)
        return earliest.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def aclose(self) -> None:
        """Write what is not written yet."""
        await self.seen.aclose()


def owner(upstream: str, tenant: str, caller: str) -> Owner:
    """Whose a task is: the tenant of an agent, and its caller. (A name of an agent has no slash.)"""
    return f"{upstream}/{tenant}", caller


class Indexed(Layer):
    """An agent with a ListTasks. ``name``: of the upstream. ``lacks``: whether it has none for certain.
    ``caller_of``: see ``identity.owner_of``."""

    def __init__(
        self, inner: A2AService, index: Index, name: str, caller_of: Callable[[Context], str], *, lacks: bool
    ) -> None:
        super().__init__(inner)
        self._index = index
        self._seen = index.seen
        self._name = name
        self._caller_of = caller_of
        self._lacks = lacks
        self._has = False
        self._listing = Listing(inner, index.seen, index.since)
        self._dialect: Dialect | None = None
        if lacks:
            index.recording.add(name)

    # -- A2AService, and bytes

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        if op is LIST_TASKS:
            return cast("Coroutine[Any, Any, Res]", self._list(cast(ListTasksRequest, request), ctx))
        if op in _TELLING and self._name in self._index.recording:
            return self._call(op, request, ctx)
        return self.inner.call(op, request, ctx)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        """As ``A2AService.stream``."""
        stream = self.inner.stream(op, request, ctx)
        return self._stream(stream, ctx) if self._name in self._index.recording else stream

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``. A list does once it is known that there is one. What is to be taken down does not
        in 1.0, where the tenant that it is for stands in the request."""
        if op is LIST_TASKS and not self._has:
            return False
        if dialect.version != "0.3" and op in _TELLING and self._name in self._index.recording:
            return False
        self._dialect = dialect
        return super().passes(dialect, op)

    def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, bytes]:
        """As ``PassThrough.exchange``."""
        exchange, dialect = self._through.exchange(op, body, ctx), self._dialect
        if dialect is None or op not in _TELLING or self._name not in self._index.recording:
            return exchange
        return self._exchange(exchange, op, ctx, dialect)

    def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> Coroutine[Any, Any, ByteStream]:
        """As ``PassThrough.exchange_stream``."""
        stream, dialect = self._through.exchange_stream(op, body, ctx), self._dialect
        if dialect is None or self._name not in self._index.recording:
            return stream
        return self._exchange_stream(stream, op, ctx, dialect)

    # -- taking down

    async def _stream(self, stream: Coroutine[Any, Any, EventStream], ctx: Context) -> EventStream:
        return _SeenEvents(await stream, self._seen.follow(self._owner(ctx)))

    async def _exchange(
        self, exchange: Coroutine[Any, Any, bytes], op: AnyOperation, ctx: Context, dialect: Dialect
    ) -> bytes:
        reply = await exchange
        whose = self._owner(ctx)
        self._seen.later(len(reply), lambda: self._read(whose, dialect, op, reply))
        return reply

    async def _exchange_stream(
        self, stream: Coroutine[Any, Any, ByteStream], op: AnyOperation, ctx: Context, dialect: Dialect
    ) -> ByteStream:
        return _SeenBytes(await stream, self._seen, self._seen.follow(self._owner(ctx)), dialect, op)

    async def _call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        try:
            reply = await self.inner.call(op, request, ctx)
        except TaskNotFoundError:
            if op is GET_TASK:
                self._seen.forget(self._owner(ctx), cast(GetTaskRequest, request).id)
            raise
        self._see(self._owner(ctx), reply)
        return reply

    def _see(self, whose: Owner, reply: object) -> None:
        task = reply.task if isinstance(reply, SendMessageResponse) else reply
        if isinstance(task, Task):
            self._seen.see(whose, task)

    def _read(self, whose: Owner, dialect: Dialect, op: AnyOperation, reply: bytes) -> None:
        try:
            self._see(whose, dialect.load_reply(op, reply))
        except DragomanError:
            pass  # nothing that we know: its reader may

    def _owner(self, ctx: Context) -> Owner:
        return owner(self._name, ctx.tenant, self._caller_of(ctx))

    # -- listing

    async def _list(self, request: ListTasksRequest, ctx: Context) -> ListTasksResponse:
        if not self._lacks:
            try:
                reply = await self.inner.call(LIST_TASKS, request, ctx)
            except (UnsupportedOperationError, MethodNotFoundError):
                self._lacks = True
                self._index.recording.add(self._name)
            else:
                self._has = True
                self._index.recording.discard(self._name)
                return reply
        return await self._listing.page(request, self._owner(ctx), ctx)


class _SeenEvents(EventStream):
    """A stream whose events are taken down as they pass."""

    def __init__(self, source: EventStream, following: Following) -> None:
        self._source = source
        self._following = following

    async def batch(self) -> Sequence[StreamResponse]:
        events = await self._source.batch()
        self._following.take(events)
        return events

    async def aclose(self) -> None:
        await self._source.aclose()


class _SeenBytes(ByteStream):
    """A stream whose messages are taken down after they passed."""

    def __init__(
        self, source: ByteStream, seen: Seen, following: Following, dialect: Dialect, op: AnyOperation
    ) -> None:
        self._source = source
        self._seen = seen
        self._following = following
        self._dialect = dialect
        self._op = op

    async def batch(self) -> Sequence[bytes]:
        messages = await self._source.batch()
        if messages:
            self._seen.later(sum(map(len, messages)), lambda: self._read(messages))
        return messages

    async def aclose(self) -> None:
        await self._source.aclose()

    def _read(self, messages: Sequence[bytes]) -> None:
        try:
            self._following.take([self._dialect.load_reply(self._op, message) for message in messages])
        except DragomanError:
            pass  # as above
