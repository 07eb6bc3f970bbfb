"""PostgreSQL, over a pool of connections. Importing this module needs the extra ``postgres``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

import asyncpg
from asyncpg import exceptions as errors

from ...errors import ConfigError, InvalidParamsError, UnavailableError
from .database import Database, Row, Session

if TYPE_CHECKING:  # generic for the type checker only
    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
    Lent: TypeAlias = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]

_CONNECTIONS = 10
#: Seconds until a connection must be there, and until a statement must be done.
_CONNECT, _COMMAND = 10.0, 30.0
_PASSING = (
    OSError,  # refused, reset, timed out
    errors.InterfaceError,  # closed meanwhile
    errors.InternalClientError,
    errors.PostgresConnectionError,
    errors.OperatorInterventionError,  # shutting down, starting up
    errors.InsufficientResourcesError,  # full disk, too many connections
    errors.TransactionRollbackError,  # deadlock
    errors.PostgresSystemError,
    errors.ReadOnlySQLTransactionError,  # a standby, for now
    errors.LockNotAvailableError,
    errors.InvalidAuthorizationSpecificationError,  # a password between two changes
)
#: A value that there is no room or no way for.
_UNFIT = (errors.DataError, errors.ProgramLimitExceededError)
#: What is wrong at the start stays wrong.
_MISTAKES = (
    errors.InvalidAuthorizationSpecificationError,
    errors.InvalidCatalogNameError,
    errors.InsufficientPrivilegeError,
    errors.ClientConfigurationError,
)


class PostgresDatabase(Database):
    """A PostgreSQL database that several processes may share. Made by :meth:`open`."""

    engine = "postgres"
    locking = " FOR UPDATE SKIP LOCKED"

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False

    @classmethod
    async def open(cls, url: str, password: str = "") -> PostgresDatabase:
        """Connect. ``password``: if the URL has none.

        Raises ``ConfigError`` if the server does not let us in, ``UnavailableError`` if it cannot be reached.
        """
        try:
            with _passing():
                pool = await asyncpg.create_pool(
                    url,
                    password=password or None,
                    min_size=1,
                    max_size=_CONNECTIONS,
                    timeout=_CONNECT,
                    command_timeout=_COMMAND,
                    reset=_as_it_is,
                    server_settings={"application_name": "dragoman"},
                )
        except UnavailableError as error:
            if isinstance(error.__cause__, _MISTAKES):
                raise ConfigError(f"PostgreSQL refuses: {error.__cause__}") from None
            raise
        except _MISTAKES as error:
            raise ConfigError(f"PostgreSQL refuses: {error}") from None
        except ValueError:  # not quoted: it may hold a part of the password
            raise ConfigError("the address of the PostgreSQL database cannot be read") from None
        return cls(pool)

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        async with self._held() as session:
            return await session.fetch(sql, *args)

    async def execute(self, sql: str, *args: object) -> int:
        async with self._held() as session:
            return await session.execute(sql, *args)

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        async with self._held() as session:
            await session.execute_many(sql, rows)

    def transaction(self) -> AbstractAsyncContextManager[Session]:
        return self._transaction()

    async def aclose(self) -> None:
        self._closed = True
        await self._idle.wait()
        with _passing():
            await self._pool.close()

    @asynccontextmanager
    async def _held(self) -> AsyncIterator[_Held]:
        if self._closed:
            raise UnavailableError("the database is closed")
        self._busy += 1
        self._idle.clear()
        try:
            with _passing():
                connection = await self._pool.acquire(timeout=_CONNECT)
            try:
                yield _Held(connection)
            finally:
                with _passing():
                    await self._pool.release(connection)
        finally:
            self._busy -= 1
            if not self._busy:
                self._idle.set()

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Session]:
        async with self._held() as session:
            transaction = session.connection.transaction()
            with _passing():
                await transaction.start()
            try:
                yield session
            except BaseException:
                with suppress(UnavailableError), _passing():
                    await transaction.rollback()
                raise
            with _passing():
                await transaction.commit()


class _Held:
    """The session on one connection of the pool."""

    def __init__(self, connection: Lent) -> None:
        self.connection = connection

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        with _passing():
            return [tuple(row) for row in await self.connection.fetch(sql, *args)]

    async def execute(self, sql: str, *args: object) -> int:
        with _passing():
            status = await self.connection.execute(sql, *args)
        count = status.rpartition(" ")[2]  # as in "UPDATE 3"
        return int(count) if count.isdecimal() else 0

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        with _passing():  # asyncpg makes one transaction of it
            await self.connection.executemany(sql, rows)


async def _as_it_is(connection: object) -> None:
    """No statement leaves anything behind on a connection, so nothing is reset at each release."""


@contextmanager
def _passing() -> Iterator[None]:
    """Where failures that may pass are ``UnavailableError``, and values that do not fit ``InvalidParamsError``."""
    try:
        yield
    except _PASSING as error:
        if isinstance(error, errors.InterfaceError) and isinstance(error, ValueError):
            raise  # an argument of the wrong type
        raise UnavailableError("the database cannot be used at the moment") from error
    except _UNFIT as error:
        if error.severity is None:
            raise  # not the server's: an argument of the wrong type
        raise InvalidParamsError("A value is too long, or has something in it, to be kept") from error
