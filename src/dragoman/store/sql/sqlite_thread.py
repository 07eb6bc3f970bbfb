"""The half of the SQLite driver that runs in a thread of its own: one connection, and batches of work on it.

What is asked for while a batch runs is the next batch, and a batch is one commit: under load a write costs a fraction
of what it costs alone.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

#: How long another process may keep the file locked, seconds.
BUSY = 10.0
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",  # who reads waits for nobody
    "PRAGMA synchronous = NORMAL",  # a commit survives the process; a checkpoint, the machine
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",
)
_PARAMETER = re.compile(r"\$(\d+)")

Step: TypeAlias = Callable[[sqlite3.Connection, str, Any], Any]


class Work(NamedTuple):
    """One statement to run. ``step``: how; ``args``: its parameters, or rows of them."""

    step: Step
    sql: str
    args: Any


class Statement(NamedTuple):
    """A statement as SQLite has it, and whether it only reads."""

    text: str
    reads: bool


@lru_cache(1024)
def statement(sql: str) -> Statement:
    """Translate a statement of the package."""
    return Statement(_PARAMETER.sub(r"?\1", sql), sql.lstrip()[:6].upper() == "SELECT")


def fetch(db: sqlite3.Connection, sql: str, args: Sequence[Any]) -> list[Any]:
    """The rows that a statement gives."""
    return db.execute(sql, args).fetchall()


def execute(db: sqlite3.Connection, sql: str, args: Sequence[Any]) -> int:
    """How many rows a statement wrote."""
    return max(db.execute(sql, args).rowcount, 0)


def execute_many(db: sqlite3.Connection, sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """A statement per row; none of them has happened if one fails."""
    db.execute("SAVEPOINT many")
    try:
        db.executemany(sql, rows)
    except BaseException:
        if db.in_transaction:  # unless SQLite has rolled back all of it already
            db.execute("ROLLBACK TO many")
        raise
    finally:
        if db.in_transaction:
            db.execute("RELEASE many")


class Connection:
    """A connection for one thread. Methods raise ``sqlite3.Error``."""

    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(path, timeout=BUSY, isolation_level=None, cached_statements=256)
        try:
            for pragma in _PRAGMAS:
                self._db.execute(pragma)
        except BaseException:
            self._db.close()
            raise

    def step(self, work: Work) -> Any:
        """Do one thing, in the transaction that is open."""
        return work.step(self._db, statement(work.sql).text, work.args)

    def batch(self, works: Sequence[Work]) -> list[Any]:
        """Do several things in one commit; what each gave, or the exception that it failed with.

        Raises what kept all of them from happening.
        """
        if all(statement(work.sql).reads for work in works):
            return [self._outcome(work) for work in works]
        self.begin()
        try:
            outcomes = [self._joined(work) for work in works]
        except BaseException:
            self.rollback()
            raise
        self.commit()
        return outcomes

    def begin(self) -> None:
        """Open a transaction that may write."""
        self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Close the transaction, in vain at the latest."""
        try:
            self._db.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _outcome(self, work: Work) -> Any:
        try:
            return self.step(work)
        except Exception as error:
            return error

    def _joined(self, work: Work) -> Any:
        outcome = self._outcome(work)
        if not self._db.in_transaction:  # a full disk and the like undo everything
            raise outcome if isinstance(outcome, Exception) else sqlite3.OperationalError("transaction lost")
        return outcome
