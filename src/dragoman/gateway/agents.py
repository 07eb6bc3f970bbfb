"""One configured upstream as an ASGI app, from the first attempt to reach it on.

Rules of this module:

- Until a card is there, every operation is refused with UnavailableError of the caller's face, and its card with 503;
  the attempts go on behind that, ever further apart, with jitter.
- Another card, or another face to call, means another app. Requests that came before run to their end in the old one,
  streams included; the connections, turns and breakers are the same.
- What a caller is told does not say why: addresses and reasons are the operator's, in the plan and in the log.
"""

from __future__ import annotations

import asyncio
from typing import NoReturn

import msgspec

from ..client.client import Client
from ..client.connect import connect
from ..client.options import Limits, Timeouts, Tls
from ..client.resolve import Found, resolve
from ..dialects.files import configured
from ..errors import DragomanError, UnavailableError
from ..faces import FACES, Face, rows
from ..model import AgentCapabilities, AgentCard
from ..protocol.messages import HttpResponse
from ..server.app import A2AApp
from ..server.asgi import Receive, Scope, Send, path_below_mount, send_response
from ..server.forms import CallerForms
from ..server.published import CARD_PATHS
from ..service import A2AService, EventStream
from .breaker import State
from .common import Common
from .config import Upstream, UpstreamTls
from .freshness import Pace
from .layers import isolates, layered, lists
from .pool import Pool
from .replicas import Backoff, Means, Replica, where

__all__ = ["Agent", "AgentState", "Backoff", "Pace", "ReplicaState"]

_LOOK = 0.1  # seconds between looks whether a retired agent is done


class ReplicaState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one replica fares. ``error`` is the kind of the last failure, empty if there was none."""

    url: str
    reachable: bool
    breaker: State
    face: str = ""
    calls: int = 0
    streams: int = 0
    error: str = ""


class AgentState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an agent fares at the moment: ``calls`` and ``streams`` in flight, ``waiting`` for a turn. ``error``: the
    kind of its last failure, while it cannot be reached."""

    reachable: bool
    replicas: tuple[ReplicaState, ...]
    face: str = ""
    calls: int = 0
    streams: int = 0
    waiting: int = 0
    error: str = ""


