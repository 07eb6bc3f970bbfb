"""How the bench starts our own side."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from .parties import Face, Seat


def serve() -> list[str]:
    return [sys.executable, "-m", "dragoman", "serve", "examples/demo.py:agent", "--port", "0", "--json"]


def gateway(card_url: str, upstream: Face) -> list[str]:
    gateway = [sys.executable, "-m", "dragoman", "gateway", card_url, "--port", "0", "--json"]
    return [*gateway, "--upstream", str(upstream)]


def client(url: str, seat: Seat, only: Iterable[str]) -> list[str]:
    command = [sys.executable, "-m", "tests.interop.ours_client", url]
    command += ["--version", seat.face.version, "--binding", seat.face.binding]
    return command + [argument for step in only for argument in ("--step", step)]
