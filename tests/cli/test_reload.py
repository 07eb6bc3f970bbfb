"""A running gateway takes over another configuration, and who says where it listens."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import main
from dragoman.cli.hosting import Serving
from dragoman.cli.merging import merged, server_of
from dragoman.gateway.config import Server
from tests.cli.conftest import Process, free_port


def get(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return json.load(reply)
    except (urllib.error.URLError, ConnectionError):
        return None


def wait_for(check: Any) -> None:
    end = time.monotonic() + 20
    while not check():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


def table(agent: Process, name: str, more: str = "") -> str:
    return f'[[upstream]]\nname = "{name}"\nurl = "{agent.url}"\n{more}\n'


@pytest.mark.parametrize("told", [True, False], ids=["by a signal", "by the file"])
def test_a_running_gateway_takes_over_another_file_and_opens_and_closes_ports(
    agent: Process, tmp_path: Path, told: bool
) -> None:
    file, port = tmp_path / "g.toml", free_port()
    file.write_text(table(agent, "one"))
    gateway = Process("gateway", "--config", str(file), "--store", "memory")
    try:
        assert get(f"{gateway.url}/.well-known/agent-card.json")["name"]
        file.write_text(table(agent, "one") + table(agent, "two", f"port = {port}"))
        if told:
            gateway.process.send_signal(signal.SIGHUP)
        own = f"http://127.0.0.1:{port}/.well-known/agent-card.json"
        wait_for(lambda: get(own))
        assert [one["name"] for one in get(gateway.url)["agents"]] == ["one", "two"]
        file.write_text(table(agent, "one") + "oops\n")
        file.write_text(table(agent, "one") + table(agent, "three"))
        wait_for(lambda: [one["name"] for one in get(gateway.url)["agents"]] == ["one", "three"])
        wait_for(lambda: get(own) is None)
    finally:
        code, _, err = gateway.stop()
    assert code == 0 and b"Reloaded the configuration" in err and b"Traceback" not in err


def test_a_broken_file_is_told_and_the_gateway_goes_on(agent: Process, tmp_path: Path) -> None:
    file = tmp_path / "g.toml"
    file.write_text(table(agent, "one"))
    gateway = Process("gateway", "--config", str(file), "--store", "memory")
    said = b""
    try:
        file.write_text('[[upstream]]\nurl = "x"\nfase = "y"\n')
        gateway.process.send_signal(signal.SIGHUP)
        assert gateway.process.stderr is not None
        while b"didyoumeanface?" not in b"".join(said.split()):  # wherever a long path makes it break
            said += gateway.process.stderr.readline()
        assert get(f"{gateway.url}/.well-known/agent-card.json")["name"]
    finally:
        assert gateway.stop()[0] == 0
    assert f"{file}:3".encode() in said.replace(b"\n", b"")


# -- who says where it listens


@pytest.mark.parametrize(
    ("given", "port"), [(None, 9000), (8000, 8000), (0, 0)], ids=["file", "the usual one", "a free one"]
)
def test_a_port_that_is_given_wins_over_the_file_even_if_it_is_the_usual_one(given: int | None, port: int) -> None:
    serving = merged(Server(host="127.0.0.2", port=9000), Serving(port=given))
    assert (serving.number, serving.address) == (port, "127.0.0.2")
    assert server_of(serving).port == port


def test_a_host_that_is_given_wins_too() -> None:
    assert merged(Server(host="127.0.0.2"), Serving(host="127.0.0.1")).address == "127.0.0.1"
    assert (Serving().address, Serving().number) == ("127.0.0.1", 8000)


def test_a_port_that_is_taken_is_told_with_the_option_to_change(
    agent: Process, capsys: pytest.CaptureFixture[str]
) -> None:
    port = agent.url.rpartition(":")[2]
    assert main.run(["gateway", agent.url, agent.url, "--port", port, "--store", "memory"]) == main.USAGE
    said = " ".join(capsys.readouterr().err.split())
    assert f"Cannot listen on 127.0.0.1 port {port}" in said and "--port" in said
