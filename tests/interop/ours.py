"""How the bench starts our own side."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from .parties import PEERS, Face, Party, Seat

#: The clients of a group share one server of ours, so all of them must write files in one way.
(_CALLERS_BASE64,) = {peer.base64_files for peer in PEERS}
_CALLERS = ["--base64-files"] if _CALLERS_BASE64 else []


def serve() -> list[str]:
    serve = [sys.executable, "-m", "dragoman", "serve", "examples/demo.py:agent", "--port", "0", "--json"]
    return [*serve, "--allow-private-webhooks", *_CALLERS]


def gateway(card_url: str, agent: Party, upstream: Face) -> list[str]:
    gateway = [sys.executable, "-m", "dragoman", "gateway", card_url, "--port", "0", "--json"]
    gateway += ["--upstream", str(upstream), *_CALLERS]
    return [*gateway, "--upstream-base64-files"] if agent.base64_files else gateway


def client(url: str, seat: Seat, agent: Party, only: Iterable[str]) -> list[str]:
    command = [sys.executable, "-m", "tests.interop.ours_client", url]
    command += ["--version", seat.face.version, "--binding", seat.face.binding]
    command += ["--base64-files"] if agent.base64_files else []
    return command + [argument for step in only for argument in ("--step", step)]
