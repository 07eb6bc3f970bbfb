"""Our wire codec against protobuf's own, on every message of both versions, and the corners by hand."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError, Message
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dragoman import model
from dragoman.protocol.fields import Schema, table
from dragoman.protocol.operations import VERSIONS, Version
from dragoman.protocol.wire import MissingField, WireError, WireFormat
from tests.oracle import messages, rows

CLASSES: Mapping[str, type] = {name: kind for name, kind in vars(model).items() if isinstance(kind, type)}
STRUCTS = WireFormat(table("1.0"), CLASSES)
LENIENT = WireFormat(table("1.0"), CLASSES, lenient=True)
SCHEMAS: tuple[Schema, ...] = ("1.0", "0.3", "google.rpc", "grpc.health.v1")
DICTS: dict[Schema, WireFormat] = {schema: WireFormat(table(schema)) for schema in SCHEMAS}

EVERY = [(version, name) for version in VERSIONS for name in messages(version)]
V1 = [name for version, name in EVERY if version == "1.0"]
FEW = settings(
    max_examples=5,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


# Values: dicts in ProtoJSON's shape, bytes as bytes, without fields at their default.

TEXT = st.text(min_size=1, max_size=5) | st.sampled_from(["é" * 70, "x" * 127, "x" * 128, "ab" * 9000])
INT32 = st.integers(-(2**31), 2**31 - 1).filter(bool) | st.sampled_from([1, 127, 128, -1, 2**31 - 1, -(2**31)])
TIME = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)).map(
    lambda moment: moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | st.just("z" * 200),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
STRUCT = st.dictionaries(st.text(max_size=4) | st.just("k" * 140), JSON, max_size=3)
GOOGLE = {"Struct": STRUCT, "Value": JSON, "Timestamp": TIME}
REQUIRED = {
    (version, row.message, row.json_name) for version in VERSIONS for row in rows(version) if row.required == "REQUIRED"
}


@cache
def values(version: Version, name: str) -> st.SearchStrategy[dict[str, Any]]:
    return _values(version, name)


@st.composite
def _values(draw: st.DrawFn, version: Version, name: str) -> dict[str, Any]:
    descriptor = messages(version)[name].DESCRIPTOR
    chosen: dict[str, Any] = {}
    groups = [oneof for oneof in descriptor.oneofs if len(oneof.fields) > 1]
    allowed = {draw(st.sampled_from([field.json_name for field in oneof.fields])) for oneof in groups}
    for field in descriptor.fields:
        in_group = field.containing_oneof in groups
        must = (version, name, field.json_name) in REQUIRED and field.message_type is not None
        if (in_group and field.json_name not in allowed) or not (must or draw(st.booleans())):
            continue
        value = draw(content(version, field))
        if value or in_group or field.has_presence:
            chosen[field.json_name] = value
    return chosen


@cache
def content(version: Version, field: Any) -> st.SearchStrategy[Any]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return st.dictionaries(st.text(max_size=4), one(version, kind.fields_by_name["value"]), max_size=2)
    return st.lists(one(version, field), max_size=2) if field.is_repeated else one(version, field)


def one(version: Version, field: Any) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        name = field.message_type.name
        return GOOGLE[name] if name in GOOGLE else values(version, name)
    if field.enum_type is not None:
        return st.sampled_from([value.name for value in field.enum_type.values if value.number])
    return {
        FieldDescriptor.TYPE_STRING: TEXT,
        FieldDescriptor.TYPE_BYTES: st.binary(max_size=5),
        FieldDescriptor.TYPE_BOOL: st.just(True) if not field.has_presence else st.booleans(),
        FieldDescriptor.TYPE_INT32: INT32,
    }[field.type]


def proto_json(value: Any) -> Any:
    """With bytes as base64 text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: proto_json(item) for key, item in value.items()}
    return [proto_json(item) for item in value] if isinstance(value, list) else value


def theirs(version: Version, name: str, value: dict[str, Any]) -> Message:
    return ParseDict(proto_json(value), messages(version)[name]())


def parsed(version: Version, name: str, body: bytes) -> Message:
    message = messages(version)[name]()
    message.ParseFromString(body)
    return message


