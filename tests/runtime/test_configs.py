"""Webhook configs and the extended card."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.errors import (
    ExtendedAgentCardNotConfiguredError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from dragoman.model import (
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_PUSH_CONFIG,
    LIST_PUSH_CONFIGS,
    AgentInterface,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
)
from dragoman.runtime.agent import Turn
from tests.runtime.bench import Bench, Open, card

HOOK = TaskPushNotificationConfig(url="https://client.example/hook", token="secret")


async def asks(turn: Turn) -> None:
    await turn.ask("name?")


async def create(b: Bench, task: str, config: TaskPushNotificationConfig = HOOK) -> TaskPushNotificationConfig:
    return await b.engine.call(CREATE_PUSH_CONFIG, replace(config, task_id=task), b.ctx)


async def get(b: Bench, task: str, id: str) -> TaskPushNotificationConfig:
    return await b.engine.call(GET_PUSH_CONFIG, GetTaskPushNotificationConfigRequest(task_id=task, id=id), b.ctx)


async def listed(b: Bench, task: str, **more: Any) -> ListTaskPushNotificationConfigsResponse:
    request = ListTaskPushNotificationConfigsRequest(task_id=task, **more)
    return await b.engine.call(LIST_PUSH_CONFIGS, request, b.ctx)


async def delete(b: Bench, task: str, id: str) -> None:
    request = DeleteTaskPushNotificationConfigRequest(task_id=task, id=id)
    await b.engine.call(DELETE_PUSH_CONFIG, request, b.ctx)


async def test_each_config_without_an_id_gets_its_own(bench: Open) -> None:
    b = bench(asks)
    task = await b.send()
    first, second = await create(b, task.id), await create(b, task.id)
    assert len({first.id, second.id, task.id, ""}) == 4
    assert first == replace(HOOK, id=first.id, task_id=task.id)
    assert await get(b, task.id, second.id) == second
    assert {one.id for one in (await listed(b, task.id)).configs} == {first.id, second.id}


async def test_creating_under_a_known_id_replaces(bench: Open) -> None:
    b = bench(asks)
    task = await b.send()
    await create(b, task.id, replace(HOOK, id="mine"))
    newer = await create(b, task.id, replace(HOOK, id="mine", url="https://client.example/newer"))
    assert (await listed(b, task.id)).configs == (newer,)


async def test_an_empty_id_gets_the_first_config(bench: Open) -> None:
    b = bench(asks)
    task = await b.send()
    first = await create(b, task.id, replace(HOOK, id="z"))
    await create(b, task.id, replace(HOOK, id="a"))
    assert await get(b, task.id, "") == first


async def test_an_unknown_config_is_not_found_under_its_id(bench: Open) -> None:
    b = bench(asks)
    task = await b.send()
    with pytest.raises(TaskNotFoundError) as caught:
        await get(b, task.id, "none")
    assert caught.value.metadata == {"taskId": task.id, "configId": "none"}


async def test_deleting_is_final_and_may_be_repeated(bench: Open) -> None:
    b = bench(asks)
    task = await b.send()
    config = await create(b, task.id)
    await delete(b, task.id, config.id)
    await delete(b, task.id, config.id)
    assert (await listed(b, task.id)).configs == ()


async def test_configs_come_in_pages_when_asked_for(bench: Open) -> None:
    b = bench(asks)
    task = await b.send()
    for id in "cabed":
        await create(b, task.id, replace(HOOK, id=id))
    first = await listed(b, task.id, page_size=2)
    second = await listed(b, task.id, page_size=3, page_token=first.next_page_token)
    assert [one.id for one in first.configs + second.configs] == list("abcde")
    assert second.next_page_token == ""


@pytest.mark.parametrize("size", [-1, 101])
async def test_a_page_size_out_of_range_is_refused(bench: Open, size: int) -> None:
    b = bench(asks)
    task = await b.send()
    with pytest.raises(InvalidParamsError):
        await listed(b, task.id, page_size=size)


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "client.example/hook"])
async def test_a_webhook_needs_an_http_url(bench: Open, url: str) -> None:
    b = bench(asks)
    task = await b.send()
    with pytest.raises(InvalidParamsError) as caught:
        await create(b, task.id, replace(HOOK, url=url))
    assert caught.value.violations[0][0] == "url"
    with pytest.raises(InvalidParamsError):
        await b.send(task_push_notification_config=replace(HOOK, url=url))


ACTS: dict[str, Callable[[Bench, str], Awaitable[Any]]] = {
    "create": lambda b, task: create(b, task),
    "get": lambda b, task: get(b, task, ""),
    "list": lambda b, task: listed(b, task),
    "delete": lambda b, task: delete(b, task, "x"),
}


@pytest.mark.parametrize("act", ACTS)
async def test_each_operation_needs_the_capability(bench: Open, act: str) -> None:
    b = bench(asks, push_notifications=False)
    task = await b.send()
    with pytest.raises(PushNotificationNotSupportedError):
        await ACTS[act](b, task.id)


@pytest.mark.parametrize("act", ACTS)
async def test_each_operation_needs_a_task_that_the_caller_may_see(bench: Open, act: str) -> None:
    b = bench(asks)
    task = await b.send()
    await create(b, task.id)
    with pytest.raises(TaskNotFoundError):
        await ACTS[act](b.as_caller("eve"), task.id)
    with pytest.raises(TaskNotFoundError):
        await ACTS[act](b, "made-up")


async def test_an_inline_config_is_kept_under_the_new_task(bench: Open) -> None:
    b = bench(asks)
    task = await b.send(task_push_notification_config=HOOK)
    (config,) = (await listed(b, task.id)).configs
    assert config == replace(HOOK, task_id=task.id, id=config.id)
    assert config.id
    assert await get(b, task.id, config.id) == config


async def test_an_inline_config_is_kept_before_an_immediate_reply(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        await asyncio.Event().wait()

    b = bench(handler)
    task = await b.send(task_push_notification_config=HOOK, return_immediately=True)
    assert len((await listed(b, task.id)).configs) == 1


async def test_an_inline_config_that_is_sent_again_is_kept_once(bench: Open) -> None:
    b = bench(asks)
    task = await b.send(task_push_notification_config=HOOK)
    await b.send(task=task.id, task_push_notification_config=HOOK)
    await b.send(task=task.id, task_push_notification_config=replace(HOOK, task_id=task.id))
    assert len((await listed(b, task.id)).configs) == 1
    await b.send(task=task.id, task_push_notification_config=replace(HOOK, token="other"))
    assert len((await listed(b, task.id)).configs) == 2


async def test_an_inline_config_for_another_task_is_refused(bench: Open) -> None:
    b = bench(asks)
    task = await b.send()
    for existing in ("", task.id):
        with pytest.raises(InvalidParamsError):
            await b.send(task=existing, task_push_notification_config=replace(HOOK, task_id="other"))


async def test_an_inline_config_without_the_capability_is_refused_before_any_work(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        raise AssertionError("must not run")

    b = bench(handler, push_notifications=False)
    with pytest.raises(PushNotificationNotSupportedError):
        await b.send(task_push_notification_config=HOOK)


async def test_a_direct_message_keeps_no_config(bench: Open) -> None:
    async def handler(turn: Turn) -> None:
        await turn.say("hi")

    assert (await bench(handler).reply(task_push_notification_config=HOOK)).message is not None


# -- the extended card


async def extended(b: Bench) -> Any:
    return await b.engine.call(GET_EXTENDED_AGENT_CARD, GetExtendedAgentCardRequest(), b.ctx)


async def test_the_extended_card_lists_the_interfaces_of_the_server(bench: Open) -> None:
    more = replace(card(), name="more")
    b = bench(asks, extended_agent_card=True, extended_card=more)
    b.engine.interfaces = (AgentInterface(url="http://h", protocol_binding="JSONRPC", protocol_version="1.0"),)
    assert await extended(b) == replace(more, supported_interfaces=b.engine.interfaces)


async def test_without_the_capability_there_is_no_extended_card(bench: Open) -> None:
    with pytest.raises(UnsupportedOperationError):
        await extended(bench(asks, extended_card=card()))


async def test_a_declared_extended_card_that_is_missing_has_an_error_of_its_own(bench: Open) -> None:
    with pytest.raises(ExtendedAgentCardNotConfiguredError):
        await extended(bench(asks, extended_agent_card=True))
