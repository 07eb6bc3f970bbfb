"""Losses that no other test of a dialect is about, and that there is no row of the table which nobody notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.dialects import losses
from dragoman.dialects.base import Notes
from dragoman.faces import ALL_FACES, FACES, Face
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    SEND_MESSAGE,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskState,
    TaskStatus,
)

FAITHFUL = (0, 1, -1, 2**53, -(2**53), 2**60, 1.5, 1e300)
ROUNDED = (2**53 + 1, -(2**53) - 1, 12345678901234567890)
TREES = "JSONRPC", "HTTP+JSON"


def told(number: float) -> SendMessageResponse:
    part = Part(data={"deep": [{"number": number}]})
    return SendMessageResponse(message=Message(message_id="m", role=Role.AGENT, parts=(part,)))


@pytest.mark.parametrize("number", [*FAITHFUL, *ROUNDED])
@pytest.mark.parametrize("face", ALL_FACES, ids=str)
def test_integers_lose_digits_over_grpc_and_that_is_noted(face: Face, number: float) -> None:
    notes = Notes()
    dialect = FACES[face].dialect
    reply = told(number)
    back = dialect.load_reply(SEND_MESSAGE, dialect.dump_reply(SEND_MESSAGE, reply, notes))
    lost = face.binding == "GRPC" and number in ROUNDED
    assert ("large-integers" in notes.lost) is lost
    assert (back.message.parts[0].data["deep"][0]["number"] == number) is not lost
    assert notes.lost.count("large-integers") <= 1


@pytest.mark.parametrize("face", [face for face in ALL_FACES if face.binding == "GRPC"], ids=str)
def test_so_do_those_of_a_request(face: Face) -> None:
    notes = Notes()
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),), metadata={"n": ROUNDED[0]})
    FACES[face].dialect.dump_request(SEND_MESSAGE, SendMessageRequest(message=message), notes)
    assert notes.lost == ["large-integers"]


SENDS = {
    "1.0": b'{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x","odd":1},{"text":"y","odd":1}]}}',
    "0.3": b'{"message":{"messageId":"m","role":"user","odd":1,"parts":[{"kind":"text","text":"x"}]}}',
}
FILE = b'{"message":{"messageId":"m","role":"ROLE_USER","content":[{"file":{"fileWithUri":"u","odd":1}}]}}'


@pytest.mark.parametrize("face", [face for face in ALL_FACES if face.binding in TREES], ids=str)
def test_keys_that_nobody_knows_are_noted_once_a_message(face: Face) -> None:
    notes = Notes()
    FACES[face].dialect.load_request(SEND_MESSAGE, SENDS[face.version], notes)
    assert notes.lost.count("unknown-keys") == 1


def test_so_are_those_of_a_file_in_the_proto_shape() -> None:
    notes = Notes()
    FACES[Face("HTTP+JSON", "0.3")].dialect.load_request(SEND_MESSAGE, FILE, notes)
    assert notes.lost == ["unknown-keys"]


def test_what_a_card_says_beyond_is_no_loss() -> None:
    notes = Notes()
    card = b'{"name":"a","description":"","version":"1","url":"u","odd":1,"supportedInterfaces":[],"capabilities":{}}'
    FACES[Face("JSONRPC", "1.0")].dialect.load_reply(GET_EXTENDED_AGENT_CARD, card, notes)
    assert notes.forgiven and not notes.lost


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ('{"state":"unknown"}', "unknown-state"),
        ('{"state":"working","timestamp":"2026-01-01T00:00:00"}', "zoneless-timestamp"),
    ],
)
def test_what_0_3_says_and_1_0_cannot_is_noted(status: str, name: str) -> None:
    notes = Notes()
    task = f'{{"kind":"task","id":"t","contextId":"c","status":{status}}}'.encode()
    FACES[Face("JSONRPC", "0.3")].dialect.load_reply(GET_TASK, task, notes)
    assert name in notes.lost


def test_a_state_that_is_unknown_is_written_out() -> None:
    task = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.UNSPECIFIED))
    assert b"TASK_STATE_UNSPECIFIED" in FACES[Face("JSONRPC", "1.0")].dialect.dump_reply(GET_TASK, task)


SOURCES = "".join(file.read_text() for file in Path(losses.__file__).parent.glob("*.py") if file.name != "losses.py")


@pytest.mark.parametrize("name", losses.LOSSES)
def test_there_is_no_row_that_nobody_notes(name: str) -> None:
    assert f'"{name}"' in SOURCES
