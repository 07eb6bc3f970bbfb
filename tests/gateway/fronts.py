"""A gateway in front of our own server on a socket, one upstream face at a time, and what arrived there."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from dragoman.client.client import Client, connect
from dragoman.client.options import Resume, Timeouts
from dragoman.faces import Face
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.relay.without import Direct
from dragoman.model import AgentCard
from dragoman.server.app import A2AApp
from dragoman.server.asgi import Message, Receive, Scope, Send
from dragoman.server.host import serve
from tests.client.peers import Peer, card, interface
from tests.server.callers import Bench, bench


@dataclass
class Arrived:
    """One call as it reached the upstream."""

    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Upstream:
    """Our server, and what came to it."""

    behind: Bench
    port: int = 0
    arrived: list[Arrived] = field(default_factory=list)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.behind.app(scope, receive, send)
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        arrived = Arrived(headers)
        if "agent-card.json" not in scope["path"]:
            self.arrived.append(arrived)

        async def recording() -> Message:
            message = await receive()
            arrived.body += message.get("body", b"")
            return message

        return await self.behind.app(scope, recording, send)


@asynccontextmanager
async def upstream(**options: Any) -> AsyncIterator[Upstream]:
    """Our server over an agent that does as it is told."""
    one = Upstream(bench(**options))
    async with serve(one.app) as server:
        one.port = server.port
        try:
            yield one
        finally:
            one.behind.stage.go.set()  # a server ends with its last call
    await one.behind.engine.aclose()


@contextmanager
def nobody() -> Iterator[int]:
    """A port that nobody listens on, and that nobody else is given meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        yield port


QUICK = Timeouts(connect=2, reply=5, silence=5)


async def client_of(one: Upstream, face: Face, **options: Any) -> Client:
    """A client of the upstream that speaks one face."""
    more = {"timeouts": QUICK, "resume": Resume(tries=0), **options}
    return await connect(f"http://127.0.0.1:{one.port}", version=face.version, binding=face.binding, **more)


def front(client: Client, *, forwarded: tuple[str, ...] = (), **options: Any) -> A2AApp:
    """The gateway's app over a client."""
    gateway = Gateway(client, forwarded=forwarded)
    return A2AApp(Direct(gateway, lambda: client.face.version), gateway.card, **options)


async def client_of_peer(peer: Peer, face: Face, known: AgentCard | None = None, **options: Any) -> Client:
    """A client of a peer that plays literal bytes."""
    more = {"timeouts": QUICK, "resume": Resume(tries=0), **options}
    return await connect(known or card(interface(peer.url, str(face))), **more)
