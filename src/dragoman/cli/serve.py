"""``dragoman serve``: a Python agent on all six faces."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Literal

from ..errors import ConfigError
from ..runtime.agent import Agent
from ..runtime.engine import Engine
from ..runtime.push import Courier, http_courier
from ..security.guard import Guard
from ..server.app import A2AApp
from ..store.memory import MemoryStore
from .hosting import Serving, host, make_app
from .options import run_async


def serve(
    target: str,
    *,
    serving: Serving = Serving(),  # noqa: B008 - immutable
    lenient: bool = False,
    allow_private_webhooks: bool = False,
    allow_webhook: tuple[str, ...] = (),
    webhook_body: Literal["task", "event"] = "task",
) -> None:
    """Serve a Python agent on all six faces.

    Example: `dragoman serve examples/demo.py:agent --port 8000`

    Parameters
    ----------
    target
        Where the agent is: FILE.py:NAME or package.module:NAME.
    lenient
        Let an unambiguous method name or route decide when a request names no version.
    allow_private_webhooks
        Call webhooks at private and loopback addresses too: for tests and closed networks.
    allow_webhook
        Host, .suffix, address or network where webhooks are called whatever address that is; may be repeated.
    webhook_body
        What webhooks of 0.3 get: the task as it is, or the bare event. Those of 1.0 always get the event.
    """
    serving.check()
    agent = load_agent(target)
    guard = Guard(allow_webhook, private=allow_private_webhooks)
    pushes = agent.card.capabilities.push_notifications
    courier = http_courier(guard, bare_events=webhook_body == "event") if pushes else None
    engine = Engine(agent, MemoryStore(), pusher=courier)
    app = make_app(engine, agent.card, serving, lenient=lenient)
    run_async(_serve(app, engine, courier, target, serving))


async def _serve(app: A2AApp, engine: Engine, courier: Courier | None, target: str, serving: Serving) -> None:
    try:
        await host(app, serving, title=f"Serving {target}", extra={})
    finally:
        await engine.aclose()
        if courier is not None:
            await courier.aclose()


def load_agent(target: str) -> Agent:
    """The agent that ``FILE.py:NAME`` or ``module:NAME`` names. Raises ``ConfigError`` if there is none."""
    place, _, name = target.rpartition(":")
    if not place:
        raise ConfigError(f"{target!r} names no agent: write FILE.py:NAME, for example examples/demo.py:agent")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    agent = getattr(module, name, None)
    if not isinstance(agent, Agent):
        what = "is not there" if agent is None else f"is a {type(agent).__name__}, not a dragoman Agent"
        raise ConfigError(f"{name!r} in {place} {what}")
    return agent


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(f"There is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))  # it may import its neighbours, as under `python FILE`
    return _import(path.stem, str(path))


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return _import(name, name)


def _import(name: str, shown: str) -> ModuleType:
    """Import the user's module; what is wrong in it is the user's to mend, and told without our own frames."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        where = next((f", line {frame.lineno}" for frame in _frames(error) if frame.filename.endswith(shown)), "")
        raise ConfigError(f"{shown} cannot be loaded{where}: {type(error).__name__}: {error}") from None


def _frames(error: Exception) -> Iterator[traceback.FrameSummary]:
    return reversed(traceback.extract_tb(error.__traceback__))
