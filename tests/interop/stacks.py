"""What must run for a group of cells: an agent, perhaps our gateway before it, and recorders before both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from . import envs, ours
from .parties import CACHE, DIRECT, FRAMED, OURS, PARTIES, PLATFORM, Cell, Face
from .processes import server
from .recorder import Recorder

Launchers = Mapping[str, Sequence[str]]


class Group(NamedTuple):
    """Cells that share one set of servers, and so run one after another."""

    section: str
    client: str
    agent: str
    upstream: Face | None

    def __str__(self) -> str:
        return ".".join(str(part).replace("/", "-") for part in self if part)

    @property
    def shared(self) -> bool:
        """Whether its servers are those of the platform."""
        return self.section == PLATFORM


def group_of(cell: Cell) -> Group:
    if cell.section in (PLATFORM, FRAMED, DIRECT):
        return Group(PLATFORM, "", cell.agent.party, cell.agent.face)
    if cell.section == "gateway":
        return Group(cell.section, "", cell.agent.party, cell.agent.face)
    return Group(cell.section, cell.client.party, cell.agent.party, None)


@dataclass
class Target:
    """Where a client is sent, and who listens in on the way; `note`: what our side said about it."""

    url: str
    via: Mapping[str, str] = field(default_factory=dict)
    near: list[Recorder] = field(default_factory=list)
    far: list[Recorder] = field(default_factory=list)
    note: str = ""

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


@dataclass
class Behind:
    """An agent that runs: where its card is, its base URL, and the recorders before it."""

    url: str
    card: str
    recorders: list[Recorder]


@asynccontextmanager
async def stack(group: Group, launchers: Launchers) -> AsyncIterator[Target]:
    logs = CACHE / "logs" / str(group)
    async with AsyncExitStack() as running:
        if group.agent == OURS.name:
            serve = ours.serve(PARTIES[group.client])
            ready = await running.enter_async_context(server(serve, logs / "serve.log"))
            yield await recorded(ready["url"], ready["interfaces"], running)
            return
        agent = await start_agent(group, launchers, running)
        if group.upstream is None:
            yield Target(agent.url, near=agent.recorders)
            return
        command = ours.gateway(agent.card, PARTIES[group.agent], group.upstream)
        ready = await running.enter_async_context(server(command, logs / "gateway.log"))
        target = await recorded(ready["url"], ready["interfaces"], running)
        target.far = agent.recorders
        yield target


async def start_agent(group: Group, launchers: Launchers, running: AsyncExitStack) -> Behind:
    """The agent of a group, with a recorder before each of its two ports. Raises `NotReady`."""
    http, grpc = [await running.enter_async_context(Recorder()) for _ in range(2)]
    command = [*launchers[group.agent], envs.script(PARTIES[group.agent], "agent")]
    command += ["--public-http", http.authority, "--public-grpc", grpc.authority]
    ready = await running.enter_async_context(server(command, CACHE / "logs" / str(group) / "agent.log"))
    http.target, grpc.target = ready["http"], ready["grpc"]
    return Behind(ready["url"], ready["card"], [http, grpc])


async def recorded(url: str, interfaces: Sequence[Mapping[str, Any]], running: AsyncExitStack) -> Target:
    """Put a recorder before every authority that our side says it serves at, on the host that it has."""
    via: dict[str, str] = {}
    recorders: list[Recorder] = []
    for one in (url, *(interface["url"] for interface in interfaces)):
        authority = urlsplit(one).netloc if "://" in one else one
        if authority not in via:
            recorder = await running.enter_async_context(Recorder(authority, authority.rpartition(":")[0]))
            recorders.append(recorder)
            via[authority] = recorder.authority
    return Target(url, via, near=recorders)
