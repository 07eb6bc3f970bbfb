"""Every caller's face to every upstream's face: all operations, and errors that keep their names."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.client.client import Client
from dragoman.faces import ALL_FACES, Face
from dragoman.model import (
    CANCEL_TASK,
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    GET_EXTENDED_AGENT_CARD,
    GET_PUSH_CONFIG,
    GET_TASK,
    LIST_PUSH_CONFIGS,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Part,
    Role,
    SendMessageConfiguration,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from dragoman.service import AnyOperation
from tests.asgi_driver import Answer
from tests.gateway.fronts import Upstream, front
from tests.server.callers import Failure, begin, check_failure, reply, reply_task, send, sending, wire
from tests.server.test_streams import clean, events, seen

PAIRS = [pytest.param(near, far, id=f"{near} to {far}") for near in ALL_FACES for far in ALL_FACES]
pairs = pytest.mark.parametrize(("near", "far"), PAIRS)
Clients = dict[Face, Client]

#: The face whose errors are a status and a text, with no place for more.
BARE = Face("GRPC", "0.3")


def facts(found: Failure) -> dict[str, Any]:
    """What an error says besides its name; what a 0.3 agent said is one value on 1.0."""
    return json.loads(found.metadata["v03Data"]) if "v03Data" in found.metadata else found.metadata


async def ask(clients: Clients, near: Face, far: Face, op: AnyOperation, request: Any, **headers: str) -> Answer:
    """One call of a caller's face to the upstream's."""
    return await send(front(clients[far]), wire(near, op, request, headers=headers))


@pairs
async def test_parts_of_every_kind_go_there_and_back(behind: Upstream, clients: Clients, near: Face, far: Face) -> None:
    parts = (
        Part(text="back"),
        Part(data={"a": [1, 2.5, None, {"b": "é"}]}),
        Part(raw=b"\x00\xff", media_type="image/png", filename="dot.png"),
        Part(url="https://example.com/x", media_type="image/png", filename="x.png"),
    )
    request = sending("")
    request = replace(request, message=replace(request.message, parts=parts, metadata={"k": "v"}))
    task = reply_task(near, await ask(clients, near, far, SEND_MESSAGE, request))
    assert task.status.state is TaskState.COMPLETED
    assert task.artifacts[0].parts == parts
    assert task.history[0].role is Role.USER and task.history[0].metadata == {"k": "v"}


@pairs
async def test_a_direct_answer_stays_one(behind: Upstream, clients: Clients, near: Face, far: Face) -> None:
    answer = await ask(clients, near, far, SEND_MESSAGE, sending("say hello"))
    message = reply(near, SEND_MESSAGE, answer).message
    assert message.parts == (Part(text="hello"),) and message.role is Role.AGENT


@pairs
async def test_a_stream_arrives_whole(behind: Upstream, clients: Clients, near: Face, far: Face) -> None:
    answer = await ask(clients, near, far, SEND_STREAMING_MESSAGE, sending("hello"))
    found = events(near, answer)
    assert found[0].task is not None
    assert [event.artifact_update.artifact.parts for event in found if event.artifact_update] == [(Part(text="hello"),)]
    last = found[-1].status_update
    assert last is not None and last.status.state is TaskState.COMPLETED
    assert clean(near, answer)


@pairs
async def test_events_arrive_as_they_come(behind: Upstream, clients: Clients, near: Face, far: Face) -> None:
    exchange = begin(front(clients[far]), wire(near, SEND_STREAMING_MESSAGE, sending("hold")))
    running = asyncio.create_task(exchange.run())
    await exchange.until(seen(near, 1))
    assert not exchange.answer.complete
    behind.behind.stage.go.set()
    assert clean(near, await running)


@pairs
async def test_a_task_is_fetched_and_followed_and_canceled(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    at_once = SendMessageConfiguration(return_immediately=True)
    started = await ask(clients, near, far, SEND_MESSAGE, sending("hold", configuration=at_once))
    task = reply_task(near, started)
    assert task.status.state is TaskState.WORKING
    fetched = reply(near, GET_TASK, await ask(clients, near, far, GET_TASK, GetTaskRequest(id=task.id)))
    assert (fetched.id, fetched.context_id) == (task.id, task.context_id)
    following = begin(front(clients[far]), wire(near, SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task.id)))
    running = asyncio.create_task(following.run())
    await following.until(seen(near, 1))
    canceled = await ask(clients, near, far, CANCEL_TASK, CancelTaskRequest(id=task.id))
    assert reply(near, CANCEL_TASK, canceled).status.state is TaskState.CANCELED
    answer = await running
    assert clean(near, answer)
    last = events(near, answer)[-1].status_update
    assert last is not None and last.status.state is TaskState.CANCELED
    again = await ask(clients, near, far, CANCEL_TASK, CancelTaskRequest(id=task.id))
    check_failure(near, again, "not cancelable")


@pairs
async def test_a_question_is_asked_and_answered(behind: Upstream, clients: Clients, near: Face, far: Face) -> None:
    task = reply_task(near, await ask(clients, near, far, SEND_MESSAGE, sending("ask")))
    assert task.status.state is TaskState.INPUT_REQUIRED
    assert task.status.message is not None and task.status.message.parts == (Part(text="your name?"),)
    done = reply_task(near, await ask(clients, near, far, SEND_MESSAGE, sending("Ada", task=task.id)))
    assert (done.id, done.status.state) == (task.id, TaskState.COMPLETED)
    too_late = await ask(clients, near, far, SEND_MESSAGE, sending("more", task=task.id))
    check_failure(near, too_late, "unsupported")


UNKNOWN: list[tuple[AnyOperation, Any]] = [
    (GET_TASK, GetTaskRequest(id="ghost")),
    (CANCEL_TASK, CancelTaskRequest(id="ghost")),
    (SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id="ghost")),
    (SEND_MESSAGE, sending("x", task="ghost")),
    (SEND_STREAMING_MESSAGE, sending("x", task="ghost")),
]


@pairs
async def test_an_unknown_task_stays_not_found(behind: Upstream, clients: Clients, near: Face, far: Face) -> None:
    for op, request in UNKNOWN:
        found = check_failure(near, await ask(clients, near, far, op, request), "task not found")
        if BARE not in (near, far):
            assert facts(found)["taskId"] == "ghost"


@pairs
async def test_typed_errors_keep_their_type_and_what_they_say(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    """Case 26."""
    request = sending("")
    part = Part(raw=b"x", media_type="video/mp4")
    request = replace(request, message=replace(request.message, parts=(part,)))
    found = check_failure(near, await ask(clients, near, far, SEND_MESSAGE, request), "media type")
    assert "video/mp4" in found.message
    if BARE not in (near, far):
        assert facts(found)["mediaType"] == "video/mp4"
    parent = replace(sending("x").message, context_id="other")
    task = reply_task(near, await ask(clients, near, far, SEND_MESSAGE, sending("ask")))
    wrong = replace(sending("x"), message=replace(parent, task_id=task.id))
    found = check_failure(near, await ask(clients, near, far, SEND_MESSAGE, wrong), "params", generic=True)
    if BARE not in (near, far):
        assert found.fields == ("message.contextId",)


@pairs
async def test_tasks_are_listed_where_the_upstream_can(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    if near.version == "0.3":  # has no name for it: see the tests of bad input
        near = Face(near.binding, "1.0")
    answer = await ask(clients, near, far, LIST_TASKS, ListTasksRequest(page_size=2))
    if far.version == "0.3":
        check_failure(near, answer, "unsupported")
    else:
        page = reply(near, LIST_TASKS, answer)
        assert page.page_size == 2 and len(page.tasks) <= 2


@pairs
async def test_webhooks_are_registered_in_the_upstreams_own_version_only(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    task = reply_task(near, await ask(clients, near, far, SEND_MESSAGE, sending("ask")))
    config = TaskPushNotificationConfig(task_id=task.id, id="c-1", url="https://hooks.example/a", token="t")
    named = GetTaskPushNotificationConfigRequest(task_id=task.id, id="c-1")
    listing = ListTaskPushNotificationConfigsRequest(task_id=task.id)
    gone = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="c-1")
    if near.version != far.version:
        calls: list[tuple[AnyOperation, Any]] = [
            (CREATE_PUSH_CONFIG, config),
            (GET_PUSH_CONFIG, named),
            (LIST_PUSH_CONFIGS, listing),
            (DELETE_PUSH_CONFIG, gone),
        ]
        before = len(behind.arrived)
        for op, request in calls:
            found = check_failure(near, await ask(clients, near, far, op, request), "no push")
            assert far.version in found.message
        inline = SendMessageConfiguration(task_push_notification_config=replace(config, task_id=""))
        for op in (SEND_MESSAGE, SEND_STREAMING_MESSAGE):
            answer = await ask(clients, near, far, op, sending("x", configuration=inline))
            check_failure(near, answer, "no push")
        assert len(behind.arrived) == before
        return
    made = reply(near, CREATE_PUSH_CONFIG, await ask(clients, near, far, CREATE_PUSH_CONFIG, config))
    assert (made.task_id, made.id, made.url) == (task.id, "c-1", config.url)
    assert reply(near, GET_PUSH_CONFIG, await ask(clients, near, far, GET_PUSH_CONFIG, named)) == made
    listed = reply(near, LIST_PUSH_CONFIGS, await ask(clients, near, far, LIST_PUSH_CONFIGS, listing))
    assert listed.configs == (made,)
    await ask(clients, near, far, DELETE_PUSH_CONFIG, gone)
    check_failure(near, await ask(clients, near, far, GET_PUSH_CONFIG, named), "task not found")


@pairs
async def test_the_extended_card_comes_with_the_gateways_interfaces(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    answer = await ask(clients, near, far, GET_EXTENDED_AGENT_CARD, GetExtendedAgentCardRequest())
    card = reply(near, GET_EXTENDED_AGENT_CARD, answer)
    assert card.description == "for those we know"
    assert card.supported_interfaces and all("agent.test" in one.url for one in card.supported_interfaces)
    assert str(behind.port) not in str(card)


@pairs
async def test_extensions_cross_under_each_sides_own_header(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    header = {"1.0": "a2a-extensions", "0.3": "x-a2a-extensions"}
    answer = await ask(clients, near, far, SEND_MESSAGE, sending("extensions"), **{header[near.version]: "urn:ext:a"})
    assert reply_task(near, answer).artifacts[0].parts == (Part(text="urn:ext:a"),)
    assert behind.arrived[-1].headers[header[far.version]] == "urn:ext:a"
    assert answer.headers[header[near.version]] == "urn:ext:a"


@pairs
async def test_a_tenant_crosses_where_there_is_a_word_for_it(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    if near.version == "0.3":
        near = Face(near.binding, "1.0")
    task = reply_task(near, await ask(clients, near, far, SEND_MESSAGE, sending("tenant", tenant="acme")))
    assert task.artifacts[0].parts == (Part(text="acme" if far.version == "1.0" else "none"),)
    if far.version == "1.0":
        found = await ask(clients, near, far, GET_TASK, GetTaskRequest(id=task.id, tenant="acme"))
        assert reply(near, GET_TASK, found).id == task.id


@pairs
async def test_a_caller_that_leaves_ends_the_upstreams_stream_and_not_its_task(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    app = front(clients[far])
    exchange = begin(app, wire(near, SEND_STREAMING_MESSAGE, sending("hold")))
    running = asyncio.create_task(exchange.run())
    await exchange.until(seen(near, 1))
    streams = list(behind.behind.app.desk.streams)
    assert streams
    running.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait([running, *streams])
    behind.behind.stage.go.set()
    async with asyncio.timeout(5):
        await behind.behind.stage.done.wait()


@pytest.mark.parametrize(("near", "far"), [(n, f) for n in ALL_FACES for f in ALL_FACES if n.version == "1.0"], ids=str)
async def test_a_1_0_caller_who_wants_no_history_gets_none(
    behind: Upstream, clients: Clients, near: Face, far: Face
) -> None:
    bare = SendMessageConfiguration(history_length=0)
    task = reply_task(near, await ask(clients, near, far, SEND_MESSAGE, sending("hello", configuration=bare)))
    assert task.artifacts and not task.history
    fetched = await ask(clients, near, far, GET_TASK, GetTaskRequest(id=task.id, history_length=0))
    assert reply(near, GET_TASK, fetched).history == ()
