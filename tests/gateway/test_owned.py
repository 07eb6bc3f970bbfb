"""Callers that only the gateway can tell apart: each has its own tasks and contexts, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from dragoman.client.client import Client
from dragoman.errors import (
    InvalidAgentResponseError,
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from dragoman.faces import FACES, Face
from dragoman.gateway.common import Common
from dragoman.gateway.config import Auth, Config, Relay, Secret, Upstream, completed
from dragoman.gateway.config import Store as Kept
from dragoman.gateway.config.auth import Key
from dragoman.gateway.emulation.aliases import is_own
from dragoman.gateway.owned import Owned
from dragoman.gateway.owners import Owners, context_key, task_key
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    SEND_MESSAGE,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
)
from dragoman.protocol.operations import Version
from dragoman.security.callers import Verified
from dragoman.server.host import serve
from dragoman.service import Context
from dragoman.store.opening import open_database
from dragoman.store.outbox import Scope, Watch
from dragoman.store.sql.owners import SqlOwners
from tests.gateway.lacking import rig, sending, soon
from tests.gateway.relay.kit import Standing, agent, begun, client, sent
from tests.security.issuer import Clock

AUTH = Auth(anonymous=True, key=tuple(Key(name=name, secret=Secret(f"{name}-key")) for name in ("alice", "bob")))
CallAs: TypeAlias = Callable[..., Awaitable[Client]]
HOOK = "http://127.0.0.1:9/hook"


@asynccontextmanager
async def gateway(one: Standing, *, store: str = "memory", auth: Auth = AUTH, **more: Any) -> AsyncIterator[CallAs]:
    """A gateway that verifies its callers; makes the client of a caller by its name."""
    upstream = Upstream(url=one.url, name="agent", **more)
    config = Config(upstream=(upstream,), auth=auth, store=Kept(url=store), relay=Relay(allow_private=True))
    async with AsyncExitStack() as stack:
        board = await stack.enter_async_context(Switchboard(completed(config)))
        listening = await stack.enter_async_context(serve(board))
        assert board.common.relay is not None
        board.common.relay.listens(listening.url)

        async def call_as(name: str, version: Version = "1.0") -> Client:
            bearer = f"{name}-key" if name else None
            return await stack.enter_async_context(client(listening.url, version, bearer=bearer, check_card=False))

        yield call_as


@pytest.fixture(params=["1.0", "0.3"])
async def upstream(request: pytest.FixtureRequest) -> AsyncIterator[Standing]:
    async with agent(request.param) as one:
        yield one


def saying(*, task: str = "", context: str = "", references: tuple[str, ...] = ()) -> SendMessageRequest:
    message = Message(
        message_id="m", role=Role.USER, parts=(Part(text="more"),), task_id=task, context_id=context,
        reference_task_ids=references,
    )  # fmt: skip
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))


async def streamed(caller: Client, request: SendMessageRequest) -> None:
    stream = await caller.send_streaming_message(request)
    try:
        await anext(stream)
    finally:
        await stream.aclose()


async def subscribed(caller: Client, task: str) -> None:
    stream = await caller.subscribe_to_task(task)
    try:
        assert (await anext(stream)).task is not None
    finally:
        await stream.aclose()


async def created(caller: Client, task: str) -> None:
    await caller.create_task_push_notification_config(TaskPushNotificationConfig(task_id=task, id="h", url=HOOK))


async def hooked(caller: Client, task: str, rest: Callable[[], Awaitable[Any]], *, own: bool) -> None:
    """An operation on a webhook; who has the task has one."""
    if own:
        await created(caller, task)
    await rest()


OPERATIONS: dict[str, Callable[[Client, str, bool], Awaitable[Any]]] = {
    "GetTask": lambda caller, task, own: caller.get_task(task),
    "CancelTask": lambda caller, task, own: caller.cancel_task(task),
    "SubscribeToTask": lambda caller, task, own: subscribed(caller, task),
    "SendMessage": lambda caller, task, own: caller.send_message(saying(task=task)),
    "SendMessage, by reference": lambda caller, task, own: caller.send_message(saying(references=(task,))),
    "SendStreamingMessage": lambda caller, task, own: streamed(caller, saying(task=task)),
    "SendStreamingMessage, by reference": lambda caller, task, own: streamed(caller, saying(references=(task,))),
    "CreateTaskPushNotificationConfig": lambda caller, task, own: created(caller, task),
    "GetTaskPushNotificationConfig": lambda caller, task, own: hooked(
        caller,
        task,
        lambda: caller.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=task, id="h")),
        own=own,
    ),
    "ListTaskPushNotificationConfigs": lambda caller, task, own: hooked(
        caller,
        task,
        lambda: caller.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=task)),
        own=own,
    ),
    "DeleteTaskPushNotificationConfig": lambda caller, task, own: hooked(
        caller,
        task,
        lambda: caller.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id=task, id="h")
        ),
        own=own,
    ),
}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_an_operation_reaches_ones_own_task_and_no_other(operation: str, upstream: Standing) -> None:
    call = OPERATIONS[operation]
    upstream.steps.go.set()
    async with gateway(upstream) as call_as:
        alice, bob, nobody = await call_as("alice"), await call_as("bob"), await call_as("")
        task = (await alice.send_message(sent("ask", None, wait=True))).task
        assert task is not None and task.status.state is TaskState.INPUT_REQUIRED
        asked = len(upstream.asked)
        for caller, named in ((bob, task.id), (nobody, task.id), (bob, "unknown"), (alice, "unknown")):
            with pytest.raises(TaskNotFoundError):
                await call(caller, named, False)
        assert len(upstream.asked) == asked
        await call(alice, task.id, True)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_context_is_of_the_caller_that_named_it_first(version: Version, upstream: Standing) -> None:
    async with gateway(upstream) as call_as:
        alice, bob = await call_as("alice", version), await call_as("bob", version)
        upstream.steps.go.set()
        task = await begun(alice)
        await alice.send_message(saying(context="mine"))
        for context in ("mine", task.context_id):
            asked = len(upstream.asked)
            for send in (bob.send_message, lambda request: streamed(bob, request)):
                with pytest.raises(InvalidParamsError, match="contextId belongs to another caller"):
                    await send(saying(context=context))
            assert len(upstream.asked) == asked
            await alice.send_message(saying(context=context))
        await bob.send_message(saying(context="his"))


async def test_each_caller_lists_its_own_tasks(upstream: Standing) -> None:
    async with gateway(upstream) as call_as:
        callers = [await call_as(name) for name in ("alice", "bob", "")]
        tasks = [await begun(caller) for caller in callers]
        for caller, task in zip(callers, tasks, strict=True):
            assert [one.id for one in (await caller.list_tasks()).tasks] == [task.id]
        assert not any(b"ListTasks" in body for _, body in upstream.asked)


async def test_without_an_index_there_is_no_list_rather_than_everybodys(upstream: Standing) -> None:
    async with gateway(upstream, index=False) as call_as:
        alice = await call_as("alice")
        await begun(alice)
        with pytest.raises(UnsupportedOperationError):
            await alice.list_tasks()


async def test_a_streamed_task_is_its_senders_from_the_first_event_on(upstream: Standing) -> None:
    async with gateway(upstream) as call_as:
        alice, bob = await call_as("alice"), await call_as("bob")
        stream = await alice.send_streaming_message(sent("go", None))
        first = await anext(stream)
        assert first.task is not None
        assert (await alice.get_task(first.task.id)).id == first.task.id
        with pytest.raises(TaskNotFoundError):
            await bob.get_task(first.task.id)
        await stream.aclose()


async def test_callers_stay_apart_after_a_restart(upstream: Standing, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'kept.db'}"
    async with gateway(upstream, store=store) as call_as:
        task = await begun(await call_as("alice"))
    async with gateway(upstream, store=store) as call_as:
        alice, bob = await call_as("alice"), await call_as("bob")
        with pytest.raises(TaskNotFoundError):
            await bob.get_task(task.id)
        with pytest.raises(InvalidParamsError):
            await bob.send_message(saying(context=task.context_id))
        assert (await alice.get_task(task.id)).id == task.id
        assert [one.id for one in (await alice.list_tasks()).tasks] == [task.id]
        assert (await bob.list_tasks()).tasks == ()


@pytest.mark.parametrize("told", [{"isolate": False}, {"forward_credentials": True}], ids=["switched off", "agent's"])
async def test_it_is_left_to_the_agent_where_the_operator_says_so(told: dict[str, Any], upstream: Standing) -> None:
    async with gateway(upstream, **told) as call_as:
        task = await begun(await call_as("alice"))
        assert (await (await call_as("bob")).get_task(task.id)).id == task.id


async def test_an_id_of_the_gateways_own_is_its_callers() -> None:
    async with rig(waits=True, emulate=("return-at-once",), auth=AUTH) as one:
        alice, bob = [await one.client(Face("JSONRPC", "1.0"), f"{name}-key") for name in ("alice", "bob")]
        task = (await alice.send_message(sending("mute", at_once=True))).task
        assert task is not None and is_own(task.id)
        for again in range(2):
            with pytest.raises(TaskNotFoundError):
                await bob.get_task(task.id)
            with pytest.raises(InvalidParamsError):
                await bob.send_message(sending("say x", context=task.context_id))
            assert (await alice.get_task(task.id)).id == task.id
            if not again:
                one.stage.go()
                await one.stage.done.wait()


async def test_a_task_that_a_webhook_told_of_is_its_callers() -> None:
    common = Common()
    common.owners.isolated.add("agent")
    told = Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))
    watch = Watch(id="w", scope=Scope("agent", "", "alice"), reference="r", secret="s")
    common._see(watch, told)
    await soon(lambda: not len(common.background))
    assert await common.owners.owns(task_key("agent", "", "t"), "alice")
    assert not await common.owners.claim(context_key("agent", "c"), "bob")
    await common.background.aclose()


# -- the layer alone


class Answering:
    """An agent that answers as it is told."""

    def __init__(self, task: Task) -> None:
        self.task = task

    async def call(self, op: Any, request: Any, ctx: Context) -> Any:
        return SendMessageResponse(task=self.task)

    async def stream(self, op: Any, request: Any, ctx: Context) -> Any:
        raise NotImplementedError

    def passes(self, dialect: Any, op: Any) -> bool:
        return True

    async def exchange(self, op: Any, body: bytes, ctx: Context) -> bytes:
        return body

    async def exchange_stream(self, op: Any, body: bytes, ctx: Context) -> Any:
        raise NotImplementedError


def of(name: str, tenant: str = "") -> Context:
    return Context(caller=Verified(name=name), tenant=tenant)


async def test_a_task_of_another_caller_is_not_handed_on_whatever_the_agent_answers() -> None:
    inner = Answering(Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING)))
    owned = Owned(inner, Owners(), "agent", lists=True)
    request = saying()
    await owned.call(SEND_MESSAGE, request, of("alice"))
    with pytest.raises(InvalidAgentResponseError):
        await owned.call(SEND_MESSAGE, request, of("bob"))
    assert await owned.call(SEND_MESSAGE, request, of("bob", tenant="other"))  # ids of tasks are a tenant's


def test_only_what_names_no_task_passes_undecoded() -> None:
    inner = Answering(Task(id="t", status=TaskStatus(state=TaskState.WORKING)))
    owned, dialect = Owned(inner, Owners(), "agent", lists=True), FACES[Face("JSONRPC", "1.0")].dialect
    assert owned.passes(dialect, GET_EXTENDED_AGENT_CARD)
    assert not owned.passes(dialect, SEND_MESSAGE)


# -- who has an id


LONG = "x" * 10_000


@pytest.mark.parametrize("ids", [("t", "u"), (LONG, LONG + "y"), ("a\0", "a\1\2")], ids=["short", "long", "odd"])
async def test_an_id_is_of_whoever_claimed_it_first(ids: tuple[str, str]) -> None:
    database = await open_database("memory")
    for kept in (None, SqlOwners(database, retention=60)):
        owners, (first, second) = Owners(kept), (task_key("agent", "", one) for one in ids)
        assert not await owners.owns(first, "alice")
        assert await owners.claim(first, "alice") and await owners.claim(first, "alice")
        assert await owners.owns(first, "alice")
        assert not await owners.claim(first, "bob") and not await owners.owns(first, "bob")
        assert not await owners.owns(first, "")
        assert await owners.claim(second, "bob")
    await database.aclose()


async def test_two_gateways_over_one_database_agree() -> None:
    database = await open_database("memory")
    one, other = (Owners(SqlOwners(database, retention=60)) for _ in range(2))
    key = context_key("agent", "c")
    assert await one.claim(key, "") and not await other.claim(key, "bob") and await other.owns(key, "")
    await database.aclose()


async def test_an_id_that_is_made_use_of_is_remembered_and_another_forgotten() -> None:
    database, clock = await open_database("memory"), Clock()
    kept = SqlOwners(database, retention=100, clock=clock)
    used, left = task_key("agent", "", "used"), task_key("agent", "", "left")
    owners = Owners(kept, clock=clock)
    for key in (used, left):
        await owners.claim(key, "alice")
    for _ in range(4):
        clock.now += 40
        assert await owners.owns(used, "alice")
    await kept.claim(context_key("agent", "new"), "bob")
    assert await Owners(kept, clock=clock).owns(used, "alice")
    assert not await owners.owns(left, "alice")
    await database.aclose()


async def test_without_a_database_the_last_ids_are_remembered() -> None:
    owners = Owners(limit=2)
    keys = [task_key("agent", "", name) for name in "abc"]
    for key in keys[:2]:
        await owners.claim(key, "alice")
    assert await owners.owns(keys[0], "alice")
    await owners.claim(keys[2], "alice")
    assert [await owners.owns(key, "alice") for key in keys] == [True, False, True]
