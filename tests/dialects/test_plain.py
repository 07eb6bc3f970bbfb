"""Plain 0.3 is read the short way, and comes out as the long way reads it; what is not plain is left to that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import legacy, plain
from dragoman.dialects.base import Notes
from dragoman.dialects.losses import REFERENCES
from dragoman.dialects.reading import call_tree, tree
from dragoman.dialects.up import Reading
from dragoman.model import CANCEL_TASK, GET_TASK, SEND_MESSAGE, Operation

TEXT = {"kind": "text", "text": "Grüße"}
DATA = {"kind": "data", "data": {"a": [1, None]}}
MESSAGE: dict[str, Any] = {"kind": "message", "messageId": "m", "role": "user", "parts": [TEXT, DATA]}
FULL_MESSAGE = {
    **MESSAGE,
    "role": "agent",
    "contextId": "c",
    "taskId": "t",
    "metadata": {"k": 1},
    "extensions": ["urn:x"],
    "referenceTaskIds": ["r"],
}
TASK: dict[str, Any] = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}
FULL_TASK = {
    **TASK,
    "status": {"state": "input-required", "message": FULL_MESSAGE, "timestamp": "2026-01-02T03:04:05.678Z"},
    "artifacts": [
        {"artifactId": "a", "parts": [DATA]},
        {
            "artifactId": "b",
            "name": "n",
            "description": "d",
            "parts": [TEXT],
            "metadata": {"k": {}},
            "extensions": ["urn:y"],
        },
    ],
    "history": [MESSAGE, FULL_MESSAGE],
    "metadata": {},
}


def written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("op", "body"),
    [
        (GET_TASK, TASK),
        (GET_TASK, FULL_TASK),
        (CANCEL_TASK, {**TASK, "status": {"state": "canceled"}}),
        (SEND_MESSAGE, FULL_TASK),
        (SEND_MESSAGE, MESSAGE),
        (SEND_MESSAGE, FULL_MESSAGE),
    ],
)
def test_a_plain_reply_comes_out_as_the_long_way_reads_it(op: Operation[Any, Any], body: Any) -> None:
    notes = Notes()
    expected = legacy.load_reply(op, written(body), tree, Reading(notes))
    assert plain.reply(op.name, written(body)) == expected
    assert not notes.forgiven
    assert not notes.lost


@pytest.mark.parametrize("message", [MESSAGE, FULL_MESSAGE])
def test_a_plain_message_to_send_comes_out_as_the_long_way_reads_it(message: Any) -> None:
    body = written({"message": message})
    assert plain.send(body) == legacy.load_request(SEND_MESSAGE, body, call_tree, Reading(Notes()))


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"context_id": "c"},
        {"kind": "message"},
        {"status": {"state": "unknown"}},
        {"status": {"state": "TASK_STATE_WORKING"}},
        {"status": {"state": "working", "timestamp": "2026-01-02T03:04:05Z"}},
        {"status": {"state": "working", "message": {**MESSAGE, "messageId": "", "parts": []}}},
        {"history": [{**MESSAGE, "role": "ROLE_USER"}]},
        {"history": [{**MESSAGE, "parts": [{"text": "without kind"}]}]},
        {"history": [{**MESSAGE, "parts": [{**TEXT, "metadata": {}}]}]},
        {"history": [{**MESSAGE, "parts": [{"kind": "data", "data": "no object"}]}]},
        {"history": [{**MESSAGE, "parts": [{"kind": "file", "file": {"uri": "https://x"}}]}]},
        {"artifacts": [{"artifactId": "a", "name": None, "parts": [TEXT]}]},
    ],
)
def test_what_is_not_plain_is_left_to_the_long_way(change: dict[str, Any]) -> None:
    assert plain.reply("GetTask", written({**TASK, **change})) is None


def test_reference_ids_that_metadata_carries_are_left_to_the_long_way() -> None:
    message = {**MESSAGE, "metadata": {REFERENCES: ["r"]}}
    assert plain.reply("SendMessage", written(message)) is None
    assert plain.send(written({"message": message})) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b'{"message":',
        written({"message": MESSAGE, "configuration": {}}),
        written({"message": MESSAGE, "metadata": {}}),
        b"[" * 300,
        written({"message": {**MESSAGE, "metadata": {"deep": json.loads("[" * 120 + "]" * 120)}}}),
    ],
)
def test_a_request_that_is_more_or_less_than_a_message_is_left_to_the_long_way(body: bytes) -> None:
    assert plain.send(body) is None


def test_operations_without_a_plain_form_are_left_to_the_long_way() -> None:
    assert plain.reply("SendStreamingMessage", written(TASK)) is None
