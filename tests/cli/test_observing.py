"""What a running gateway shows of itself, and how it ends: over real processes, signals and sockets."""

from __future__ import annotations

import http.client
import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from dragoman.cli import main
from dragoman.cli.observing import Observing
from dragoman.errors import ConfigError
from dragoman.gateway.config import Config, Observe, Server, Upstream
from tests.cli.conftest import Process, free_port, nowhere

Capture = pytest.CaptureFixture[str]


def get(url: str, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@contextmanager
def stream(url: str, text: str) -> Iterator[http.client.HTTPResponse]:
    """An open stream of a task."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    headers = {"content-type": "application/json", "a2a-version": "1.0"}
    connection.request("POST", "/", json.dumps(body), headers)
    reply = connection.getresponse()
    try:
        yield reply
    finally:
        reply.close()
        connection.close()


def call(url: str) -> int:
    return main.run(["call", url, "hi", "--json"])


# -- logs


def test_a_json_log_is_lines_of_json_and_nothing_else(agent: Process, capsys: Capture) -> None:
    one = Process("gateway", agent.url, "--log-format", "json", "--log-calls", "--log-bodies")
    assert call(one.url) == 0
    task = json.loads(capsys.readouterr().out)["task"]
    code, out, err = one.stop()
    assert (code, out) == (0, b"")
    lines = [json.loads(line) for line in err.splitlines()]
    assert all({"time", "level", "logger"} <= line.keys() for line in lines)
    (told,) = [line for line in lines if line["logger"] == "dragoman.calls"]
    assert (told["operation"], told["outcome"], told["task"]) == ("SendMessage", "ok", task["id"])
    said = [line for line in lines if line["logger"] == "dragoman.bodies"]
    assert said[0]["level"] == "warning" and "MESSAGES ARE LOGGED" in said[0]["message"]
    assert [line for line in said if "request" in line["message"]]
    assert lines[-1]["message"].startswith("Stopping")


def test_a_text_log_has_a_line_per_call(agent: Process, capsys: Capture) -> None:
    one = Process("gateway", agent.url, "--log-calls", "--upstream", "0.3/GRPC")
    assert call(one.url) == 0
    _, _, err = one.stop()
    (line,) = [line for line in err.decode().splitlines() if " CALL " in line]
    assert " SendMessage 1.0/JSONRPC>0.3/GRPC ok " in line and "task=" in line


def test_nothing_is_said_of_calls_unless_asked_for(agent: Process, capsys: Capture) -> None:
    one = Process("gateway", agent.url)
    assert call(one.url) == 0
    _, _, err = one.stop()
    assert b"SendMessage" not in err


def test_traces_go_where_opentelemetrys_own_variables_say(
    tmp_path: Path, agent: Process, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'[observe]\ntraces = true\ncalls = true\n[[upstream]]\nurl = "{agent.url}"\n')
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    one = Process("gateway", "--config", str(file))
    assert call(one.url) == 0
    code, _, err = one.stop()
    told = err.decode()
    assert code == 0 and told.count('"name": "SendMessage"') == 2
    assert '"kind": "SpanKind.SERVER"' in told and '"service.name": "dragoman-gateway"' in told
    (trace,) = re.findall(r" trace=([0-9a-f]{32})", told)
    assert told.count(f'"trace_id": "0x{trace}"') >= 2


# -- pages


def test_metrics_are_beside_the_agents_only_if_asked_for(gateway: Process, agent: Process) -> None:
    assert get(gateway.url, "/healthz")[0] == get(gateway.url, "/readyz")[0] == 200
    assert get(gateway.url, "/metrics")[0] == 404
    one = Process("gateway", agent.url, agent.url, "--metrics")
    status, body = get(one.url, "/metrics")
    one.stop()
    assert status == 200 and body.count(b"dragoman_upstream_up{") == 2


def test_a_port_of_its_own_takes_the_pages_off_the_shared_one(agent: Process, capsys: Capture) -> None:
    port = free_port()
    one = Process("gateway", agent.url, "--metrics-port", str(port))
    own = f"http://127.0.0.1:{port}"
    status, metrics = get(own, "/metrics")
    assert status == get(own, "/readyz")[0] == 200
    assert re.search(rb'\ndragoman_replica_connects_total\{replica="0",upstream="[^"]+"\} 1.0\n', metrics)
    assert b'\ndragoman_deliveries_total{outcome="delivered"} 0.0\n' in metrics and agent.url.encode() not in metrics
    assert agent.url in json.loads(get(own, "/readyz")[1])["upstreams"].popitem()[1]["url"]
    assert get(one.url, "/readyz")[0] == get(one.url, "/metrics")[0] == 404
    assert main.run(["gateway", "health", own, "--ready"]) == 0
    one.stop()
    assert main.run(["gateway", "health", own]) == main.UNREACHABLE
    assert "no answer" in capsys.readouterr().err


def test_a_gateway_whose_agents_are_away_is_alive_but_not_ready(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'[[upstream]]\nurl = "{nowhere()}"\n')
    one = Process("gateway", "--config", str(file))
    assert main.run(["gateway", "health", one.url]) == 0
    assert main.run(["gateway", "health", one.url, "--ready"]) == main.FINDINGS
    assert '503 {"ready":false' in capsys.readouterr().err
    one.stop()


# -- the end


def test_a_gateway_that_drains_says_so_and_goes_on_serving(agent: Process) -> None:
    one = Process("gateway", agent.url, "--drain", "60", "--log-format", "json")
    assert get(one.url, "/readyz")[0] == 200
    one.process.send_signal(signal.SIGTERM)
    assert one.process.stderr is not None
    assert b"Draining" in one.process.stderr.readline()
    status, body = get(one.url, "/readyz")
    assert status == 503 and json.loads(body)["draining"] is True
    assert call(one.url) == 0
    code, _, _ = one.stop()  # the second signal ends it at once, far before the minute is over
    assert code == -signal.SIGTERM


def test_a_drain_that_is_over_ends_streams_with_an_error_and_the_gateway_with_0(agent: Process) -> None:
    one = Process("gateway", agent.url, "--drain", "0.2")
    with stream(one.url, "slow 300") as reply:
        assert b"TASK_STATE_SUBMITTED" in reply.readline()
        one.process.send_signal(signal.SIGTERM)
        rest = reply.read()
    assert b"shutting down" in rest and b"-32603" in rest
    _, err = one.process.communicate(timeout=20)
    assert one.process.returncode == 0
    assert b"Draining" in err and b"Traceback" not in err


# -- options


def test_options_win_over_the_file() -> None:
    config = Config(
        upstream=(Upstream(url="http://a.test"),), server=Server(drain=5), observe=Observe(log="json", calls=True)
    )
    assert Observing().over(config) == config
    found = Observing(log_format="text", drain=0, metrics_port=9100).over(config)
    assert (found.observe.log, found.observe.calls, found.observe.port, found.server.drain) == ("text", True, 9100, 0)
    with pytest.raises(ConfigError, match="8000 is the port that all upstreams share"):
        Observing(metrics_port=8000).over(config)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", ""])
def test_health_wants_a_url(url: str) -> None:
    assert main.run(["gateway", "health", url]) == main.USAGE
