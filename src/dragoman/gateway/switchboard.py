"""Several upstreams behind one port: a request goes to the one that it is for.

Rules of this module:

- Who that is, ``routing`` says. GET and HEAD of the root are the catalogue, unless a single agent is served there.
- A tenant of ours is looked for where nothing else tells: in 1.0 calls over gRPC, and in JSON-RPC calls to the root.
  The body of who is not let in is not read for that.
- Notifications of agents come to an address of their own, and reach none of them.
- What is for nobody is refused in the shape of its binding, never passed to some upstream.
- Another configuration takes the place of the one before in one step, between two requests. Upstreams that did not
  change keep everything; streams of those that did, or are gone, end by themselves or when their time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from ..errors import A2AError, MethodNotFoundError
from ..faces import FACES, Face
from ..protocol.messages import Headers
from ..protocol.operations import GRPC_SERVICE, Binding
from ..protocol.refusals import MessageTooLargeError
from ..server.app import AppLimits
from ..server.asgi import (
    App,
    BodyTooLargeError,
    DisconnectedError,
    Message,
    Receive,
    Scope,
    Send,
    path_below_mount,
    read_body,
    send_response,
)
from ..server.origin import base_url, checked_url, trusted_networks
from .admission import Admission
from .agents import Agent, Backoff, Pace
from .browsers import for_browsers
from .catalogue import catalogue, respond
from .common import Tell, common_of, quiet
from .config import Config
from .config.files import Stamp, files_of, stamps
from .relay.callbacks import Callbacks, is_callback
from .relay.relay import CALLBACKS
from .routing import Routing
from .tenants import of_grpc, of_json_rpc
from .verifying import admission_of

PATIENCE = 10.0  # seconds that a start waits for first answers
DRAIN = 300.0  # seconds that streams of upstreams which were changed or taken out may go on
_V1 = f"/{GRPC_SERVICE['1.0']}/"
_OURS = tuple(f"/{name}/" for name in GRPC_SERVICE.values())


class Switchboard:
    """The gateway's ASGI app over all upstreams of a configuration.

    Use it as a context: entering begins to reach every upstream and waits for the first attempts, ``patience``
    seconds at most; it raises for none of them. ``agents`` are in the order of the configuration. ``beside``:
    the apps of those that have a port of their own, by port; one goes on to serve whoever has its port now.
    ``drain``: seconds for streams of upstreams that a reload takes out.
    """

    def __init__(
        self,
        config: Config,
        *,
        tell: Tell = quiet,
        backoff: Backoff = Backoff(),  # noqa: B008 - immutable
        pace: Pace = Pace(),  # noqa: B008 - immutable
        patience: float = PATIENCE,
        drain: float = DRAIN,
    ) -> None:
        self.config = config
        self.common = common_of(config, tell)
        self._backoff = backoff
        self._pace = pace
        self._patience = patience
        self._drain = drain
        self._most = AppLimits().body
        self._stamps: dict[str, dict[str, Stamp]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._leaving_ports: dict[int, asyncio.Task[None]] = {}
        self._retired: list[Agent] = []
        self._serve_as(config, Routing([self._agent(one.name, config) for one in config.upstream]))

    @property
    def agents(self) -> tuple[Agent, ...]:
        """All agents, in the order of the configuration."""
        return self._routing.agents

    async def __aenter__(self) -> Switchboard:
        await self.common.open(self.config)
        if self.common.admission is not None:
            self.common.admission.start()
        await self._begin(self.agents)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
        await self.common.aclose()
        leaving = list(self._leaving)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        await asyncio.gather(*(agent.aclose() for agent in (*self.agents, *self._retired)))

    async def aclose(self) -> None:
        """End every stream with an error that says so; leaving the context closes the connections to the upstreams."""
        await asyncio.gather(*(agent.end_streams() for agent in (*self.agents, *self._retired)))

    # -- another configuration

    async def reload(self, config: Config) -> None:
        """Serve as ``config`` says from now on, which was checked before. What of it needs a restart stays as it was.

        It waits for first attempts at new and changed upstreams, so that none is away only because it is new.
        """
        known = {agent.config.name: agent for agent in self.agents}
        agents = []
        for one in config.upstream:
            before = known.get(one.name)
            stays = before is not None and before.config == one and self._stamps[one.name] == stamps(files_of(one))
            agents.append(before if before is not None and stays else self._agent(one.name, config, before))
        fresh = [agent for agent in agents if agent not in self.agents]
        try:
            await self._begin(fresh)
        except BaseException:
            await asyncio.gather(*(agent.aclose() for agent in fresh))
            raise
        gone = [agent for agent in self.agents if agent not in agents]
        changed = self._take_common(config)
        if changed:
            for agent in agents:
                agent.serve_as(self.common)
        self._serve_as(config, Routing(agents))
        for agent in gone:
            self._retired.append(agent)
            going = self._leave(self._retire(agent))
            if agent.config.port:
                self._leaving_ports[agent.config.port] = going

    def _take_common(self, config: Config) -> bool:
        """Take over what all agents share; whether any of that changed."""
        common, before = self.common, self.config
        files = stamps(files_of(config.auth))
        new_auth = config.auth != before.auth or files != self._stamps.get("", {})
        if new_auth:
            old = common.admission
            new = admission_of(config.auth, common.tell, before=old) if config.auth is not None else None
            self._stamps[""], common.admission = files, new  # only once it could be made: else nobody would be asked
            if new is not None:
                new.start()
            if old is not None:
                self._leave(_later(self._patience, old))
        common.server = config.server
        return new_auth or config.server != before.server

    def _serve_as(self, config: Config, routing: Routing) -> None:
        self.config, self._routing = config, routing
        self.public_url = checked_url(config.server.public_url)
        self._trusted = trusted_networks(config.server.trusted_proxies)
        self._entry = for_browsers(self._entered, config)
        self._beside_entry = {port: for_browsers(agent, config) for port, agent in routing.by_port.items()}
        self._stamps.setdefault("", stamps(files_of(config.auth)))

    def _agent(self, name: str, config: Config, before: Agent | None = None) -> Agent:
        """A new agent, which knows what one of that name knew of who has which task."""
        one = next(one for one in config.upstream if one.name == name)
        agent = Agent(one, self.common, backoff=self._backoff, pace=self._pace)
        self._stamps[name] = stamps(files_of(one))
        if before is not None:
            agent.pool.affinity.adopt(before.pool.affinity, frozenset((one.url, *one.replicas)))
        return agent

    async def _begin(self, agents: tuple[Agent, ...] | list[Agent]) -> None:
        for agent in agents:
            agent.start()
        waits = [asyncio.ensure_future(agent.tried.wait()) for agent in agents]
        if waits:
            await asyncio.wait(waits, timeout=self._patience)
        for wait in waits:
            wait.cancel()

    async def _retire(self, agent: Agent) -> None:
        await agent.retire(self._drain)
        self._retired.remove(agent)

    def _leave(self, going: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(going, name="dragoman-leaving")
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
        return task

    # -- requests

    @property
    def beside(self) -> dict[int, App]:
        """What is served on ports of its own; one that is given up refuses new requests until the last stream ended."""
        going = (port for port, task in self._leaving_ports.items() if not task.done())
        return {port: self._at(port) for port in (*self._routing.by_port, *going)}

    def _at(self, port: int) -> App:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            entry = self._beside_entry.get(port)
            if scope["type"] == "lifespan":
                await _lifespan(receive, send)
            elif entry is not None:
                await entry(scope, receive, send)
            else:
                await _refuse(Headers(scope["headers"]), "HTTP+JSON", send)

        return serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        await self._entry(scope, receive, send)

    async def _entered(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind, alone = scope["type"], self._routing.alone
        if kind == "http" and CALLBACKS in scope["path"] and (relay := self.common.relay) and is_callback(scope):
            await Callbacks(relay)(scope, receive, send)
        elif kind == "http" and alone is not None and not alone.config.tenant:
            await alone(scope, receive, send)
        elif kind == "http":
            await self._http(scope, receive, send)
        elif kind == "lifespan":
            await _lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope["headers"])
        path = path_below_mount(scope)
        if headers.get(b"content-type").startswith(b"application/grpc"):
            await self._grpc(path, headers, scope, receive, send)
        elif path not in ("/", ""):
            await self._below(path, headers, scope, receive, send)
        elif scope["method"] in ("GET", "HEAD") and self._routing.alone is None:
            base = base_url(scope, headers, self.public_url, self._trusted)
            await send_response(send, respond(catalogue(self.agents, base), scope["method"], headers))
        else:
            await self._at_root(headers, scope, receive, send)

    async def _below(self, path: str, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        place = self._routing.of_path(path)
        if place is None:
            await _refuse(headers, "HTTP+JSON", send)
        elif not place.prefix:
            await place.agent(scope, receive, send)
        else:
            await place.agent(_mounted(scope, place.prefix), receive, send)

    async def _at_root(self, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        """A request to the root itself, which is JSON-RPC if it is anything."""
        routing = self._routing
        agent = routing.root
        if routing.by_tenant and scope["method"] == "POST":
            body = await self._body("JSONRPC", headers, scope, receive, send)
            if body is None:
                return
            agent = routing.by_tenant.get(of_json_rpc(body)) or agent
            receive = _replaying(body, receive)
        if agent is None:
            await _refuse(headers, _plain_binding(scope["method"]), send)
        else:
            await agent(scope if agent is routing.root else _mounted(scope, agent.config.path), receive, send)

    async def _grpc(self, path: str, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        routing = self._routing
        agent = routing.of_host(headers.text("host"))
        if agent is None and path.startswith(_V1) and routing.by_tenant:
            body = await self._body("GRPC", headers, scope, receive, send)
            if body is None:
                return
            agent = routing.by_tenant.get(of_grpc(path, body, headers.get(b"grpc-encoding")))
            receive = _replaying(body, receive)
        agent = agent or routing.root
        if agent is None and not path.startswith(_OURS):
            agent = next(iter(routing.by_tenant.values()), None)  # health and reflection are the same for all
        if agent is None:
            await _refuse(headers, "GRPC", send)
        else:
            await agent(scope, receive, send)

    async def _body(
        self, binding: Binding, headers: Headers, scope: Scope, receive: Receive, send: Send
    ) -> bytes | None:
        """The body of a request in which a tenant is looked for; None if it was answered already, or nobody waits."""
        callers = self.common.admission
        try:
            if callers is not None and callers.known(headers, scope) is None:
                await callers.verify(headers, scope)
            return await read_body(receive, self._most)
        except A2AError as error:
            await send_response(send, FACES[Face(binding, "1.0")].codec.write_error(error))
        except BodyTooLargeError:
            large = MessageTooLargeError(f"The request body is larger than {self._most} bytes")
            await send_response(send, FACES[Face(binding, "1.0")].codec.write_error(large))
        except DisconnectedError:
            pass
        return None


def _replaying(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read already, and then what comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _mounted(scope: Scope, prefix: str) -> Scope:
    return {**scope, "root_path": scope.get("root_path", "") + prefix}


async def _later(seconds: float, admission: Admission) -> None:
    """Close what requests that are under way may still ask."""
    try:
        await asyncio.sleep(seconds)
    finally:
        await admission.aclose()


def _plain_binding(method: str) -> Binding:
    return "JSONRPC" if method == "POST" else "HTTP+JSON"


async def _refuse(headers: Headers, binding: Binding, send: Send) -> None:
    old = binding != "GRPC" and headers.get(b"a2a-version").startswith(b"0.3")
    codec = FACES[Face(binding, "0.3" if old else "1.0")].codec
    where = "host, or for this tenant" if binding == "GRPC" else "path"
    error = MethodNotFoundError(f"No agent is served at this {where}; GET / of this gateway lists those that are")
    await send_response(send, codec.write_error(error))


async def _lifespan(receive: Receive, send: Send) -> None:
    """Nothing to do: whoever made the app enters and leaves it."""
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
