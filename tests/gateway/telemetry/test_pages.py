"""Health, readiness and metrics, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from dragoman.faces import Face
from dragoman.gateway.config import Config, Observe, Server, Upstream, completed
from dragoman.gateway.config.checks import complaints
from dragoman.gateway.config.observing import Ready
from dragoman.gateway.telemetry.catalog import METRICS
from dragoman.gateway.telemetry.pages import Pages, in_thread
from dragoman.gateway.telemetry.readiness import Readiness
from dragoman.gateway.telemetry.tallies import Counted, Spread
from dragoman.gateway.telemetry.telemetry import Telemetry
from tests.asgi_driver import Answer, request
from tests.server.callers import good_call

from .conftest import Look, Seen


class One:
    """An agent, as far as readiness looks."""

    def __init__(self, name: str, *, there: bool) -> None:
        self.config = Upstream(name=name, url="http://secret.internal")
        self.client = None
        self.reachable = there
        self.error = None if there else RuntimeError("no route to secret.internal")
        if there:
            self.client = self  # stands for any client
        self.interface, self.face = self, "1.0/JSONRPC"
        self.url = "http://secret.internal/rpc"


def pages(*there: bool, rule: Ready = "any", private: bool = False, checks: Any = None) -> tuple[Pages, Readiness]:
    agents = [One(f"agent-{place}", there=one) for place, one in enumerate(there)]
    readiness = Readiness(rule, lambda: agents, checks)
    return Pages(readiness, None, private=private), readiness


async def get(app: Any, path: str, method: str = "GET", **headers: str) -> Answer:
    return await request(app, method, path, headers=headers)


@pytest.mark.parametrize(
    ("there", "rule", "status"),
    [
        ((True, False), "any", 200),
        ((False, False), "any", 503),
        ((True, False), "all", 503),
        ((True, True), "all", 200),
        ((False, False), "none", 200),
    ],
)
async def test_readiness_goes_by_the_agents_that_are_there(there: tuple[bool, ...], rule: Ready, status: int) -> None:
    app, _ = pages(*there, rule=rule)
    answer = await get(app, "/readyz")
    assert answer.status == status
    assert [one["up"] for one in json.loads(answer.body)["upstreams"].values()] == list(there)


async def test_a_gateway_that_drains_is_alive_and_not_ready() -> None:
    app, readiness = pages(True)
    readiness.drain()
    assert (await get(app, "/healthz")).status == 200
    answer = await get(app, "/readyz")
    assert answer.status == 503 and json.loads(answer.body)["draining"] is True


async def test_what_is_needed_and_does_not_answer_is_named() -> None:
    async def broken() -> None:
        raise ConnectionError("password=hunter2")

    async def fine() -> None: ...

    app, _ = pages(True, checks={"store": broken, "other": fine})
    answer = await get(app, "/readyz")
    assert answer.status == 503 and json.loads(answer.body)["missing"] == ["store"]
    assert b"hunter2" not in answer.body


async def test_addresses_and_reasons_are_for_the_private_port_alone() -> None:
    public, private = pages(True, False)[0], pages(True, False, private=True)[0]
    assert b"secret.internal" not in (await get(public, "/readyz")).body
    told = json.loads((await get(private, "/readyz")).body)["upstreams"]
    assert told["agent-0"] == {"up": True, "url": "http://secret.internal/rpc", "face": "1.0/JSONRPC"}
    assert told["agent-1"]["error"] == "no route to secret.internal"


@pytest.mark.parametrize(
    ("method", "path", "status"), [("HEAD", "/healthz", 200), ("POST", "/healthz", 405), ("GET", "/metrics", 404)]
)
async def test_pages_are_read_and_nothing_else(method: str, path: str, status: int) -> None:
    answer = await get(pages(True)[0], path, method)
    assert answer.status == status and (method != "HEAD" or not answer.body)


async def test_pages_stand_before_an_agent_at_the_root(look: Look) -> None:
    async with look() as seen:
        app = _front(seen)
        assert json.loads((await get(app, "/healthz")).body) == {"alive": True}
        await good_call(app, Face("JSONRPC", "1.0"))  # and everything else is the agent's
        assert (await get(app, "/.well-known/agent-card.json")).status == 200


def _front(seen: Seen) -> Any:
    telemetry = seen.board.common.telemetry
    readiness = Readiness("any", lambda: seen.board.agents)
    return Pages(readiness, in_thread(telemetry.readings, telemetry.write), private=False).before(seen.board)


async def test_metrics_are_what_prometheus_reads(look: Look) -> None:
    async with look(face="0.3/JSONRPC") as seen:
        app = _front(seen)
        for _ in range(3):
            await good_call(app, Face("GRPC", "1.0"))
        answer = await get(app, "/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    samples = [sample for family in parsed(answer.body.decode()) for sample in family.samples]
    (calls,) = [sample for sample in samples if sample.name == "dragoman_calls_total"]
    assert calls.value == 3
    assert calls.labels == {
        "upstream": "alpha",
        "operation": "SendMessage",
        "face_in": "1.0/GRPC",
        "face_out": "0.3/JSONRPC",
        "outcome": "ok",
    }
    buckets = [one.value for one in samples if one.name == "dragoman_call_seconds_bucket"]
    assert buckets == sorted(buckets) and buckets[-1] == 3
    assert any(sample.name == "process_resident_memory_bytes" for sample in samples)


async def test_openmetrics_is_written_for_who_asks_for_it(look: Look) -> None:
    async with look() as seen:
        answer = await get(_front(seen), "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.body.count(b"# EOF") == 1 and answer.body.endswith(b"# EOF\n")


def test_every_metric_of_the_table_can_be_written() -> None:
    bounds = (1.0,)
    readings = [
        Spread(row.name, tuple("x" for _ in row.labels), bounds, (1, 0), 1.0)
        if row.kind == "histogram"
        else Counted(row.name, tuple("x" for _ in row.labels), 1)
        for row in METRICS.values()
    ]
    _, body = Telemetry(Observe(metrics=True)).write(readings, "")
    written = {sample.name for family in parsed(body.decode()) for sample in family.samples}
    wanted = {row.name + ("_count" if row.kind == "histogram" else "") for row in METRICS.values()}
    assert wanted <= written


def test_names_of_metrics_follow_the_conventions() -> None:
    for row in METRICS.values():
        assert row.name.startswith("dragoman_")
        assert row.name.endswith("_total") == (row.kind == "counter")


@pytest.mark.parametrize(
    ("port", "wrong"),
    [
        (9000, [(("observe", "port"), "9000 is the port that all upstreams share")]),
        (9001, [(("observe", "port"), "9001 is that of a")]),
        (9002, []),
    ],
)
def test_a_port_of_its_own_is_nobody_elses(port: int, wrong: list[Any]) -> None:
    one = Upstream(url="http://a.test", name="a", port=9001)
    config = completed(Config(upstream=(one,), server=Server(port=9000), observe=Observe(port=port)))
    assert complaints(config) == wrong
