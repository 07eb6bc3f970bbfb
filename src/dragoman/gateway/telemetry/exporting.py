"""OpenTelemetry's SDK, set up by its own environment variables where the process has none yet.

``OTEL_EXPORTER_OTLP_ENDPOINT``, ``_PROTOCOL`` (``http/protobuf`` or ``grpc``), ``_HEADERS`` and their kind say where
spans go, ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` who we are, ``OTEL_TRACES_SAMPLER`` how many there are,
``OTEL_TRACES_EXPORTER`` (``otlp``, ``console``, ``none``) how they leave.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import ProxyTracerProvider

from ...errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

#: By ``OTEL_EXPORTER_OTLP_PROTOCOL``: the module that has the exporter, and the package that it comes with.
_OTLP = {
    "http/protobuf": (
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry-exporter-otlp-proto-http",
    ),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "opentelemetry-exporter-otlp-proto-grpc"),
}
_NAME = "dragoman-gateway"


def set_up() -> Callable[[], None]:
    """Have a tracer provider; call what this gives at the end, so that no span is lost. Raises ``ConfigError``."""
    if not isinstance(trace.get_tracer_provider(), ProxyTracerProvider):
        return _nothing  # whoever started us has set one up
    how = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    if how == "none":
        return _nothing
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigError("Traces need OpenTelemetry's SDK: pip install opentelemetry-sdk") from error
    exporter = _exporter(how)
    named = os.environ.get("OTEL_SERVICE_NAME") or f"{SERVICE_NAME}=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    provider = TracerProvider(resource=Resource.create({} if named else {SERVICE_NAME: _NAME}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _exporter(how: str) -> SpanExporter:
    if how == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    if how != "otlp":
        raise ConfigError(f"OTEL_TRACES_EXPORTER={how}: there are otlp, console and none")
    protocol = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if (protocol or "http/protobuf") not in _OTLP:
        raise ConfigError(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: there are {', '.join(_OTLP)}")
    module, package = _OTLP[protocol or "http/protobuf"]
    try:
        exporter: SpanExporter = import_module(module).OTLPSpanExporter()
    except ImportError as error:
        raise ConfigError(f"Traces need an exporter: pip install {package}") from error
    return exporter


def _nothing() -> None:
    """There is nothing to end."""
