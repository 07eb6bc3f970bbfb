"""The replicas of one agent as one service: which of them a call goes to, and how many go at a time.

Rules of this module:

- New work goes to the least busy replica that is not left alone. What is about a task or a context goes to the replica
  that has it, and nowhere else: while that one is away it is *unavailable*.
- A task that nobody knows of, as after a restart, is looked for before anything is sent.
- Nothing is replayed. Another replica is tried only while no byte can have arrived at the first; what only reads is
  asked for once more at the same one if the connection broke before there was an answer (:data:`READS`).
- Calls and streams have turns of their own, so that streams that hang take nothing from calls. What was taken is given
  back exactly once, however it ends.
- One replica alone has everything: nothing is looked into.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from ..client.client import Client
from ..client.decoded import exchanged, exchanged_stream
from ..client.hybrids import Hybrid
from ..client.remote import Remote
from ..dialects.base import Dialect
from ..errors import (
    A2AError,
    DragomanError,
    MethodNotFoundError,
    PeerError,
    TaskNotFoundError,
    TransportError,
    UnavailableError,
    UnsupportedOperationError,
)
from ..faces import Face
from ..model import (
    GET_EXTENDED_AGENT_CARD,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    AgentCard,
    AgentInterface,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Req,
    Res,
    Streaming,
    Unary,
)
from ..service import AnyOperation, ByteStream, Context, EventStream, Item, Stream
from . import pages
from .affinity import NOTHING, PLACED, About, Affinity, about, told
from .config import UpstreamLimits
from .replicas import Replica
from .turns import Turns

T = TypeVar("T")
Attempt: TypeAlias = Callable[[Client], Awaitable[T]]
Tells: TypeAlias = Callable[[Any], About]

#: Operations that change nothing, so that asking again does no harm.
READS: frozenset[AnyOperation] = frozenset(
    {GET_TASK, LIST_TASKS, GET_PUSH_CONFIG, LIST_PUSH_CONFIGS, GET_EXTENDED_AGENT_CARD}
)
_CANNOT_TELL = (UnsupportedOperationError, MethodNotFoundError)


class Pool:
    """An ``A2AService`` over the replicas of one agent; it has the face, dialect and card of the first that was
    reached. ``affinity``: what is known of who has what."""

    def __init__(self, replicas: Sequence[Replica], limits: UpstreamLimits) -> None:
        self.replicas = tuple(replicas)
        self.affinity = Affinity()
        self.calls = Turns(limits.calls, patience=limits.queue, what="calls")
        self.streams = Turns(limits.streams, patience=limits.queue, what="streams")
        self._single = self.replicas[0] if len(self.replicas) == 1 else None
        self._by_url = {one.url: one for one in self.replicas}
        self._turn = 0

    # -- what it is connected to

    @property
    def lead(self) -> Replica | None:
        """The replica whose card stands for all; None while none was reached."""
        return next((one for one in self.replicas if one.line is not None), None)

    @property
    def client(self) -> Client:
        """The client of that replica, which must have been reached."""
        lead = self._single or self.lead
        if lead is None or lead.line is None:
            raise UnavailableError("The agent behind this gateway cannot be reached")
        return lead.line.client

    @property
    def card(self) -> AgentCard:
        """The agent's card."""
        return self.client.card

    @property
    def face(self) -> Face:
        """The face that is called."""
        return self.client.face

    @property
    def interface(self) -> AgentInterface:
        """The interface that is called."""
        return self.client.interface

    @property
    def hybrid(self) -> Hybrid | None:
        """How the agent departs from the specification, if that is known."""
        return self.client.hybrid

    @property
    def dialect(self) -> Dialect:
        """The dialect whose bytes :meth:`exchange` takes, as it is when that is called."""
        return self.client.dialect

    @property
    def remote(self) -> Remote:
        """The client of the interface in use."""
        return self.client.remote

    # -- A2AService, and bytes

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """As ``A2AService.call``. Raises ``UnavailableError`` with a time to come back if there is no turn to be had
        or no replica to ask."""
        if not self.calls.take_now():
            await self.calls.take(ctx.deadline)
        try:
            if self._single is not None:
                return await self._ask(self._single, op, ctx, lambda client: client.call(op, request, ctx))
            if op is LIST_TASKS:
                return cast(Res, await self._list(cast(ListTasksRequest, request), ctx))
            what = about(op, request)
            found = await self._placed(what, ctx)
            reply, replica = await self._route(found, op, ctx, lambda client: client.call(op, request, ctx))
            self.affinity.learn(ctx.tenant, told(reply) if op is SEND_MESSAGE else NOTHING, replica.url)
            return reply
        finally:
            self.calls.give_back()

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """As ``PassThrough.exchange``, with bytes of :attr:`dialect`."""
        dialect = self.dialect

        def attempt(client: Client) -> Coroutine[Any, Any, bytes]:
            if client.dialect is dialect and not client.tenant:
                return client.exchange(op, body, ctx)
            return exchanged(client, dialect, op, body, ctx)

        if not self.calls.take_now():
            await self.calls.take(ctx.deadline)
        try:
            if self._single is not None:
                return await self._ask(self._single, op, ctx, attempt)
            if op is LIST_TASKS:
                return dialect.dump_reply(op, await self._list(dialect.load_request(op, body), ctx))
            found = await self._placed(_about_bytes(dialect, op, body, ctx), ctx)
            reply, replica = await self._route(found, op, ctx, attempt)
            if op is SEND_MESSAGE:
                self.affinity.learn(ctx.tenant, _told_bytes(dialect, op, reply), replica.url)
            return reply
        finally:
            self.calls.give_back()

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """As ``A2AService.stream``."""
        what = NOTHING if self._single is not None else about(op, request)
        return await self._opened(op, ctx, what, lambda client: client.stream(op, request, ctx), told)

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """As ``PassThrough.exchange_stream``, with bytes of :attr:`dialect`."""
        dialect = self.dialect

        def attempt(client: Client) -> Coroutine[Any, Any, ByteStream]:
            if client.dialect is dialect and not client.tenant:
                return client.exchange_stream(op, body, ctx)
            return exchanged_stream(client, dialect, op, body, ctx)

        what = NOTHING if self._single is not None else _about_bytes(dialect, op, body, ctx)
        return await self._opened(op, ctx, what, attempt, lambda event: _told_bytes(dialect, op, event))

    async def _opened(
        self, op: AnyOperation, ctx: Context, what: About, attempt: Attempt[Stream[Item]], tells: Tells
    ) -> Stream[Item]:
        if not self.streams.take_now():
            await self.streams.take(ctx.deadline)
        try:
            if self._single is not None:
                return await self._open(self._single, op, ctx, attempt, None)
            found = await self._placed(what, ctx)

            def learn(url: str, event: Any) -> bool:
                known = tells(event)
                self.affinity.learn(ctx.tenant, known, url)
                return bool(known.task)

            return await self._first_of(found, lambda one: self._open(one, op, ctx, attempt, learn))
        except BaseException:
            self.streams.give_back()
            raise

    # -- one replica

    async def _ask(self, replica: Replica, op: AnyOperation, ctx: Context, attempt: Attempt[T]) -> T:
        """One call, and one more if it only reads and its connection broke."""
        try:
            return await self._try(replica, op, ctx, attempt)
        except TransportError as error:
            if op not in READS or error.timed_out or not error.sent:
                raise
        return await self._try(replica, op, ctx, attempt)

    @staticmethod
    async def _try(replica: Replica, op: AnyOperation, ctx: Context, attempt: Attempt[T]) -> T:
        line, trial = replica.enter()
        replica.calls += 1
        try:
            result = await attempt(line.client)
        except Exception as error:
            replica.failed(error, op, ctx, trial)
            raise
        except BaseException:
            replica.breaker.abandoned(trial)
            raise
        else:
            replica.answered()
            return result
        finally:
            replica.calls -= 1
            line.leave()

    async def _open(
        self,
        replica: Replica,
        op: AnyOperation,
        ctx: Context,
        attempt: Attempt[Stream[Item]],
        learn: Callable[[str, Any], bool] | None,
    ) -> Stream[Item]:
        """A stream, which holds its turn from then on."""
        line, trial = replica.enter()
        replica.streams += 1
        try:
            stream = await attempt(line.client)
        except BaseException as error:
            replica.streams -= 1
            line.leave()
            if isinstance(error, Exception):
                replica.failed(error, op, ctx, trial)
            else:
                replica.breaker.abandoned(trial)
            raise
        replica.answered()

        def release() -> None:
            replica.streams -= 1
            line.leave()
            self.streams.give_back()

        return Held(stream, replica, release, learn)

    # -- several

    async def _route(
        self, found: Replica | None, op: AnyOperation, ctx: Context, attempt: Attempt[T]
    ) -> tuple[T, Replica]:
        """A call of whoever has what it is about, else of the least busy; and who that was."""

        async def ask(replica: Replica) -> tuple[T, Replica]:
            return await self._ask(replica, op, ctx, attempt), replica

        return await self._first_of(found, ask)

    async def _first_of(self, found: Replica | None, ask: Callable[[Replica], Awaitable[T]]) -> T:
        if found is not None:
            return await ask(found)
        tried: set[Replica] = set()
        while True:
            replica = self._least_busy(tried)
            try:
                return await ask(replica)
            except TransportError as error:
                tried.add(replica)
                if error.sent or not any(self._may_have(tried)):
                    raise

    def _may_have(self, tried: Collection[Replica]) -> list[Replica]:
        return [one for one in self.replicas if one not in tried and one.line is not None and not one.breaker.wait()]

    def _least_busy(self, tried: Collection[Replica]) -> Replica:
        """Of those that may be called; of several, each in its turn. Raises ``UnavailableError``."""
        free = self._may_have(tried)
        if not free:
            raise UnavailableError(
                "The agent behind this gateway cannot be reached",
                retry_after=min(one.retry_after for one in self.replicas),
            )
        self._turn += 1
        turn = self._turn % len(free)
        return min(free[turn:] + free[:turn], key=lambda one: one.busy)

    async def _placed(self, what: About, ctx: Context) -> Replica | None:
        """Who has what a call is about; None if it is new. Raises ``UnavailableError`` if that cannot be told."""
        if what.task:
            known = self._by_url.get(self.affinity.task(ctx.tenant, what.task) or "")
            return known or await self._search(About(task=what.task), ctx)
        if what.context:
            known = self._by_url.get(self.affinity.context(ctx.tenant, what.context) or "")
            return known or await self._search(About(context=what.context), ctx)
        return None

    async def _search(self, what: About, ctx: Context) -> Replica | None:
        """Ask all replicas at once who has it."""
        asked = {asyncio.ensure_future(self._has(one, what, ctx)): one for one in self.replicas}
        try:
            answers: list[bool | DragomanError] = []
            for answer in asyncio.as_completed(asked):
                answers.append(await answer)
                if answers[-1] is True:
                    found = next(one for task, one in asked.items() if task.done() and task.result() is True)
                    self.affinity.learn(ctx.tenant, what, found.url)
                    return found
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        doubts = [one for one in answers if isinstance(one, DragomanError)]
        if what.task and doubts:
            raise doubts[0]
        return None

    async def _has(self, replica: Replica, what: About, ctx: Context) -> bool | DragomanError:
        """Whether a replica has a task or a context; an error if it could not say."""
        own = replace(ctx, activated=(), retry_after=None)
        try:
            if what.task:
                task = GetTaskRequest(tenant=ctx.tenant, id=what.task, history_length=0)
                await self._ask(replica, GET_TASK, own, lambda client: client.call(GET_TASK, task, own))
                return True
            if not replica.lists:
                return False
            tasks = ListTasksRequest(tenant=ctx.tenant, context_id=what.context, page_size=1)
            page = await self._ask(replica, LIST_TASKS, own, lambda client: client.call(LIST_TASKS, tasks, own))
            return bool(page.tasks)
        except TaskNotFoundError:
            return False
        except _CANNOT_TELL:
            replica.lists = replica.lists and not what.context
            return False
        except TransportError:
            return replica.away()
        except DragomanError as error:
            return error

    async def _list(self, request: ListTasksRequest, ctx: Context) -> ListTasksResponse:
        """One page of the tasks of all replicas. Raises the error of any: a list with holes would be a lie."""
        by_key = {pages.key_of(one.url): one for one in self.replicas}
        reading = pages.begin(request, tuple(by_key))

        async def page(key: str) -> ListTasksResponse:
            asked = pages.asking(request, reading, key)
            own = replace(ctx, activated=(), retry_after=None)
            return await self._ask(by_key[key], LIST_TASKS, own, lambda client: client.call(LIST_TASKS, asked, own))

        found = await asyncio.gather(*map(page, reading.rests))
        for key, one in zip(reading.rests, found, strict=True):
            for task in one.tasks:
                self.affinity.learn(ctx.tenant, About(task.id, task.context_id), by_key[key].url)
        return pages.merged(request, reading, dict(zip(reading.rests, found, strict=True)))


