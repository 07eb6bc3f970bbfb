"""Small bodies that the tests of several dialects start from."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import model
from tests.dialects.vectors import text

HELLO = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
HELLO_KIND = {
    "message": {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}
}
HELLO_PROTO = {"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]}}
TASK = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
CANONICAL = msgspec.convert(HELLO, model.SendMessageRequest)


def sending(**message: Any) -> bytes:
    return text({"message": {**HELLO["message"], **message}})


def part(**members: Any) -> bytes:
    return sending(parts=[members])