@pytest.mark.parametrize(("version", "name"), EVERY, ids=str)
def test_we_write_read_and_merge_as_protobuf_does(version: Version, name: str) -> None:
    encode, decode = DICTS[version].encoder(name), DICTS[version].decoder(name)

    @FEW
    @given(values(version, name), values(version, name))
    def check(first: dict[str, Any], second: dict[str, Any]) -> None:
        bodies = []
        for value in (first, second):
            message = theirs(version, name, value)
            assert parsed(version, name, encode(value)) == message
            bodies.append(message.SerializeToString())
            assert decode(bodies[-1]) == value
        both = b"".join(bodies)
        assert theirs(version, name, decode(both)) == parsed(version, name, both)

    check()


@pytest.mark.parametrize("name", V1)
def test_structs_cross_the_wire_as_they_cross_json(name: str) -> None:
    @FEW
    @given(values("1.0", name))
    def check(value: dict[str, Any]) -> None:
        message = theirs("1.0", name, value)
        value_read = STRUCTS.decoder(name)(message.SerializeToString())
        assert parsed("1.0", name, STRUCTS.encoder(name)(value_read)) == message
        assert ParseDict(json.loads(msgspec.json.encode(value_read)), messages("1.0")[name]()) == message

    check()


@settings(FEW, max_examples=150)
@given(st.data())
def test_spoilt_bytes_raise_wire_error_and_nothing_else(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["SendMessageRequest", "StreamResponse", "AgentCard"]))
    body = bytearray(theirs("1.0", name, data.draw(values("1.0", name))).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if body:
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    del body[data.draw(st.integers(0, len(body))) :]
    try:
        LENIENT.decoder(name)(bytes(body))
    except WireError:
        return


# Corners by hand


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def span(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def number(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def nested_lists(depth: int) -> bytes:
    value = b""
    for _ in range(depth):
        value = span(6, span(1, value))
    return value


TEN_BYTES = b"\xff" * 9 + b"\x01"
GROUP = varint(99 << 3 | 3) + number(1, 7) + varint(98 << 3 | 3) + varint(98 << 3 | 4) + varint(99 << 3 | 4)

READ = {
    "nothing": ("Message", b"", {}),
    "an unknown varint": ("StringList", number(90, 2**63) + span(1, b"a"), {"list": ["a"]}),
    "an unknown length-delimited field": ("StringList", span(90, b"xyz") + span(1, b"a"), {"list": ["a"]}),
    "an unknown fixed64": ("StringList", b"\x79" + b"\xff" * 8 + span(1, b"a"), {"list": ["a"]}),
    "an unknown fixed32": ("StringList", b"\x7d" + b"\xff" * 4 + span(1, b"a"), {"list": ["a"]}),
    "unknown groups in groups": ("StringList", GROUP + span(1, b"a"), {"list": ["a"]}),
    "an empty map entry": ("ImplicitOAuthFlow", span(3, b""), {"scopes": {"": ""}}),
    "a value twice in a map entry": (
        "SecurityRequirement",
        span(1, span(2, span(1, b"a")) + span(1, b"k") + span(2, span(1, b"b"))),
        {"schemes": {"k": {"list": ["a", "b"]}}},
    ),
    "fields in reverse order": (
        "AuthenticationInfo",
        span(2, b"c") + span(1, b"s"),
        {"scheme": "s", "credentials": "c"},
    ),
    "the last of two texts": ("StringList", span(9, b"") + span(1, b"b"), {"list": ["b"]}),
    "the last of two scalars": ("AgentProvider", span(1, b"a") + span(1, b"b"), {"url": "b"}),
    "an explicit default after a value": ("AgentProvider", span(1, b"a") + span(1, b""), {}),
    "explicit presence of a default": ("AgentCapabilities", number(1, 0), {"streaming": False}),
    "any varint but 0 as true": ("AgentExtension", number(3, 2**40), {"required": True}),
    "the last member of a oneof": ("Part", span(1, b"a") + span(2, b"\xff"), {"raw": b"\xff"}),
    "an empty member of a oneof": ("Part", span(1, b""), {"text": ""}),
    "null as a value that is set": ("Part", span(4, number(1, 0)), {"data": None}),
    "a long bool": ("Part", span(4, b"\x20\x81\x00"), {"data": True}),
    "the last kind of a value": ("Part", span(4, span(3, b"a") + number(4, 1)), {"data": True}),
    "lists that join": (
        "Part",
        span(4, span(6, span(1, number(4, 1))) + number(90, 1) + span(6, span(1, number(1, 0)))),
        {"data": [True, None]},
    ),
    "structs that join across repeated fields": (
        "Part",
        span(5, span(1, span(1, b"a") + span(2, number(1, 0))))
        + span(1, b"t")
        + span(5, span(1, span(1, b"b") + span(2, number(4, 1)))),
        {"text": "t", "metadata": {"a": None, "b": True}},
    ),
    "a member that came, went and came": (
        "StreamResponse",
        span(1, span(1, b"a")) + span(2, b"") + span(1, span(2, b"c")),
        {"task": {"contextId": "c"}},
    ),
    "the low 32 bits of an int32": ("GetTaskRequest", number(3, 2**32 + 5), {"historyLength": 5}),
    "a negative int32": ("GetTaskRequest", b"\x18" + TEN_BYTES, {"historyLength": -1}),
}

# Read as less than what stands on the wire, or otherwise than upb does.
OWN_WAY = {
    "an unknown field inside a map entry": (
        "SecurityRequirement",
        span(1, number(7, 1) + span(2, b"") + span(1, b"k")),
        {"schemes": {"k": {}}},
    ),
    "an unknown enum number as unspecified": ("TaskStatus", number(1, 77), {}),
    "a value of no kind as null": ("Part", span(4, b""), {"data": None}),
    "a time before 1970 and below a millisecond": (
        "TaskStatus",
        span(3, b"\x08" + TEN_BYTES + number(2, 1999999)),
        {"timestamp": "1969-12-31T23:59:59.001Z"},
    ),
}


@pytest.mark.parametrize(("name", "body", "value"), (READ | OWN_WAY).values(), ids=READ | OWN_WAY)
def test_reads(name: str, body: bytes, value: dict[str, Any]) -> None:
    assert DICTS["1.0"].decoder(name)(body) == value


@pytest.mark.parametrize(("name", "body", "value"), READ.values(), ids=READ)
def test_reads_as_protobuf_does(name: str, body: bytes, value: dict[str, Any]) -> None:
    message = parsed("1.0", name, body)
    message.DiscardUnknownFields()
    assert theirs("1.0", name, value) == message


REFUSED = {
    "cut in a text": ("Message", span(1, b"abc")[:-1], "Message.messageId: cut short"),
    "cut behind a tag": ("Message", b"\x0a", "Message.*: cut short"),
    "cut in a number": ("Message", b"\x20\x80", "Message.role: cut short"),
    "cut in an unknown field": ("Message", span(90, b"abc")[:-1], "Message.*: cut short"),
    "a sub-message that is longer than its owner": ("Task", span(3, b"\x12\x05\x0a"), "TaskStatus.*: cut short"),
    "an element that is longer than its owner": ("Task", span(4, b"\x0a\x07") + span(2, b"abcdefghi"), "cut short"),
    "text that is not UTF-8": ("Task", span(2, b"\xff"), "Task.contextId: text is not UTF-8"),
    "a key that is not UTF-8": ("Task", span(6, span(1, span(1, b"\xff"))), "Task.metadata: text is not UTF-8"),
    "a long varint": ("Message", b"\x20" + b"\x80" * 10 + b"\x00", "Message.role: varint of more than ten bytes"),
    "a number where text belongs": ("Message", number(1, 5), "Message.messageId: wire type 0 does not fit"),
    "text where a number belongs": ("Message", span(4, b"x"), "Message.role: wire type 2 does not fit"),
    "a fixed32 where text belongs": ("Message", b"\x0d1234", "Message.messageId: wire type 5 does not fit"),
    "a wire type that does not exist": ("Message", b"\x7e\x00", "wire type 6 does not exist"),
    "field number 0": ("Message", b"\x02\x00", "field number 0"),
    "a group that does not end": ("Message", b"\x7b\x08\x01", "cut short"),
    "a group that was not begun": ("Message", b"\x7c\x00", "was not begun"),
    "groups that cross": ("Message", b"\x7b\x73\x7c\x74", "was not begun"),
    "a double that is cut": ("Part", span(4, b"\x111234"), "Part.data: cut short"),
    "NaN": ("Part", span(4, b"\x11" + struct.pack("<d", float("nan"))), "Part.data: nan is not a JSON number"),
    "infinity": ("Part", span(4, b"\x11" + struct.pack("<d", float("inf"))), "Part.data: inf is not a JSON number"),
    "nanoseconds of more than a second": ("TaskStatus", span(3, number(2, 10**9)), "TaskStatus.timestamp: nanos"),
    "a time after the year 9999": ("TaskStatus", span(3, number(1, 2**40)), "TaskStatus.timestamp: time out of range"),
}


@pytest.mark.parametrize(("name", "body", "text"), REFUSED.values(), ids=REFUSED)
def test_refuses_and_names_the_place(name: str, body: bytes, text: str) -> None:
    with pytest.raises(WireError, match=text):
        DICTS["1.0"].decoder(name)(body)


def test_values_nest_as_deep_as_protobuf_reads_and_no_deeper() -> None:
    body, too_much = (span(4, nested_lists(depth)) for depth in (49, 50))
    decode = DICTS["1.0"].decoder("Part")
    assert parsed("1.0", "Part", body).IsInitialized()
    assert json.dumps(decode(body)["data"]) == "[" * 49 + "null" + "]" * 49
    with pytest.raises(DecodeError):
        parsed("1.0", "Part", too_much)
    with pytest.raises(WireError, match=r"Part\.data: nested too deeply"):
        decode(too_much)
    with pytest.raises(WireError, match="nested too deeply"):
        decode(span(4, nested_lists(5000)))


def test_depth_is_a_parameter_and_holds_for_writing() -> None:
    value = {
        "data": [[{"a": [1]}]]
    }  # Part > Value > list > Value > list > Value > Struct > entry > Value > list > Value
    with pytest.raises(WireError, match="Part: nested too deeply"):
        WireFormat(table("1.0"), depth=9).encoder("Part")(value)
    body = WireFormat(table("1.0"), depth=10).encoder("Part")(value)
    assert WireFormat(table("1.0"), depth=10).decoder("Part")(body) == value
    with pytest.raises(WireError, match=r"Part\.data: nested too deeply"):
        WireFormat(table("1.0"), depth=9).decoder("Part")(body)


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

UNFIT: dict[str, tuple[str, Any]] = {
    "NaN": ("Part", {"data": float("nan")}),
    "infinity": ("Part", {"metadata": {"a": [float("-inf")]}}),
    "an integer beyond a double": ("Part", {"data": 10**400}),
    "a value that JSON lacks": ("Part", {"data": {1, 2}}),
    "a key that is no text": ("Part", {"data": {1: 2}}),
    "half a surrogate pair": ("Part", {"text": "\ud800"}),
    "an int32 that is too large": ("GetTaskRequest", {"historyLength": 2**31}),
    "an int32 that is too small": ("GetTaskRequest", {"historyLength": -(2**31) - 1}),
    "an enum value that nobody knows": ("TaskStatus", {"state": "TASK_STATE_CANCELLED"}),
    "a time that is none": ("TaskStatus", {"timestamp": "yesterday"}),
    "a number as text": ("Part", {"text": 5}),
    "a list that holds itself": ("Part", {"data": CIRCLE}),
}


@pytest.mark.parametrize(("name", "value"), UNFIT.values(), ids=UNFIT)
def test_refuses_to_write(name: str, value: dict[str, Any]) -> None:
    with pytest.raises(WireError, match=f"^{name}: "):
        DICTS["1.0"].encoder(name)(value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T03:04:05.678999Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T03:04:05.678999999Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02t03:04:05z", "2026-01-02T03:04:05.000Z"),
        ("2026-01-02T03:04:05+05:30", "2026-01-01T21:34:05.000Z"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05.000Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_written_from_rfc_3339_and_read_with_milliseconds(written: str, read: str) -> None:
    wire = DICTS["0.3"]
    assert wire.decoder("TaskStatus")(wire.encoder("TaskStatus")({"timestamp": written})) == {"timestamp": read}


@pytest.mark.parametrize(
    ("written", "read"), [(1.0, 1), (2**53, 2**53), (0.5, 0.5), (1e300, 1e300), (2.0**60, 2.0**60), (True, True)]
)
def test_integral_numbers_come_back_as_int_while_a_double_holds_them_exactly(written: Any, read: Any) -> None:
    wire = DICTS["1.0"]
    back = wire.decoder("Part")(wire.encoder("Part")({"data": written}))["data"]
    assert (type(back), back) == (type(read), read)


def test_pieces_in_any_number_join_in_one_pass() -> None:
    """A body of some hundred kilobytes made to be copied over and over would else take minutes."""
    many = 100_000
    decode = DICTS["1.0"].decoder
    assert len(decode("Part")(span(4, span(6, span(1, b"")) * many))["data"]) == many
    scopes = span(1, span(1, b"k") + span(2, span(1, b"s")) * many)
    assert len(decode("SecurityRequirement")(scopes)["schemes"]["k"]["list"]) == many
    assert decode("Task")(span(3, b"") * many) == {"status": {}}


# Structs


def test_absent_fields_of_a_struct_hold_their_implicit_defaults() -> None:
    read = STRUCTS.decoder("Message")
    assert read(b"") == model.Message(message_id="", role=model.Role.UNSPECIFIED, parts=())
    assert read(number(4, 9)).role is model.Role.UNSPECIFIED
    assert STRUCTS.decoder("Part")(b"") == model.Part()
    assert STRUCTS.decoder("AgentCapabilities")(number(1, 0)).streaming is False
    assert STRUCTS.decoder("DeviceCodeOAuthFlow")(b"").scopes == {}


def test_an_absent_required_sub_message_is_named_in_camel_case() -> None:
    with pytest.raises(MissingField) as caught:
        STRUCTS.decoder("SendMessageRequest")(span(1, b"tenant"))
    assert (caught.value.message, caught.value.field) == ("SendMessageRequest", "message")
    with pytest.raises(MissingField) as caught:
        STRUCTS.decoder("StreamResponse")(span(3, span(1, b"t")))
    assert (caught.value.message, caught.value.field) == ("TaskStatusUpdateEvent", "status")


def test_a_lenient_reader_puts_an_empty_sub_message_in_its_place() -> None:
    status = model.TaskStatus(state=model.TaskState.UNSPECIFIED)
    assert LENIENT.decoder("Task")(span(1, b"t")) == model.Task(id="t", status=status)


def test_null_data_differs_from_no_data() -> None:
    write = STRUCTS.encoder("Part")
    assert write(model.Part(data=None)) == span(4, number(1, 0))
    assert write(model.Part()) == b""


def test_map_entries_keep_their_order() -> None:
    wire, value = DICTS["google.rpc"], {"metadata": {"b": "1", "a": "", "": "2"}}
    body = wire.encoder("ErrorInfo")(value)
    assert body == span(3, span(1, b"b") + span(2, b"1")) + span(3, span(1, b"a") + span(2, b"")) + span(
        3, span(1, b"") + span(2, b"2")
    )
    assert list(wire.decoder("ErrorInfo")(body)["metadata"]) == ["b", "a", ""]


def test_the_health_service_speaks() -> None:
    wire = DICTS["grpc.health.v1"]
    assert wire.encoder("HealthCheckResponse")({"status": "SERVING"}) == b"\x08\x01"
    assert wire.decoder("HealthCheckRequest")(span(1, b"lf.a2a.v1.A2AService")) == {"service": "lf.a2a.v1.A2AService"}


def test_the_generated_function_can_be_read() -> None:
    assert "v_id = buf[pos:stop].decode()" in STRUCTS.source("read", "Task")
    assert "for v in m.history or ():" in STRUCTS.source("write", "Task")