class Agent:
    """An upstream of the gateway. ``app`` serves it, and is another one when its card has changed.

    ``files``: how it keeps them; ``callers_files``: how its callers do, if that is not configured.
    ``notes``: what was forgiven and decided. ``backoff`` and ``pace``: when it is tried again and looked at again.
    """

    def __init__(
        self,
        config: Upstream,
        common: Common,
        *,
        backoff: Backoff = Backoff(),  # noqa: B008 - immutable
        pace: Pace = Pace(),  # noqa: B008 - immutable
    ) -> None:
        self.config = config
        self.notes: list[str] = []
        self.tried = asyncio.Event()
        self.files = configured(config.upstream_base64_files, tell=self._note)
        self.callers_files = CallerForms()
        self._common = common
        means = Means(
            resolve=self._resolve,
            connect=self._connect,
            changed=self._changed,
            looked=self._looked,
            tell=self._say,
            backoff=backoff,
            pace=pace,
        )
        urls = dict.fromkeys((config.url, *config.replicas))
        self.pool = Pool([Replica(url, config, means) for url in urls], config.limits)
        self.app = self._made(_Absent(self), _unknown(config.name))
        self._made_of: tuple[AgentCard, Face] | None = None
        self._past: list[A2AApp] = []

    # -- how it fares

    @property
    def client(self) -> Client | None:
        """The client of the replica whose card is published, None while none was reached."""
        lead = self.pool.lead
        return lead.line.client if lead is not None and lead.line is not None else None

    @property
    def reachable(self) -> bool:
        """Whether calls go through, as far as is known."""
        return any(one.reachable for one in self.pool.replicas)

    @property
    def lists(self) -> bool:
        """Whether ListTasks is answered from the tasks that were seen."""
        return self.client is not None and lists(self.config, self._common, self.client.face)

    @property
    def isolates(self) -> bool:
        """Whether its callers are kept apart here."""
        return isolates(self.config, self._common)

    @property
    def error(self) -> DragomanError | None:
        """Why it cannot be reached, None if it can."""
        if self.reachable:
            return None
        return next(filter(None, (one.error or one.last_error for one in self.pool.replicas)), None)

    @property
    def state(self) -> AgentState:
        """All of it at a glance, without addresses but those of replicas."""
        pool, client, error = self.pool, self.client, self.error
        return AgentState(
            reachable=self.reachable,
            face=str(client.face) if client is not None else "",
            calls=sum(one.calls for one in pool.replicas),
            streams=sum(one.streams for one in pool.replicas),
            waiting=pool.calls.waiting + pool.streams.waiting,
            error=type(error).__name__ if error is not None else "",
            replicas=tuple(map(_state, pool.replicas)),
        )

    @property
    def retry_after(self) -> float:
        """Seconds after which a caller may come back."""
        return min(one.retry_after for one in self.pool.replicas)

    # -- serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if self._made_of is None and scope["type"] == "http" and path_below_mount(scope) in CARD_PATHS:
            await send_response(send, self._no_card())
        else:
            await self.app(scope, receive, send)

    def start(self) -> None:
        """Begin to reach its replicas, and to look at their cards now and again.

        ``tried`` is set after the first attempt at each.
        """
        for one in self.pool.replicas:
            one.start()

    async def reach(self) -> None:
        """One attempt at each replica: fetch the card and choose a face. Raises what
        :func:`dragoman.client.connect.connect` does if none could be reached."""
        found = await asyncio.gather(*(one.look() for one in self.pool.replicas), return_exceptions=True)
        errors = [one for one in found if one is not None]
        for error in errors:
            if self.pool.lead is None or not isinstance(error, DragomanError):
                raise error

    def serve_as(self, common: Common) -> None:
        """Be part of another configuration from now on, whose own keys have changed; open streams go on."""
        self._common = common
        if self._made_of is not None:
            self._remake()
        else:
            self.app = self._made(_Absent(self), _unknown(self.config.name))

    async def end_streams(self) -> None:
        """Stop trying, and end every stream with an error that says so; calls in progress get their answers."""
        await asyncio.gather(*(one.stop() for one in self.pool.replicas))
        await asyncio.gather(*(one.aclose() for one in (self.app, *self._past)))

    async def aclose(self) -> None:
        """End its streams and close its connections."""
        await self.end_streams()
        await asyncio.gather(*(one.aclose() for one in self.pool.replicas))

    async def retire(self, patience: float) -> None:
        """Go, as soon as the calls and streams that it has are over, after so many seconds whether or not."""
        await asyncio.gather(*(one.stop() for one in self.pool.replicas))
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while self._at_work() and loop.time() < end:  # noqa: ASYNC110 - nobody who works has to tell
            await asyncio.sleep(_LOOK)
        await self.aclose()

    def _at_work(self) -> bool:
        apps = (self.app, *self._past)
        return any(one.busy for one in self.pool.replicas) or any(one.desk.streams for one in apps)

    # -- what its replicas are given

    async def _resolve(self, url: str, known: Found | None) -> Found:
        config = self.config
        headers = {name: secret.value for name, secret in config.headers.items()}
        if config.bearer is not None:
            headers["authorization"] = f"Bearer {config.bearer.value}"
        return await resolve(url, headers=headers, timeouts=_timeouts(config), tls=_tls(config.tls), known=known)

    async def _connect(self, url: str, found: Found) -> Client:
        config, pin = self.config, self.config.pin
        return await connect(
            url,
            found=found,
            version=pin.version if pin else None,
            binding=pin.binding if pin else None,
            headers={name: secret.value for name, secret in config.headers.items()},
            bearer=config.bearer.value if config.bearer else None,
            timeouts=_timeouts(config),
            limits=_limits(config),
            tls=_tls(config.tls),
            lenient=config.lenient,
            files=self.files,
            refuse_losses=config.refused,
            hybrid=config.dialect,
            on_note=self._note,
        )

    def _say(self, text: str) -> None:
        self._common.tell(f"{self.config.name}: {text}")

    def _note(self, note: str) -> None:
        """A new one: notes come at any time, and a long life must not pile them up."""
        if note not in self.notes and len(self.notes) < 100:
            self.notes.append(note)
            self._say(note)

    def _looked(self) -> None:
        if all(one.looked for one in self.pool.replicas):
            self.tried.set()

    def _changed(self) -> None:
        """A replica has another client: publish its card if it is the one that stands for all."""
        before, now = self._made_of, (self.pool.card, self.pool.face)
        if now == before:
            return
        self._remake()
        if before is not None and now[1] != before[1]:
            lead = self.pool.lead
            self._say(f"it was called over {before[1]}, from now on {where(lead.line if lead is not None else None)}")
        elif before is not None:
            self._say("its card has changed")

    def _remake(self) -> None:
        before, self._made_of = self.app, (self.pool.card, self.pool.face)
        self.app = self._made(*layered(self.config, self.pool, self._common, self._note))
        self._past = [*(one for one in self._past if one.desk.streams), before]

    def _made(self, service: A2AService, card: AgentCard) -> A2AApp:
        config, server = self.config, self._common.server
        path = "" if config.path == "/" else config.path
        shared = f"{server.public_url.rstrip('/')}{path}" if server.public_url else ""
        return A2AApp(
            service,
            card,
            faces=config.faces,
            public_url=config.public_url or shared,
            trusted_proxies=server.trusted_proxies,
            lenient=not config.strict,
            rows=rows(base64_files=config.base64_files or False),
            files=self.callers_files if config.base64_files is None else None,
            refuse_losses=config.refused,
            health=server.health,
            reflection=server.reflection,
            grpc_at=config.grpc_target,
            grpc_tenant=config.tenant,
            callers=self._common.admission,
            observer=self._common.telemetry.watch(config.name),
        )

    def _no_card(self) -> HttpResponse:
        return FACES[Face("HTTP+JSON", "1.0")].codec.write_error(self.unavailable())

    def unavailable(self) -> UnavailableError:
        """What a caller is told meanwhile."""
        return UnavailableError(
            f"The agent {self.config.name!r} behind this gateway cannot be reached", retry_after=self.retry_after
        )


