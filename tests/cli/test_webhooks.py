"""Webhooks through ``dragoman gateway URL``, without a file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.client.client import connect, user_message
from dragoman.errors import InvalidParamsError
from dragoman.model import SendMessageConfiguration, SendMessageRequest, TaskPushNotificationConfig
from tests.cli.conftest import Process
from tests.gateway.relay.kit import receiver, state_of


@pytest.fixture
def pushing() -> Iterator[Process]:
    """The demo agent, which calls webhooks on this machine."""
    one = Process("serve", "examples/demo.py:agent", "--allow-private-webhooks")
    yield one
    one.stop()


async def _told(url: str) -> str:
    async with receiver() as hooked, connect(url, version="0.3", binding="JSONRPC") as client:
        configuration = SendMessageConfiguration(
            task_push_notification_config=TaskPushNotificationConfig(url=hooked.url, token="t")
        )
        await client.send_message(SendMessageRequest(message=user_message("hi"), configuration=configuration))
        posts = await hooked.until_state("completed")
        assert posts[-1].headers["x-a2a-notification-token"] == "t"
        return f"{posts[-1].json['kind']} {state_of(posts[-1])}"


def test_a_webhook_on_this_machine_is_told_if_that_is_allowed(pushing: Process, tmp_path: Path) -> None:
    words = ("gateway", pushing.url, "--upstream", "1.0/JSONRPC", "--store", f"sqlite:{tmp_path / 'kept.db'}")
    gateway = Process(*words, "--allow-private-webhooks")
    try:
        assert asyncio.run(_told(gateway.url)) == "task completed"
    finally:
        gateway.stop()
    gateway = Process(*words)
    try:
        with pytest.raises(InvalidParamsError):
            asyncio.run(_told(gateway.url))
    finally:
        gateway.stop()
