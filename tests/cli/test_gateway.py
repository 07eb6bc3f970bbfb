"""``dragoman gateway`` before several agents, and ``dragoman gateway check``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import main
from tests.cli.conftest import Page, Process, nowhere

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def config(tmp_path: Path, agent: Process) -> Path:
    file = tmp_path / "gateway.toml"
    file.write_text(
        f'[server]\npublic_url = "http://gw.test"\n[[upstream]]\nname = "one"\nurl = "{agent.url}"\n'
        f'face = "0.3/GRPC"\nauthority = "one.test"\n[[upstream]]\nname = "gone"\nurl = "{nowhere()}"\n'
    )
    return file


@pytest.fixture(scope="module")
def several(agent: Process) -> Iterator[Process]:
    one = Process("gateway", f"first={agent.url}", f"second={agent.url}", f"gone={nowhere()}")
    yield one
    one.stop()


def check(capsys: Capture, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main.run(["gateway", "check", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)["agents"]


# -- several urls


def test_the_json_line_of_several_names_each_agent(several: Process, agent: Process) -> None:
    first, second, gone = several.said["agents"]
    assert (first["name"], first["path"]) == ("first", "/first")
    assert first["card"] == f"{several.url}/first/.well-known/agent-card.json"
    assert first["upstream"]["face"] == "1.0/JSONRPC" and "error" not in first["upstream"]
    assert {one["protocolBinding"] for one in second["interfaces"]} == {"JSONRPC", "HTTP+JSON", "GRPC"}
    assert "face" not in gone["upstream"] and "127.0.0.1" in gone["upstream"]["error"]


def test_each_of_several_is_called_by_its_path(several: Process, capsys: Capture) -> None:
    for path in ("/first", "/second"):
        assert main.run(["call", several.url + path, "hi", "--version", "0.3", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_an_agent_that_is_away_is_said_to_be(several: Process, capsys: Capture) -> None:
    assert main.run(["card", several.url + "/gone"]) == main.UNREACHABLE
    assert "503" in capsys.readouterr().err


def test_several_end_properly(agent: Process) -> None:
    code, out, err = Process("gateway", agent.url, agent.url).stop()
    assert (code, out) == (0, b"")
    assert b"Traceback" not in err


# -- a file


def test_a_file_is_served_and_the_command_line_says_where(config: Path) -> None:
    one = Process("gateway", "--config", str(config))
    said = one.said
    assert one.stop()[0] == 0
    assert said["url"].startswith("http://127.0.0.1:") and not said["url"].endswith(":8000")
    assert said["agents"][0]["card"] == "http://gw.test/one/.well-known/agent-card.json"


def test_check_prints_the_plan(config: Path, capsys: Capture) -> None:
    code, (one, gone) = check(capsys, "--config", str(config))
    assert code == main.UNREACHABLE
    assert (one["face"], one["why"], one["grpc"]) == ("0.3/GRPC", "the configuration says so", "host one.test")
    assert "1.0/JSONRPC" in one["others"]
    assert [one["url"] for one in one["interfaces"] if one["protocolBinding"] == "GRPC"] == ["one.test:80"] * 2
    assert gone["error"] and "face" not in gone
    assert (one["agent_files"].split(":")[0], one["caller_files"]) == ("not known", "each caller's show it")
    assert (one["push"], one["listed"], "isolated" in one, "emulated" in one) == ("relay", True, False, False)


def test_check_prints_a_table_for_people(config: Path, capsys: Capture) -> None:
    assert main.run(["gateway", "check", "--config", str(config)]) == main.UNREACHABLE
    said = capsys.readouterr()
    assert "the configuration says so" in said.out and "unavailable" in said.out
    assert said.err.startswith("gone: ")


def test_check_is_0_when_every_agent_answers(agent: Process, capsys: Capture) -> None:
    code, (one,) = check(capsys, agent.url)
    assert (code, one["path"], one["face"]) == (main.OK, "/", "1.0/JSONRPC")


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [(401, b"", main.AUTHENTICATION), (200, b"[]", main.PROTOCOL)],
    ids=["no credentials", "no card"],
)
def test_the_exit_code_of_check_is_that_of_what_failed(
    page: Page, status: int, body: bytes, code: int, capsys: Capture
) -> None:
    page.status, page.body = status, body
    assert check(capsys, page.url)[0] == code
    assert check(capsys, page.url, nowhere())[0] == main.FINDINGS


def test_a_face_that_a_card_does_not_have_is_a_mistake_of_the_configuration(page: Page, tmp_path: Path) -> None:
    page.body = json.dumps(
        {"name": "a", "description": "", "version": "1", "protocolVersion": "0.3.0", "url": page.url, "skills": []}
    ).encode()
    file = tmp_path / "g.toml"
    file.write_text(f'[[upstream]]\nurl = "{page.url}"\nface = "1.0/GRPC"\n')
    assert main.run(["gateway", "check", "--config", str(file)]) == main.USAGE


# -- mistakes


def test_every_mistake_of_a_file_is_told_with_its_line(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "g.toml"
    file.write_text('[[upstream]]\nurl = "x"\nfase = "y"\nbearer = "clear"\n')
    for command in (["gateway"], ["gateway", "check"]):
        assert main.run([*command, "--config", str(file)]) == main.USAGE
        said = capsys.readouterr()
        assert said.out == ""
        assert [f"{file}:{line}: " in said.err for line in (2, 3, 4)] == [True, True, True]
        assert "did you mean face?" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Which agent?"),
        (("check",), "Give one of"),
        (("check", "http://a.test", "--config", "g.toml"), "Give one of"),
        (("http://a.test", "--config", "g.toml"), "not both"),
        (("--config", "gone.toml"), "gone.toml: cannot be read"),
        (("--config", "g.toml", "--bearer", "t"), "said in the file"),
        (("--config", "g.toml", "--versions", "1.0"), "said in the file"),
        (("http://a.test", "http://b.test", "--bearer", "t"), "every agent"),
        (("a=http://a.test", "a=http://b.test"), "name: a is taken"),
        (("ftp://a.test", "http://b.test"), "is not the url of an agent"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_a_mistake_of_the_command_line_is_2(arguments: tuple[str, ...], told: str, capsys: Capture) -> None:
    assert main.run(["gateway", *arguments]) == main.USAGE
    said = capsys.readouterr()
    assert said.out == "" and told in " ".join(said.err.split())


def test_the_help_of_check_gives_an_example_of_it(capsys: Capture) -> None:
    assert main.run(["gateway", "check", "--help"]) == 0
    assert "dragoman gateway check --config gateway.toml" in " ".join(capsys.readouterr().out.split())
