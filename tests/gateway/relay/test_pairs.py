"""Webhooks for every pair of the version they were registered in and the version that the agent speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from dragoman.client.client import Client
from dragoman.gateway.relay.relay import CALLBACKS
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import DeleteTaskPushNotificationConfigRequest
from dragoman.protocol.operations import Binding, Version
from tests.gateway.relay.kit import (
    VERSIONS,
    Posted,
    Receiver,
    Standing,
    agent,
    begun,
    client,
    gateway,
    hook,
    receiver,
    sent,
    state_of,
)

PAIRS = [(registrant, upstream) for registrant in VERSIONS for upstream in VERSIONS]
BINDINGS: tuple[Binding, ...] = ("JSONRPC", "HTTP+JSON", "GRPC")


class Stage(NamedTuple):
    version: Version
    upstream: Version
    agent: Standing
    board: Switchboard
    caller: Client
    receiver: Receiver


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-from-{pair[1]}")
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    version, upstream = request.param
    async with (
        agent(upstream) as one,
        gateway(one) as (board, url),
        receiver() as hooked,
        client(url, version) as caller,
    ):
        yield Stage(version, upstream, one, board, caller, hooked)


def check_head(post: Posted, version: Version) -> None:
    assert post.headers["content-type"] == ("application/a2a+json" if version == "1.0" else "application/json")
    assert post.headers["x-a2a-notification-token"] == post.headers["a2a-notification-token"] == "hook-token"
    assert post.headers["authorization"] == "Bearer hook-credentials"


def check_body(post: Posted, version: Version, task_id: str) -> None:
    told: Any = post.json
    if version == "0.3":
        assert told["kind"] == "task" and told["id"] == task_id
    else:
        assert len(told) == 1
        [(member, value)] = told.items()
        assert value["id" if member == "task" else "taskId"] == task_id


def check_end(posts: list[Posted], version: Version) -> None:
    assert [state_of(post) for post in posts].count("completed") == 1
    assert state_of(posts[-1]) == "completed"
    if version == "0.3":
        last: Any = posts[-1].json
        assert last["artifacts"][0]["parts"] == [{"kind": "text", "text": "made"}]
    else:
        artifacts = [post.json for post in posts if b"made" in post.body]
        assert artifacts


async def test_a_webhook_of_its_own_is_told_in_its_version(stage: Stage) -> None:
    task = await begun(stage.caller)
    given = await stage.caller.create_task_push_notification_config(
        hook(stage.receiver.url, task_id=task.id, id="mine")
    )
    assert (given.id, given.url) == ("mine", stage.receiver.url)
    stage.agent.steps.go.set()
    posts = await stage.receiver.until_state("completed")
    for post in posts:
        check_head(post, stage.version)
        check_body(post, stage.version, task.id)
    check_end(posts, stage.version)


@pytest.mark.parametrize("wait", [False, True], ids=["at-once", "waiting"])
async def test_a_webhook_inside_a_send_is_told_in_its_version(stage: Stage, wait: bool) -> None:
    if wait:
        stage.agent.steps.go.set()
    reply = await stage.caller.send_message(sent("go", hook(stage.receiver.url), wait=wait))
    assert reply.task is not None
    stage.agent.steps.go.set()
    posts = await stage.receiver.until_state("completed")
    for post in posts:
        check_head(post, stage.version)
        check_body(post, stage.version, reply.task.id)
    check_end(posts, stage.version)


async def test_a_webhook_inside_a_stream_is_told_in_its_version(stage: Stage) -> None:
    stream = await stage.caller.send_streaming_message(sent("go", hook(stage.receiver.url)))
    first = await anext(stream)
    assert first.task is not None
    stage.agent.steps.go.set()
    assert [event async for event in stream]
    await stream.aclose()
    posts = await stage.receiver.until_state("completed")
    for post in posts:
        check_body(post, stage.version, first.task.id)
    check_end(posts, stage.version)


async def test_the_agent_is_given_a_callback_of_the_gateways_and_no_secret_of_the_webhooks(stage: Stage) -> None:
    task = await begun(stage.caller, config=hook(stage.receiver.url))
    other = hook(f"{stage.receiver.url}/2", task_id=task.id)
    await stage.caller.create_task_push_notification_config(other)
    bodies = b"".join(body for _, body in stage.agent.asked)
    assert CALLBACKS.encode() in bodies
    for secret in (b"hook-token", b"hook-credentials", b"/hook"):
        assert secret not in bodies
    assert bodies.count(CALLBACKS.encode()) == 1


async def test_the_four_operations_are_answered_from_what_was_registered(stage: Stage) -> None:
    task = await begun(stage.caller)
    for name in ("one", "two"):
        await stage.caller.create_task_push_notification_config(hook(stage.receiver.url, task_id=task.id, id=name))
    found = await stage.caller.list_task_push_notification_configs(task.id)
    assert [one.id for one in found.configs] == ["one", "two"]
    assert {one.url for one in found.configs} == {stage.receiver.url}
    await stage.caller.delete_task_push_notification_config(_naming(task.id, "one"))
    found = await stage.caller.list_task_push_notification_configs(task.id)
    assert [one.id for one in found.configs] == ["two"]
    await stage.caller.delete_task_push_notification_config(_naming(task.id, "two"))
    stage.agent.steps.go.set()
    assert (await stage.caller.send_text("next")).task is not None
    assert stage.receiver.posts == []


def _naming(task_id: str, id: str) -> DeleteTaskPushNotificationConfigRequest:
    return DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=id)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_webhook_is_seen_in_bytes_that_would_pass(version: Version, binding: Binding) -> None:
    async with (
        agent(version) as one,
        gateway(one) as (_, url),
        receiver() as hooked,
        client(url, version, binding) as caller,
    ):
        await begun(caller, config=hook(hooked.url))
        one.steps.go.set()
        check_end(await hooked.until_state("completed"), version)
        bodies = b"".join(body for _, body in one.asked)
        assert CALLBACKS.encode() in bodies and b"hook-token" not in bodies
