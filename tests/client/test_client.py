"""A client over any service."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dragoman.client.client import Client
from dragoman.errors import ConfigError
from dragoman.model import (
    OPERATIONS,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    Message,
    Req,
    Res,
    Role,
    SendMessageRequest,
    Streaming,
    StreamResponse,
    TaskPushNotificationConfig,
    Unary,
)
from dragoman.service import Context, EventStream


class Nothing(EventStream):
    async def batch(self) -> Sequence[StreamResponse]:
        return ()

    async def aclose(self) -> None:
        pass


class Recorder:
    """A service that keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, object, Context]] = []

    async def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Res:
        self.asked.append((op.name, request, ctx))
        assert isinstance(request, op.request)
        return None  # type: ignore[return-value]  # nobody looks at it

    async def stream(self, op: Streaming[Req], request: Req, ctx: Context) -> EventStream:
        self.asked.append((op.name, request, ctx))
        assert isinstance(request, op.request)
        return Nothing()


async def test_every_operation_has_a_method_of_its_name() -> None:
    service = Recorder()
    client = Client(service)
    await client.send_message("hi")
    await client.send_streaming_message(Message(message_id="m", role=Role.USER, parts=()))
    await client.get_task("t")
    await client.list_tasks()
    await client.cancel_task("t")
    await client.subscribe_to_task("t")
    await client.create_task_push_notification_config(TaskPushNotificationConfig(url="https://a.example"))
    await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id="t", id="c"))
    await client.list_task_push_notification_configs("t")
    await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id="t", id="c"))
    await client.get_extended_agent_card()
    assert [name for name, _, _ in service.asked] == list(OPERATIONS)


async def test_a_text_becomes_a_users_message_in_its_task_and_context() -> None:
    service = Recorder()
    await Client(service).send_text("hi", task_id="t", context_id="c", extensions=["urn:x"], headers={"X-A": "b"})
    _, request, ctx = service.asked[0]
    assert isinstance(request, SendMessageRequest)
    message = request.message
    assert (message.role, message.task_id, message.context_id) == (Role.USER, "t", "c")
    assert message.message_id and message.parts[0].text == "hi"
    assert (ctx.extensions, ctx.headers.raw, ctx.deadline) == (("urn:x",), [(b"x-a", b"b")], None)


async def test_a_timeout_becomes_a_deadline() -> None:
    service = Recorder()
    await Client(service).get_task("t", timeout=5)
    assert service.asked[0][2].deadline is not None


def test_a_client_of_a_local_service_has_no_card_face_or_interface() -> None:
    client = Client(Recorder())
    for name in ("card", "face", "interface"):
        with pytest.raises(ConfigError):
            getattr(client, name)
