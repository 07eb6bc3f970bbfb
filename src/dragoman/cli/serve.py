"""``dragoman serve``: a Python agent on all six faces."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

from cyclopts import Parameter

from ..errors import ConfigError
from ..faces import rows
from ..runtime.agent import Agent
from ..runtime.engine import Engine
from ..runtime.push import Courier, http_courier
from ..security.guard import Guard
from ..server.app import A2AApp
from ..store.memory import MemoryStore
from .hosting import host
from .options import chosen_faces, run_async


def serve(
    target: str,
    *,
    host_: Annotated[str, Parameter(name="--host")] = "127.0.0.1",
    port: int = 8000,
    versions: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    bindings: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    public_url: str = "",
    trusted_proxy: tuple[str, ...] = (),
    lenient: bool = False,
    base64_files: bool = False,
    allow_private_webhooks: bool = False,
    allow_webhook: tuple[str, ...] = (),
    webhook_body: Literal["task", "event"] = "task",
    json: bool = False,
) -> None:
    """Serve a Python agent on all six faces.

    Example: `dragoman serve examples/demo.py:agent --port 8000`

    Parameters
    ----------
    target
        Where the agent is: FILE.py:NAME or package.module:NAME.
    host_
        Address to listen on.
    port
        Port to listen on; 0 takes a free one.
    versions
        Serve only these protocol versions (0.3, 1.0).
    bindings
        Serve only these bindings (JSONRPC, GRPC, HTTP+JSON).
    public_url
        Where callers reach this server, for the card; else it is told from each request.
    trusted_proxy
        Address or network of a proxy whose Forwarded and X-Forwarded-* headers count.
    lenient
        Let an unambiguous method name or route decide when a request names no version.
    base64_files
        Callers keep base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON, as the SDKs for Python, Java
        and Go do.
    allow_private_webhooks
        Call webhooks at private and loopback addresses too: for tests and closed networks.
    allow_webhook
        Host, .suffix, address or network where webhooks are called whatever address that is; may be repeated.
    webhook_body
        What webhooks of 0.3 get: the task as it is, or the bare event. Those of 1.0 always get the event.
    json
        Print the URLs of all faces as one JSON line.
    """
    agent = load_agent(target)
    faces = chosen_faces(versions, bindings)
    guard = Guard(allow_webhook, private=allow_private_webhooks)
    pushes = agent.card.capabilities.push_notifications
    courier = http_courier(guard, bare_events=webhook_body == "event") if pushes else None
    engine = Engine(agent, MemoryStore(), pusher=courier)
    app = A2AApp(
        engine,
        agent.card,
        faces=faces,
        public_url=public_url,
        trusted_proxies=trusted_proxy,
        lenient=lenient,
        rows=rows(base64_files=base64_files),
    )
    run_async(_serve(app, engine, courier, target, host_, port, json))


async def _serve(
    app: A2AApp, engine: Engine, courier: Courier | None, target: str, bind: str, port: int, as_json: bool
) -> None:
    try:
        await host(app, bind=bind, port=port, as_json=as_json, title=f"Serving {target}", extra={})
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