class _Absent:
    """The service of an agent that is not there yet."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def call(self, op: object, request: object, ctx: object) -> NoReturn:
        raise self._agent.unavailable()

    async def stream(self, op: object, request: object, ctx: object) -> EventStream:
        raise self._agent.unavailable()


def _unknown(name: str) -> AgentCard:
    """A card for who has not shown one; it is never published."""
    return AgentCard(
        name=name,
        description="",
        supported_interfaces=(),
        version="",
        capabilities=AgentCapabilities(),
        default_input_modes=(),
        default_output_modes=(),
        skills=(),
    )


def _state(one: Replica) -> ReplicaState:
    return ReplicaState(
        url=one.url,
        reachable=one.reachable,
        breaker=one.breaker.state,
        face=str(one.line.client.face) if one.line is not None else "",
        calls=one.calls,
        streams=one.streams,
        error=type(one.last_error or one.error).__name__ if one.last_error or one.error else "",
    )


def _timeouts(config: Upstream) -> Timeouts:
    return Timeouts(config.timeouts.connect, config.timeouts.reply, config.timeouts.silence)


def _limits(config: Upstream) -> Limits:
    said = config.limits
    return Limits(body=said.reply, event=said.event, streams_per_connection=said.streams_per_connection)


def _tls(tls: UpstreamTls) -> Tls:
    ca, cert, key = (file.path if file else None for file in (tls.ca, tls.cert, tls.key))
    return Tls(ca=ca, cert=cert, key=key, verify=tls.verify)
