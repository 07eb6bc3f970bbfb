"""What of a message may be shown for debugging."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dragoman.faces import Face
from dragoman.gateway.config import Observe
from dragoman.gateway.telemetry.redaction import BLOT, LONGEST, MOST, shown
from dragoman.model import (
    CREATE_PUSH_CONFIG,
    AuthenticationInfo,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskPushNotificationConfig,
)
from tests.server.callers import good_call, send, wire

from .conftest import Look


def message(*parts: Part, **more: Any) -> SendMessageRequest:
    return SendMessageRequest(message=Message(message_id="m", role=Role.USER, parts=parts, **more))


def first_part(request: SendMessageRequest) -> Any:
    return shown(request)["message"]["parts"][0]


def test_the_secrets_of_a_webhook_are_blotted_out() -> None:
    config = TaskPushNotificationConfig(
        task_id="t",
        url="https://me:pass@hooks.test/in?sig=abc",
        token="s3cret",
        authentication=AuthenticationInfo(scheme="Bearer", credentials="s3cret"),
    )
    told = shown(config)
    assert told["taskId"] == "t"
    assert told["url"] == f"https://{BLOT}@hooks.test/in?{BLOT}"
    assert (told["token"], told["authentication"]) == (BLOT, BLOT)


@pytest.mark.parametrize(
    "key", ["api_key", "apiKey", "PASSWORD", "accessToken", "client-secret", "Set-Cookie", "Authorization"]
)
def test_a_telling_key_is_blotted_out_wherever_it_stands(key: str) -> None:
    told = shown(message(Part(data={"deep": [{key: "x", "fine": 1}]}), metadata={key: {"a": "b"}}))
    assert told["message"]["parts"][0]["data"] == {"deep": [{key: BLOT, "fine": 1}]}
    assert told["message"]["metadata"] == {key: BLOT}


def test_a_file_is_its_size() -> None:
    assert first_part(message(Part(raw=b"\x00" * 70_000)))["raw"] == "[70000 bytes]"


def test_long_texts_and_lists_are_cut() -> None:
    assert first_part(message(Part(text="x" * 10_000)))["text"] == f"{'x' * LONGEST}[{10_000 - LONGEST} more]"
    data = first_part(message(Part(data={"all": list(range(200))})))["data"]["all"]
    assert data[MOST:] == [f"[{200 - MOST} more]"]


async def test_messages_are_logged_only_if_asked_for_and_then_redacted(
    look: Look, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "dragoman.bodies")
    face = Face("JSONRPC", "1.0")
    config = TaskPushNotificationConfig(task_id="t", url="https://hooks.test", token="s3cret")
    async with look(Observe(calls=True)) as seen:
        await good_call(seen.board, face, "repeat something")
        assert not [one for one in caplog.records if one.name == "dragoman.bodies"]
    async with look(Observe(bodies=True)) as seen:
        await good_call(seen.board, face, "repeat something")
        await send(seen.board, wire(face, CREATE_PUSH_CONFIG, config))
    said = [one.getMessage() for one in caplog.records if one.name == "dragoman.bodies"]
    assert "repeat something" in said[0] and said[0].startswith("alpha SendMessage request: ")
    assert said[1].startswith("alpha SendMessage reply: ")
    assert any(f'"token":"{BLOT}"' in one for one in said) and "s3cret" not in "".join(said)
