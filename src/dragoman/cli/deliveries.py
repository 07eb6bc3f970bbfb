"""``dragoman gateway deliveries``: what webhooks are still to be told, and what they would not take.

It works on the store of a gateway, whether that runs or not; a gateway that runs sees what was done within a second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cyclopts import App, Parameter

from ..errors import ConfigError
from ..gateway.config import Store
from ..gateway.config.reading import load
from ..gateway.keeping import MEMORY, open_kept, place_of
from ..store.outbox import Listed
from ..store.sql.outbox import Outbox
from .options import run_async
from .output import print_json, print_table, say

app = App(name="deliveries", version_flags=())

_MOST = 100_000


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Whose deliveries.

    Parameters
    ----------
    config
        The TOML file of the gateway.
    store
        The store's address, as in the file: sqlite:PATH or postgresql://USER@HOST/NAME.
    port
        The port of a gateway that was given neither, which tells its store.
    """

    config: Path | None = None
    store: str = ""
    port: int = 8000

    def settings(self) -> tuple[Store, int]:
        """What a gateway would be given. Raises ``ConfigError``."""
        if self.config is not None and self.store:
            raise ConfigError("Give the store in the file or on the command line, not both")
        if self.config is None:
            return Store(url=self.store), self.port
        found = load(self.config)
        return found.store, found.server.port


@app.default
def listed(*, whose: Whose = Whose(), agent: str = "", task: str = "", dead: bool = False, json: bool = False) -> None:
    """List deliveries: those that wait, and those that were given up.

    Example: `dragoman gateway deliveries --config gateway.toml --dead`

    Parameters
    ----------
    agent
        Only those about tasks of the agent of this name.
    task
        Only those about this task.
    dead
        Only those that were given up.
    json
        Print one JSON line for each.
    """
    found = run_async(_listed(whose, agent, task, dead))
    now = time.time()
    if json:
        for one in found:
            print_json(_line(one))
        return
    if not found:
        say("No deliveries" + (" were given up" if dead else " wait, and none were given up"))
        return
    columns = ("id", "agent", "task", "version", "state", "attempts", "last status", "next attempt", "age", "host")
    print_table("Deliveries", columns, [_row(one, now) for one in found])


app.command(listed, name="list")


@app.command
def replay(*id: int, whose: Whose = Whose(), all: bool = False, agent: str = "", task: str = "") -> int:
    """Have deliveries that were given up tried again, each in its place of its line.

    Example: `dragoman gateway deliveries replay 12 13 --config gateway.toml`

    Parameters
    ----------
    id
        Which, by the ids of the list.
    all
        All that were given up.
    agent
        With --all: only those about tasks of the agent of this name.
    task
        With --all: only those about this task.
    """
    return _done(run_async(_changed(whose, id, all, agent, task, again=True)), "will be tried again", id)


@app.command
def drop(*id: int, whose: Whose = Whose(), all: bool = False, agent: str = "", task: str = "") -> int:
    """Forget deliveries.

    Example: `dragoman gateway deliveries drop --all --task 4711 --config gateway.toml`

    Parameters
    ----------
    id
        Which, by the ids of the list, whether they were given up or not.
    all
        All that were given up.
    agent
        With --all: only those about tasks of the agent of this name.
    task
        With --all: only those about this task.
    """
    return _done(run_async(_changed(whose, id, all, agent, task, again=False)), "dropped", id)


async def _listed(whose: Whose, agent: str, task: str, dead: bool) -> tuple[Listed, ...]:
    async with _opened(whose) as outbox:
        return await outbox.listed(agent=agent, task_id=task, dead=dead, limit=_MOST)


async def _changed(whose: Whose, ids: tuple[int, ...], all: bool, agent: str, task: str, *, again: bool) -> int:
    if bool(ids) == all:
        raise ConfigError("Which deliveries? Give their ids, or --all for those that were given up")
    async with _opened(whose) as outbox:
        chosen = await outbox.dead(agent=agent, task_id=task) if all else ids
        return await (outbox.replay(chosen) if again else outbox.drop(chosen))


@asynccontextmanager
async def _opened(whose: Whose) -> AsyncIterator[Outbox]:
    settings, port = whose.settings()
    place = place_of(settings, port)
    if place == MEMORY:
        raise ConfigError("This gateway keeps its deliveries in memory, where nobody else can look")
    file = Path(place.removeprefix("sqlite:"))
    if place.startswith("sqlite:") and not place.startswith("sqlite:///") and not await asyncio.to_thread(file.is_file):
        raise ConfigError(f"There is no store at {file}: say which with --config or --store")
    database = await open_kept(settings, port)
    try:
        yield Outbox(database)
    finally:
        await database.aclose()


def _done(count: int, what: str, ids: tuple[int, ...]) -> int:
    say(f"{count} {what}")
    return 1 if count < len(ids) else 0


def _line(one: Listed) -> dict[str, Any]:
    found = one._asdict()
    found["state"] = "dead" if found.pop("dead") else "waiting"
    found["host"] = urlsplit(found.pop("url")).hostname
    found["died" if found["state"] == "dead" else "next_attempt"] = _instant(found.pop("due"))
    found["created"] = _instant(one.created)
    return found


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _row(one: Listed, now: float) -> tuple[str, ...]:
    return (
        str(one.id),
        one.agent,
        one.task_id,
        one.version,
        "dead" if one.dead else "waiting",
        str(one.attempts),
        str(one.status or "-"),
        "-" if one.dead else "now" if one.due <= now else f"in {_span(one.due - now)}",
        _span(now - one.created),
        urlsplit(one.url).hostname or "-",
    )


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
