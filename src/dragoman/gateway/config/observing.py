"""What an operator writes about what the gateway shows of itself."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Literal

from msgspec import Struct

from .server import Server
from .upstream import Upstream
from .values import OwnPort, Said

#: How many agents have to be there for the gateway to be ready.
Ready = Literal["any", "all", "none"]
_EXTRA = "which is not installed: pip install 'dragoman[telemetry]'"


class Observe(Struct, frozen=True, kw_only=True):
    """Logs, metrics, traces, health.

    ``log``: one line of text or of JSON per record on stderr. ``level``: the least that is logged; what was asked for
    by name, and what the gateway decides, always is. ``calls``: one
    record per call. ``bodies``: messages are logged too, redacted; for debugging. ``metrics``: serve ``/metrics`` on
    the shared port. ``host`` and ``port``: health, readiness and metrics are served there, and not on the shared port.
    ``ready``: how many agents have to be there for ``/readyz``. ``traces``: spans for OpenTelemetry, by its own
    environment variables.
    """

    log: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "warning"
    calls: bool = False
    bodies: bool = False
    metrics: bool = False
    host: str = "127.0.0.1"
    port: OwnPort | None = None
    ready: Ready = "any"
    traces: bool = False

    @property
    def counted(self) -> bool:
        """Whether metrics are served anywhere."""
        return self.metrics or self.port is not None


def wrong_observe(observe: Observe, server: Server, upstreams: Iterable[Upstream]) -> Said:
    """Everything that is wrong with it."""
    if observe.port is not None and observe.port == server.port:
        yield ("port",), f"{observe.port} is the port that all upstreams share"
    elif observe.port is not None:
        yield from ((("port",), f"{one.port} is that of {one.name}") for one in upstreams if one.port == observe.port)
    if observe.counted and find_spec("prometheus_client") is None:
        yield ("port" if observe.port else "metrics",), f"metrics need the package prometheus-client, {_EXTRA}"
    if observe.traces and find_spec("opentelemetry") is None:
        yield ("traces",), f"traces need the package opentelemetry-api, {_EXTRA}"
