"""TLS on the command line: served, asked for, and in front of an agent; mutual where it is wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from dragoman.cli import main
from dragoman.faces import ALL_FACES
from tests.cli.conftest import Process

Capture = pytest.CaptureFixture[str]
AGENT = "examples/demo.py:agent"


@dataclass(frozen=True)
class Files:
    """PEM files: the root, the server's chain and key, a caller's chain and key, and a root that nobody uses."""

    ca: str
    cert: str
    key: str
    own_cert: str
    own_key: str
    other_ca: str

    @property
    def serving(self) -> tuple[str, ...]:
        return ("--tls-cert", self.cert, "--tls-key", self.key)

    @property
    def mutual(self) -> tuple[str, ...]:
        return (*self.serving, "--tls-client-ca", self.ca, "--tls-require-client-cert")

    @property
    def trusting(self) -> tuple[str, ...]:
        return ("--ca", self.ca)

    @property
    def identified(self) -> tuple[str, ...]:
        return (*self.trusting, "--cert", self.own_cert, "--key", self.own_key)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("tls")
    ca, other = trustme.CA(), trustme.CA()

    def write(name: str, *blobs: trustme.Blob) -> str:
        path: Path = folder / name
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return str(path)

    server, own = ca.issue_cert("127.0.0.1", "localhost"), ca.issue_cert("caller.test")
    return Files(
        ca=write("ca.pem", ca.cert_pem),
        cert=write("cert.pem", *server.cert_chain_pems),
        key=write("key.pem", server.private_key_pem),
        own_cert=write("own-cert.pem", *own.cert_chain_pems),
        own_key=write("own-key.pem", own.private_key_pem),
        other_ca=write("other.pem", other.cert_pem),
    )


@pytest.fixture(scope="module")
def secure(files: Files) -> Iterator[Process]:
    """An agent over TLS."""
    one = Process("serve", AGENT, *files.serving)
    yield one
    one.stop()


@pytest.fixture(scope="module")
def mutual(files: Files) -> Iterator[Process]:
    """An agent that wants to see certificates."""
    one = Process("serve", AGENT, *files.mutual)
    yield one
    one.stop()


def says_hi(url: str, *options: str, capsys: Capture) -> bool:
    code = main.run(["call", url, "echo hi", *options])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out.endswith("hi\n")


def test_every_printed_url_is_https(secure: Process) -> None:
    assert secure.url.startswith("https://127.0.0.1:") and secure.said["card"].startswith(secure.url)
    urls = {one["url"] for one in secure.said["interfaces"] if one["protocolBinding"] != "GRPC"}
    assert urls == {secure.url, secure.url + "/"}


def test_the_card_is_read_over_tls_and_names_https(secure: Process, files: Files, capsys: Capture) -> None:
    assert main.run(["card", secure.url, *files.trusting, "--json"]) == 0
    card = json.loads(capsys.readouterr().out)
    urls = [one["url"] for one in card["supportedInterfaces"] if one["protocolBinding"] != "GRPC"]
    assert urls and all(url.startswith("https://") for url in urls)


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
def test_every_face_is_called_over_tls(secure: Process, files: Files, face: object, capsys: Capture) -> None:
    version, _, binding = str(face).partition("/")
    options = (*files.trusting, "--version", version, "--binding", binding)
    assert says_hi(secure.url, *options, capsys=capsys)


@pytest.mark.parametrize("binding", ["JSONRPC", "GRPC", "HTTP+JSON"])
def test_who_shows_a_certificate_is_served_where_one_is_required(
    mutual: Process, files: Files, binding: str, capsys: Capture
) -> None:
    assert says_hi(mutual.url, *files.identified, "--binding", binding, capsys=capsys)


def test_a_certificate_that_is_not_required_may_be_left_out(files: Files, capsys: Capture) -> None:
    one = Process("serve", AGENT, *files.serving, "--tls-client-ca", files.ca)
    try:
        assert says_hi(one.url, *files.trusting, capsys=capsys)
        assert says_hi(one.url, *files.identified, capsys=capsys)
    finally:
        one.stop()


@pytest.mark.parametrize("command", [("card",), ("call", "hi"), ("gateway",)], ids=lambda one: one[0])
def test_who_shows_none_where_one_is_required_is_3(
    mutual: Process, files: Files, command: tuple[str, ...], capsys: Capture
) -> None:
    name, *rest = command
    assert main.run([name, mutual.url, *rest, *files.trusting]) == 3
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ")


@pytest.mark.parametrize("other", [True, False], ids=["another root", "no root"])
def test_a_server_whose_root_is_not_trusted_is_3(secure: Process, files: Files, other: bool, capsys: Capture) -> None:
    trusted = ("--ca", files.other_ca) if other else ()
    assert main.run(["card", secure.url, *trusted]) == 3
    assert "ertificate" in capsys.readouterr().err


def test_a_gateway_has_tls_on_both_sides(mutual: Process, files: Files, capsys: Capture) -> None:
    one = Process("gateway", mutual.url, "--upstream", "0.3/GRPC", *files.identified, *files.serving)
    try:
        assert one.url.startswith("https://")
        for binding in ("JSONRPC", "GRPC"):
            assert says_hi(one.url, *files.trusting, "--binding", binding, capsys=capsys)
    finally:
        one.stop()


MISTAKES = [
    ("serve", AGENT, "--tls-cert", "{cert}"),
    ("serve", AGENT, "--tls-key", "{key}"),
    ("serve", AGENT, "--tls-client-ca", "{ca}"),
    ("serve", AGENT, "--tls-cert", "{cert}", "--tls-key", "{key}", "--tls-require-client-cert"),
    ("serve", AGENT, "--tls-cert", "{cert}", "--tls-key", "{own_key}"),
    ("serve", AGENT, "--tls-cert", "missing.pem", "--tls-key", "{key}"),
    ("serve", AGENT, "--tls-cert", "{cert}", "--tls-key", "{key}", "--tls-client-ca", "missing.pem"),
    ("gateway", "http://a.test", "--tls-cert", "{cert}"),
    ("gateway", "http://a.test", "--cert", "{own_cert}"),
    ("call", "https://a.test", "hi", "--key", "{own_key}"),
    ("card", "https://a.test", "--ca", "missing.pem"),
]


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_files_that_are_missing_or_do_not_fit_are_2(arguments: tuple[str, ...], files: Files, capsys: Capture) -> None:
    named = {name: getattr(files, name) for name in ("ca", "cert", "key", "own_cert", "own_key")}
    assert main.run([one.format(**named) for one in arguments]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ") and "Traceback" not in said.err


def test_health_and_reflection_are_served_where_they_are_asked_for(files: Files, mutual: Process) -> None:
    options = ("--health", "--reflection")
    for one in (Process("serve", AGENT, *files.serving, *options), _gateway(mutual, files, *options)):
        root = grpc.ssl_channel_credentials(Path(files.ca).read_bytes())
        try:
            with grpc.secure_channel(one.url.removeprefix("https://"), root) as channel:
                check: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
                assert check(b"", timeout=10) == b"\x08\x01"
                ask: Any = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
                (reply,) = ask(iter([b"\x3a\x00"]), timeout=10)
                assert b"lf.a2a.v1.A2AService" in reply and b"grpc.health.v1.Health" in reply
        finally:
            one.stop()


def _gateway(agent: Process, files: Files, *options: str) -> Process:
    return Process("gateway", agent.url, *files.identified, *files.serving, *options)
