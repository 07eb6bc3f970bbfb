"""The addresses of databases."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.model import Task, TaskState, TaskStatus
from dragoman.store import opening
from dragoman.store.opening import database_url_problem, open_database, open_store


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "url",
    [
        "tasks.db",
        "./a:b",
        "/var/lib/x.db",
        "sqlite:x.db",
        "sqlite:/var/x.db",
        "sqlite:///var/x.db",
        "SQLite:x.db",
        "memory",
        "postgresql://ada@db/x",
        "postgres://ada:p%40ss@db:5432/x?sslmode=require",
        "postgresql://ada@one:1,two:2/x",
        "postgresql://[::1]:5432/x",
        "postgresql:///x?host=/run/postgresql",
    ],
)
def test_an_address_that_can_be_one_has_no_problem(url: str) -> None:
    assert database_url_problem(url) is None


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "is empty"),
        ("sqlite:", "lacks the path"),
        ("sqlite://s3cret/x.db", "has a host"),
        ("/", "is that of a directory"),
        ("sqlite:a\0b", "no file can have"),
        ("mysql://ada:s3cret@db/x", "names mysql, and there are"),
        ("postgresql:x", "lacks the //"),
        ("postgresql://[s3cret", "is no URL"),
        ("postgresql://ada:s3cret/x@db/x", "has a port that is no number"),
        ("postgres://ada:s3cret#@db/x", "has a port that is no number"),
    ],
)
async def test_what_is_wrong_with_an_address_is_said_without_its_secrets(url: str, problem: str) -> None:
    said = database_url_problem(url)
    assert said is not None
    assert problem in said
    assert "s3cret" not in said
    with pytest.raises(ConfigError, match="the address of the database") as raised:
        await open_database(url)
    assert str(raised.value) == f"the address of the database {said}"


async def test_postgresql_without_its_extra_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[postgres\]'"):
        await open_database("postgresql://db/x")


async def test_files_and_directories_that_are_made_are_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "x.db"
    database = await open_database(f"sqlite://{file}")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file.parent.parent, file.parent, file)]
    assert [oct(mode) for mode in modes] == ["0o700", "0o700", "0o600"]
    others = [path for path in file.parent.iterdir() if path != file]
    assert {stat.S_IMODE(path.stat().st_mode) for path in others} == {0o600}  # the log beside it
    await database.aclose()


async def test_a_path_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("bare.db", "sqlite:named.db"):
        await (await open_database(url)).aclose()
    assert names_in(tmp_path) == ["bare.db", "named.db"]


async def test_a_directory_that_cannot_be_made_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file/x\.db cannot be made"):
        await open_database(str(tmp_path / "file" / "x.db"))


async def test_a_store_in_memory_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    task = Task(id="t", status=TaskStatus(state=TaskState.WORKING))
    store = await open_store("memory")
    await store.save(("", ""), task)
    assert await store.get(("", ""), "t") == task
    await store.aclose()
    assert names_in(tmp_path) == []
