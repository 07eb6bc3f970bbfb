"""What an operator writes about what the gateway shows of itself."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .values import OwnPort


class Observe(Struct, frozen=True, kw_only=True):
    """Logs, metrics, traces.

    ``log``: one line of text or of JSON per record on stderr. ``level``: the least that is logged. ``calls``: one
    record per call. ``bodies``: messages are logged too, redacted; for debugging. ``metrics``: serve ``/metrics``.
    ``port``: health, readiness and metrics are served there, on ``host``, and not on the shared port. ``traces``:
    spans for OpenTelemetry, by its own environment variables.
    """

    log: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    calls: bool = False
    bodies: bool = False
    metrics: bool = False
    host: str = "127.0.0.1"
    port: OwnPort | None = None
    traces: bool = False
