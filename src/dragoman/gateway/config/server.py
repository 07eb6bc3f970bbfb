"""What an operator writes about the gateway's own server."""

from __future__ import annotations

from msgspec import Struct

from .values import FilePath, NoSeconds, Port


class ServerTls(Struct, frozen=True, kw_only=True):
    """PEM files to serve TLS with; ``client_ca`` checks the certificates of callers."""

    cert: FilePath
    key: FilePath
    client_ca: FilePath | None = None
    require_client_cert: bool = False


class Server(Struct, frozen=True, kw_only=True):
    """Where the gateway listens. ``public_url``: where callers reach it, else told from each request.

    ``drain``: seconds that it goes on serving after it was told to stop, saying that it is not ready, so that callers
    are sent elsewhere.
    """

    host: str = "127.0.0.1"
    port: Port = 8000
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    health: bool = False
    reflection: bool = False
    drain: NoSeconds = 0.0
    tls: ServerTls | None = None
