"""Carrying an app until somebody stops it: what to serve, start, say where it is, drain on a signal."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Protocol

from cyclopts import Parameter

from ..errors import ConfigError
from ..faces import Face, rows
from ..model import AgentCard
from ..server.app import A2AApp
from ..server.asgi import App, Receive, Scope, Send
from ..server.host import TlsFiles, serve
from ..service import A2AService
from .options import chosen_faces
from .output import print_json, print_table, say

#: Requests make many short-lived objects and no cycles: looking for garbage less often costs memory for a moment only.
_GC_THRESHOLDS = (50_000, 20, 20)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Where a command listens, and what it serves there.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 takes a free one.
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
        and Go do.
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

    host: str = "127.0.0.1"
    port: int = 8000
    versions: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = ()
    bindings: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = ()
    public_url: str = ""
    trusted_proxy: tuple[str, ...] = ()
    base64_files: bool = False
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
        rows=rows(base64_files=serving.base64_files),
        health=serving.health,
        reflection=serving.reflection,
    )


class Closing(Protocol):
    """An ASGI app that can end its streams properly."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def aclose(self) -> None: ...


async def host(app: A2AApp, serving: Serving, *, title: str, extra: dict[str, Any]) -> None:
    """Serve ``app`` where ``serving`` says until SIGINT or SIGTERM, then end its streams properly."""
    await host_until_stopped(
        app, serving, lambda url: announce(app, url, as_json=serving.json, title=title, extra=extra)
    )


async def host_until_stopped(
    app: Closing, serving: Serving, started: Callable[[str], None], beside: Mapping[int, App] = MappingProxyType({})
) -> None:
    """As :func:`host`; ``started`` is told our URL. ``beside``: by port, what is served there alone on the same host.

    ``app.aclose()`` ends the streams of those too.
    """
    gc.freeze()  # what the imports made is here to stay
    gc.set_threshold(*_GC_THRESHOLDS)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(app, host=serving.host, port=serving.port, tls=serving.tls))
        for port, other in beside.items():
            await stack.enter_async_context(serve(other, host=serving.host, port=port, tls=serving.tls))
        started(server.url)
        await stop.wait()
        say("Stopping: streams are ended, calls in progress get their answers")
        await app.aclose()


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
