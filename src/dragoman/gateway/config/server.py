"""What an operator writes about the gateway's own server."""

from __future__ import annotations

from msgspec import Struct

from .values import FilePath, Port


class ServerTls(Struct, frozen=True, kw_only=True):
    """PEM files to serve TLS with; ``client_ca`` checks the certificates of callers."""

    cert: FilePath
    key: FilePath
    client_ca: FilePath | None = None
    require_client_cert: bool = False


class Server(Struct, frozen=True, kw_only=True):
    """Where the gateway listens. ``public_url``: where callers reach it, else told from each request."""

    host: str = "127.0.0.1"
    port: Port = 8000
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    health: bool = False
    reflection: bool = False
    tls: ServerTls | None = None
