"""``dragoman gateway deliveries``: what it shows of a store, and what it does to it, whether a gateway runs or not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.main import FINDINGS, OK, USAGE, run
from dragoman.model import TaskPushNotificationConfig
from dragoman.store.opening import open_database
from dragoman.store.outbox import Change, Registration, Scope, Settled, Tell, Watch
from dragoman.store.sql.outbox import Outbox

SECRET = TaskPushNotificationConfig(url="https://hooks.example/secret-path", token="secret-token", id="c")


async def _filled(url: str) -> None:
    """One dead delivery and one that waits behind it, of each of two tasks."""
    database = await open_database(url)
    outbox = Outbox(database)
    for task in ("t1", "t2"):
        scope = Scope("alpha" if task == "t1" else "beta", "", "")
        await outbox.open(
            Watch(id=task, scope=scope, reference=task, secret="s", task_id=task),
            Registration(id=f"r-{task}", watch_id=task, config=SECRET, version="0.3"),
        )
        tells = (Tell(f"r-{task}", b"{}"), Tell(f"r-{task}", b"[]"))
        await outbox.change(task, lambda state, tells=tells: Change(tell=tells))  # type: ignore[misc]
    settled = [
        Settled(registration_id=claim.registration.id, failed=claim.deliveries[0].id, status=503, dead=True, due=1e11)
        for claim in await outbox.claim("h", 1e12, lines=2, each=2)
    ]
    await outbox.settle("h", settled)
    await database.aclose()


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:{tmp_path / 'store.db'}"
    asyncio.run(_filled(url))
    return url


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def call(*words: str) -> tuple[int, str]:
        code = run(["gateway", "deliveries", *words])
        output = capsys.readouterr()
        return code, output.out + output.err

    return call


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("word", [(), ("list",)])
def test_a_table_shows_what_waits_and_what_is_dead_and_no_secret(store: str, said: Any, word: tuple[str, ...]) -> None:
    code, text = said(*word, "--store", store)
    assert code == OK
    for shown in ("alpha", "beta", "t1", "0.3", "dead", "waiting", "503", "hooks.example"):
        assert shown in text
    assert "secret" not in text


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), [("t1", "dead"), ("t1", "waiting"), ("t2", "dead"), ("t2", "waiting")]),
        (("--dead",), [("t1", "dead"), ("t2", "dead")]),
        (("--agent", "beta"), [("t2", "dead"), ("t2", "waiting")]),
        (("--task", "t1", "--dead"), [("t1", "dead")]),
        (("--agent", "gamma"), []),
    ],
)
def test_the_list_is_cut_down_and_a_line_of_json_each(
    store: str, said: Any, words: tuple[str, ...], found: list[tuple[str, str]]
) -> None:
    code, text = said("--store", store, "--json", *words)
    assert code == OK
    assert sorted((one["task_id"], one["state"]) for one in lines(text)) == found
    assert "secret" not in text


def test_the_dead_are_replayed_by_id_or_all_of_one_agent(store: str, said: Any) -> None:
    first, second = (one["id"] for one in lines(said("--store", store, "--json", "--dead")[1]))
    assert said("replay", str(first), "--store", store) == (OK, "1 will be tried again\n")
    assert said("replay", str(first), "4711", "--store", store)[0] == FINDINGS
    assert [one["id"] for one in lines(said("--store", store, "--json", "--dead")[1])] == [second]
    assert said("replay", "--all", "--agent", "gamma", "--store", store) == (OK, "0 will be tried again\n")
    assert said("replay", "--all", "--store", store) == (OK, "1 will be tried again\n")
    assert said("--store", store, "--json", "--dead") == (OK, "")
    assert "none were given up" not in said("--store", store)[1]


def test_deliveries_are_dropped_dead_or_not(store: str, said: Any) -> None:
    ids = [one["id"] for one in lines(said("--store", store, "--json")[1])]
    assert said("drop", *map(str, ids[:2]), "--store", store) == (OK, "2 dropped\n")
    assert said("drop", "--all", "--store", store) == (OK, "1 dropped\n")
    assert len(lines(said("--store", store, "--json")[1])) == 1


def test_the_store_is_that_of_the_file_or_of_the_port(
    store: str, said: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(f'[store]\nurl = "{store}"\n[[upstream]]\nurl = "https://agent.example"\n')
    assert len(lines(said("--config", str(file), "--json")[1])) == 4
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "dragoman").mkdir()
    (tmp_path / "store.db").rename(tmp_path / "dragoman" / "gateway-8001.db")
    assert len(lines(said("--port", "8001", "--json")[1])) == 4


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--store", "memory"), "in memory"),
        (("--store", "sqlite:nowhere.db"), "no store"),
        (("--port", "1"), "no store"),
        (("--config", "x.toml", "--store", "memory"), "not both"),
        (("replay", "--store", "sqlite:nowhere.db"), "Which deliveries"),
        (("drop", "1", "--all"), "Which deliveries"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_said(said: Any, words: tuple[str, ...], hint: str) -> None:
    code, text = said(*words)
    assert code == USAGE
    assert hint in " ".join(text.split())
