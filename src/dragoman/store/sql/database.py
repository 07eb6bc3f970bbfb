"""What the durable stores ask of a database.

Rules of this package:

- A statement is written once, for both engines. Its parameters are ``$1``, ``$2``, each of one type throughout;
  ``ON CONFLICT`` and ``RETURNING`` are there, casts are written ``CAST($1 AS TEXT)``.
- Instants are floats (seconds of the unix epoch), flags are the integers 0 and 1, texts hold no U+0000 and are ordered
  by code point.
- A failure that may pass is an ``UnavailableError``. What the engine cannot hold is the caller's or the agent's, an
  ``InvalidParamsError``. Everything else that a driver raises is a mistake of ours and comes as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Engine: TypeAlias = Literal["sqlite", "postgres"]


class Session(Protocol):
    """What statements run on; within :meth:`Database.transaction` they hold together."""

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        """The rows of a query, or of what a statement returns."""
        ...

    async def execute(self, sql: str, *args: object) -> int:
        """Run a statement; how many rows it wrote."""
        ...

    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement once per row, all or none of them."""
        ...


class Database(ABC):
    """A database, of one engine. It is a :class:`Session` whose every call is a transaction of its own.

    What has returned is kept though the process be killed the moment after. Calls may be made concurrently; on SQLite
    they happen in the order in which they were made, on PostgreSQL in any.
    """

    engine: ClassVar[Engine]
    #: Behind a SELECT in a transaction: rows that nobody else has locked, locked until its end.
    locking: ClassVar[str]

    @abstractmethod
    async def fetch(self, sql: str, *args: object) -> list[Row]:
        """As :meth:`Session.fetch`."""

    @abstractmethod
    async def execute(self, sql: str, *args: object) -> int:
        """As :meth:`Session.execute`."""

    @abstractmethod
    async def execute_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """As :meth:`Session.execute_many`."""

    @abstractmethod
    def transaction(self) -> AbstractAsyncContextManager[Session]:
        """Statements that happen together or, when the block raises, not at all.

        On SQLite nobody else writes meanwhile, and the other calls on this object wait: keep it short, and use the
        session only, for a call on the database itself would wait for ever.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Finish what was asked for, then let go of files and connections."""
