"""Telling from the bytes of a send whether it brings a webhook."""

from __future__ import annotations

import pytest

from dragoman.faces import ALL_FACES, FACES, Face
from dragoman.gateway.relay.inline import may_bring_webhook
from dragoman.model import SEND_MESSAGE, SendMessageConfiguration, TaskPushNotificationConfig
from tests.server.callers import sending

WITH = SendMessageConfiguration(
    accepted_output_modes=("text/plain",),
    task_push_notification_config=TaskPushNotificationConfig(url="HTTP://h.example/x"),
    history_length=3,
)
WITHOUT = SendMessageConfiguration(accepted_output_modes=("text/plain",), history_length=3, return_immediately=True)


def may(face: Face, body: bytes) -> bool:
    return may_bring_webhook(body, face.version, protobuf=face.binding == "GRPC")


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
@pytest.mark.parametrize(("configuration", "brings"), [(WITH, True), (WITHOUT, False), (None, False)])
def test_a_webhook_is_seen_on_every_face(
    face: Face, configuration: SendMessageConfiguration | None, brings: bool
) -> None:
    request = sending("hello " * 100, configuration=configuration)
    assert may(face, FACES[face].dialect.dump_request(SEND_MESSAGE, request)) is brings


@pytest.mark.parametrize(
    "key",
    [
        "taskPushNotificationConfig",
        "task_push_notification_config",
        "pushNotificationConfig",
        "push_notification_config",
        "pushNotification",
        "p\\u0075shNotification",
        "\\u0070\\u0075\\u0073\\u0068NotificationConfig",
    ],
)
def test_no_spelling_of_the_key_escapes(key: str) -> None:
    body = f'{{"configuration":{{"{key}":{{"url":"x"}}}}}}'.encode()
    assert may_bring_webhook(body, "1.0", protobuf=False)


def test_protobuf_that_cannot_be_walked_is_in_doubt() -> None:
    for body in (b"\x1a\xff", b"\xff" * 11, b"\x1a\x02\x12"):
        assert may_bring_webhook(b"\x0a\x03://" + body, "1.0", protobuf=True)
    assert not may_bring_webhook(b"", "1.0", protobuf=True)
