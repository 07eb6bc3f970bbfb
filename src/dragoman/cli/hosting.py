"""Carrying an app until somebody stops it: start, say where it is, drain on a signal."""

from __future__ import annotations

import asyncio
import gc
import signal
from typing import Any

from ..model import AgentCard
from ..server.app import A2AApp
from ..server.host import serve
from .output import print_json, print_table, say

#: Requests make many short-lived objects and no cycles: looking for garbage less often costs memory for a moment only.
_GC_THRESHOLDS = (50_000, 20, 20)


async def host(app: A2AApp, *, bind: str, port: int, as_json: bool, title: str, extra: dict[str, Any]) -> None:
    """Serve ``app`` at ``bind:port`` (0 = a free one) until SIGINT or SIGTERM, then end its streams properly."""
    gc.freeze()  # what the imports made is here to stay
    gc.set_threshold(*_GC_THRESHOLDS)
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
