"""What stands behind the port: one look at a new connection, then HTTP/2 of ours or HTTP/1.1 of uvicorn.

Over TLS the negotiated protocol decides, in clear text the first octets do (HTTP/2 with prior knowledge).
uvicorn's HTTP/1.1 protocol is used with what it lacks: a head has a largest size and a longest time, a reader
that stops has a longest time, and a client that goes away cancels the request's task, as it does on HTTP/2.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from .http2 import PREFACE, Http2Protocol

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope

    from .host import Limits

__all__ = ["front"]

_TLS_VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}


def tls_extension(transport: asyncio.BaseTransport) -> dict[str, Any]:
    """``{"tls": ...}`` of the ASGI TLS extension, with the client's certificate if it showed one."""
    tls = transport.get_extra_info("ssl_object")
    if tls is None:
        return {}
    der = tls.getpeercert(True)
    subject = (tls.getpeercert() or {}).get("subject", ())
    names = [f"{key}={value}" for part in reversed(subject) for key, value in part]
    return {
        "tls": {
            "server_cert": None,
            "client_cert_chain": (ssl.DER_cert_to_PEM_cert(der),) if der else (),
            "client_cert_name": ",".join(names) if der else None,
            "client_cert_error": None,
            "tls_version": _TLS_VERSIONS.get(tls.version() or ""),
            "cipher_suite": None,
        }
    }


class _Http1(HttpToolsProtocol):
    """uvicorn's, with guards."""

    limits: ClassVar[Limits]
    _extensions: dict[str, Any]
    _head_size = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._extensions = tls_extension(transport)
        self._timer = self.loop.call_later(self.limits.head_timeout, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)
        if self._task is not None and self.cycle.disconnected:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_size += len(data)
            if self._timer is None:
                self._timer = self.loop.call_later(self.limits.head_timeout, self.transport.close)
        super().data_received(data)
        if self._in_head and self._head_size > self.limits.head_size and not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = self._extensions

    def on_headers_complete(self) -> None:
        self._in_head, self._head_size = False, 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        async def quietly(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            try:
                await app(scope, receive, send)
            except asyncio.CancelledError:
                if not cycle.disconnected:
                    raise

        task = self._task = self.loop.create_task(cycle.run_asgi(quietly))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self.limits.write_stall, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()


class _Front(asyncio.Protocol):
    """Until the first octets are there; then another protocol has the connection."""

    alpn_protocols: ClassVar[list[str]] = ["h2", "http/1.1"]
    limits: ClassVar[Limits]
    http1: ClassVar[type[_Http1]]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.config, self.server_state, self.app_state = config, server_state, app_state
        self.loop = _loop or asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.seen = b""
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        connections: set[Any] = self.server_state.connections
        if len(connections) >= self.limits.connections:
            transport.abort()
            return
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._become(tls.selected_alpn_protocol() == "h2")
            return
        connections.add(self)
        self.timer = self.loop.call_later(self.limits.head_timeout, transport.close)

    def data_received(self, data: bytes) -> None:
        self.seen += data
        if len(self.seen) >= len(PREFACE) or not PREFACE.startswith(self.seen):
            self._become(self.seen.startswith(PREFACE))

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def shutdown(self) -> None:
        self.transport.close()

    def _leave(self) -> None:
        connections: set[Any] = self.server_state.connections
        connections.discard(self)
        if self.timer is not None:
            self.timer.cancel()

    def _become(self, http2: bool) -> None:
        self._leave()
        state = self.server_state
        protocol: asyncio.Protocol
        if http2:
            protocol = Http2Protocol(
                app=self.config.loaded_app,
                limits=self.limits,
                connections=state.connections,
                tasks=state.tasks,
                state=self.app_state,
                default_headers=lambda: state.default_headers,
                extensions=tls_extension(self.transport),
                loop=self.loop,
            )
        else:
            protocol = self.http1(self.config, state, self.app_state, self.loop)
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if self.seen:
            protocol.data_received(self.seen)


def front(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol class for ``uvicorn.Config(http=...)``, with these limits."""
    http1 = type("Http1", (_Http1,), {"limits": limits})
    return type("Front", (_Front,), {"limits": limits, "http1": http1})
