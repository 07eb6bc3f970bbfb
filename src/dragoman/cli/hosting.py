"""Carrying an app until somebody stops it: start, say where it is, drain on a signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..errors import ConfigError
from ..faces import ALL_FACES, Face, read_binding, read_version
from ..model import AgentCard
from ..protocol.operations import BINDINGS, VERSIONS
from ..server.app import A2AApp
from ..server.host import serve
from .output import print_json, print_table, say

T = TypeVar("T")
Known = TypeVar("Known", bound=str)


async def host(app: A2AApp, *, bind: str, port: int, as_json: bool, title: str, extra: dict[str, Any]) -> None:
    """Serve ``app`` at ``bind:port`` (0 = a free one) until SIGINT or SIGTERM, then end its streams properly."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve(app, host=bind, port=port) as server:
        announce(app, server.url, as_json=as_json, title=title, extra=extra)
        await stop.wait()
        say("Stopping: streams are ended, calls in progress get their answers")
        await app.aclose()


def announce(app: A2AApp, url: str, *, as_json: bool, title: str, extra: dict[str, Any]) -> None:
    """Print the URLs of all faces: a table for people, one JSON line for programs."""
    card = app.published.at(app.public_url or url)
    if as_json:
        print_json({"url": url, "card": f"{url}/.well-known/agent-card.json", **extra, "interfaces": list_faces(card)})
        return
    rows = [(one.protocol_version, one.protocol_binding, one.url) for one in card.supported_interfaces]
    print_table(title, ("version", "binding", "url"), rows)
    say(f"Card: {url}/.well-known/agent-card.json   Try: dragoman call {url} 'hello'   Stop: Ctrl-C")


def list_faces(card: AgentCard) -> list[dict[str, str]]:
    """Interfaces as the card names them."""
    return [
        {"protocolBinding": one.protocol_binding, "protocolVersion": one.protocol_version, "url": one.url}
        for one in card.supported_interfaces
    ]


def chosen_faces(versions: tuple[str, ...], bindings: tuple[str, ...]) -> tuple[Face, ...]:
    """The faces that the command line leaves; none given means all. Raises ``ConfigError`` for an unknown name."""
    kept_versions = {known(read_version(text), text, VERSIONS) for text in versions} or set(VERSIONS)
    kept_bindings = {known(read_binding(text), text, BINDINGS) for text in bindings} or set(BINDINGS)
    return tuple(face for face in ALL_FACES if face.version in kept_versions and face.binding in kept_bindings)


def known(name: Known | None, text: str, names: tuple[Known, ...]) -> Known:
    """``name``, or ``ConfigError`` that says which names there are."""
    if name is None:
        raise ConfigError(f"{text!r} is not one of {', '.join(names)}")
    return name


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run the command's coroutine, on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
