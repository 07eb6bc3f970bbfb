"""The server under our app: every limit in one table, started and stopped inside a running event loop.

    async with serve(app, port=0) as server:
        print(server.url)
        await server.wait_closed()

HTTP/1.1 and HTTP/2 stand behind one port (``front``), both ours: no server library at hand lets gRPC streams wait
alone, and none is as fast (docs/decisions/0001-http-server.md). Nothing here touches signals or makes a loop: whoever
calls ``serve`` decides when it ends.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any, Protocol

from ..errors import ConfigError
from .asgi import App
from .front import Front
from .lifespan import Lifespan

__all__ = ["Limits", "Server", "TlsFiles", "serve"]

log = logging.getLogger(__name__)

_LAST_WORDS = 0.5  # seconds for the answers to requests that were cancelled at the end


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
    body_stall: float = 60.0  # a request body of which nothing comes
    write_stall: float = 60.0  # a reader that takes nothing of what is ready for it
    ping_after: float = 30.0  # HTTP/2: a connection with open streams that is silent is asked whether it lives
    ping_timeout: float = 20.0  # and has this long to answer
    tick: float = 1.0  # how often these are looked at
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


@dataclass(frozen=True, slots=True)
class Tls:
    """The files, and the context that was made of them."""

    files: TlsFiles
    context: ssl.SSLContext


class Connection(Protocol):
    """What the host does with an open connection."""

    def tick(self, now: float) -> None:
        """End what has waited too long; ``now`` is the loop's clock."""
        ...

    def shutdown(self) -> None:
        """Take no new requests; end when the last one has."""
        ...

    def abort(self) -> None:
        """End at once, whatever is lost."""
        ...


class Host:
    """What all connections of a server share: the app, its limits, the clock, and who is at work."""

    def __init__(self, app: App, limits: Limits, state: dict[str, Any]) -> None:
        self.app = app
        self.limits = limits
        self.state = state
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.closing = False
        self._empty = asyncio.Event()
        self._look()

    def _look(self) -> None:
        self.now = self.loop.time()
        self.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        self.date_line = b"date: " + self.default_headers[0][1] + b"\r\n"
        for connection in list(self.connections):
            connection.tick(self.now)
        self._timer = self.loop.call_later(self.limits.tick, self._look)

    def release(self, connection: Connection) -> None:
        """``connection`` is over."""
        self.connections.discard(connection)
        if self.closing and not self.connections:
            self._empty.set()

    async def close(self) -> None:
        """Let requests end and replies leave for the graceful time, then cancel and cut what is left."""
        self.closing = True
        end = self.loop.time() + self.limits.graceful_timeout
        for connection in list(self.connections):
            connection.shutdown()
        if self.tasks:
            _, late = await asyncio.wait(self.tasks, timeout=self.limits.graceful_timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._emptied(max(end - self.loop.time(), _LAST_WORDS))
        self._timer.cancel()

    async def _emptied(self, patience: float) -> None:
        """Until the last connection has sent what it had to, and gone; after ``patience`` seconds it is cut."""
        try:
            async with asyncio.timeout(patience):
                while self.connections:
                    self._empty.clear()
                    await self._empty.wait()
        except TimeoutError:
            for connection in list(self.connections):
                connection.abort()


class Server:
    """A running server. ``host``, ``port`` and ``url`` say where it listens."""

    def __init__(self, address: tuple[str, int], tls: Tls | None) -> None:
        self.host, self.port = address
        self._tls = tls
        self._stop = asyncio.Event()
        self._closed = asyncio.Event()

    @property
    def url(self) -> str:
        """Scheme, host and port, without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def renew_tls(self) -> None:
        """Show what is in the TLS files by now, to who connects from now on. Raises ``ConfigError``, and goes on as
        before, if they cannot be used."""
        if self._tls is not None:
            _tls_context(self._tls.files)  # a trial: a context takes half of a bad pair
            self._tls.context.load_cert_chain(self._tls.files.certificate, self._tls.files.key)

    def close(self) -> None:
        """Begin the graceful end; :meth:`wait_closed` tells when it is over. Safe to call twice."""
        self._stop.set()

    async def wait_closed(self) -> None:
        """Until the server has ended, whoever ended it."""
        await self._closed.wait()

    async def run(self, listening: asyncio.Server, host: Host, lifespan: Lifespan) -> None:
        """Serve until :meth:`close`, then end in order: the port, the requests, the app."""
        await self._stop.wait()
        listening.close()
        await host.close()
        await lifespan.shutdown()
        self._closed.set()


@asynccontextmanager
async def serve(
    app: App,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: TlsFiles | None = None,
    limits: Limits = Limits(),  # frozen
) -> AsyncIterator[Server]:
    """Serve ``app`` while the block runs; its lifespan starts before the block and ends after it.

    ``port`` 0 takes a free one. Raises ``ConfigError`` if the address cannot be had, the app fails to start or a TLS
    file cannot be used.
    """
    context = _tls_context(tls) if tls else None
    listener = _listen(host, port, limits.backlog)
    state: dict[str, Any] = {}
    lifespan = Lifespan(app, state)
    try:
        await lifespan.startup()
    except BaseException:
        listener.close()
        raise
    behind = Host(app, limits, state)
    listening = await behind.loop.create_server(
        lambda: Front(behind),
        sock=listener,
        ssl=context,
        ssl_handshake_timeout=limits.head_timeout if context else None,
        ssl_shutdown_timeout=limits.head_timeout if context else None,
        backlog=limits.backlog,
    )
    shown = Tls(tls, context) if tls is not None and context is not None else None
    server = Server((host, listener.getsockname()[1]), shown)
    main = asyncio.create_task(server.run(listening, behind, lifespan), name="dragoman-server")
    try:
        yield server
    finally:
        server.close()
        await asyncio.shield(main)


def _listen(host: str, port: int, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if not 0 <= port <= 65_535:
        raise ConfigError(f"Cannot listen on {host} port {port}: a port is 0 to 65535")
    try:
        return socket.create_server((host, port), family=family, backlog=backlog)
    except OSError as error:
        hint = "; port 0 takes a free one" if error.errno == errno.EADDRINUSE else ""
        number = error.errno or 0  # negative: of the name service, which has its own texts
        reason = os.strerror(number) if number > 0 else error.strerror
        raise ConfigError(f"Cannot listen on {host} port {port}: {reason}{hint}") from None


def _tls_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        context.load_cert_chain(files.certificate, files.key)
        if files.client_ca is not None:
            context.load_verify_locations(files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED if files.require else ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"The TLS files cannot be used: {error}") from error
    return context
