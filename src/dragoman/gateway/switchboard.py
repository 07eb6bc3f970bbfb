"""Several upstreams behind one port: which of them a request is for.

Rules of this module:

- The HTTP bindings and the card are told apart by path: the longest configured one that the request's begins with,
  whole segments, compared as they came (an escaped letter matches nothing).
- gRPC has no paths: the host that a call is for names the upstream, else it is the one at ``/``.
- GET and HEAD of the root are the catalogue, unless a single agent is served there.
- What is for nobody is refused in the shape of its binding, never passed to some upstream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType

from ..errors import MethodNotFoundError
from ..faces import FACES, Face
from ..protocol.messages import Headers
from ..protocol.operations import Binding
from ..server.asgi import Receive, Scope, Send, path_below_mount, send_response
from ..server.origin import base_url, checked_url, trusted_networks
from .agents import Agent, Backoff
from .catalogue import catalogue, respond
from .common import Tell, common_of, quiet
from .config import Config

PATIENCE = 10.0  # seconds that a start waits for first answers


class Switchboard:
    """The gateway's ASGI app over all upstreams of a configuration.

    Use it as a context: entering begins to reach every upstream and waits for the first attempts, ``patience``
    seconds at most; it raises for none of them. ``agents`` are in the order of the configuration.
    """

    def __init__(
        self,
        config: Config,
        *,
        tell: Tell = quiet,
        backoff: Backoff = Backoff(),  # noqa: B008 - immutable
        patience: float = PATIENCE,
    ) -> None:
        server = config.server
        common = common_of(config, tell)
        self.agents = tuple(Agent(one, common, backoff=backoff) for one in config.upstream)
        self.public_url = checked_url(server.public_url)
        self._trusted = trusted_networks(server.trusted_proxies)
        self._patience = patience
        self._by_segment = _by_segment(self.agents)
        self._root = next((agent for agent in self.agents if agent.config.path == "/"), None)
        self._by_host = {agent.config.authority.lower(): agent for agent in self.agents if agent.config.authority}
        self._alone = len(self.agents) == 1 and self._root is not None

    async def __aenter__(self) -> Switchboard:
        for agent in self.agents:
            agent.start()
        waits = [asyncio.ensure_future(agent.tried.wait()) for agent in self.agents]
        await asyncio.wait(waits, timeout=self._patience)
        for wait in waits:
            wait.cancel()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(agent.aclose() for agent in self.agents))

    async def aclose(self) -> None:
        """End every stream with an error that says so; leaving the context closes the connections to the upstreams."""
        await asyncio.gather(*(agent.end_streams() for agent in self.agents))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        kind = scope["type"]
        if kind == "http" and self._alone:
            await self.agents[0](scope, receive, send)
        elif kind == "http":
            await self._http(scope, receive, send)
        elif kind == "lifespan":
            await _lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        path = path_below_mount(scope)
        grpc = headers.get(b"content-type").startswith(b"application/grpc")
        if not grpc and path in ("/", "") and scope["method"] in ("GET", "HEAD"):
            base = base_url(scope, headers, self.public_url, self._trusted)
            await send_response(send, respond(catalogue(self.agents, base), scope["method"], headers))
            return
        agent = self._of_host(headers.text("host")) if grpc else self._of_path(path)
        if agent is None:
            await _refuse(headers, "GRPC" if grpc else _plain_binding(scope["method"], path), send)
        elif agent is self._root:
            await agent(scope, receive, send)
        else:
            mounted = {**scope, "root_path": scope.get("root_path", "") + agent.config.path}
            await agent(mounted, receive, send)

    def _of_path(self, path: str) -> Agent | None:
        end = path.find("/", 1)
        for prefix, agent in self._by_segment.get(path if end < 0 else path[:end], ()):
            if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("/", ""):
                return agent
        return self._root

    def _of_host(self, host: str) -> Agent | None:
        host = host.lower()
        found = self._by_host.get(host)
        if found is None and ":" in host.rpartition("]")[2]:
            found = self._by_host.get(host.rpartition(":")[0])
        return found or self._root


def _by_segment(agents: Sequence[Agent]) -> dict[str, list[tuple[str, Agent]]]:
    """First path segment -> the paths that begin with it, longest first."""
    found: dict[str, list[tuple[str, Agent]]] = {}
    for agent in sorted(agents, key=lambda one: len(one.config.path), reverse=True):
        if agent.config.path != "/":
            found.setdefault("/" + agent.config.path.split("/")[1], []).append((agent.config.path, agent))
    return found


def _plain_binding(method: str, path: str) -> Binding:
    return "JSONRPC" if method == "POST" and path in ("/", "") else "HTTP+JSON"


async def _refuse(headers: Headers, binding: Binding, send: Send) -> None:
    old = binding != "GRPC" and headers.get(b"a2a-version").startswith(b"0.3")
    codec = FACES[Face(binding, "0.3" if old else "1.0")].codec
    where = "host" if binding == "GRPC" else "path"
    error = MethodNotFoundError(f"No agent is served at this {where}; GET / of this gateway lists those that are")
    await send_response(send, codec.write_error(error))


async def _lifespan(receive: Receive, send: Send) -> None:
    """Nothing to do: whoever made the app enters and leaves it."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
