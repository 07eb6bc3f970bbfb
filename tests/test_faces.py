"""Faces, version negotiation and the choice of an interface: all pure."""

from __future__ import annotations

import pytest

from dragoman.errors import ConfigError, VersionNotSupportedError
from dragoman.faces import ALL_FACES, FACES, Face, asked, interfaces, negotiate, read_binding, read_version
from dragoman.model import AgentCapabilities, AgentCard, AgentInterface
from dragoman.protocol.operations import Binding, Version


def test_every_face_has_a_codec_and_a_dialect_of_its_version() -> None:
    assert set(FACES) == set(ALL_FACES)
    assert all(row.dialect.version == face.version for face, row in FACES.items())


@pytest.mark.parametrize("face", ALL_FACES)
def test_a_face_reads_its_own_text(face: Face) -> None:
    assert Face.parse(str(face)) == face
    assert Face.parse(f" {str(face).lower()} ") == face


@pytest.mark.parametrize("text", ["", "1.0", "2.0/JSONRPC", "1.0/SOAP", "JSONRPC/1.0"])
def test_what_is_no_face_is_refused_with_the_list_of_faces(text: str) -> None:
    with pytest.raises(ConfigError, match=r"0\.3/HTTP"):
        Face.parse(text)


BOTH: tuple[Version, ...] = ("1.0", "0.3")


@pytest.mark.parametrize(
    ("header", "query", "version"),
    [
        (b"1.0", None, "1.0"),
        (b"0.3", None, "0.3"),
        (" 1.0", None, "1.0"),
        (b"1.0.1", None, "1.0"),
        (b"0.3.0", None, "0.3"),
        (b" 1.0 ", None, "1.0"),
        (b"", None, "0.3"),
        (None, None, "0.3"),
        (b"  ", "", "0.3"),
        (None, "1.0", "1.0"),
        (b"", b"1.0", "1.0"),
        (b"0.3", "1.0", "0.3"),
        (b"1.0", "9.9", "1.0"),
    ],
)
def test_the_version_that_a_request_asks_for(
    header: bytes | str | None, query: bytes | str | None, version: Version
) -> None:
    assert negotiate(header, query, BOTH) == version


@pytest.mark.parametrize(
    ("header", "query", "served", "listed"),
    [
        (b"9.9", None, BOTH, "1.0,0.3"),
        (b"v1.0", None, BOTH, "1.0,0.3"),
        (b"1", None, BOTH, "1.0,0.3"),
        (b"1.0, 0.3", None, BOTH, "1.0,0.3"),
        (b"1.0.x", None, BOTH, "1.0,0.3"),
        (b"1.0.0.0", None, BOTH, "1.0,0.3"),
        (b"01.0", None, BOTH, "1.0,0.3"),
        (b"\xb9.0", None, BOTH, "1.0,0.3"),
        (b"1.1", None, BOTH, "1.0,0.3"),
        (None, "2.0", BOTH, "1.0,0.3"),
        (b"9.9", "1.0", BOTH, "1.0,0.3"),
        (None, None, ("1.0",), "1.0"),
        (b"", None, ("1.0",), "1.0"),
        (b"0.3", None, ("1.0",), "1.0"),
        (b"1.0", None, ("0.3",), "0.3"),
    ],
)
def test_a_version_that_is_not_served_is_refused_with_those_that_are(
    header: bytes | None, query: str | None, served: tuple[Version, ...], listed: str
) -> None:
    with pytest.raises(VersionNotSupportedError) as caught:
        negotiate(header, query, served)
    assert caught.value.metadata == {"supportedVersions": listed}


@pytest.mark.parametrize(("header", "query", "named"), [(None, None, False), (b" ", "", False), (b"x", "", True)])
def test_whether_a_request_names_a_version(header: bytes | None, query: str | None, named: bool) -> None:
    assert asked(header, query) is named
    assert asked(query, header) is named


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.0", "1.0"), ("1.0.0", "1.0"), ("v1.0", "1.0"), ("1", "1.0"), ("", "1.0"), ("0.3.0", "0.3"), ("0.2.9", "0.3"),
     ("1.1", None), ("2.0", None), ("0.1.0", None), ("latest", None)],
)  # fmt: skip
def test_versions_of_cards_are_read_leniently(text: str, version: Version | None) -> None:
    assert read_version(text) == version


