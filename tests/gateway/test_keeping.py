"""Where a gateway keeps what outlives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.gateway.config import Store as Settings
from dragoman.gateway.keeping import default_url, open_keeping
from dragoman.model import Task, TaskState, TaskStatus

TASK = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))


@pytest.mark.parametrize(
    ("port", "environment", "url"),
    [
        (0, {"STATE_DIRECTORY": "/var/lib/dragoman"}, "memory"),
        (8000, {"STATE_DIRECTORY": "/var/lib/dragoman"}, "sqlite:/var/lib/dragoman/gateway-8000.db"),
        (80, {"STATE_DIRECTORY": "/a:/b", "XDG_STATE_HOME": "/c"}, "sqlite:/a/gateway-80.db"),
        (80, {"XDG_STATE_HOME": "/c"}, "sqlite:/c/dragoman/gateway-80.db"),
        (80, {"XDG_STATE_HOME": "relative"}, f"sqlite:{Path.home()}/.local/state/dragoman/gateway-80.db"),
    ],
)
def test_each_port_has_a_file_in_the_state_directory(port: int, environment: dict[str, str], url: str) -> None:
    assert default_url(port, environment) == url


async def test_what_is_kept_is_there_again(tmp_path: Path) -> None:
    settings, said = Settings(url=f"sqlite:{tmp_path / 'deep' / 'kept.db'}"), list[str]()
    first = await open_keeping(settings, 8000, said.append)
    await first.tasks.save(("", ""), TASK)
    await first.aclose()
    second = await open_keeping(settings, 8000, said.append)
    assert await second.tasks.get(("", ""), "t") == TASK
    await second.aclose()
    assert said == []


async def test_without_a_place_it_is_kept_in_memory_and_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    said = list[str]()
    keeping = await open_keeping(Settings(), 8000, said.append)
    assert (await keeping.outbox.stock()).pending == 0 and keeping.place == "memory"
    await keeping.aclose()
    assert len(said) == 1 and "store.url" in said[0]
    with pytest.raises(ConfigError):
        await open_keeping(Settings(url=f"sqlite:{tmp_path / 'file' / 'x'}"), 8000, said.append)
