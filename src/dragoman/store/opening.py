"""Opening the database that an address names.

================================== =============================================================
``sqlite:PATH``, ``PATH``          a SQLite file, made with its directories where missing
``sqlite:///PATH``                 the same, from the root: ``sqlite:///var/lib/dragoman.db``
``memory``                         a SQLite database that is gone with the process
``postgresql://USER@HOST/NAME``    a PostgreSQL database (``postgres://`` too); extra ``postgres``
================================== =============================================================

What is wrong with an address is said without quoting it, for it may hold a password.
"""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import ConfigError
from .base import Store
from .sql.database import Database
from .sql.schema import migrate
from .sql.tasks import SqlStore

_MEMORY = "memory"
_HOST = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(:\d{1,5})?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


def database_url_problem(url: str) -> str | None:
    """What is wrong with an address, as far as can be said without opening it; None if nothing is."""
    if not url:
        return "is empty"
    scheme = _scheme(url)
    if scheme == "postgresql":
        return _postgres_problem(url)
    if scheme == "sqlite":
        return _sqlite_problem(url)
    return f"names {scheme}, and there are sqlite:PATH, postgresql://USER@HOST/NAME and memory"


async def open_store(
    url: str, *, password: str = "", retention: float | None = None, limit: int | None = None
) -> Store:
    """A store of tasks in a database of its own, which closes with it. See :class:`SqlStore` for the parameters.

    Raises as :func:`open_database`.
    """
    return SqlStore(await open_database(url, password), retention=retention, limit=limit, closing=True)


async def open_database(url: str, password: str = "") -> Database:
    """Open a database and bring its tables up to date. ``password``: for PostgreSQL, if the address has none.

    Raises ``ConfigError`` for an address, file or server that cannot be used, ``UnavailableError`` for a server that
    cannot be reached now.
    """
    problem = database_url_problem(url)
    if problem is not None:
        raise ConfigError(f"the address of the database {problem}")
    database = await (_open_postgres(url, password) if _scheme(url) == "postgresql" else _open_sqlite(url))
    try:
        await migrate(database)
    except BaseException:
        await database.aclose()
        raise
    return database


def _scheme(url: str) -> str:
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else "sqlite"
    return "postgresql" if scheme == "postgres" else scheme


def _postgres_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "is no URL"
    if not url.partition(":")[2].startswith("//"):
        return "lacks the // after postgresql:"
    hosts = parts.netloc.rpartition("@")[2].split(",")
    if not all(map(_HOST.fullmatch, hosts)):
        return "has a port that is no number, or a password whose special characters are not written as %XX"
    if find_spec("asyncpg") is None:
        return "names PostgreSQL, which needs an extra: pip install 'dragoman[postgres]'"
    return None


def _sqlite_problem(url: str) -> str | None:
    path = _path(url)
    if path.startswith("//"):
        return "has a host: a SQLite file is sqlite:PATH or sqlite:///PATH"
    if not path:
        return "lacks the path of the SQLite file"
    if "\0" in path:
        return "has a path that no file can have"
    if url != _MEMORY and Path(path).is_dir():
        return "is that of a directory"
    return None


def _path(url: str) -> str:
    path = url[len("sqlite:") :] if url.lower().startswith("sqlite:") else url
    return path[2:] if path.startswith("///") else path


async def _open_postgres(url: str, password: str) -> Database:
    from .sql.postgres import PostgresDatabase  # has the extra as its import

    return await PostgresDatabase.open(url, password)


async def _open_sqlite(url: str) -> Database:
    from .sql.sqlite import SqliteDatabase

    path = _path(url)
    if url == _MEMORY:
        return await SqliteDatabase.open(":memory:")
    try:
        _prepare(Path(path))
    except OSError as error:
        raise ConfigError(f"{path} cannot be made: {error.strerror}") from None
    return await SqliteDatabase.open(path)


def _prepare(path: Path) -> None:
    """What is kept is its owner's alone; SQLite gives the files beside this one its mode."""
    for folder in reversed(path.parents):
        if not folder.is_dir():
            folder.mkdir(0o700, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
