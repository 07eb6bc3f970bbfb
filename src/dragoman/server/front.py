"""What stands behind the port: one look at a new connection, then HTTP/2 or HTTP/1.1.

Over TLS the negotiated protocol decides (RFC 7301), in clear text the first octets do (HTTP/2 with prior knowledge,
RFC 9113 §3.3).
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

from .asgi import CANCELS
from .http1 import Http1Protocol
from .http2 import PREFACE, Http2Protocol

if TYPE_CHECKING:
    from .host import Host

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


class Front(asyncio.Protocol):
    """Until the first octets are there; then another protocol has the connection."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._transport: asyncio.Transport
        self._seen = b""
        self._since = host.now

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as asyncio has it
        self._transport = transport
        if self._host.closing or len(self._host.connections) >= self._host.limits.connections:
            transport.abort()
            return
        tls = transport.get_extra_info("ssl_object")
        if tls is None:
            self._host.connections.add(self)
        else:
            self._become(tls.selected_alpn_protocol() == "h2")

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if len(self._seen) >= len(PREFACE) or not PREFACE.startswith(self._seen):
            self._become(self._seen.startswith(PREFACE))

    def connection_lost(self, exc: Exception | None) -> None:
        self._host.release(self)

    def tick(self, now: float) -> None:
        """A client that says nothing is not waited for."""
        if now - self._since > self._host.limits.head_timeout:
            self._transport.close()

    def shutdown(self) -> None:
        """Nothing was asked yet."""
        self._transport.close()

    def abort(self) -> None:
        """At once, whatever is lost."""
        self._transport.abort()

    def _become(self, http2: bool) -> None:
        self._host.connections.discard(self)
        extensions = {CANCELS: {}, **tls_extension(self._transport)}
        protocol: Http1Protocol | Http2Protocol
        protocol = Http2Protocol(self._host, extensions) if http2 else Http1Protocol(self._host, extensions)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._seen:
            protocol.data_received(self._seen)
