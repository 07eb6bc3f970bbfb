"""From 1.0 to 0.3 and back nothing changes but what the loss table says, and JSON agrees with protobuf's reading."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from dragoman import model
from dragoman.dialects import v03, v03_proto, v1
from dragoman.dialects.base import Dialect, Notes
from dragoman.dialects.losses import LOSSES
from dragoman.model import OPERATIONS, Operation, Part, Role
from tests.oracle import messages

MANY = settings(max_examples=15, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

WORDS = st.text(string.ascii_letters + 'äß漢😀 "\\{}', max_size=8)
NAMES = st.text(string.ascii_letters + string.digits + "-_:.", min_size=1, max_size=8)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not number.is_integer()
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=3)
TIMES = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z")


def parts() -> st.SearchStrategy[Part]:
    common = {"metadata": st.none() | OBJECTS, "filename": st.just("") | NAMES, "media_type": st.just("") | NAMES}
    contents = {"text": WORDS, "raw": st.binary(max_size=8), "url": WORDS, "data": VALUES}
    return st.one_of(*(st.builds(Part, **{name: content}, **common) for name, content in contents.items()))


def structs(kind: type[Any], **given_fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Canonical structs of any kind, made from the types of their fields."""
    if kind is Part:
        return parts()
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    fields = {
        field.name: given_fields[field.name] if field.name in given_fields else _field(field) for field in info.fields
    }
    return st.builds(kind, **fields)


def _field(field: inspect.Field) -> st.SearchStrategy[Any]:
    if field.name in ("timestamp", "status_timestamp_after"):
        return st.none() | TIMES
    if field.name == "tenant":
        return st.just("")
    if field.name in ("id", "task_id", "message_id", "artifact_id", "scheme"):
        return NAMES
    if field.name == "url":
        return NAMES.map("https://{}".format)
    if field.name == "role":
        return st.sampled_from([Role.USER, Role.AGENT])
    if field.name == "parts":
        return st.lists(parts(), min_size=1, max_size=3).map(tuple)
    return _value(field.type)


