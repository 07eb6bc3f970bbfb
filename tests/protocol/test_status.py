"""Error details as protobuf against protobuf's own implementation, and the checks of JSON text."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors
from dragoman.protocol import jsontext, status
from dragoman.protocol.details import PREFIX, TYPES, duration, from_base64, read_status, seconds, write_status
from dragoman.protocol.verdict import evidence_of

# Modules without type stubs.
error_details_pb2 = import_module("google.rpc.error_details_pb2")
status_pb2 = import_module("google.rpc.status_pb2")

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def value_of(form: Any) -> st.SearchStrategy[Any]:
    if form == "text":
        return _TEXT
    if form == "texts":
        return st.lists(_TEXT, min_size=1, max_size=3)
    if form == "map":
        return st.dictionaries(_TEXT, _TEXT, min_size=1, max_size=3)
    if form == "duration":
        return st.integers(0, 10**9).map(lambda ms: duration(ms / 1000))
    return st.lists(st.fixed_dictionaries({}, optional={n: value_of(f) for n, f in form}), min_size=1, max_size=3)


_DETAILS = st.one_of(
    *(
        st.fixed_dictionaries({"@type": st.just(url)}, optional={name: value_of(form) for name, form in shape})
        for url, shape in TYPES.items()
    )
)


@given(
    st.integers(0, 16), st.text(st.characters(exclude_categories=["Cs"]), max_size=300), st.lists(_DETAILS, max_size=3)
)
def test_details_are_what_protobuf_says_they_are(code: int, text: str, details: list[dict[str, Any]]) -> None:
    data = write_status(code, text, details)
    oracle = json_format.MessageToDict(status_pb2.Status.FromString(data))
    expected: dict[str, Any] = {"code": code, "message": text, "details": details}
    for detail in oracle.get("details", ()):
        if "retryDelay" in detail:
            detail["retryDelay"] = duration(float(detail["retryDelay"].removesuffix("s")))
    assert oracle == {key: value for key, value in expected.items() if value}
    theirs = json_format.ParseDict(expected, status_pb2.Status()).SerializeToString(deterministic=True)
    assert read_status(theirs) == (code, text, details)


@given(st.binary(max_size=60))
def test_reading_any_bytes_raises_nothing_but_value_error(data: bytes) -> None:
    try:
        read_status(data)
    except ValueError:
        pass


def test_the_rows_are_fields_of_the_real_messages() -> None:
    for url, shape in TYPES.items():
        descriptor = getattr(error_details_pb2, url.removeprefix(PREFIX + "google.rpc.")).DESCRIPTOR
        assert [descriptor.fields_by_number[n].json_name for n in range(1, len(shape) + 1)] == [n for n, _ in shape]


def test_unknown_fields_and_wire_types_are_skipped_or_refused() -> None:
    assert read_status(b"\x08\x05\x29" + b"x" * 8 + b"\x2d" + b"x" * 4 + b"\x32\x01x\x38\x01") == (5, "", [])
    for broken in (b"\x0b", b"\x29x", b"\x08", b"\x12\x05x", b"\x08" + b"\xff" * 11):
        with pytest.raises(ValueError, match=r"wire type|truncated"):
            read_status(broken)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3s", 3.0),
        ("0.250s", 0.25),
        ("0s", 0.0),
        ("", None),
        ("x", None),
        ("-1s", None),
        ("infs", None),
        ("nans", None),
    ],
)
def test_durations_are_read(text: str, value: float | None) -> None:
    assert seconds(text) == value


def test_durations_are_written_without_what_they_do_not_need() -> None:
    assert [duration(value) for value in (3, 2.5, 0.001, 100, 0)] == ["3s", "2.5s", "0.001s", "100s", "0s"]


def test_base64_of_a_header_may_lack_its_padding() -> None:
    assert from_base64("YQ") == from_base64(b"YQ==") == b"a"
    with pytest.raises(ValueError, match="base64"):
        from_base64("Y!")


# How errors are told


def test_generic_errors_get_an_error_info_only_for_metadata() -> None:
    assert status.details(errors.InvalidParamsError()) == []
    assert status.details(errors.InvalidParamsError(metadata={"k": "v"}))[0]["reason"] == "INVALID_PARAMS"
    assert status.details(errors.JSONParseError(metadata={"k": "v"}))[0]["reason"] == "JSON_PARSE"
    assert status.details(errors.MethodNotFoundError(metadata={"k": "v"})) == []


def test_metadata_is_text_under_camel_case_keys() -> None:
    error = errors.TaskNotFoundError(metadata={"task_id": "t", "n": 3, "_x": [1]})  # type: ignore[dict-item]
    assert status.details(error)[0]["metadata"] == {"taskId": "t", "n": "3", "_x": "[1]"}


@pytest.mark.parametrize("value", [None, 3, True, [], [{"error": 1}]])
def test_what_is_no_body_is_no_evidence(value: object) -> None:
    assert evidence_of(value, "1.0") is None


def test_an_empty_object_names_no_error() -> None:
    evidence = evidence_of({}, "1.0")
    assert evidence is not None
    assert evidence.error() is None


# Checks of JSON text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 100 + b"]" * 100,
        b'{"a":' * 100 + b"1" + b"}" * 100,
        b"[" + b"[[]]," * 1000 + b"1]",
        b'["' + b"[" * 1000 + b'"]',
        b'["\\"' + b"[" * 1000 + b'\\\\"]',
        '["ü"]'.encode(),
    ],
)
def test_text_that_is_not_too_deep_passes(body: bytes) -> None:
    jsontext.check(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 101 + b"]" * 101,
        b'{"a":' * 101 + b"1" + b"}" * 101,
        b'["\\\\",' + b"[" * 100 + b"]" * 100 + b"]",
        b'["]]]]",' * 101 + b"1" + b"]" * 101,
        b'[{"":' * 51 + b"1" + b"}]" * 51,
        b"\xff",
        b'"\xed\xa0\x80"',
    ],
)
def test_text_that_is_too_deep_or_no_utf8_is_refused(body: bytes) -> None:
    with pytest.raises(errors.JSONParseError):
        jsontext.check(body)


_NESTED = st.recursive(
    st.sampled_from([1, "[", "]", '"', "\\", '\\"[', "{"]),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "]", '"']), inner)),
    max_leaves=30,
)


def depth(value: object) -> int:
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 0


@given(_NESTED, st.integers(90, 101))
def test_depth_is_counted_outside_of_strings(value: object, around: int) -> None:
    body = b"[" * around + jsontext.encode(value) + b"]" * around
    if around + depth(value) > jsontext.MAX_DEPTH:
        with pytest.raises(errors.JSONParseError):
            jsontext.check(body)
    else:
        jsontext.check(body)
