"""What every test shares."""

from __future__ import annotations

import itertools
import os

import pytest

# Processes are started from here while gRPC has threads: its handlers around a fork would run in the child, where they
# can fail. None of the children uses gRPC of its parent.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

_PLACES = itertools.count()


@pytest.fixture
def anyio_backend() -> str:
    """The project is asyncio only."""
    return "asyncio"


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What gateways keep, they do not keep in the state directory of whoever runs the tests, nor for the next test."""
    place = tmp_path_factory.getbasetemp() / f"state-{next(_PLACES)}"
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
