"""One configured upstream as an ASGI app, from the first attempt to reach it on.

Rules of this module:

- Until its card is there, every operation is refused with UnavailableError of the caller's face, and its card with
  503; the attempts go on behind that, ever further apart, with jitter.
- What a caller is told does not say why: addresses and reasons are the operator's, in the plan and in the log.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import Any, NoReturn

from ..client.client import Client
from ..client.connect import connect
from ..client.options import Timeouts, Tls
from ..errors import DragomanError, UnavailableError
from ..faces import FACES, Face, rows
from ..model import AgentCapabilities, AgentCard
from ..protocol.messages import HttpResponse
from ..server.app import A2AApp
from ..server.asgi import Receive, Scope, Send, path_below_mount, send_response
from ..server.published import CARD_PATHS
from ..service import A2AService, EventStream
from .common import Common
from .config import Upstream, UpstreamTls
from .layers import layered

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between attempts to reach an upstream: ``first``, doubled each time up to ``most``."""

    first: float = 1.0
    most: float = 60.0

    def delay(self, attempt: int) -> float:
        """How long to wait after attempt number ``attempt``, counted from 0: between half and all of its time."""
        return min(self.first * 2.0 ** min(attempt, 30), self.most) * random.uniform(0.5, 1.0)


class Agent:
    """An upstream of the gateway. ``app`` serves it.

    ``client`` is None while it cannot be reached, and ``error`` says why. ``notes``: what was forgiven and decided.
    """

    def __init__(self, config: Upstream, common: Common, *, backoff: Backoff = Backoff()) -> None:
        self.config = config
        self.client: Client | None = None
        self.error: DragomanError | None = None
        self.notes: list[str] = []
        self.tried = asyncio.Event()
        self._common = common
        self._tell = common.tell
        self._backoff = backoff
        self._next = backoff.first
        self._trying: asyncio.Task[None] | None = None
        self.app = self._made(_Absent(self), _unknown(config.name))

    @property
    def retry_after(self) -> float:
        """Seconds after which a caller may come back."""
        return max(1.0, self._next)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if self.client is None and scope["type"] == "http" and path_below_mount(scope) in CARD_PATHS:
            await send_response(send, self._no_card())
        else:
            await self.app(scope, receive, send)

    def start(self) -> None:
        """Begin to reach it in the background; ``tried`` is set after the first attempt."""
        self._trying = asyncio.create_task(self._keep_trying(), name=f"dragoman-upstream-{self.config.name}")

    async def reach(self) -> None:
        """One attempt: fetch the card and choose a face. Raises what :func:`dragoman.client.connect.connect` does."""
        self.notes = []
        try:
            client = await self._connect()
        except DragomanError as error:
            self.error = error
            raise
        absent, self.app = self.app, self._made(*layered(self.config, client, self._common))
        self.client, self.error = client, None
        await absent.aclose()

    async def end_streams(self) -> None:
        """Stop trying, and end every stream with an error that says so; calls in progress get their answers."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)
        await self.app.aclose()

    async def aclose(self) -> None:
        """End its streams and close its connections."""
        await self.end_streams()
        if self.client is not None:
            await self.client.aclose()

    async def _keep_trying(self) -> None:
        attempt = 0
        while True:
            try:
                await self.reach()
            except DragomanError as error:
                self._next = self._backoff.delay(attempt)
                if not attempt:
                    self._tell(f"{self.config.name}: {error}. It is tried again until it answers")
            except Exception:  # a fault of ours with one upstream must not end the attempts, nor the others
                log.exception("upstream %s", self.config.name)
                self._next = self._backoff.most
            else:
                if attempt:
                    self._tell(f"{self.config.name}: it answers now, {_face(self.client)}")
                return
            finally:
                self.tried.set()
            await asyncio.sleep(self._next)
            attempt += 1

    async def _connect(self) -> Client:
        config, pin = self.config, self.config.pin
        return await connect(
            config.url,
            version=pin.version if pin else None,
            binding=pin.binding if pin else None,
            headers={name: secret.value for name, secret in config.headers.items()},
            bearer=config.bearer.value if config.bearer else None,
            timeouts=Timeouts(config.timeouts.connect, config.timeouts.reply, config.timeouts.silence),
            tls=_tls(config.tls),
            lenient=config.lenient,
            base64_files=config.upstream_base64_files,
            on_note=self._note,
        )

    def _note(self, note: str) -> None:
        """A new one: notes come at any time, and a long life must not pile them up."""
        if note not in self.notes and len(self.notes) < 100:
            self.notes.append(note)
            self._tell(f"{self.config.name}: {note}")

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
            rows=rows(base64_files=config.base64_files),
            health=server.health,
            reflection=server.reflection,
            grpc_at=config.grpc_target,
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


def _tls(tls: UpstreamTls) -> Tls:
    ca, cert, key = (file.path if file else None for file in (tls.ca, tls.cert, tls.key))
    return Tls(ca=ca, cert=cert, key=key, verify=tls.verify)


def _face(client: Any) -> str:
    return f"over {client.face} at {client.interface.url}"
