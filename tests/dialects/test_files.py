"""The two forms of files over 0.3 gRPC and HTTP+JSON: what shows one, what shows nothing, what is learnt."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest

from dragoman.dialects.files import BASE64_TEXT, BYTES, Between, Files, Form, Reading, alike, given, inner, shown, taken
from dragoman.dialects.v03_proto import ProtobufDialect, ProtoJsonDialect
from dragoman.faces import FACES, TWO_FORMS, Face, rows

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF"
PDF = b"%PDF-1.7\n%\xe2\xe3"
TEXT: Form = "base64 text"


@pytest.mark.parametrize(
    ("content", "media_type", "form"),
    [
        (PNG, "image/png", "bytes"),
        (PNG, "", "bytes"),
        (b"hello world", "text/plain", "bytes"),
        (b"{}", "application/json", "bytes"),
        ("ähm".encode(), "text/plain", "bytes"),
        (b64encode(PNG), "image/png", TEXT),
        (b64encode(PNG), "IMAGE/PNG; q=1", TEXT),
        (urlsafe_b64encode(JPEG), "image/jpeg", TEXT),
        (b64encode(JPEG).rstrip(b"="), "image/jpeg", TEXT),
        (b64encode(PDF * 9).replace(b"K", b"K\r\n"), "application/pdf", TEXT),
        (b64encode(b'{"a": 1}'), "application/json", TEXT),
        (b64encode(b"<a/>"), "application/xml", TEXT),
        # what could be either
        (b"", "image/png", None),
        (b"YWJj", "text/plain", None),
        (b"YWJj", "", None),
        (b"YWJj", "image/png", None),
        (b64encode(PNG), "application/octet-stream", None),
        (b64encode(PNG), "image/x-unheard-of", None),
        (b64encode(b"<p>hi</p>"), "text/html", None),
        (b"1234", "application/json", None),
        (b"true", "application/json", None),
        (b"GIF89a", "image/gif", None),
        (b"A", "image/png", None),
    ],
)
def test_what_a_file_shows(content: bytes, media_type: str, form: Form | None) -> None:
    assert shown(content, media_type) == form


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (b"YWJj", b"abc"),
        (b"YWI=", b"ab"),
        (b"YWI", b"ab"),
        (b"-_-_", b"\xfb\xff\xbf"),
        (b"YW\r\nJj", b"abc"),
        (b"Y", None),
    ],
)
def test_base64_text_is_read_as_people_write_it(text: bytes, content: bytes | None) -> None:
    assert inner(text) == content


def test_a_peer_is_learnt_from_what_is_beyond_doubt() -> None:
    told: list[str] = []
    files = Files(tell=told.append)
    assert files.of(b"YWJj", "text/plain") == Reading("bytes", False)
    assert files.of(b64encode(PNG), "image/png") == Reading(TEXT, True)
    assert files.of(b"YWJj", "text/plain") == Reading(TEXT, True)
    assert (files.form, files.assumed()) == (TEXT, Reading(TEXT, True))
    assert len(told) == 1 and "base64 text" in told[0] and "image/png" in told[0]


def test_text_where_base64_belongs_is_read_as_what_it_is_and_teaches_nothing() -> None:
    files = Files()
    assert files.of(b"hello world", "text/plain") == Reading("bytes", True)
    assert files.form is None
    assert files.of(b64encode(PNG), "image/png") == Reading(TEXT, True)
    assert files.of(b"hello world", "text/plain") == Reading("bytes", True)
    assert files.form == TEXT


@pytest.mark.parametrize("first", [PNG, b64encode(PNG)], ids=["bytes", "text"])
def test_a_peer_that_does_both_is_not_known_any_more(first: bytes) -> None:
    told: list[str] = []
    files = Files(tell=told.append)
    second = b64encode(PNG) if first == PNG else PNG
    files.of(first, "image/png")
    assert files.of(second, "image/png").sure
    assert (files.form, files.of(b"YWJj", "text/plain")) == (None, Reading("bytes", False))
    for again in (first, first, second):
        assert files.of(again, "image/png").sure
    assert files.form is None
    assert len(told) == 2 and "both" in told[1]


@pytest.mark.parametrize("files", [Files("bytes"), Files(TEXT)], ids=["bytes", "text"])
def test_what_was_configured_holds(files: Files) -> None:
    before = files.form
    for content in (PNG, b64encode(PNG), b"YWJj"):
        assert files.of(content, "image/png") == Reading(before or "bytes", True)
    assert files.form == before


def test_what_is_not_known_is_what_the_other_side_does() -> None:
    own = Files()
    for other, form in ((BYTES, "bytes"), (BASE64_TEXT, TEXT), (Files(), "bytes")):
        assert Between(own, other).assumed() == Reading(form, False)  # type: ignore[arg-type]
        assert Between(own, other).of(b"YWJj", "text/plain") == Reading(form, False)  # type: ignore[arg-type]
    assert Between(BYTES, BASE64_TEXT).assumed() == Reading("bytes", True)
    assert Between(own, BASE64_TEXT).of(PNG, "image/png") == Reading("bytes", True)
    assert own.form == "bytes"


def test_only_what_is_known_is_alike() -> None:
    assert alike(Files("bytes"), BYTES) and alike(Files(TEXT), BASE64_TEXT)
    assert not alike(BYTES, BASE64_TEXT) and not alike(Files(), Files()) and not alike(Files(), BYTES)


@pytest.mark.parametrize(
    ("raw", "files", "expected", "sure"),
    [
        (b"YWJj", BYTES, b"YWJj", True),
        (b"YWJj", BASE64_TEXT, "YWJj", True),
        ("WVdKag==", BASE64_TEXT, "YWJj", True),
        ("WVdKag==", BYTES, "WVdKag==", True),
        ("WVdKag==", Files(), "WVdKag==", False),
        (b"YWJj", Files(), b"YWJj", False),
        (b"not base64", BASE64_TEXT, b"not base64", True),
        ("", Files(), "", True),
        (7, Files(), 7, True),
        ("ä", Files(), "ä", True),
    ],
)
def test_content_is_taken_as_the_peer_means_it(raw: Any, files: Files, expected: Any, sure: bool) -> None:
    unsure: list[int] = []
    assert taken(raw, "text/plain", files, lambda: unsure.append(1)) == expected
    assert bool(unsure) is not sure


@pytest.mark.parametrize(
    ("files", "expected", "sure"),
    [(BYTES, b"abc", True), (BASE64_TEXT, b"YWJj", True), (Files(), b"abc", False)],
    ids=["bytes", "text", "unknown"],
)
def test_content_is_given_as_the_peer_wants_it(files: Files, expected: bytes, sure: bool) -> None:
    unsure: list[int] = []
    assert given(b"abc", files, lambda: unsure.append(1)) == expected
    assert bool(unsure) is not sure
    assert given(b"", files, lambda: unsure.append(2)) == b"" and 2 not in unsure


def test_rows_of_one_peer_learn_from_each_other() -> None:
    learning = rows(base64_files=None)
    kept = {face: row.dialect for face, row in learning.items() if face in TWO_FORMS}
    files = {one.files for one in kept.values() if isinstance(one, ProtoJsonDialect | ProtobufDialect)}
    assert len(files) == 1 and files.pop().form is None
    assert rows() is FACES
    for face in set(FACES) - set(TWO_FORMS):
        assert learning[face] is FACES[face]
    assert set(TWO_FORMS) == {Face("GRPC", "0.3"), Face("HTTP+JSON", "0.3")}
    assert all(FACES[face].dialect is dialect for face, dialect in TWO_FORMS.items())


def test_bytes_of_one_dialect_are_those_of_another_only_if_both_forms_are_known() -> None:
    for kind in (ProtoJsonDialect, ProtobufDialect):
        assert kind().reads_as(kind(Files("bytes")))
        assert not kind().reads_as(kind(BASE64_TEXT))
        assert not kind(Files()).reads_as(kind(Files()))
        assert not kind().reads_as(kind(extras=False))
    assert not ProtoJsonDialect().reads_as(ProtobufDialect())
    assert not ProtoJsonDialect().reads_as(FACES[Face("JSONRPC", "0.3")].dialect)
