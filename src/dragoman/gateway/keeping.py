"""Where a gateway keeps what has to outlive it: seen tasks, webhooks, and what they are still to be told.

Rules of this module:

- One database has all of it. Without a word of the operator it is a SQLite file of its own per port, in the state
  directory of the service manager (``$STATE_DIRECTORY``) or of the user (XDG Base Directory Specification).
- A gateway on whatever port is free is there for a moment, and keeps things in memory. So does one that has no
  directory to write to, unless the operator named a place; that is said aloud.

For who keeps something else: ``Keeping.tasks`` is a :class:`Store` for tasks, and ``Common.keep_tasks`` is given it
before any agent is reached. ``Keeping.aclose`` closes everything, after ``Common.aclose`` has written what waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError
from ..store.base import Store
from ..store.memory import MemoryStore
from ..store.opening import open_database
from ..store.sql.database import Database
from ..store.sql.outbox import Outbox
from ..store.sql.owners import SqlOwners
from ..store.sql.tasks import SqlStore
from .config import Store as Settings

MEMORY = "memory"
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is kept. ``place``: where, for people. ``owners``: of ids of agents, None in memory, where only the last
    are."""

    tasks: Store
    outbox: Outbox
    database: Database
    place: str
    owners: SqlOwners | None = None

    async def aclose(self) -> None:
        """Let go of files and connections."""
        await self.tasks.aclose()
        await self.database.aclose()


def default_url(port: int, environment: Mapping[str, str] = os.environ) -> str:
    """Where the gateway on this port keeps things if nobody says where."""
    if not port:
        return MEMORY
    state = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if state:
        return f"sqlite:{Path(state) / f'gateway-{port}.db'}"
    base = environment.get("XDG_STATE_HOME", "")
    folder = Path(base) if base and Path(base).is_absolute() else Path("~/.local/state").expanduser()
    return f"sqlite:{folder / 'dragoman' / f'gateway-{port}.db'}"


def place_of(settings: Settings, port: int) -> str:
    """The address of the database of a configuration."""
    return settings.url or default_url(port)


async def open_kept(settings: Settings, port: int) -> Database:
    """The database of a configuration. Raises ``ConfigError``, ``UnavailableError``."""
    password = settings.password.value if settings.password else ""
    return await open_database(place_of(settings, port), password)


async def open_keeping(settings: Settings, port: int, tell: Callable[[str], None]) -> Keeping:
    """Open what the gateway on ``port`` keeps. ``tell`` hears if that is less than an operator may think.

    Raises ``ConfigError`` for a place that cannot be used, ``UnavailableError`` for one that cannot be reached now.
    """
    place = place_of(settings, port)
    try:
        database = await open_kept(settings, port)
    except (ConfigError, RuntimeError) as error:  # RuntimeError: there is no home directory
        if settings.url:
            raise
        tell(f"{error}: webhooks and tasks are kept in memory, and gone with this process; set store.url")
        place, database = MEMORY, await open_database(MEMORY)
    if place == MEMORY:
        return Keeping(MemoryStore(settings.tasks), Outbox(database), database, place)
    retention = settings.task_days * _DAY
    tasks = SqlStore(database, retention=retention, limit=settings.tasks)
    return Keeping(tasks, Outbox(database), database, place, SqlOwners(database, retention=retention))
