"""SQLite: one file that several processes may open, one thread per process that works on it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from ...errors import ConfigError, InvalidParamsError, UnavailableError
from .database import Database, Row, Session
from .sqlite_thread import Connection, Step, Work, execute, execute_many, fetch

#: Statements in one commit, so that nobody waits for all the others.
_MOST = 512
#: Primary result codes of what may pass (https://sqlite.org/rescode.html).
_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}

Result = TypeVar("Result")


class SqliteDatabase(Database):
    """A database in a file; ``:memory:`` is one that is gone with the object. Made by :meth:`open`."""

    engine = "sqlite"
    locking = ""

    def __init__(self, connection: Connection, thread: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._thread = thread
        self._turn = asyncio.Lock()
        self._waiting: deque[tuple[Work, asyncio.Future[Any]]] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._closed = False

    @classmethod
    async def open(cls, path: str) -> SqliteDatabase:
        """Open the file, or make it. Raises ``ConfigError``, or ``UnavailableError`` while somebody has it locked."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite")
        try:
            connection = await asyncio.get_running_loop().run_in_executor(thread, Connection, path)
        except sqlite3.Error as error:
            thread.shutdown(wait=False)
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise UnavailableError("the database is locked by another process") from error
            raise ConfigError(f"{path} cannot be opened as a SQLite database: {error}") from error
        return cls(connection, thread)

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        rows: list[Row] = await self._queued(Work(fetch, sql, args))
        return rows

    async def execute(self, sql: str, *args: object) -> int:
        count: int = await self._queued(Work(execute, sql, args))
        return count

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        await self._queued(Work(execute_many, sql, rows))

    def transaction(self) -> AbstractAsyncContextManager[Session]:
        return self._transaction()

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._draining is not None:
            await asyncio.wait((self._draining,))
        async with self._turn:
            await self._call(self._connection.close)
        self._thread.shutdown(wait=False)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Session]:
        self._check()
        async with self._turn:
            try:
                await self._call(self._connection.begin)
                yield _Open(self._work)
            except BaseException:
                # Not awaited: the thread does it before anything that is asked of it from now on.
                self._thread.submit(self._connection.rollback)
                raise
            await self._call(self._connection.commit)

    async def _work(self, step: Step, sql: str, args: Any) -> Any:
        return await self._call(self._connection.step, Work(step, sql, args))

    async def _queued(self, work: Work) -> Any:
        self._check()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((work, future))
        if self._draining is None:
            self._draining = loop.create_task(self._drain())
        return await future

    async def _drain(self) -> None:
        try:
            while self._waiting:
                async with self._turn:
                    await self._settle([self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST))])
        finally:
            self._draining = None
            while self._waiting:  # only when the loop ends before its time
                self._waiting.popleft()[1].cancel()

    async def _settle(self, batch: list[tuple[Work, asyncio.Future[Any]]]) -> None:
        try:
            outcomes = await self._call(self._connection.batch, [work for work, _ in batch])
        except Exception as error:
            outcomes = [error] * len(batch)
        except BaseException:
            for _, future in batch:
                future.cancel()
            raise
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.done():  # its caller has gone
                continue
            if isinstance(outcome, Exception):
                future.set_exception(_error(outcome))
            else:
                future.set_result(outcome)

    async def _call(self, function: Callable[..., Result], *args: Any) -> Result:
        """In the thread; who is cancelled meanwhile does not stop it."""
        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, function, *args))
        except sqlite3.Error as error:
            raise _error(error) from error

    def _check(self) -> None:
        if self._closed:
            raise UnavailableError("the database is closed")


class _Open:
    """The session of a transaction."""

    def __init__(self, work: Callable[[Step, str, Any], Any]) -> None:
        self._work = work

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        rows: list[Row] = await self._work(fetch, sql, args)
        return rows

    async def execute(self, sql: str, *args: object) -> int:
        count: int = await self._work(execute, sql, args)
        return count

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        await self._work(execute_many, sql, rows)


def _error(error: Exception) -> Exception:
    """What to raise; each who waited for the same gets an exception of its own if it is one of ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, UnavailableError) or code in _PASSING:
        return UnavailableError("the database cannot be used at the moment")
    if isinstance(error, sqlite3.DataError):
        return InvalidParamsError("A value is too long to be kept")
    return error
