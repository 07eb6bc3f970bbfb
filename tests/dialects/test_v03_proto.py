"""The options of the proto shape, and which shape answers a caller."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import model
from dragoman.dialects import v03, v03_proto, v1
from dragoman.dialects.base import Dialect, Notes
from dragoman.dialects.files import BASE64_TEXT
from dragoman.errors import InternalError, InvalidParamsError
from dragoman.model import Operation, Part, Role, TaskState


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        (Part(text="x", filename="a", media_type="b/c"), Part(text="x")),
        (Part(data=[1]), Part(data={"value": [1]})),
        (Part(raw=b"a", filename="a", media_type="b/c"), Part(raw=b"a", media_type="b/c")),
        (Part(url="u", metadata={"k": 1}), Part(url="u")),
    ],
)
def test_a_strict_peer_gets_no_key_beyond_its_proto(part: Part, kept: Part) -> None:
    strict = v03_proto.ProtoJsonDialect(extras=False)
    message = model.Message(message_id="m", role=Role.USER, parts=(part,))
    notes = Notes()
    body = strict.dump_request(model.SEND_MESSAGE, model.SendMessageRequest(message=message), notes)
    assert set(notes.lost) & {"part-metadata", "file-name"}
    assert strict.load_request(model.SEND_MESSAGE, body).message.parts == (kept,)


@pytest.mark.parametrize("raw", [b"", b"\x00\xff", b"plain text", b"YWJj"])
@pytest.mark.parametrize(
    "dialect",
    [
        v03_proto.ProtoJsonDialect(files=BASE64_TEXT),
        v03_proto.ProtobufDialect(files=BASE64_TEXT),
    ],
)
def test_file_bytes_may_be_base64_text(dialect: Dialect, raw: bytes) -> None:
    message = model.Message(message_id="m", role=Role.USER, parts=(Part(raw=raw),))
    body = dialect.dump_request(model.SEND_MESSAGE, model.SendMessageRequest(message=message))
    assert dialect.load_request(model.SEND_MESSAGE, body).message.parts == message.parts


def test_base64_text_in_a_bytes_field_is_base64_twice_in_json() -> None:
    dialect = v03_proto.ProtoJsonDialect(files=BASE64_TEXT)
    message = model.Message(message_id="m", role=Role.USER, parts=(Part(raw=b"abc"),))
    body = dialect.dump_request(model.SEND_MESSAGE, model.SendMessageRequest(message=message))
    assert b'"fileWithBytes":"WVdKag=="' in body
    assert v03_proto.JSON.load_request(model.SEND_MESSAGE, body).message.parts == (Part(raw=b"YWJj"),)


def test_bytes_that_are_no_base64_text_stay_as_they_are() -> None:
    plain = v03_proto.JSON.dump_reply(
        model.SEND_MESSAGE,
        model.SendMessageResponse(
            message=model.Message(message_id="m", role=Role.AGENT, parts=(Part(raw=b"\x00\x01"),))
        ),
    )
    doubled = v03_proto.ProtoJsonDialect(files=BASE64_TEXT)
    reply = doubled.load_reply(model.SEND_MESSAGE, plain)
    assert reply.message.parts[0].raw == b"\x00\x01"


@pytest.mark.parametrize(
    ("op", "request_"),
    [
        (model.GET_TASK, model.GetTaskRequest(id="a/b")),
        (model.GET_PUSH_CONFIG, model.GetTaskPushNotificationConfigRequest(task_id="t", id="a/b")),
        (model.LIST_PUSH_CONFIGS, model.ListTaskPushNotificationConfigsRequest(task_id="a/b")),
    ],
)
def test_an_id_with_a_slash_has_no_resource_name(op: Operation[Any, Any], request_: Any) -> None:
    with pytest.raises(InvalidParamsError):
        v03_proto.JSON.dump_request(op, request_)
    assert v03.JSON.load_request(op, v03.JSON.dump_request(op, request_)) == request_


@pytest.mark.parametrize(
    ("value", "op", "lost"),
    [
        (model.GetTaskRequest(id="t", tenant="acme"), model.GET_TASK, ["tenant"]),
        (model.GetTaskRequest(id="t", history_length=0), model.GET_TASK, ["history-length-zero"]),
        (model.CancelTaskRequest(id="t", metadata={"a": 1}), model.CANCEL_TASK, ["cancel-metadata"]),
    ],
)
def test_a_loss_is_noted(value: Any, op: Operation[Any, Any], lost: list[str]) -> None:
    notes = Notes()
    v03_proto.JSON.dump_request(op, value, notes)
    assert notes.lost == lost


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"message":{"messageId":"m","role":"user","parts":[]}}', True),
        (b'{"message":{"kind":"message","content":[]}}', True),
        (b'{"message":{"content":[{"kind":"text","text":"x"}]}}', True),
        (b'{"message":{"content":[{"data":{"data":{"kind":1,"parts":2}}}]}}', False),
        (b'{"message":{"content":[{"text":"x"}]}}', False),
        (b'{"name":"tasks/t"}', False),
        (b'{"kind"', False),
        (b"", False),
    ],
)
def test_a_0_3_caller_is_answered_in_its_own_shape(body: bytes, kind: bool) -> None:
    answer = v03_proto.JSON.answering(body)
    assert isinstance(answer, v03.KindDialect) is kind
    assert answer is v03_proto.JSON or kind
    task = model.Task(id="t", status=model.TaskStatus(state=TaskState.WORKING))
    written = answer.dump_reply(model.SEND_MESSAGE, model.SendMessageResponse(task=task))
    assert (b'"kind":"task"' in written) is kind


def test_dialects_that_speak_one_shape_answer_in_it() -> None:
    for dialect in (v1.JSON, v1.PROTOBUF, v03.JSON, v03_proto.PROTOBUF):
        assert dialect.answering(b'{"kind":1}') is dialect
    assert {v1.JSON.version, v1.PROTOBUF.version} == {"1.0"}
    assert {v03.JSON.version, v03_proto.JSON.version, v03_proto.PROTOBUF.version} == {"0.3"}


@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON, v03_proto.PROTOBUF])
def test_what_has_no_content_is_our_own_mistake(dialect: Dialect) -> None:
    empty = model.Message(message_id="m", role=Role.AGENT, parts=(Part(),))
    with pytest.raises(InternalError):
        dialect.dump_reply(model.SEND_MESSAGE, model.SendMessageResponse(message=empty))
    with pytest.raises(InternalError):
        dialect.dump_reply(model.SEND_STREAMING_MESSAGE, model.StreamResponse())