class Held(Stream[Item]):
    """A stream that holds a turn until it is closed. ``learn``: looks at its items until it has told its task."""

    def __init__(
        self,
        inner: Stream[Item],
        replica: Replica,
        release: Callable[[], None],
        learn: Callable[[str, Any], bool] | None,
    ) -> None:
        self._inner = inner
        self._replica = replica
        self._release: Callable[[], None] | None = release
        self._learn = learn

    async def batch(self) -> Sequence[Item]:
        try:
            items = await self._inner.batch()
        except DragomanError as error:
            self._replica.broke(error)
            raise
        if self._learn is not None and items and any(self._learn(self._replica.url, item) for item in items):
            self._learn = None
        return items

    async def aclose(self) -> None:
        release, self._release = self._release, None
        try:
            await self._inner.aclose()
        finally:
            if release is not None:
                release()


def _about_bytes(dialect: Dialect, op: AnyOperation, body: bytes, ctx: Context) -> About:
    """What a request is about; nothing if it cannot be read: whoever gets it will say so."""
    if op not in PLACED:
        return NOTHING
    try:
        request = dialect.load_request(op, body)
    except A2AError:
        return NOTHING
    ctx.tenant = ctx.tenant or request.tenant
    return about(op, request)


def _told_bytes(dialect: Dialect, op: AnyOperation, reply: bytes) -> About:
    try:
        return told(dialect.load_reply(op, reply))
    except PeerError:
        return NOTHING
