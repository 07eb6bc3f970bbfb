"""How the bench starts our own side."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .parties import Face, Party, Seat

DRAGOMAN = [sys.executable, "-m", "dragoman"]


def serve(callers: Party) -> list[str]:
    serve = [*DRAGOMAN, "serve", "examples/demo.py:agent", "--port", "0", "--json", "--allow-private-webhooks"]
    return [*serve, "--base64-files"] if callers.base64_files else serve


def gateway(card_url: str, agent: Party, upstream: Face) -> list[str]:
    """The gateway in front of one agent; its callers are the SDKs for Python."""
    gateway = [*DRAGOMAN, "gateway", card_url, "--port", "0", "--json", "--upstream", str(upstream), "--base64-files"]
    gateway += ["--allow-private-webhooks"]
    return [*gateway, "--upstream-base64-files"] if agent.base64_files else gateway


def configured(config: Path) -> list[str]:
    return [*DRAGOMAN, "gateway", "--config", str(config), "--json"]


def gateway_toml(upstreams: Sequence[Mapping[str, Any]]) -> str:
    """A `gateway.toml`; it listens on every loopback address, for agents that have one as their `authority`."""
    lines = ["[server]", 'host = "0.0.0.0"', "port = 0", "[relay]", "allow_private = true", "[store]", 'url = "memory"']
    for upstream in upstreams:
        lines += ["", "[[upstream]]", *(f"{name} = {json.dumps(value)}" for name, value in upstream.items())]
    return "\n".join([*lines, ""])


def client(url: str, seat: Seat, agent: Party, only: Iterable[str]) -> list[str]:
    command = [sys.executable, "-m", "tests.interop.ours_client", url]
    command += ["--version", seat.face.version, "--binding", seat.face.binding]
    command += ["--base64-files"] if agent.base64_files else []
    return command + [argument for step in only for argument in ("--step", step)]
