"""Which upstream a request is for, of those of one configuration.

Rules of this module (pure):

- The HTTP bindings and the card are told apart by path: the longest configured one that the request's begins with,
  whole segments, compared as they came (an escaped letter matches nothing). A tenant is such a path too, as HTTP+JSON
  of 1.0 writes it.
- gRPC has no paths: the host that a call is for names the upstream, else its 1.0 tenant, else it is the one at ``/``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .agents import Agent
from .config.checks import OF_THE_ROOT


class Place(NamedTuple):
    """An agent, and the part of the path that led to it."""

    agent: Agent
    prefix: str


class Routing:
    """The upstreams of one configuration, by everything that they are told apart by."""

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.agents = tuple(agents)
        self.root = next((agent for agent in agents if agent.config.path == "/"), None)
        self.alone = self.root if len(self.agents) == 1 else None
        self.by_tenant = {agent.config.tenant: agent for agent in agents if agent.config.tenant}
        self.by_port = {agent.config.port: agent for agent in agents if agent.config.port}
        self._by_host = {agent.config.authority.lower(): agent for agent in agents if agent.config.authority}
        self._by_segment = _by_segment(self.agents)

    def of_path(self, path: str) -> Place | None:
        """Whom an HTTP request is for."""
        end = path.find("/", 1)
        for place in self._by_segment.get(path if end < 0 else path[:end], ()):
            prefix = place.prefix
            if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("/", ""):
                return place
        return Place(self.root, "") if self.root is not None else None

    def of_host(self, host: str) -> Agent | None:
        """Whom a gRPC call to this host is for, None if none is served under it."""
        host = host.lower()
        found = self._by_host.get(host)
        if found is None and ":" in host.rpartition("]")[2]:
            found = self._by_host.get(host.rpartition(":")[0])
        return found


def _by_segment(agents: Sequence[Agent]) -> dict[str, list[Place]]:
    """First path segment -> the paths that begin with it, longest first."""
    places = {agent.config.path: Place(agent, agent.config.path) for agent in agents if agent.config.path != "/"}
    for agent in agents:
        path = f"/{agent.config.tenant}"
        if agent.config.tenant and agent.config.tenant not in OF_THE_ROOT:
            places.setdefault(path, Place(agent, path))
    found: dict[str, list[Place]] = {}
    for place in sorted(places.values(), key=lambda one: len(one.prefix), reverse=True):
        found.setdefault("/" + place.prefix.split("/")[1], []).append(place)
    return found
