"""The gateway's configuration: its structs, how a file becomes them, and what may be wrong with it."""

from .auth import Auth, Cors
from .keeping import Relay, Store
from .observing import Observe
from .server import Server, ServerTls
from .upstream import Breaker, Polling, Upstream, UpstreamLimits, UpstreamTimeouts, UpstreamTls
from .values import FilePath, Secret
from .whole import Config, completed, name_of

__all__ = [
    "Auth",
    "Breaker",
    "Config",
    "Cors",
    "FilePath",
    "Observe",
    "Polling",
    "Relay",
    "Secret",
    "Server",
    "ServerTls",
    "Store",
    "Upstream",
    "UpstreamLimits",
    "UpstreamTimeouts",
    "UpstreamTls",
    "completed",
    "name_of",
]
