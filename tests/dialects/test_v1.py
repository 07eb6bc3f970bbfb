"""1.0 as JSON and protobuf: what is forgiven, what is refused and by which name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import model
from dragoman.dialects import v03, v03_proto, v1
from dragoman.dialects.base import Dialect, Notes
from dragoman.dialects.reading import MAX_DEPTH
from dragoman.errors import InvalidParamsError, JSONParseError, PeerError
from dragoman.model import Operation, Part, Role, TaskState
from tests.dialects.bodies import CANONICAL, HELLO, HELLO_KIND, TASK, part, sending
from tests.dialects.vectors import text


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        (sending(message_id="x", messageId=None), "message_id", "x"),
        (sending(context_id="c"), "context_id", "c"),
        (sending(contextId=None), "context_id", ""),
        (sending(role=1), "role", Role.USER),
        (sending(role="2"), "role", Role.AGENT),
        (sending(role="user"), "role", Role.USER),
        (sending(role="AGENT"), "role", Role.AGENT),
        (sending(extensions=None), "extensions", ()),
        (sending(unheardOf={"a": [1]}), "message_id", "m"),
        (sending(kind="message"), "role", Role.USER),
        (part(text=None, raw="YQ"), "parts", (Part(raw=b"a"),)),
        (part(raw="-_-_AA"), "parts", (Part(raw=b"\xfb\xff\xbf\x00"),)),
        (part(data=None), "parts", (Part(data=None),)),
        (part(data=None, text=None), "parts", (Part(data=None),)),
        (part(text="x", media_type="text/x"), "parts", (Part(text="x", media_type="text/x"),)),
        (part(text="x", mimeType="text/x"), "parts", (Part(text="x", media_type="text/x"),)),
        (part(kind="text", text="x"), "parts", (Part(text="x"),)),
    ],
)
def test_a_request_is_forgiven(body: bytes, field: str, value: Any) -> None:
    notes = Notes()
    request = v1.JSON.load_request(model.SEND_MESSAGE, body, notes)
    assert getattr(request.message, field) == value
    assert bool(notes.forgiven) is (body != part(data=None))


@pytest.mark.parametrize(("written", "read"), [("10", 10), (10.0, 10), ("0", 0), (None, None)])
def test_an_integer_may_be_text_or_integral(written: Any, read: int | None) -> None:
    request = v1.JSON.load_request(model.GET_TASK, text({"id": "t", "historyLength": written}))
    assert request.history_length == read


@pytest.mark.parametrize("written", [10.5, "x", True, "1.0", 2**40, "9" * 30])
def test_anything_else_is_no_integer(written: Any) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        v1.JSON.load_request(model.GET_TASK, text({"id": "t", "historyLength": written}))
    assert [field for field, _ in caught.value.violations] == ["historyLength"]


def test_the_older_name_of_the_time_filter_is_read() -> None:
    body = text({"lastUpdatedAfter": "2026-01-02T05:04:05+02:00", "status": "working"})
    request = v1.JSON.load_request(model.LIST_TASKS, body)
    assert request.status_timestamp_after == "2026-01-02T03:04:05.000Z"
    assert request.status is TaskState.WORKING


@pytest.mark.parametrize("wrapper", ["config", "pushNotificationConfig"])
def test_a_wrapped_webhook_config_is_unwrapped(wrapper: str) -> None:
    notes = Notes()
    body = text({"taskId": "t", wrapper: {"id": "p", "url": "https://h.example"}})
    request = v1.JSON.load_request(model.CREATE_PUSH_CONFIG, body, notes)
    assert request == model.TaskPushNotificationConfig(task_id="t", id="p", url="https://h.example")
    assert notes.forgiven == [f"{wrapper} unwrapped"]


@pytest.mark.parametrize("body", [b"", b"  \n", b"null", b"{}"])
@pytest.mark.parametrize("dialect", [v1.JSON, v03.JSON, v03_proto.JSON])
def test_a_call_without_parameters_may_have_no_body(dialect: Dialect, body: bytes) -> None:
    expected = model.GetExtendedAgentCardRequest()
    assert dialect.load_request(model.GET_EXTENDED_AGENT_CARD, body) == expected


def test_notes_are_optional() -> None:
    assert v1.JSON.load_request(model.SEND_MESSAGE, sending(x=1)) == CANONICAL


# What is refused

CONFIG = {"taskId": "t", "url": "https://h.example"}


@pytest.mark.parametrize(
    ("op", "body", "fields"),
    [
        (model.SEND_MESSAGE, b"{}", ["message"]),
        (model.SEND_MESSAGE, b"", ["message"]),
        (model.SEND_MESSAGE, b"[]", [""]),
        (model.SEND_MESSAGE, sending(messageId=""), ["message.messageId"]),
        (model.SEND_MESSAGE, sending(messageId=None), ["message.messageId"]),
        (model.SEND_MESSAGE, sending(messageId=7), ["message.messageId"]),
        (model.SEND_MESSAGE, sending(role="ROLE_UNSPECIFIED"), ["message.role"]),
        (model.SEND_MESSAGE, sending(role="ROLE_ROBOT"), ["message.role"]),
        (model.SEND_MESSAGE, sending(role=9), ["message.role"]),
        (model.SEND_MESSAGE, sending(role={}), ["message.role"]),
        (model.SEND_MESSAGE, sending(parts=[]), ["message.parts"]),
        (model.SEND_MESSAGE, sending(parts={}), ["message.parts"]),
        (model.SEND_MESSAGE, part(), ["message.parts[0]"]),
        (model.SEND_MESSAGE, part(text="a", url="b"), ["message.parts[0]"]),
        (model.SEND_MESSAGE, part(text="a", data=None), ["message.parts[0]"]),
        (model.SEND_MESSAGE, part(text=1), ["message.parts[0].text"]),
        (model.SEND_MESSAGE, part(raw="%"), ["message.parts[0].raw"]),
        (model.SEND_MESSAGE, part(text="a", metadata=[]), ["message.parts[0].metadata"]),
        (model.SEND_MESSAGE, part(kind="file", file={"uri": "x"}), ["message.parts[0]"]),
        (
            model.SEND_MESSAGE,
            sending(parts=[{"text": "a"}, {}], messageId=""),
            ["message.messageId", "message.parts[1]"],
        ),
        (model.SEND_MESSAGE, text(HELLO | {"configuration": {"historyLength": -1}}), ["configuration.historyLength"]),
        (
            model.SEND_MESSAGE,
            text(HELLO | {"configuration": {"taskPushNotificationConfig": {"url": "ftp://x"}}}),
            ["configuration.taskPushNotificationConfig.url"],
        ),
        (model.SEND_STREAMING_MESSAGE, sending(parts=[]), ["message.parts"]),
        (model.GET_TASK, b'{"id":""}', ["id"]),
        (model.GET_TASK, b'{"id":"t","historyLength":-1}', ["historyLength"]),
        (model.LIST_TASKS, b'{"pageSize":0}', ["pageSize"]),
        (model.LIST_TASKS, b'{"pageSize":101}', ["pageSize"]),
        (model.LIST_TASKS, b'{"historyLength":-1}', ["historyLength"]),
        (model.LIST_TASKS, b'{"statusTimestampAfter":"yesterday"}', ["statusTimestampAfter"]),
        (model.LIST_TASKS, b'{"statusTimestampAfter":"0001-01-01T00:00:00+14:00"}', ["statusTimestampAfter"]),
        (model.LIST_TASKS, b'{"status":"DANCING"}', ["status"]),
        (model.CANCEL_TASK, b"{}", ["id"]),
        (model.SUBSCRIBE_TO_TASK, b'{"id":""}', ["id"]),
        (model.CREATE_PUSH_CONFIG, text(CONFIG | {"taskId": ""}), ["taskId"]),
        (model.CREATE_PUSH_CONFIG, text(CONFIG | {"url": ""}), ["url"]),
        (model.CREATE_PUSH_CONFIG, text(CONFIG | {"url": "h.example/x"}), ["url"]),
        (model.CREATE_PUSH_CONFIG, text(CONFIG | {"url": "https://"}), ["url"]),
        (model.CREATE_PUSH_CONFIG, text(CONFIG | {"authentication": {"scheme": ""}}), ["authentication.scheme"]),
        (model.GET_PUSH_CONFIG, b'{"taskId":"t","id":""}', ["id"]),
        (model.DELETE_PUSH_CONFIG, b'{"taskId":"","id":""}', ["taskId", "id"]),
        (model.LIST_PUSH_CONFIGS, b'{"taskId":""}', ["taskId"]),
        (model.LIST_PUSH_CONFIGS, b'{"taskId":"t","pageSize":-1}', ["pageSize"]),
        (model.SEND_MESSAGE, text(HELLO | {"metadata": 1})[:-1] + b',"x":1e999}', [""]),
    ],
)
def test_a_broken_rule_names_its_field(op: Operation[Any, Any], body: bytes, fields: list[str]) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        v1.JSON.load_request(op, body)
    found = [field for field, _ in caught.value.violations]
    assert found == fields or (fields == [""] and len(found) == 1)


@pytest.mark.parametrize("op", [model.GET_PUSH_CONFIG, model.DELETE_PUSH_CONFIG])
def test_parameters_of_0_3_are_told_apart_from_those_of_1_0(op: Operation[Any, Any]) -> None:
    with pytest.raises(InvalidParamsError, match=r"these are 0\.3 parameters"):
        v1.JSON.load_request(op, b'{"id":"t","pushNotificationConfigId":"p"}')


DEEP = b'{"metadata":' + b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1) + b',"message":'
UNREADABLE = [
    b"{",
    b"nonsense",
    b'{"message":{}} trailing',
    b'{"message":"\xff"}',
    b'{"message":"\\ud800"}',
    b'{"message":"\xed\xa0\x80"}',
    b"[" * 100_000,
    DEEP + text(HELLO["message"]) + b"}",
    b'{"unheardOf":' + b"[" * 500 + b"]" * 500 + b"}",
]


@pytest.mark.parametrize("body", UNREADABLE, ids=range(len(UNREADABLE)))
@pytest.mark.parametrize("dialect", [v1.JSON, v03.JSON, v03_proto.JSON])
def test_what_is_no_json_is_a_parse_error(dialect: Dialect, body: bytes) -> None:
    with pytest.raises(JSONParseError):
        dialect.load_request(model.SEND_MESSAGE, body)


@pytest.mark.parametrize("body", [*UNREADABLE[:7], b"", b"null", b"<html>", b'"text"'])
@pytest.mark.parametrize("dialect", [v1.JSON, v03.JSON, v03_proto.JSON])
@pytest.mark.parametrize("op", [model.SEND_MESSAGE, model.GET_TASK, model.GET_EXTENDED_AGENT_CARD])
def test_a_reply_that_is_no_message_is_the_peers_fault(dialect: Dialect, op: Operation[Any, Any], body: bytes) -> None:
    with pytest.raises(PeerError):
        dialect.load_reply(op, body)


@pytest.mark.parametrize("dialect", [v1.PROTOBUF, v03_proto.PROTOBUF])
def test_bytes_that_are_no_protobuf_are_refused(dialect: Dialect) -> None:
    with pytest.raises(JSONParseError, match="protobuf"):
        dialect.load_request(model.SEND_MESSAGE, b"\xff\xff")
    with pytest.raises(PeerError, match="protobuf"):
        dialect.load_reply(model.GET_TASK, b"\xff\xff")


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [(v1.PROTOBUF, ["message"]), (v03_proto.PROTOBUF, ["message"]), (v03.JSON, ["message"])],
)
def test_a_message_that_is_missing_is_named(dialect: Dialect, fields: list[str]) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        dialect.load_request(model.SEND_MESSAGE, b"")
    assert [field for field, _ in caught.value.violations] == fields


@pytest.mark.parametrize("dialect", [v1.JSON, v1.PROTOBUF, v03.JSON, v03_proto.JSON, v03_proto.PROTOBUF])
@pytest.mark.parametrize("op", [model.SEND_MESSAGE, model.GET_TASK, model.SUBSCRIBE_TO_TASK])
def test_an_empty_message_is_no_reply(dialect: Dialect, op: Operation[Any, Any]) -> None:
    body = b"" if dialect in (v1.PROTOBUF, v03_proto.PROTOBUF) else b"{}"
    with pytest.raises(PeerError):
        dialect.load_reply(op, body)


# Replies


@pytest.mark.parametrize(
    ("op", "body", "expected"),
    [
        (model.LIST_TASKS, {}, {"tasks": [], "nextPageToken": "", "pageSize": 0, "totalSize": 0}),
        (model.GET_TASK, {"status": {}}, {"id": "", "status": {"state": "TASK_STATE_UNSPECIFIED"}}),
        (model.GET_TASK, TASK | {"generation": "4"}, TASK),
        (
            model.GET_TASK,
            TASK | {"status": {"state": "TASK_STATE_DANCING"}},
            TASK | {"status": {"state": TaskState.UNSPECIFIED.value}},
        ),
        (model.GET_TASK, TASK | {"status": {"state": 2}}, TASK),
        (model.GET_TASK, TASK | {"artifacts": None, "history": None, "metadata": None}, TASK),
        (
            model.GET_TASK,
            TASK | {"artifacts": [{"artifactId": "a"}]},
            TASK | {"artifacts": [{"artifactId": "a", "parts": []}]},
        ),
        (
            model.SUBSCRIBE_TO_TASK,
            {"taskStatusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}},
            {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}},
        ),
        (
            model.SUBSCRIBE_TO_TASK,
            {
                "taskArtifactUpdate": {
                    "taskId": "t",
                    "artifact": {"artifact_id": "a", "parts": [{"text": "x"}]},
                    "index": 0,
                }
            },
            {
                "artifactUpdate": {
                    "taskId": "t",
                    "contextId": "",
                    "artifact": {"artifactId": "a", "parts": [{"text": "x"}]},
                }
            },
        ),
        # a bare task where {task} belongs, without and with kind
        (model.SEND_MESSAGE, TASK, {"task": TASK}),
        (
            model.SEND_MESSAGE,
            {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}},
            {"task": TASK},
        ),
        (model.SEND_MESSAGE, {"kind": "message", **HELLO_KIND["message"]}, HELLO),
        (model.SEND_MESSAGE, HELLO["message"], HELLO),
        # kind on top of the 1.0 shape
        (model.SEND_MESSAGE, {"task": {"kind": "task", **TASK}}, {"task": TASK}),
        (model.SEND_MESSAGE, HELLO_KIND, HELLO),
        # 1.0 shapes with words of 0.3
        (model.SEND_MESSAGE, {"task": TASK | {"status": {"state": "working"}}}, {"task": TASK}),
        (model.GET_TASK, {"task": TASK}, TASK),
        (
            model.SEND_STREAMING_MESSAGE,
            {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "completed"}, "final": True},
            {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}},
        ),
        (
            model.GET_PUSH_CONFIG,
            {"taskId": "t", "pushNotificationConfig": {"id": "p", "url": "https://h.example"}},
            {"id": "p", "taskId": "t", "url": "https://h.example"},
        ),
        (
            model.LIST_PUSH_CONFIGS,
            [{"taskId": "t", "pushNotificationConfig": {"id": "p", "url": "https://h.example"}}],
            {"configs": [{"id": "p", "taskId": "t", "url": "https://h.example"}]},
        ),
    ],
)
def test_a_1_0_reply_is_forgiven(op: Operation[Any, Any], body: Any, expected: Any) -> None:
    notes = Notes()
    assert v1.JSON.load_reply(op, text(body), notes) == msgspec.convert(expected, op.response)
    assert notes.forgiven


def test_an_unknown_state_is_quoted_in_the_notes() -> None:
    notes = Notes()
    v1.JSON.load_reply(model.GET_TASK, text(TASK | {"status": {"state": "TASK_STATE_DANCING"}}), notes)
    assert any("TASK_STATE_DANCING" in note for note in notes.forgiven)


@pytest.mark.parametrize(
    ("op", "body"),
    [
        (model.SEND_MESSAGE, {"task": TASK, "message": HELLO["message"]}),
        (model.SEND_MESSAGE, {"statusUpdate": {"taskId": "t", "contextId": "c", "status": TASK["status"]}}),
        (model.GET_TASK, TASK | {"status": 1}),
        (model.GET_TASK, {"id": "t"}),
        (
            model.GET_TASK,
            TASK | {"history": [{"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "", "url": ""}]}]},
        ),
        (model.GET_TASK, TASK | {"artifacts": [{"artifactId": "a", "parts": [{}]}]}),
        (model.LIST_TASKS, {"tasks": [TASK | {"artifacts": [{"artifactId": "a", "parts": [{}]}]}]}),
        (model.SUBSCRIBE_TO_TASK, {"unheardOf": {}}),
    ],
)
def test_a_reply_without_one_meaning_is_the_peers_fault(op: Operation[Any, Any], body: Any) -> None:
    with pytest.raises(PeerError) as caught:
        v1.JSON.load_reply(op, text(body))
    assert caught.value.excerpt


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
        ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123Z"),
        ("2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.500Z"),
        ("2026-01-02t03:04:05z", "2026-01-02T03:04:05.000Z"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05.000Z"),
        ("soon", None),
    ],
)
@pytest.mark.parametrize("dialect", [v1.JSON, v03.JSON, v03_proto.JSON])
def test_timestamps_of_replies_are_canonical(dialect: Dialect, written: str, read: str | None) -> None:
    status = {"state": "TASK_STATE_WORKING", "timestamp": written}
    notes = Notes()
    task = dialect.load_reply(model.GET_TASK, text(TASK | {"status": status}), notes)
    assert task.status.timestamp == read
    assert ("unreadable-timestamp" in notes.lost) is (read is None)


def test_timestamps_in_a_list_and_a_stream_are_canonical() -> None:
    status = {"state": "TASK_STATE_WORKING", "timestamp": "2026-01-02T03:04:05Z"}
    page = v1.JSON.load_reply(model.LIST_TASKS, text({"tasks": [TASK | {"status": status}]}))
    assert page.tasks[0].status.timestamp == "2026-01-02T03:04:05.000Z"
    event = text({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}})
    update = v1.JSON.load_reply(model.SUBSCRIBE_TO_TASK, event)
    assert update.status_update.status.timestamp == "2026-01-02T03:04:05.000Z"
