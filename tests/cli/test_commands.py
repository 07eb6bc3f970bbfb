"""The commands: what they print, where, and the exit code of each ending."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.cli import main
from dragoman.faces import ALL_FACES, FACES, Face
from dragoman.model import SEND_MESSAGE
from tests.cli.conftest import Page, Process, nowhere

Capture = pytest.CaptureFixture[str]
COMMANDS = ["gateway", "serve", "call", "card", "convert"]


def run(*arguments: str) -> int:
    return main.run(arguments)


# -- help


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_gives_an_example_of_it(command: str, capsys: Capture) -> None:
    assert run(command, "--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"Example: .?dragoman {command} ", text), text


def test_the_help_lists_every_command_and_says_where_to_start(capsys: Capture) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)
    assert "dragoman gateway URL" in text


def test_the_version_is_printed(capsys: Capture) -> None:
    assert run("--version") == 0
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


# -- exit codes


USAGE: list[tuple[str, ...]] = [
    ("nonsense",),
    ("call",),
    ("call", "http://a.test", "x", "--binding", "SOAP"),
    ("call", "http://a.test", "x", "--version", "2.0"),
    ("call", "http://a.test", "x", "--nope"),
    ("call", "http://a.test", "x", "-H", "no colon"),
    ("call", "not a url", "x"),
    ("card", "ftp://a.test"),
    ("convert", "card", "--from", "0.3", "--to", "7"),
    ("convert", "poem", "--from", "0.3", "--to", "1.0"),
    ("convert", "request", "--from", "0.3", "--to", "1.0", "--op", "Nope"),
    ("serve", "nothing.py:agent"),
    ("serve", "no_such_module_here:agent"),
    ("serve", "agent"),
    ("serve", "examples/demo.py:echo"),
    ("serve", "examples/demo.py:missing"),
    ("serve", "examples/demo.py:agent", "--versions", "9"),
    ("serve", "examples/demo.py:agent", "--port", "x"),
    ("serve", "examples/demo.py:agent", "--trusted-proxy", "my-proxy"),
    ("serve", "examples/demo.py:agent", "--port", "99999"),
    ("serve", "examples/demo.py:agent", "--port", "-1"),
    ("serve", "examples/demo.py:agent", "--host", "no such host"),
    ("serve", "examples/demo.py:agent", "--host", "192.0.2.1"),
    ("serve", "examples/demo.py:agent", "--public-url", "agent.example"),
    ("serve", "examples/demo.py:agent", "--public-url", "ftp://agent.example"),
    ("gateway", "http://a.test", "--upstream", "1.0/SOAP"),
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_a_mistake_of_the_caller_is_2_and_one_line(
    arguments: tuple[str, ...], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, b"{}")
    assert run(*arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ") and "Traceback" not in said.err
    assert len(said.err.splitlines()) <= 3


def test_a_port_that_is_taken_is_a_mistake_that_names_the_cure(agent: Process, capsys: Capture) -> None:
    assert run("serve", "examples/demo.py:agent", "--port", agent.url.rpartition(":")[2]) == 2
    assert "port 0" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("card",), ("call", "hi"), ("gateway",)], ids=lambda one: one[0])
def test_an_agent_that_cannot_be_reached_is_3(command: tuple[str, ...], capsys: Capture) -> None:
    name, *rest = command
    assert run(name, nowhere(), *rest) == 3
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ") and "127.0.0.1" in said.err


@pytest.mark.parametrize("status", [401, 403])
def test_credentials_that_are_missing_or_refused_are_4(page: Page, status: int, capsys: Capture) -> None:
    page.status, page.body = status, b""
    assert run("card", page.url) == 4
    assert str(status) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{}", "application/json"),
        (b"[]", "application/json"),
        (b"<!doctype html><p>Sign in", "text/html"),
        (b"{", "application/json"),
        (b"", "application/json"),
    ],
    ids=["empty card", "list", "page", "half a JSON", "nothing"],
)
def test_a_card_that_is_none_is_5(page: Page, body: bytes, kind: str, capsys: Capture) -> None:
    """Case 19."""
    page.body, page.kind = body, kind
    assert run("card", page.url) == 5
    assert capsys.readouterr().out == ""


def test_an_error_of_the_agent_is_1(agent: Process, capsys: Capture) -> None:
    assert run("call", agent.url, "hi", "--task", "ghost") == 1
    assert "not found" in capsys.readouterr().err.lower()


@pytest.mark.parametrize(
    ("error", "code"),
    [(RuntimeError("oops"), 70), (KeyboardInterrupt(), 130), (BrokenPipeError(), 0), (ImportError(name="grpc"), 2)],
    ids=["a bug", "Ctrl-C", "a reader that left", "a missing part"],
)
def test_every_other_ending_has_its_code(
    error: BaseException, code: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(main, "app", fail)
    assert run("card", "x") == code
    said = capsys.readouterr()
    assert said.out == ""
    assert ("Traceback" in said.err) == (code == 70)


# -- talking to agents


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
def test_a_call_goes_over_the_face_that_was_asked_for(agent: Process, face: Face, capsys: Capture) -> None:
    assert run("call", agent.url, "echo hello", "--version", face.version, "--binding", face.binding) == 0
    said = capsys.readouterr()
    assert "completed" in said.out and "hello" in said.out
    assert str(face) in said.err


def test_json_output_is_one_line_for_a_reply(agent: Process, capsys: Capture) -> None:
    assert run("call", agent.url, "echo hello", "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["task"]["artifacts"][0]["parts"] == [{"text": "hello"}]


def test_json_output_is_one_line_for_each_event(agent: Process, capsys: Capture) -> None:
    assert run("call", agent.url, "chunks 3", "--stream", "--json") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "task" in events[0]
    assert [len(event) for event in events] == [1] * len(events)
    assert sum("artifactUpdate" in event for event in events) == 3
    assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_call_goes_through_a_gateway_to_another_version(gateway: Process, capsys: Capture) -> None:
    assert run("call", gateway.url, 'data {"a": 1}', "--version", "1.0", "--binding", "HTTP+JSON", "--json") == 0
    task = json.loads(capsys.readouterr().out)["task"]
    assert task["artifacts"][0]["parts"] == [{"data": {"a": 1}}]


def test_the_card_is_shown_and_printed_as_json(agent: Process, capsys: Capture) -> None:
    assert run("card", agent.url) == 0
    shown = capsys.readouterr().out
    assert all(face.binding in shown for face in ALL_FACES) and "Skills" in shown
    assert run("card", agent.url, "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert len(json.loads(lines[0])["supportedInterfaces"]) == 6


def test_headers_and_bearer_go_along(page: Page) -> None:
    assert run("card", page.url, "-H", "X-One: 1", "--header", "X-Two:2", "--bearer", "t") == 5
    seen = page.seen[0]
    assert (seen["x-one"], seen["x-two"], seen["authorization"]) == ("1", "2", "Bearer t")


# -- serving


def test_serve_says_where_every_face_is(agent: Process) -> None:
    said = agent.said
    assert said["card"] == said["url"] + "/.well-known/agent-card.json"
    listed = {(one["protocolVersion"], one["protocolBinding"]) for one in said["interfaces"]}
    assert listed == {(face.version, face.binding) for face in ALL_FACES}
    assert all(str(agent.url.rpartition(":")[2]) in one["url"] for one in said["interfaces"])


def test_gateway_says_what_it_stands_in_front_of(gateway: Process, agent: Process) -> None:
    assert gateway.said["upstream"]["face"] == "0.3/GRPC"
    assert agent.url.rpartition(":")[2] in gateway.said["upstream"]["url"]
    assert len(gateway.said["interfaces"]) == 6
    assert gateway.url != agent.url


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_properly(number: int) -> None:
    one = Process("serve", "examples/demo.py:agent", "--versions", "1.0", "--bindings", "JSONRPC")
    assert [entry["protocolBinding"] for entry in one.said["interfaces"]] == ["JSONRPC"]
    code, out, err = one.stop(number)
    assert (code, out) == (0, b"")
    assert b"Traceback" not in err


# -- converting

KIND = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
NEW = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
PROTO = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}


class _Bytes(io.TextIOWrapper):
    """Standard input that holds bytes."""


def stdin(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", _Bytes(io.BytesIO(body)))


Convert = Callable[..., tuple[int, bytes, str]]


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Convert:
    def go(body: Any, *arguments: str) -> tuple[int, bytes, str]:
        stdin(monkeypatch, body if isinstance(body, bytes) else json.dumps(body).encode())
        code = run("convert", *arguments)
        said = capfdbinary.readouterr()
        return code, said.out, said.err.decode()

    return go


@pytest.mark.parametrize(
    ("source", "body", "target", "wanted"),
    [
        ("0.3", {"message": KIND}, "1.0", {"message": NEW}),
        ("1.0", {"message": NEW}, "0.3", {"message": KIND}),
        ("0.3", {"message": KIND}, "0.3/HTTP+JSON", {"message": PROTO}),
        ("0.3/rest", {"message": PROTO}, "1.0/http+json", {"message": NEW}),
    ],
)
def test_a_request_is_converted(convert: Convert, source: str, body: Any, target: str, wanted: Any) -> None:
    code, out, _ = convert(body, "request", "--from", source, "--to", target)
    assert code == 0 and out.endswith(b"\n")
    found = json.loads(out)["message"]
    assert {key: found[key] for key in wanted["message"]} == wanted["message"]


def test_an_envelope_names_the_operation_and_is_taken_off(convert: Convert) -> None:
    envelope = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "t-1", "historyLength": 3}}
    code, out, _ = convert(envelope, "request", "--from", "0.3", "--to", "1.0")
    assert (code, json.loads(out)) == (0, {"id": "t-1", "historyLength": 3})


def test_a_reply_becomes_what_the_other_version_wraps_it_in(convert: Convert) -> None:
    """Case 5."""
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "input-required"}}
    code, out, _ = convert({"jsonrpc": "2.0", "id": 1, "result": task}, "reply", "--from", "0.3", "--to", "1.0")
    assert code == 0
    assert json.loads(out)["task"]["status"] == {"state": "TASK_STATE_INPUT_REQUIRED"}


def test_a_request_becomes_protobuf_and_comes_back(convert: Convert) -> None:
    code, packed, _ = convert({"message": NEW}, "request", "--from", "1.0", "--to", "1.0/GRPC")
    assert code == 0
    assert FACES[Face("GRPC", "1.0")].dialect.load_request(SEND_MESSAGE, packed).message.message_id == "m"
    code, out, _ = convert(packed, "request", "--from", "1.0/GRPC", "--to", "0.3")
    assert code == 0 and json.loads(out)["message"]["parts"] == KIND["parts"]


def test_a_card_is_converted_and_what_is_lost_is_said(convert: Convert) -> None:
    card = {
        "name": "a",
        "description": "d",
        "version": "1",
        "protocolVersion": "0.3.0",
        "url": "https://a.test/",
        "preferredTransport": "JSONRPC",
        "capabilities": {"stateTransitionHistory": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }
    code, out, err = convert(card, "card", "--from", "0.3", "--to", "1.0")
    assert code == 0
    entry = json.loads(out)["supportedInterfaces"][0]
    assert (entry["url"], entry["protocolBinding"], entry["protocolVersion"]) == ("https://a.test/", "JSONRPC", "0.3")
    assert "lost: state-transition-history" in err


@pytest.mark.parametrize(
    ("body", "arguments", "code"),
    [
        (b"{", ("request", "--from", "0.3", "--to", "1.0"), 5),
        (b"\xff", ("request", "--from", "1.0/GRPC", "--to", "1.0"), 1),
        (b'{"message": 1}', ("request", "--from", "1.0", "--to", "0.3"), 1),
        (b"{}", ("reply", "--from", "1.0", "--to", "0.3"), 5),
        (b"{}", ("card", "--from", "1.0", "--to", "0.3"), 5),
        (b"", ("card", "--from", "1.0", "--to", "0.3"), 5),
    ],
    ids=["no JSON", "no protobuf", "no message", "no reply", "no card", "nothing"],
)
def test_what_cannot_be_read_is_not_converted(
    convert: Convert, body: bytes, arguments: tuple[str, ...], code: int
) -> None:
    found, out, err = convert(body, *arguments)
    assert (found, out) == (code, b"")
    assert "error: " in err and "Traceback" not in err


def test_what_an_agent_says_steers_no_terminal_and_is_no_markup() -> None:
    table = "import sys; from dragoman.cli.output import print_table; print_table('Plan', ('agent',), [(sys.argv[1],)])"
    done = subprocess.run([sys.executable, "-c", table, "http://a/[/x]\x1b[31m"], capture_output=True, check=True)
    assert "http://a/[/x]\\x1b[31m" in done.stdout.decode()
