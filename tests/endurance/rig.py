"""A gateway of several upstreams in processes of their own, its clients on every face, and a webhook receiver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.client.client import Client
from dragoman.client.connect import connect
from dragoman.client.options import Timeouts
from dragoman.faces import ALL_FACES, Face
from dragoman.server.asgi import Receive, Scope, Send, read_body
from dragoman.server.host import serve

from .parties import Party, agent, free_port, gateway


@dataclass(frozen=True, slots=True)
class Behind:
    """An upstream: ``name``, the ``face`` to call, and how many replicas it has."""

    name: str
    face: str
    replicas: int = 1


@dataclass(slots=True)
class Rig:
    """What runs. ``agents``: by upstream and replica. ``extra``: further text of the configuration."""

    folder: Path
    port: int
    own_ports: dict[str, int]
    gateway: Party
    agents: dict[tuple[str, int], Party]
    urls: dict[tuple[str, int], str]
    behind: tuple[Behind, ...]
    clients: dict[tuple[str, Face], Client] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "gateway.toml"

    def configure(self, extra: str = "") -> None:
        """Write the gateway's configuration."""
        self.config.write_text(_toml(self, extra))

    def url(self, name: str) -> str:
        """Where an upstream is for callers."""
        return f"http://127.0.0.1:{self.port}/{name}"


@asynccontextmanager
async def rig(folder: Path, behind: Iterable[Behind], extra: str = "") -> AsyncIterator[Rig]:
    """Start all of it, connect a client per upstream and face, and stop it in the end."""
    behind = tuple(behind)
    places = {(one.name, place): free_port() for one in behind for place in range(one.replicas)}
    made = Rig(
        folder=folder,
        port=free_port(),
        own_ports={one.name: free_port() for one in behind},
        gateway=gateway(folder / "gateway.toml", folder),
        agents={key: agent(f"{key[0]}-{key[1]}", port, folder) for key, port in places.items()},
        urls={key: f"http://127.0.0.1:{port}" for key, port in places.items()},
        behind=behind,
    )
    made.configure(extra)
    async with AsyncExitStack() as stack:
        for party in (*made.agents.values(), made.gateway):
            stack.push_async_callback(party.stop)
        await asyncio.gather(*(party.start() for party in made.agents.values()))
        await made.gateway.start()
        for one in behind:
            for face in ALL_FACES:
                made.clients[one.name, face] = await stack.enter_async_context(
                    connect(
                        made.url(one.name),
                        version=face.version,
                        binding=face.binding,
                        timeouts=Timeouts(reply=60, silence=60),
                    )
                )
        yield made


def _toml(made: Rig, extra: str) -> str:
    lines = [f'[server]\nport = {made.port}\n[store]\nurl = "sqlite:{made.folder / "gateway.db"}"']
    lines.append("[relay]\nallow_private = true\nfirst = 0.2\nmost = 5")
    for one in made.behind:
        urls = [made.urls[one.name, place] for place in range(one.replicas)]
        lines.append(f'[[upstream]]\nname = "{one.name}"\nurl = "{urls[0]}"\nface = "{one.face}"')
        lines.append(f"port = {made.own_ports[one.name]}\nlimits = {{ calls = 1000, streams = 2000 }}")
        lines.append("breaker = { failures = 3, first = 0.5, most = 2 }")
        if one.replicas > 1:
            lines.append(f"replicas = {urls[1:]!r}")
    return "\n".join((*lines, extra)) + "\n"


class Receiver:
    """A webhook that takes everything. ``bodies``: by notification token, in the order of arrival."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = {}
        self.url = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        token = dict(scope["headers"]).get(b"x-a2a-notification-token", b"").decode()
        self.bodies.setdefault(token, []).append(await read_body(receive, 1 << 24))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    app = Receiver()
    async with serve(app) as server:
        app.url = server.url + "/hook"
        yield app
