"""``dragoman serve``: a Python agent on all six faces."""

from __future__ import annotations

import importlib
import importlib.util
import sys
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
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # the suffix is .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickles of the file look themselves up there
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"There is no module {error.name!r}") from None
