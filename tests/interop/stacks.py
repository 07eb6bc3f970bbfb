"""What must run for a group of cells: an agent, perhaps our gateway before it, and recorders before both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from . import ours
from .parties import CACHE, OURS, PARTIES, Cell, Face
from .processes import server
from .recorder import Recorder


class Group(NamedTuple):
    """Cells that share one set of servers, and so run one after another."""

    section: str
    client: str
    agent: str
    upstream: Face | None

    def __str__(self) -> str:
        return ".".join(str(part).replace("/", "-") for part in self if part)


def group_of(cell: Cell) -> Group:
    if cell.section == "gateway":
        return Group(cell.section, "", cell.agent.party, cell.agent.face)
    return Group(cell.section, cell.client.party, cell.agent.party, None)


@dataclass
class Target:
    """Where a client is sent, and who listens in on the way."""

    url: str
    via: Mapping[str, str] = field(default_factory=dict)
    near: list[Recorder] = field(default_factory=list)
    far: list[Recorder] = field(default_factory=list)

    def bytes_between(self, started: float, ended: float) -> str:
        """The bytes of the client's hop; of the gateway's hop too, when there is one."""
        hops = []
        for title, recorders in (("client - server", self.near), ("gateway - agent", self.far)):
            seen = [recorder.between(started, ended) for recorder in recorders]
            if any(seen):
                hops.append(f"--- {title}\n" + "\n".join(filter(None, seen)))
        return "\n".join(hops)

    def forget(self) -> None:
        for recorder in self.near + self.far:
            recorder.forget()


@asynccontextmanager
async def stack(group: Group, pythons: Mapping[str, Path]) -> AsyncIterator[Target]:
    logs = CACHE / "logs" / str(group)
    async with AsyncExitStack() as running:
        if group.agent == OURS.name:
            ready = await running.enter_async_context(server(ours.serve(), logs / "serve.log"))
            yield await _recorded(ready, running)
            return
        http, grpc = [await running.enter_async_context(Recorder()) for _ in range(2)]
        command = [str(pythons[group.agent]), str(PARTIES[group.agent].home / "agent.py")]
        command += ["--public-http", http.authority, "--public-grpc", grpc.authority]
        ready = await running.enter_async_context(server(command, logs / "agent.log"))
        http.target, grpc.target = ready["http"], ready["grpc"]
        if group.upstream is None:
            yield Target(ready["url"], near=[http, grpc])
            return
        command = ours.gateway(ready["card"], PARTIES[group.agent], group.upstream)
        gateway = await running.enter_async_context(server(command, logs / "gateway.log"))
        target = await _recorded(gateway, running)
        target.far = [http, grpc]
        yield target


async def _recorded(ready: Mapping[str, Any], running: AsyncExitStack) -> Target:
    """Put a recorder before every authority that our side says it serves at."""
    urls = [ready["url"], *(interface["url"] for interface in ready["interfaces"])]
    via: dict[str, str] = {}
    recorders: list[Recorder] = []
    for url in urls:
        authority = urlsplit(url).netloc if "://" in url else url
        if authority not in via:
            recorder = await running.enter_async_context(Recorder(authority))
            recorders.append(recorder)
            via[authority] = recorder.authority
    return Target(ready["url"], via, near=recorders)
