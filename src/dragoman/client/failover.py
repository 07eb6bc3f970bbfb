"""Several interfaces of one agent as one service: the next is tried while nothing can have arrived at this one.

Rules of this module:

- Only a ``TransportError`` with ``sent=False`` moves on. Whatever may have arrived is never sent again elsewhere.
- The interface that worked stays the first choice, until :meth:`Interfaces.prefer_first`. Moving on is said aloud, a
  step to an older version with it.
- Bytes are of one dialect: to move on with them they are read, and the reply is written in that dialect again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ..errors import TransportError
from ..faces import Candidate
from ..model import Req, Res, Streaming, Unary
from ..service import AnyOperation, ByteStream, Context, EventStream
from .decoded import exchanged, exchanged_stream
from .remote import Remote

T = TypeVar("T")


class Interfaces:
    """An ``A2AService`` over the ``candidates`` of one card. ``build`` makes the client of one, on first use."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        build: Callable[[Candidate], Remote],
        note: Callable[[str], None],
    ) -> None:
        self._candidates = list(candidates)
        self._build = build
        self._note = note
        self._built: dict[int, Remote] = {}
        self.candidate = self._candidates[0]
        self.remote = self._use(0)

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        """See ``A2AService.call``."""
        try:
            return await self.remote.call(op, request, ctx)
        except TransportError as error:
            return await self._elsewhere(lambda remote: remote.call(op, request, ctx), error)

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        """See ``A2AService.stream``."""
        try:
            return await self.remote.stream(op, request, ctx)
        except TransportError as error:
            return await self._elsewhere(lambda remote: remote.stream(op, request, ctx), error)

    async def exchange(self, op: AnyOperation, body: bytes, ctx: Context) -> bytes:
        """One call with message bytes of the current face's dialect; the reply is in it, whoever answered."""
        remote = self.remote
        try:
            return await remote.exchange(op, body, ctx)
        except TransportError as error:
            if error.sent or len(self._candidates) == 1:
                raise
            return await exchanged(_Elsewhere(self, error), remote.dialect, op, body, ctx)

    async def exchange_stream(self, op: AnyOperation, body: bytes, ctx: Context) -> ByteStream:
        """One stream with message bytes of the current face's dialect."""
        remote = self.remote
        try:
            return await remote.exchange_stream(op, body, ctx)
        except TransportError as error:
            if error.sent or len(self._candidates) == 1:
                raise
            return await exchanged_stream(_Elsewhere(self, error), remote.dialect, op, body, ctx)

    def prefer_first(self) -> None:
        """Begin with the best interface again."""
        self.candidate, self.remote = self._candidates[0], self._use(0)

    async def aclose(self) -> None:
        """Close every connection."""
        for remote in self._built.values():
            await remote.aclose()

    async def _elsewhere(self, attempt: Callable[[Remote], Awaitable[T]], error: TransportError) -> T:
        failed, first = {self._candidates.index(self.candidate)}, error
        try:
            while not error.sent and len(failed) < len(self._candidates):
                index = next(place for place in range(len(self._candidates)) if place not in failed)
                failed.add(index)
                remote = self._use(index)
                self._note(f"{error}; trying {remote.face} at {self._candidates[index].interface.url}")
                try:
                    result = await attempt(remote)
                except TransportError as another:
                    error = another
                    continue
                self.candidate, self.remote = self._candidates[index], remote
                return result
            raise error if error.sent else first
        finally:
            del error, first  # they hold this frame: a cycle would keep all that their frames hold

    def _use(self, index: int) -> Remote:
        remote = self._built.get(index)
        if remote is None:
            remote = self._built[index] = self._build(self._candidates[index])
        return remote


class _Elsewhere:
    """The service of all interfaces but the one that ``error`` is of."""

    def __init__(self, interfaces: Interfaces, error: TransportError) -> None:
        self._interfaces = interfaces
        self._error = error

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        return self._interfaces._elsewhere(lambda remote: remote.call(op, request, ctx), self._error)

    def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> Coroutine[Any, Any, EventStream]:
        return self._interfaces._elsewhere(lambda remote: remote.stream(op, request, ctx), self._error)