@pytest.mark.parametrize(
    ("text", "binding"),
    [("JSONRPC", "JSONRPC"), ("jsonrpc", "JSONRPC"), ("JSON-RPC", "JSONRPC"), ("grpc", "GRPC"),
     ("http+json", "HTTP+JSON"), ("REST", "HTTP+JSON"), ("urn:custom", None), ("", None)],
)  # fmt: skip
def test_bindings_of_cards_are_read_leniently(text: str, binding: Binding | None) -> None:
    assert read_binding(text) == binding


def card(*entries: tuple[str, str, str]) -> AgentCard:
    return AgentCard(
        name="Peer",
        description="",
        supported_interfaces=tuple(
            AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
            for binding, version, url in entries
        ),
        version="1",
        capabilities=AgentCapabilities(),
        default_input_modes=(),
        default_output_modes=(),
        skills=(),
    )


def urls(*entries: tuple[str, str, str], **wanted: object) -> list[str]:
    return [found.interface.url for found in interfaces(card(*entries), **wanted)]  # type: ignore[arg-type]


A, B, C = "http://a/", "http://b/", "http://c/"


def test_interfaces_keep_the_order_of_the_card() -> None:
    assert urls(("HTTP+JSON", "1.0", A), ("JSONRPC", "1.0", B), ("GRPC", "1.0", C)) == [A, B, C]


def test_what_cannot_be_called_is_passed_over() -> None:
    strange = [
        ("urn:own", "1.0", A),
        ("JSONRPC", "7.0", A),
        ("JSONRPC", "1.0", "ws://a/"),
        ("JSONRPC", "1.0", "a:1"),
        ("JSONRPC", "1.0", ""),
    ]
    assert urls(*strange, ("JSONRPC", "1.0", B)) == [B]


@pytest.mark.parametrize("url", ["a:50051", "grpc://a:1", "grpcs://a:1", "https://a", "http://a:1/path"])
def test_grpc_takes_every_form_of_url(url: str) -> None:
    assert urls(("GRPC", "1.0", url)) == [url]


def test_a_client_that_speaks_only_grpc_takes_the_second_entry() -> None:
    entries = (("JSONRPC", "1.0", A), ("GRPC", "1.0", B))
    assert urls(*entries, speaks=[Face("GRPC", "1.0")]) == [B]


def test_of_one_binding_listed_twice_the_newer_version_is_called_first() -> None:
    entries = (("JSONRPC", "0.3", A), ("GRPC", "1.0", B), ("JSONRPC", "1.0", C))
    assert urls(*entries) == [C, B, A]


@pytest.mark.parametrize(("version", "expected"), [("0.3", [A]), ("1.0", [B])])
def test_a_pinned_version_takes_its_own_entry(version: str, expected: list[str]) -> None:
    assert urls(("JSONRPC", "0.3", A), ("JSONRPC", "1.0", B), version=version) == expected


def test_a_pinned_binding_takes_its_own_entry() -> None:
    assert urls(("JSONRPC", "1.0", A), ("GRPC", "1.0", B), binding="GRPC") == [B]


def test_a_minimum_version_leaves_no_older_one_to_fall_back_to() -> None:
    assert urls(("JSONRPC", "0.3", A), ("GRPC", "1.0", B), minimum_version="1.0") == [B]


@pytest.mark.parametrize(
    ("entries", "wanted", "said"),
    [
        ((), {}, "lists no interface"),
        ((("urn:own", "1.0", A),), {}, "1.0/urn:own at http://a/"),
        ((("JSONRPC", "0.3", A),), {"minimum_version": "1.0"}, "none fits version 1.0 or newer"),
        ((("JSONRPC", "0.3", A),), {"binding": "GRPC"}, "0.3/JSONRPC would be called"),
    ],
)
def test_without_a_fitting_interface_the_error_says_what_there_is(
    entries: tuple[tuple[str, str, str], ...], wanted: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        urls(*entries, **wanted)
