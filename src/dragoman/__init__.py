"""Dragoman: A2A between any two agents, whichever version and binding either side speaks.

- :func:`connect` calls an agent over any of the six faces.
- :class:`Agent` and :class:`Turn` are what an agent is written with; :class:`Engine` runs it.
- :func:`http_courier` makes what an engine delivers to webhooks with; :class:`Guard` says which it may call.
- :class:`A2AApp` serves an :class:`A2AService` on six faces as one ASGI app.
- :class:`Gateway` is the service that stands in front of a connected client.
- ``FACES``, ``OPERATIONS``, :mod:`dragoman.model` and :mod:`dragoman.errors` are the protocol core, usable by itself.

Importing this loads no HTTP client, no gRPC and no server: those come with the first use.
"""

from __future__ import annotations

from .client.client import Client
from .client.connect import connect
from .client.options import Limits, Resume, Timeouts, Tls
from .errors import A2AError, ConfigError, DragomanError, PeerError, TransportError
from .faces import ALL_FACES, FACES, Face
from .gateway.gateway import Gateway
from .model import OPERATIONS
from .runtime.agent import Agent, Turn
from .runtime.engine import Engine
from .runtime.push import Courier, http_courier
from .security.guard import Guard
from .server.app import A2AApp
from .service import A2AService, Context, EventStream, Middleware
from .store.memory import MemoryStore

__all__ = [
    "ALL_FACES",
    "FACES",
    "OPERATIONS",
    "A2AApp",
    "A2AError",
    "A2AService",
    "Agent",
    "Client",
    "ConfigError",
    "Context",
    "Courier",
    "DragomanError",
    "Engine",
    "EventStream",
    "Face",
    "Gateway",
    "Guard",
    "Limits",
    "MemoryStore",
    "Middleware",
    "PeerError",
    "Resume",
    "Timeouts",
    "Tls",
    "TransportError",
    "Turn",
    "connect",
    "http_courier",
]
