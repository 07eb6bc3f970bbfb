"""The server under our app: every limit in one table, started and stopped inside a running event loop.

    async with serve(app, port=0) as server:
        print(server.url)
        await server.wait_closed()

uvicorn owns the listening socket, TLS, HTTP/1.1, the lifespan protocol and the graceful end; ``front`` puts
our HTTP/2 behind the same port, because gRPC needs one that lets no stream hold up another
(docs/decisions/0001-http-server.md). Nothing here touches signals or makes a loop: whoever calls ``serve``
decides when it ends.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from ..errors import ConfigError
from .front import front

__all__ = ["App", "Limits", "Server", "TlsFiles", "serve"]

App = Callable[
    [
        MutableMapping[str, Any],
        Callable[[], Awaitable[MutableMapping[str, Any]]],
        Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ],
    Awaitable[None],
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything that the server bounds. Sizes in octets, times in seconds. Bodies are the app's to bound."""

    # the process
    connections: int = 10_000  # open at once; one more is closed unread
    backlog: int = 2_048  # waiting to be accepted
    # one request's head, HTTP/1.1 and HTTP/2
    head_size: int = 65_536  # larger: 431, or grpc-status 8
    head_fields: int = 256  # HTTP/2 only: more is a malformed request
    head_timeout: float = 10.0  # from its first octet to its last; also the time to say anything at all
    # times that an idle or stuck peer is given
    idle_timeout: float = 75.0  # HTTP/1.1 keep-alive, and HTTP/2 without a stream
    body_stall: float = 60.0  # HTTP/2: the app waits for the body and nothing comes
    write_stall: float = 60.0  # a reader that takes nothing of what is ready for it
    ping_after: float = (
        30.0  # HTTP/2: a connection with open streams that is silent is asked whether it lives
    )
    ping_timeout: float = 20.0  # and has this long to answer
    tick: float = 1.0  # how often HTTP/2 looks at its clocks
    # HTTP/2
    max_streams: int = 1_000  # requests at work on one connection
    stream_window: int = 1 << 20  # octets of one request's body sent ahead of the app's reading
    connection_window: int = 16 << 20  # the same over all requests of a connection
    stream_buffer: int = 65_536  # octets of one response held for a slow reader before send() waits
    write_buffer: int = 65_536  # octets handed to the transport before every send() of a connection waits
    control_buffer: int = 1 << 20  # octets of answers to a peer that asks and does not read
    reset_burst: int = 2_000  # cancels at once
    reset_rate: float = 200.0  # and cancels a second for ever
    # the end
    graceful_timeout: float = 30.0  # for requests at work; then they are cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files. With ``client_ca`` clients may show a certificate, with ``require`` they must."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    require: bool = False


@dataclass(slots=True)
class Server:
    """A running server."""

    host: str
    port: int
    tls: bool
    _uvicorn: uvicorn.Server
    _main: asyncio.Task[None] = field(init=False)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    def close(self) -> None:
        """Begin the graceful end; ``wait_closed`` tells when it is over. Safe to call twice."""
        self._uvicorn.should_exit = True

    async def wait_closed(self) -> None:
        """Until the server has ended, whoever ended it."""
        await asyncio.shield(self._main)


@asynccontextmanager
async def serve(
    app: App,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: TlsFiles | None = None,
    limits: Limits = Limits(),  # frozen
    http2: bool = True,
) -> AsyncIterator[Server]:
    """Serve ``app`` while the block runs; its lifespan starts before the block and ends after it."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=front(limits) if http2 else "httptools",
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=limits.backlog,
        timeout_keep_alive=int(limits.idle_timeout),
        timeout_graceful_shutdown=int(limits.graceful_timeout),
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
        ssl_ca_certs=str(tls.client_ca) if tls and tls.client_ca else None,
        ssl_cert_reqs=ssl.CERT_NONE
        if not tls or not tls.client_ca
        else ssl.CERT_REQUIRED
        if tls.require
        else ssl.CERT_OPTIONAL,
    )
    config.load()
    inner = uvicorn.Server(config)
    inner.lifespan = config.lifespan_class(config)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=limits.backlog)
    try:
        await inner.startup(sockets=[listener])
    except SystemExit:  # uvicorn's word for a lifespan that failed; the reason is in the log
        listener.close()
        raise ConfigError("the app failed to start") from None
    server = Server(host, listener.getsockname()[1], tls is not None, inner)
    server._main = asyncio.create_task(_main(inner, listener), name="dragoman-server")
    try:
        yield server
    finally:
        server.close()
        await asyncio.shield(server._main)


async def _main(inner: uvicorn.Server, listener: socket.socket) -> None:
    await inner.main_loop()
    await inner.shutdown(sockets=[listener])
