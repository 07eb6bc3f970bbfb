"""What the command line's tests share: a served agent, a gateway before it, and a page that is no agent."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


_HELD: list[socket.socket] = []


def nowhere() -> str:
    """A url at which nobody listens, nor will: the port is held as long as the tests run."""
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    _HELD.append(one)
    return f"http://127.0.0.1:{one.getsockname()[1]}"


def free_port() -> int:
    """One that the system gives to no connection, so that it stays free until it is made use of."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Process:
    """A command that runs until it is told to stop, and the JSON line that it began with."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "dragoman", *arguments, "--port", "0", "--json"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate(timeout=10)[1].decode())
        self.said: dict[str, Any] = json.loads(line)

    @property
    def url(self) -> str:
        url: str = self.said["url"]
        return url

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, bytes, bytes]:
        """Tell it to stop; its exit code and what else it wrote."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=10)
        return self.process.returncode, out, err


@pytest.fixture(scope="session")
def agent() -> Iterator[Process]:
    """The demo agent on all six faces."""
    one = Process("serve", "examples/demo.py:agent")
    yield one
    one.stop()


@pytest.fixture(scope="session")
def gateway(agent: Process) -> Iterator[Process]:
    """A gateway that calls it over 0.3 gRPC."""
    one = Process("gateway", agent.url, "--upstream", "0.3/GRPC")
    yield one
    one.stop()


class Page:
    """Answers every request with one page."""

    def __init__(self) -> None:
        self.status, self.body, self.kind = 200, b"{}", "application/json"
        self.seen: list[dict[str, str]] = []
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.seen.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(page.status)
                self.send_header("content-type", page.kind)
                self.send_header("content-length", str(len(page.body)))
                self.end_headers()
                self.wfile.write(page.body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def page() -> Iterator[Page]:
    one = Page()
    yield one
    one.close()
