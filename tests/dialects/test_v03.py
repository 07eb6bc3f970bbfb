"""0.3 in either shape: every spelling in the field is read, and what it lacks is noted or refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import model
from dragoman.dialects import v03, v03_proto, v1
from dragoman.dialects.base import Dialect, Notes
from dragoman.errors import InvalidParamsError, UnsupportedOperationError
from dragoman.model import Operation, Part, TaskState
from tests.dialects.bodies import CANONICAL, HELLO, HELLO_KIND, HELLO_PROTO, TASK
from tests.dialects.vectors import text


@pytest.mark.parametrize("dialect", [v03.KindDialect(), v03_proto.JSON])
@pytest.mark.parametrize(
    "body",
    [
        HELLO,
        HELLO_KIND,
        HELLO_PROTO,
        {"request": HELLO_PROTO["message"]},
        {"message": HELLO_KIND["message"] | {"contextId": None, "metadata": None}},
        {"message": {"message_id": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}},
        {
            "message": {
                "messageId": "m",
                "role": "user",
                "parts": [{"kind": "text", "text": "hi", "data": None, "file": None}],
            }
        },
        {"message": {"messageId": "m", "role": "USER", "parts": [{"type": "text", "text": "hi"}]}},
        {"message": {"messageId": "m", "role": 1, "content": [{"text": "hi"}]}, "extra": 1},
    ],
)
def test_every_shape_of_a_0_3_message_is_read(dialect: Dialect, body: Any) -> None:
    body = body | {"configuration": {"blocking": True}}
    assert dialect.load_request(model.SEND_MESSAGE, text(body)) == CANONICAL


@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (
            {"kind": "file", "file": {"uri": "u", "mediaType": "a/b", "name": "n"}},
            Part(url="u", media_type="a/b", filename="n"),
        ),
        ({"kind": "file", "file": {"fileWithUri": "u", "mimeType": "a/b"}}, Part(url="u", media_type="a/b")),
        ({"kind": "file", "file": {"bytes": "YQ==", "uri": None}}, Part(raw=b"a")),
        ({"file": {"fileWithBytes": "YQ=="}}, Part(raw=b"a")),
        ({"file": {"file_with_bytes": "YQ"}}, Part(raw=b"a")),
        ({"file": {"file_with_uri": "u", "mime_type": "a/b"}}, Part(url="u", media_type="a/b")),
        ({"kind": "file", "file": {"data": "YQ==", "mimeType": "a/b"}}, Part(raw=b"a", media_type="a/b")),
        ({"kind": "file", "file": {"uri": "u", "size": 3}}, Part(url="u")),
        ({"kind": "data", "data": {"data": {"a": 1}}}, Part(data={"data": {"a": 1}})),
        ({"data": {"a": 1}}, Part(data={"a": 1})),
        ({"data": {"data": 1}}, Part(data={"data": 1})),
        ({"url": "u", "mediaType": "a/b"}, Part(url="u", media_type="a/b")),
        (
            {"kind": "data", "data": {"value": 1}, "metadata": {"data_part_compat": False}},
            Part(data={"value": 1}, metadata={"data_part_compat": False}),
        ),
        ({"kind": "data", "data": {"x": 1}, "metadata": {"data_part_compat": True}}, Part(data={"x": 1})),
        (
            {"kind": "text", "text": "t", "metadata": {"a2a.compat/filename": 1}},
            Part(text="t", metadata={"a2a.compat/filename": 1}),
        ),
    ],
)
def test_every_shape_of_a_0_3_part_is_read(dialect: Dialect, written: Any, read: Part) -> None:
    message = HELLO_KIND["message"] | {"parts": [written]}
    assert dialect.load_request(model.SEND_MESSAGE, text({"message": message})).message.parts == (read,)


def test_nested_data_is_unwrapped_in_the_proto_shape_alone() -> None:
    message = HELLO_PROTO["message"] | {"content": [{"data": {"data": {"a": 1}}}]}
    body = text({"message": message})
    assert v03_proto.JSON.load_request(model.SEND_MESSAGE, body).message.parts == (Part(data={"a": 1}),)
    assert v03.JSON.load_request(model.SEND_MESSAGE, body).message.parts == (Part(data={"data": {"a": 1}}),)


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ({"kind": "file", "file": {"bytes": "YQ==", "uri": "u"}}, "message.parts[0]"),
        ({"kind": "file", "file": {}}, "message.parts[0]"),
        ({"kind": "file", "file": "u"}, "message.parts[0]"),
        ({"kind": "text"}, "message.parts[0]"),
        ({"kind": "text", "text": 1}, "message.parts[0].text"),
        ("text", "message.parts[0]"),
    ],
)
@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
def test_a_0_3_part_without_one_meaning_is_refused(dialect: Dialect, written: Any, field: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        dialect.load_request(model.SEND_MESSAGE, text({"message": HELLO_KIND["message"] | {"parts": [written]}}))
    assert [name for name, _ in caught.value.violations] == [field]


@pytest.mark.parametrize(
    ("dialect", "configuration", "at_once"),
    [
        (v03.JSON, None, False),
        (v03.JSON, {}, False),
        (v03.JSON, {"blocking": None}, False),
        (v03.JSON, {"acceptedOutputModes": ["text/plain"]}, False),
        (v03.JSON, {"blocking": False}, True),
        (v03.JSON, {"blocking": True}, False),
        (v03.KindDialect(blocking_default=False), None, True),
        (v03.KindDialect(blocking_default=False), {"acceptedOutputModes": []}, True),
        (v03.KindDialect(blocking_default=False), {"blocking": True}, False),
        (v03_proto.JSON, None, True),
        (v03_proto.JSON, {"historyLength": 2}, True),
        (v03_proto.JSON, {"blocking": False}, True),
        (v03_proto.JSON, {"blocking": True}, False),
    ],
)
def test_blocking_is_inverted_and_its_absence_is_the_dialects_own(
    dialect: Dialect, configuration: Any, at_once: bool
) -> None:
    request = dialect.load_request(model.SEND_MESSAGE, text(HELLO_KIND | {"configuration": configuration}))
    assert (request.configuration is not None and request.configuration.return_immediately) is at_once


def test_absent_blocking_means_nothing_on_a_stream() -> None:
    request = v03_proto.JSON.load_request(model.SEND_STREAMING_MESSAGE, text(HELLO_PROTO))
    assert request.configuration is None


@pytest.mark.parametrize(("written", "read"), [(0, None), (3, 3), (None, None)])
@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
def test_history_length_0_is_no_limit_in_0_3(dialect: Dialect, written: Any, read: int | None) -> None:
    body = text({"id": "t", "historyLength": written})
    assert dialect.load_request(model.GET_TASK, body).history_length == read
    send = dialect.load_request(
        model.SEND_MESSAGE, text(HELLO_KIND | {"configuration": {"historyLength": written, "blocking": True}})
    )
    assert (send.configuration.history_length if send.configuration else None) == read


@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
def test_a_negative_history_length_is_refused(dialect: Dialect) -> None:
    with pytest.raises(InvalidParamsError):
        dialect.load_request(model.GET_TASK, b'{"id":"t","historyLength":-1}')


HOOK = {"url": "https://h.example"}
CREATED = model.TaskPushNotificationConfig(task_id="t", id="p", url="https://h.example")


@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
@pytest.mark.parametrize(
    "body",
    [
        {
            "parent": "tasks/t",
            "configId": "p",
            "config": {"name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": HOOK | {"id": "p"}},
        },
        {"parent": "tasks/t", "config_id": "p", "config": {"push_notification_config": HOOK}},
        {"parent": "tasks/t", "name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": HOOK},
        {"parent": "tasks/t", "taskId": "t", "pushNotificationConfig": HOOK | {"id": "p"}},
        {"taskId": "t", "pushNotificationConfig": HOOK | {"id": "p"}},
        {"parent": "tasks/t", **HOOK, "id": "p"},
        {"parent": "t", **HOOK, "id": "p"},
    ],
)
def test_every_body_that_creates_a_webhook_config_is_read(dialect: Dialect, body: Any) -> None:
    assert dialect.load_request(model.CREATE_PUSH_CONFIG, text(body)) == CREATED


@pytest.mark.parametrize(
    ("authentication", "read", "lost"),
    [
        ({"schemes": ["Bearer"], "credentials": "c"}, ("Bearer", "c"), []),
        ({"schemes": ["Basic", "Bearer"]}, ("Basic", ""), ["push-auth-schemes"]),
        ({"schemes": []}, None, []),
        ({"scheme": "Bearer"}, ("Bearer", ""), []),
        (None, None, []),
    ],
)
def test_the_first_authentication_scheme_counts(
    authentication: Any, read: tuple[str, str] | None, lost: list[str]
) -> None:
    notes = Notes()
    body = text({"taskId": "t", "pushNotificationConfig": HOOK | {"authentication": authentication}})
    config = v03.JSON.load_request(model.CREATE_PUSH_CONFIG, body, notes)
    found = config.authentication and (config.authentication.scheme, config.authentication.credentials)
    assert found == read
    assert notes.lost == lost


def test_credentials_without_a_scheme_are_refused() -> None:
    body = text(
        {"taskId": "t", "pushNotificationConfig": HOOK | {"authentication": {"schemes": [], "credentials": "c"}}}
    )
    with pytest.raises(InvalidParamsError) as caught:
        v03.JSON.load_request(model.CREATE_PUSH_CONFIG, body)
    assert [field for field, _ in caught.value.violations] == ["authentication.scheme"]


@pytest.mark.parametrize(
    ("op", "body", "expected"),
    [
        (model.GET_TASK, {"name": "t"}, {"id": "t"}),
        (model.GET_PUSH_CONFIG, {"id": "t"}, {"taskId": "t", "id": ""}),
        (model.GET_PUSH_CONFIG, {"name": "tasks/t/pushNotificationConfigs/"}, {"taskId": "t", "id": ""}),
        (model.GET_PUSH_CONFIG, {"taskId": "t", "id": "p"}, {"taskId": "t", "id": "p"}),
        (model.LIST_PUSH_CONFIGS, {"parent": "t"}, {"taskId": "t"}),
        (model.LIST_PUSH_CONFIGS, {"name": "tasks/t"}, {"taskId": "t"}),
        (model.DELETE_PUSH_CONFIG, {"name": "tasks/t/pushNotificationConfigs/p"}, {"taskId": "t", "id": "p"}),
    ],
)
@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
def test_names_and_ids_are_read_alike(dialect: Dialect, op: Operation[Any, Any], body: Any, expected: Any) -> None:
    assert dialect.load_request(op, text(body)) == msgspec.convert(expected, op.request)


@pytest.mark.parametrize(
    ("op", "body", "field"),
    [
        (model.GET_TASK, {"name": "tasks/a/b"}, "name"),
        (model.GET_TASK, {"name": ""}, "id"),
        (model.GET_TASK, {}, "id"),
        (model.GET_PUSH_CONFIG, {}, "taskId"),
        (model.GET_PUSH_CONFIG, {"id": ""}, "taskId"),
        (model.DELETE_PUSH_CONFIG, {"id": "t"}, "id"),
        (model.DELETE_PUSH_CONFIG, {"name": "tasks/t"}, "id"),
        (model.LIST_PUSH_CONFIGS, {"parent": "tasks/"}, "taskId"),
        (model.CREATE_PUSH_CONFIG, {"parent": "tasks/t"}, "url"),
    ],
)
@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
def test_a_missing_id_is_named(dialect: Dialect, op: Operation[Any, Any], body: Any, field: str) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        dialect.load_request(op, text(body))
    assert field in [name for name, _ in caught.value.violations]


@pytest.mark.parametrize("op", [model.GET_TASK, model.SUBSCRIBE_TO_TASK, model.LIST_PUSH_CONFIGS])
def test_metadata_of_a_call_is_noted_as_lost(op: Operation[Any, Any]) -> None:
    notes = Notes()
    v03.JSON.load_request(op, b'{"id":"t","metadata":{"a":1}}', notes)
    assert notes.lost == ["call-metadata"]


def test_metadata_of_cancel_is_kept() -> None:
    request = v03.JSON.load_request(model.CANCEL_TASK, b'{"id":"t","metadata":{"a":1}}')
    assert request.metadata == {"a": 1}


@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON, v03_proto.PROTOBUF])
def test_0_3_cannot_list_tasks(dialect: Dialect) -> None:
    with pytest.raises(UnsupportedOperationError):
        dialect.dump_request(model.LIST_TASKS, model.ListTasksRequest())
    with pytest.raises(UnsupportedOperationError):
        dialect.load_request(model.LIST_TASKS, b"")
    page = model.ListTasksResponse(tasks=(), next_page_token="", page_size=1, total_size=0)
    with pytest.raises(UnsupportedOperationError):
        dialect.dump_reply(model.LIST_TASKS, page)
    with pytest.raises(UnsupportedOperationError):
        dialect.load_reply(model.LIST_TASKS, b"")


# Replies

TASK_KIND = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}
TASK_PROTO = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
STATUS_EVENT = {"taskId": "t", "contextId": "c", "status": {"state": "working"}}


@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (TASK_KIND, {"task": TASK}),
        ({"task": TASK_PROTO}, {"task": TASK}),
        ({"task": TASK_KIND}, {"task": TASK}),
        ({"task": TASK_PROTO, "message": None}, {"task": TASK}),
        (TASK_PROTO, {"task": TASK}),
        ({"msg": HELLO_PROTO["message"]}, HELLO),
        (HELLO_KIND["message"], HELLO),
        ({"messageId": "m", "role": "user", "parts": [{"text": "hi"}]}, HELLO),
        (
            {"kind": "status-update", **STATUS_EVENT, "final": False},
            {"statusUpdate": STATUS_EVENT | {"status": TASK["status"]}},
        ),
        (
            {"kind": "taskStatusUpdate", **STATUS_EVENT, "final": False},
            {"statusUpdate": STATUS_EVENT | {"status": TASK["status"]}},
        ),
        ({**STATUS_EVENT, "final": False}, {"statusUpdate": STATUS_EVENT | {"status": TASK["status"]}}),
        (
            {"status_update": {"task_id": "t", "context_id": "c", "status": {"state": "TASK_STATE_WORKING"}}},
            {"statusUpdate": STATUS_EVENT | {"status": TASK["status"]}},
        ),
        (
            {
                "taskId": "t",
                "contextId": "c",
                "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "x"}]},
            },
            {
                "artifactUpdate": {
                    "taskId": "t",
                    "contextId": "c",
                    "artifact": {"artifactId": "a", "parts": [{"text": "x"}]},
                }
            },
        ),
    ],
)
def test_every_shape_of_a_0_3_event_is_read(dialect: Dialect, body: Any, expected: Any) -> None:
    event = dialect.load_reply(model.SEND_STREAMING_MESSAGE, text(body))
    assert event == msgspec.convert(expected, model.StreamResponse)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (v03.JSON, {"task": TASK_KIND}),
        (v03.JSON, TASK_PROTO),
        (v03_proto.JSON, TASK_KIND),
    ],
)
def test_a_reply_in_the_other_shape_is_noted(dialect: Dialect, body: Any) -> None:
    notes = Notes()
    dialect.load_reply(model.SEND_MESSAGE, text(body), notes)
    assert len(notes.forgiven) == 1


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("cancelled", TaskState.CANCELED),
        ("TASK_STATE_CANCELLED", TaskState.CANCELED),
        ("TASK_STATE_CANCELED", TaskState.CANCELED),
        ("input_required", TaskState.INPUT_REQUIRED),
        ("INPUT-REQUIRED", TaskState.INPUT_REQUIRED),
        (8, TaskState.AUTH_REQUIRED),
        ("unknown", TaskState.UNSPECIFIED),
        ("on holiday", TaskState.UNSPECIFIED),
    ],
)
@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON, v1.JSON])
def test_a_state_is_read_however_it_is_spelled(dialect: Dialect, state: Any, expected: TaskState) -> None:
    body = text({"id": "t", "contextId": "c", "status": {"state": state}})
    assert dialect.load_reply(model.GET_TASK, body).status.state is expected


@pytest.mark.parametrize(
    "message", [None, {"kind": "message", "messageId": "", "role": "agent", "parts": []}, {"role": 2}]
)
def test_a_status_message_that_says_nothing_is_absent(message: Any) -> None:
    body = text(TASK_KIND | {"status": {"state": "working", "message": message}})
    assert v03.JSON.load_reply(model.GET_TASK, body).status.message is None


@pytest.mark.parametrize(
    ("state", "lost"),
    [("working", ["early-final"]), ("completed", []), ("input-required", []), ("auth-required", [])],
)
def test_final_ends_the_stream_and_is_noted_when_the_state_would_not(state: str, lost: list[str]) -> None:
    notes = Notes()
    body = text({"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": state}, "final": True})
    v03.JSON.load_reply(model.SUBSCRIBE_TO_TASK, body, notes)
    assert notes.final
    assert notes.lost == lost


@pytest.mark.parametrize("dialect", [v03.JSON, v03_proto.JSON])
@pytest.mark.parametrize(
    "body",
    [
        [{"taskId": "t", "pushNotificationConfig": HOOK | {"id": "p"}}],
        {"configs": [{"name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": HOOK}]},
        {"taskId": "t", "pushNotificationConfig": HOOK | {"id": "p"}},
        [{"taskId": "t", "id": "p", **HOOK}],
    ],
)
def test_every_shape_of_a_list_of_webhook_configs_is_read(dialect: Dialect, body: Any) -> None:
    assert dialect.load_reply(model.LIST_PUSH_CONFIGS, text(body)).configs == (CREATED,)


@pytest.mark.parametrize("body", [b"null", b"{}", b"", b"whatever"])
@pytest.mark.parametrize("dialect", [v1.JSON, v03.JSON, v03_proto.JSON])
def test_any_confirmation_of_a_deletion_will_do(dialect: Dialect, body: bytes) -> None:
    assert dialect.load_reply(model.DELETE_PUSH_CONFIG, body) is None