def _value(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType(cls=cls):
            return structs(cls)
        case inspect.EnumType(cls=cls):
            return st.sampled_from(cls)
        case inspect.VarTupleType(item_type=item):
            return st.lists(_value(item), max_size=2).map(tuple)
        case inspect.DictType():
            return OBJECTS
        case inspect.UnionType(types=types):
            return st.none() | _value(types[0])
        case inspect.IntType():
            return st.integers(0, 2**31 - 1)
        case inspect.BoolType():
            return st.booleans()
        case _:
            return WORDS


def one_of(kind: type[Any], *members: str) -> st.SearchStrategy[Any]:
    """A wrapper with one of its members."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return st.one_of(*(_wrapped(kind, field) for field in info.fields if field.name in members))


def _wrapped(kind: type[Any], field: inspect.Field) -> st.SearchStrategy[Any]:
    assert isinstance(field.type, inspect.UnionType)
    return st.builds(kind, **{field.name: _value(field.type.types[0])})


#: No inline task id in the webhook config of a send: 0.3 has no place for one, and 1.0 leaves it empty.
INLINE = structs(model.TaskPushNotificationConfig, task_id=st.just(""))
CONFIGURATION = structs(
    model.SendMessageConfiguration,
    task_push_notification_config=st.none() | INLINE,
    history_length=st.none() | st.integers(1, 2**31 - 1),
)
SEND = structs(model.SendMessageRequest, configuration=st.none() | CONFIGURATION)
EVENT = one_of(model.StreamResponse, "task", "message", "status_update", "artifact_update")
PAGE = structs(model.ListTaskPushNotificationConfigsRequest)

REQUESTS: dict[str, st.SearchStrategy[Any]] = {
    "SendMessage": SEND,
    "SendStreamingMessage": SEND,
    "GetTask": structs(model.GetTaskRequest, history_length=st.none() | st.integers(1, 2**31 - 1)),
    "CancelTask": structs(model.CancelTaskRequest),
    "SubscribeToTask": structs(model.SubscribeToTaskRequest),
    "CreateTaskPushNotificationConfig": structs(model.TaskPushNotificationConfig),
    "GetTaskPushNotificationConfig": structs(model.GetTaskPushNotificationConfigRequest),
    "ListTaskPushNotificationConfigs": PAGE,
    "DeleteTaskPushNotificationConfig": structs(model.DeleteTaskPushNotificationConfigRequest),
}
#: One operation for each shape of a reply.
REPLIES: dict[str, st.SearchStrategy[Any]] = {
    "SendMessage": one_of(model.SendMessageResponse, "task", "message"),
    "SendStreamingMessage": EVENT,
    "GetTask": structs(model.Task),
    "GetTaskPushNotificationConfig": structs(model.TaskPushNotificationConfig),
    "ListTaskPushNotificationConfigs": structs(model.ListTaskPushNotificationConfigsResponse),
}

IMPLIED = {"text": "text/plain", "data": "application/json"}


def said(value: Any, lost: list[str]) -> Any:
    """``value`` as far as 0.3 can say it: every difference is a row of the loss table that was noted."""
    return msgspec.convert(_said(msgspec.to_builtins(value), lost), type(value), strict=False)


def _said(value: Any, lost: list[str], inside: str = "") -> Any:
    if type(value) in (list, tuple):
        return [_said(item, lost, inside) for item in value]
    if type(value) is not dict:
        return value
    out = {key: item if key in ("metadata", "data") else _said(item, lost, key) for key, item in value.items()}
    if inside in ("parts",):
        _said_part(out, lost)
    if inside == "configuration":
        if "stream-return-immediately" in lost:
            out.pop("returnImmediately", None)
        if not out and {"stream-return-immediately", "empty-configuration"} & set(lost):
            return None
    if "push-paging" in lost:
        out = {key: item for key, item in out.items() if key not in ("pageSize", "pageToken", "nextPageToken")}
    if "cancel-metadata" in lost:
        out.pop("metadata", None)
    if out.get("metadata") == {} and "referenceTaskIds" in out and "reference-task-ids" in lost:
        del out["metadata"]
    return out


def _said_part(part: dict[str, Any], lost: list[str]) -> None:
    for member, implied in IMPLIED.items():
        if member in part and part.get("mediaType") == implied:
            assert "implied-media-type" in lost
            del part["mediaType"]
    plain = "text" in part or "data" in part
    carried = plain and ("filename" in part or "mediaType" in part)
    wrapped = "data" in part and type(part["data"]) is not dict
    if part.get("metadata") == {} and (carried or wrapped):
        del part["metadata"]  # an object made only of reserved keys comes back absent


SHAPES: dict[str, Dialect] = {"kind": v03.JSON, "proto": v03_proto.JSON, "protobuf": v03_proto.PROTOBUF}


@pytest.mark.parametrize("dialect", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("op", REQUESTS)
def test_a_request_survives_0_3(dialect: Dialect, op: str) -> None:
    check(REQUESTS[op], OPERATIONS[op], dialect.dump_request, dialect.load_request)


@pytest.mark.parametrize("dialect", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("op", REPLIES)
def test_a_reply_survives_0_3(dialect: Dialect, op: str) -> None:
    check(REPLIES[op], OPERATIONS[op], dialect.dump_reply, dialect.load_reply)


def check(
    strategy: st.SearchStrategy[Any], op: Operation[Any, Any], dump: Callable[..., bytes], load: Callable[..., Any]
) -> None:
    @MANY
    @given(strategy)
    def there_and_back(value: Any) -> None:
        notes = Notes()
        body = dump(op, value, notes)
        assert set(notes.lost) <= LOSSES.keys()
        assert load(op, body) == said(value, notes.lost)

    there_and_back()


@pytest.mark.parametrize("dialect", [v1.JSON, v1.PROTOBUF], ids=["json", "protobuf"])
@pytest.mark.parametrize("op", [*REQUESTS, "ListTasks"])
def test_a_request_survives_1_0(dialect: Dialect, op: str) -> None:
    listing = structs(model.ListTasksRequest, page_size=st.none() | st.integers(1, 100))
    strategy = REQUESTS.get(op, listing)

    @MANY
    @given(strategy)
    def there_and_back(value: Any) -> None:
        assert dialect.load_request(OPERATIONS[op], dialect.dump_request(OPERATIONS[op], value)) == value

    there_and_back()


@pytest.mark.parametrize("op", [*REPLIES, "ListTasks"])
def test_a_1_0_reply_reads_alike_here_and_in_protobuf(op: str) -> None:
    operation = OPERATIONS[op]
    strategy = REPLIES[op] if op in REPLIES else structs(model.ListTasksResponse)
    theirs = messages("1.0")[operation.response.__name__]

    @MANY
    @given(strategy)
    def agree(value: Any) -> None:
        body = v1.JSON.dump_reply(operation, value)
        assert v1.JSON.load_reply(operation, body) == value
        parsed = json_format.Parse(body, theirs())
        assert parsed == theirs.FromString(v1.PROTOBUF.dump_reply(operation, value))
        printed = json_format.MessageToJson(parsed, indent=None).encode()
        assert v1.JSON.load_reply(operation, printed) == value

    agree()


def test_every_row_of_the_loss_table_can_be_looked_up_by_its_name() -> None:
    assert all(name == row.name and row.text for name, row in LOSSES.items())
