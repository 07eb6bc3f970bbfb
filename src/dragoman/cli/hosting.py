"""Carrying an app until somebody stops it: what to serve, start, say where it is, drain on a signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from cyclopts import Parameter

from ..errors import ConfigError
from ..faces import Face, rows
from ..model import AgentCard
from ..server.app import A2AApp
from ..server.asgi import App, Receive, Scope, Send
from ..server.forms import CallerForms
from ..server.host import Server, TlsFiles, serve
from ..service import A2AService
from .options import chosen_faces
from .output import print_json, print_table, say

if TYPE_CHECKING:
    from ..gateway.telemetry.pages import Pages

log = logging.getLogger(__name__)

#: Requests make many short-lived objects and no cycles: looking for garbage less often costs memory for a moment only.
_GC_THRESHOLDS = (50_000, 20, 20)
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8000


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Where a command listens, and what it serves there.

    Parameters
    ----------
    host
        Address to listen on, by default 127.0.0.1.
    port
        Port to listen on, by default 8000; 0 takes a free one.
    versions
        Serve only these protocol versions (0.3, 1.0).
    bindings
        Serve only these bindings (JSONRPC, GRPC, HTTP+JSON).
    public_url
        Where callers reach this server, for the card; else it is told from each request.
    trusted_proxy
        Address or network of a proxy whose Forwarded and X-Forwarded-* headers count.
    base64_files
        Callers keep base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON, as the SDKs for Python, Java
        and Go do; --no-base64-files: bytes. By default it is learnt, see docs/gateway.md.
    health
        Answer gRPC health checks (grpc.health.v1).
    reflection
        Answer gRPC reflection (grpc.reflection.v1 and v1alpha), for grpcurl and the like.
    tls_cert
        Serve over TLS with this certificate chain, a PEM file.
    tls_key
        Private key of that certificate, a PEM file.
    tls_client_ca
        Check certificates of callers against these roots, a PEM file.
    tls_require_client_cert
        Refuse callers who show no certificate.
    json
        Print the URLs of all faces as one JSON line.
    """

    host: str | None = None
    port: int | None = None
    versions: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = ()
    bindings: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = ()
    public_url: str = ""
    trusted_proxy: tuple[str, ...] = ()
    base64_files: bool | None = None
    health: bool = False
    reflection: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    tls_require_client_cert: bool = False
    json: bool = False

    def check(self) -> None:
        """Raise ``ConfigError`` for what cannot be served, before anything is done."""
        _ = self.faces, self.tls

    @property
    def address(self) -> str:
        """Where to listen."""
        return DEFAULT_HOST if self.host is None else self.host

    @property
    def number(self) -> int:
        """The port to listen on."""
        return DEFAULT_PORT if self.port is None else self.port

    @property
    def faces(self) -> tuple[Face, ...]:
        """The faces to serve. Raises ``ConfigError`` for an unknown name."""
        return chosen_faces(self.versions, self.bindings)

    @property
    def tls(self) -> TlsFiles | None:
        """The files for TLS, None without. Raises ``ConfigError`` if one lacks another."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ConfigError("A certificate needs its key: give both --tls-cert and --tls-key")
        if self.tls_require_client_cert and self.tls_client_ca is None:
            raise ConfigError("--tls-require-client-cert needs the roots to check against: give --tls-client-ca")
        if self.tls_cert is None or self.tls_key is None:
            if self.tls_client_ca is not None:
                raise ConfigError("--tls-client-ca needs TLS: give --tls-cert and --tls-key")
            return None
        return TlsFiles(
            certificate=self.tls_cert,
            key=self.tls_key,
            client_ca=self.tls_client_ca,
            require=self.tls_require_client_cert,
        )


def make_app(service: A2AService, card: AgentCard, serving: Serving, *, lenient: bool) -> A2AApp:
    """The app that the command line asks for. Raises ``ConfigError``."""
    return A2AApp(
        service,
        card,
        faces=serving.faces,
        public_url=serving.public_url,
        trusted_proxies=serving.trusted_proxy,
        lenient=lenient,
        rows=rows(base64_files=serving.base64_files or False),
        files=CallerForms() if serving.base64_files is None else None,
        health=serving.health,
        reflection=serving.reflection,
    )


class Closing(Protocol):
    """An ASGI app that can end its streams properly."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a server shows of itself, and how it ends.

    ``pages``: in front of the app, or at ``place``, a host and a port of their own. ``drain``: seconds that it goes on
    serving once told to stop; ``draining`` is called at their beginning. ``tell`` hears, in words, what goes on.
    """

    pages: Pages
    place: tuple[str, int] | None = None
    drain: float = 0.0
    draining: Callable[[], None]
    tell: Callable[[str], None] = say


async def host(
    app: A2AApp, serving: Serving, *, title: str, extra: dict[str, Any], outlook: Outlook | None = None
) -> None:
    """Serve ``app`` where ``serving`` says until SIGINT or SIGTERM, then end its streams properly."""

    def started(url: str) -> None:
        announce(app, url, as_json=serving.json, title=title, extra=extra)

    await host_until_stopped(app, serving, started, outlook=outlook)


async def host_until_stopped(
    app: Closing,
    serving: Serving,
    started: Callable[[str], None],
    beside: Mapping[int, App] = MappingProxyType({}),
    outlook: Outlook | None = None,
    alongside: Callable[[Ports], Coroutine[Any, Any, object]] | None = None,
) -> None:
    """As :func:`host`; ``started`` is told our URL. ``beside``: by port, what is served there alone on the same host.
    ``alongside``: what runs as long as it serves; it may change the ports.

    ``app.aclose()`` ends the streams of those too. A second signal ends the process at once.
    """
    gc.freeze()  # what the imports made is here to stay
    gc.set_threshold(*_GC_THRESHOLDS)
    stop = _told_to_stop()
    entry: App = app
    async with AsyncExitStack() as stack:
        if outlook is not None and outlook.place is not None:
            own_host, own_port = outlook.place
            await stack.enter_async_context(serve(outlook.pages, host=own_host, port=own_port))
        elif outlook is not None:
            entry = outlook.pages.before(app)
        server = await stack.enter_async_context(_serve(entry, serving))
        ports = await stack.enter_async_context(Ports(serving, server))
        await ports.adjust(beside)
        started(server.url)
        async with _running(alongside(ports) if alongside is not None else None):
            await stop.wait()
        if outlook is not None:
            await _drain(outlook)
        tell = say if outlook is None else outlook.tell
        tell("Stopping: streams are ended, calls in progress get their answers")
        await app.aclose()


@asynccontextmanager
async def _serve(app: App, serving: Serving) -> AsyncIterator[Server]:
    """Serve where ``serving`` says. Raises ``ConfigError`` that names the option to change."""
    started = False
    try:
        async with serve(app, host=serving.address, port=serving.number, tls=serving.tls) as server:
            started = True
            yield server
    except ConfigError as error:
        if started or not str(error).startswith("Cannot listen"):
            raise
        raise ConfigError(f"{error}. Choose another with --port (or --host), or server.port in the file") from None


class Ports:
    """The servers of a process: ``main``, and those on ports of their own, which come and go."""

    def __init__(self, serving: Serving, main: Server) -> None:
        self._serving = serving
        self._main = main
        self._open: dict[int, tuple[Server, AsyncExitStack]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Ports:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(stack.aclose() for _, stack in self._open.values()), *self._closing)

    async def adjust(self, beside: Mapping[int, App]) -> None:
        """Serve what is in ``beside``, by port, and nothing else. Raises ``ConfigError`` for a port that cannot be had,
        after all others were opened."""
        for port in self._open.keys() - beside.keys():
            _, stack = self._open.pop(port)
            task = asyncio.create_task(stack.aclose(), name=f"dragoman-close-{port}")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        failed: ConfigError | None = None
        for port in beside.keys() - self._open.keys():
            stack = AsyncExitStack()
            serving = self._serving
            try:
                server = await stack.enter_async_context(
                    serve(beside[port], host=serving.address, port=port, tls=serving.tls)
                )
            except ConfigError as error:
                failed = error
            else:
                self._open[port] = server, stack
        if failed is not None:
            raise failed

    def renew_tls(self) -> None:
        """Show the certificates that are in the files by now, to who connects from now on. Raises ``ConfigError``."""
        for server in (self._main, *(one for one, _ in self._open.values())):
            server.renew_tls()


@asynccontextmanager
async def _running(work: Coroutine[Any, Any, object] | None) -> AsyncIterator[None]:
    """``work`` runs while the block does; that it ends before, with an error, is logged and ends nothing else."""
    task = None if work is None else asyncio.create_task(work, name="dragoman-alongside")
    if task is not None:
        task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _log_failure(task: asyncio.Task[object]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("what runs beside the server has failed", exc_info=error)


def _told_to_stop() -> asyncio.Event:
    """Set by the first signal to stop; the next one does what it does to any process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def told() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, told)
    return stop


async def _drain(outlook: Outlook) -> None:
    outlook.draining()
    if outlook.drain:
        outlook.tell(f"Draining: not ready from now on, ending in {outlook.drain:g} s")
        await asyncio.sleep(outlook.drain)


def announce(app: A2AApp, url: str, *, as_json: bool, title: str, extra: dict[str, Any]) -> None:
    """Print the URLs of all faces: a table for people, one JSON line for programs."""
    card = app.published.at(app.public_url or url)
    if as_json:
        print_json({"url": url, "card": f"{url}/.well-known/agent-card.json", **extra, "interfaces": list_faces(card)})
        return
    rows = [(one.protocol_version, one.protocol_binding, one.url) for one in card.supported_interfaces]
    print_table(title, ("version", "binding", "url"), rows)
    say(f"Card: {url}/.well-known/agent-card.json   Try: dragoman call {url} 'hello'   Stop: Ctrl-C")


def list_faces(card: AgentCard) -> list[dict[str, str]]:
    """Interfaces as the card names them."""
    return [
        {"protocolBinding": one.protocol_binding, "protocolVersion": one.protocol_version, "url": one.url}
        for one in card.supported_interfaces
    ]
