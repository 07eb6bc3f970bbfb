"""Spans: one of the call, one of what goes on to the agent, joined to the caller's trace."""

from __future__ import annotations

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from dragoman.errors import ConfigError
from dragoman.faces import Face
from dragoman.gateway.agents import Agent
from dragoman.gateway.common import Common
from dragoman.gateway.config import Observe, Upstream
from dragoman.gateway.telemetry import exporting
from dragoman.gateway.telemetry.calls import CallRecord
from dragoman.gateway.telemetry.telemetry import Telemetry
from dragoman.gateway.telemetry.tracing import Tracing
from dragoman.model import GET_TASK, SEND_STREAMING_MESSAGE, GetTaskRequest
from tests.gateway.fronts import upstream
from tests.server.callers import Wire, send, sending, wire

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}


class Traced:
    """An agent of the gateway, and the spans that were made."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.records: list[CallRecord] = []
        tracing = Tracing(self.provider.get_tracer("test"))
        self.telemetry = Telemetry(Observe(calls=True), tracing=tracing, calls=self.records.append)

    async def run(self, upstream_face: str, request: Wire) -> tuple[ReadableSpan, ReadableSpan, dict[str, str]]:
        """The SERVER span, the CLIENT span, and the fields that reached the agent."""
        async with upstream() as behind:
            config = Upstream(
                name="alpha", path="/", url=f"http://127.0.0.1:{behind.port}", face=upstream_face, push="direct"
            )
            agent = Agent(config, Common(telemetry=self.telemetry))
            await agent.reach()
            try:
                await send(agent, request)
            finally:
                await agent.aclose()
            client, server = sorted(self.exporter.get_finished_spans(), key=lambda span: span.kind is SpanKind.SERVER)
            return server, client, behind.arrived[0].headers


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.mark.parametrize("face", ["1.0/JSONRPC", "0.3/GRPC"])
@pytest.mark.parametrize("upstream_face", ["1.0/JSONRPC", "0.3/HTTP+JSON"])
async def test_the_callers_trace_goes_on_to_the_agent(traced: Traced, face: str, upstream_face: str) -> None:
    request = wire(Face.parse(face), GET_TASK, GetTaskRequest(id="gone"), headers=HEADERS)
    server, client, headers = await traced.run(upstream_face, request)
    assert server.context and server.parent and client.context and client.parent
    assert (f"{server.context.trace_id:032x}", f"{server.parent.span_id:016x}") == (TRACE, PARENT)
    assert client.parent.span_id == server.context.span_id
    assert headers["traceparent"] == f"00-{TRACE}-{client.context.span_id:016x}-01"
    assert headers["tracestate"] == "vendor=1"
    assert traced.records[0].trace == TRACE
    assert (server.name, server.kind, client.kind) == ("GetTask", SpanKind.SERVER, SpanKind.CLIENT)


async def test_spans_say_what_the_conventions_for_rpc_ask_for(traced: Traced) -> None:
    request = wire(Face("GRPC", "1.0"), GET_TASK, GetTaskRequest(id="gone"))
    server, client, _ = await traced.run("0.3/JSONRPC", request)
    assert server.attributes and client.attributes
    assert dict(server.attributes) == {
        "rpc.system": "grpc",
        "rpc.service": "lf.a2a.v1.A2AService",
        "rpc.method": "GetTask",
        "rpc.grpc.status_code": 5,
        "error.type": "TaskNotFoundError",
        "dragoman.upstream": "alpha",
        "dragoman.face_in": "1.0/GRPC",
        "dragoman.face_out": "0.3/JSONRPC",
        "dragoman.outcome": "TaskNotFoundError",
        "dragoman.task_id": "gone",
    }
    told = dict(client.attributes)
    assert (told["rpc.system"], told["rpc.method"], told["rpc.jsonrpc.error_code"]) == ("jsonrpc", "tasks/get", -32001)
    assert told["server.address"] == "127.0.0.1" and isinstance(told["server.port"], int)
    # the caller asked for what is not there: that is no fault of ours, but the call of the agent did fail
    assert (server.status.status_code, client.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)


@pytest.mark.parametrize("upstream_face", ["1.0/JSONRPC", "0.3/GRPC"])
async def test_the_spans_of_a_stream_last_until_it_ends(traced: Traced, upstream_face: str) -> None:
    request = wire(Face("JSONRPC", "1.0"), SEND_STREAMING_MESSAGE, sending("hello"))
    server, client, _ = await traced.run(upstream_face, request)
    assert server.attributes and client.attributes and server.end_time and client.end_time
    events = server.attributes["dragoman.stream.events"]
    assert isinstance(events, int) and events >= 3
    assert client.attributes["dragoman.stream.events"] == events == traced.records[0].events
    assert client.end_time <= server.end_time
    assert server.attributes["dragoman.task_id"]


async def test_a_trace_context_that_is_none_begins_a_trace(traced: Traced) -> None:
    request = wire(Face("JSONRPC", "1.0"), GET_TASK, GetTaskRequest(id="x"), headers={"traceparent": "00-zz-yy"})
    server, _, headers = await traced.run("1.0/JSONRPC", request)
    assert server.parent is None and server.context
    assert headers["traceparent"].startswith(f"00-{server.context.trace_id:032x}-")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "otlp, console and none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "http/protobuf, grpc"),
    ],
)
def test_an_exporter_that_there_is_not_is_a_mistake(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=said):
        exporting.set_up()


def test_no_exporter_is_nothing_to_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    exporting.set_up()()
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
