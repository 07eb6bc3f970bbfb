"""One gateway from one configuration in front of every agent at once, and how a cell gets to its agent through it.

Each agent has two upstreams in it, because its callers keep the bytes of a 0.3 file in two ways: one for those that
keep base64 text, with a loopback address of its own as gRPC authority; one for the others, with a port of its own.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from . import ours
from .parties import ANY, CACHE, DIRECT, PARTIES, Cell, Face
from .processes import NotReady, server
from .stacks import Behind, Group, Launchers, Target, recorded, start_agent

STARTING_AT_ONCE = 3


@dataclass
class Platform:
    """`broken`: why the agent of a group does not run; `lines`: what the gateway says of each upstream, by name."""

    agents: Mapping[Group, Behind]
    broken: Mapping[Group, str]
    lines: Mapping[str, Mapping[str, Any]]

    async def target(self, cell: Cell, group: Group, running: AsyncExitStack) -> Target:
        """Raises `NotReady` if nothing can be sent there."""
        if group in self.broken:
            raise NotReady(self.broken[group])
        agent = self.agents[group]
        if cell.section == DIRECT:
            return Target(agent.url, near=agent.recorders)
        line = self.lines[_name(group, PARTIES[cell.client.party].base64_files)]
        url = line["card"].replace("0.0.0.0", "127.0.0.1").removesuffix("/.well-known/agent-card.json")
        interfaces = [{"url": one["url"].replace("0.0.0.0", "127.0.0.1")} for one in line["interfaces"]]
        target = await recorded(url, interfaces, running)
        target.far, target.note = agent.recorders, str(line["upstream"].get("face", "none"))
        return target


@asynccontextmanager
async def platform(groups: Iterable[Group], launchers: Launchers) -> AsyncIterator[Platform]:
    """Start the agents, then the gateway that knows them all."""
    agents: dict[Group, Behind] = {}
    broken: dict[Group, str] = {}
    slots = asyncio.Semaphore(STARTING_AT_ONCE)
    async with AsyncExitStack() as running:

        async def start(group: Group) -> None:
            async with slots:
                try:
                    agents[group] = await start_agent(group, launchers, running)
                except (NotReady, OSError) as error:
                    broken[group] = str(error)

        await asyncio.gather(*map(start, groups))
        logs = CACHE / "logs" / "platform"
        logs.mkdir(parents=True, exist_ok=True)
        config = logs / f"gateway.{os.getpid()}.toml"  # its own: a gateway follows its file
        running.callback(config.unlink)
        config.write_text(ours.gateway_toml(list(_upstreams(agents))))
        ready = await running.enter_async_context(server(ours.configured(config), logs / "gateway.log"))
        yield Platform(agents, broken, {line["name"]: line for line in ready["agents"]})


def _upstreams(agents: Mapping[Group, Behind]) -> Iterable[dict[str, Any]]:
    numbers, ports = count(1), _free_ports()
    for group, agent in agents.items():
        about = {"url": agent.card, "upstream_base64_files": PARTIES[group.agent].base64_files}
        if group.upstream not in (None, ANY):
            about["face"] = str(group.upstream)
        host = f"127.0.1.{next(numbers)}"
        yield {"name": _name(group, True), **about, "base64_files": True, "authority": host}
        yield {"name": _name(group, False), **about, "base64_files": False, "port": next(ports)}


def _name(group: Group, base64_files: bool) -> str:
    face = group.upstream if isinstance(group.upstream, Face) and group.upstream != ANY else None
    parts = [group.agent, *(str(face).replace("+", "-").split("/") if face else [])]
    return "-".join([*parts, *([] if base64_files else ["bytes"])])


def _free_ports() -> Iterator[int]:
    """Below those that the system gives to whoever asks for any, so that nobody takes one before the gateway does."""
    for port in range(random.randrange(20_000, 28_000), 32_000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("0.0.0.0", port))
            yield port
