"""Webhooks: what they get, when they get it again, and what a stranger cannot make us do."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from dragoman.errors import ConfigError, InvalidParamsError, TransportError
from dragoman.model import (
    CREATE_PUSH_CONFIG,
    DELETE_PUSH_CONFIG,
    LIST_PUSH_CONFIGS,
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from dragoman.runtime import configs
from dragoman.runtime.agent import Handler, Turn
from dragoman.runtime.notice import BARE_FORMS, Retry
from dragoman.runtime.post import HttpPost
from dragoman.runtime.push import Courier, PushLimits
from dragoman.security.guard import Guard, TargetRefused
from dragoman.service import Context
from dragoman.store.base import Owner
from dragoman.store.memory import MemoryStore
from tests.runtime.bench import Bench, drain, open_bench

HOOK = TaskPushNotificationConfig(url="https://client.example/hook", token="secret")


class Posted(NamedTuple):
    url: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Recorder:
    """Takes every notification; ``answers`` are the outcomes of the next ones, 200 when used up."""

    def __init__(self, *answers: int | Exception) -> None:
        self.answers = list(answers)
        self.posts: list[Posted] = []
        self.open = asyncio.Event()
        self.open.set()
        self.at_once = self.most_at_once = 0
        self.closed = False
        self._more = asyncio.Event()

    async def until(self, number: int) -> None:
        """Wait for so many notifications in all."""
        while len(self.posts) < number:
            self._more.clear()
            await self._more.wait()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        self.posts.append(Posted(url, headers, body))
        self._more.set()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.open.wait()
        finally:
            self.at_once -= 1
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aclose(self) -> None:
        self.closed = True

    @property
    def told(self) -> list[str]:
        """One word for each notification."""
        return [_word(post.json) for post in self.posts]


def _word(body: Any) -> str:
    if "artifactUpdate" in body or body.get("kind") == "artifact-update":
        return "artifact"
    if "statusUpdate" in body:
        return str(body["statusUpdate"]["status"]["state"]).removeprefix("TASK_STATE_")
    task = body.get("task", body)
    return f"task {task['status']['state'].removeprefix('TASK_STATE_')}"


class Desk(NamedTuple):
    """An engine with its courier, and what left it."""

    bench: Bench
    courier: Courier
    recorder: Recorder
    waits: list[float]

    async def settled(self) -> None:
        """Nothing is left to deliver."""
        while self.courier._workers:
            await asyncio.wait(tuple(self.courier._workers))

    async def register(self, task: str, version: Any = "1.0", **fields: Any) -> TaskPushNotificationConfig:
        config = replace(HOOK, task_id=task, **fields)
        return await self.bench.engine.call(CREATE_PUSH_CONFIG, config, Context(version=version))

    async def configs(self, task: str) -> Sequence[TaskPushNotificationConfig]:
        request = ListTaskPushNotificationConfigsRequest(task_id=task)
        return (await self.bench.engine.call(LIST_PUSH_CONFIGS, request, self.bench.ctx)).configs


OpenDesk = Callable[..., Desk]


@pytest.fixture
async def desk() -> AsyncIterator[OpenDesk]:
    """Makes an engine with a courier for a handler; keywords are options of the courier."""
    opened: list[Desk] = []

    def open(handler: Handler, *answers: int | Exception, store: MemoryStore | None = None, **options: Any) -> Desk:
        recorder, waits = Recorder(*answers), list[float]()

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            await asyncio.sleep(0)

        courier = Courier(recorder, sleep=sleep, chance=lambda: 0.0, **options)
        bench = open_bench(handler, pusher=courier, store=store)
        opened.append(Desk(bench, courier, recorder, waits))
        return opened[-1]

    yield open
    for one in opened:
        one.recorder.open.set()
        await one.bench.engine.aclose()
        await one.courier.aclose()


async def works(turn: Turn) -> None:
    await turn.working("at it")
    await turn.artifact("result")


async def asks(turn: Turn) -> None:
    if turn.task is None:
        await turn.ask("name?")


# -- what a webhook gets


async def test_a_webhook_of_1_0_gets_every_event_as_a_stream_response(desk: OpenDesk) -> None:
    d = desk(works)
    task = await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED", "WORKING", "artifact", "COMPLETED"]
    assert {post.url for post in d.recorder.posts} == {HOOK.url}
    assert {post.headers["Content-Type"] for post in d.recorder.posts} == {"application/a2a+json"}
    assert d.recorder.posts[-1].json["statusUpdate"]["taskId"] == task.id
    assert d.courier.counts.delivered == 4


async def test_a_webhook_of_0_3_gets_the_whole_task_with_kind(desk: OpenDesk) -> None:
    d = desk(works)
    d.bench.ctx = Context(version="0.3")
    task = await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    last = d.recorder.posts[-1]
    assert last.headers["Content-Type"] == "application/json"
    assert (last.json["kind"], last.json["id"], last.json["status"]["state"]) == ("task", task.id, "completed")
    assert last.json["artifacts"][0]["parts"] == [{"kind": "text", "text": "result"}]
    assert {post.json["kind"] for post in d.recorder.posts} == {"task"}


async def test_a_webhook_of_0_3_gets_the_bare_event_if_so_set(desk: OpenDesk) -> None:
    d = desk(works, forms=BARE_FORMS)
    d.bench.ctx = Context(version="0.3")
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    kinds = [post.json["kind"] for post in d.recorder.posts]
    assert kinds == ["task", "status-update", "artifact-update", "status-update"]
    assert d.recorder.posts[-1].json["final"] is True


async def test_the_version_of_the_registration_decides_and_not_that_of_who_caused_the_event(desk: OpenDesk) -> None:
    d = desk(asks)
    task = await d.bench.send()
    await d.register(task.id, "0.3", id="old")
    await d.register(task.id, "1.0", id="new", url="https://client.example/new")
    await d.bench.send(task=task.id)
    await d.settled()
    by_url = {post.url: post for post in d.recorder.posts}
    assert by_url[HOOK.url].json["kind"] == "task"
    assert "statusUpdate" in by_url["https://client.example/new"].json


async def test_artifacts_that_wait_for_a_webhook_of_0_3_are_told_at_once(desk: OpenDesk) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        for _ in range(50):
            await turn.artifact("x", artifact_id="a", append=True)
        await turn.ask("more?")

    d = desk(handler)
    d.bench.ctx = Context(version="0.3")
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told == ["task submitted", "task working", "task input-required"]
    assert len(d.recorder.posts[-1].json["artifacts"][0]["parts"]) == 50


class SlowStore(MemoryStore):
    """Keeps nothing settled before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may = asyncio.Event(), asyncio.Event()

    async def save(self, owner: Owner, task: Task) -> None:
        self.asked.set()
        await self.may.wait()
        await super().save(owner, task)


async def test_no_webhook_hears_of_an_end_that_is_not_stored_yet(desk: OpenDesk) -> None:
    store = SlowStore()
    d = desk(works, store=store)
    d.bench.ctx = Context(version="0.3")
    d.recorder.open.clear()
    await d.bench.send(task_push_notification_config=HOOK, return_immediately=True)
    await store.asked.wait()
    d.recorder.open.set()
    await d.settled()
    assert d.recorder.told == ["task submitted", "task working", "task working"]
    store.may.set()
    await d.recorder.until(4)
    assert d.recorder.told[3:] == ["task completed"]


async def test_a_direct_message_is_not_sent_to_webhooks(desk: OpenDesk) -> None:
    async def handler(turn: Turn) -> None:
        await turn.say("hi")

    d = desk(handler)
    await d.bench.reply(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.posts == []
    assert d.courier.tasks == {}


async def test_credentials_and_token_are_sent_as_given(desk: OpenDesk) -> None:
    d = desk(works)
    given = AuthenticationInfo(scheme="bEaReR", credentials="abc def==")
    await d.bench.send(task_push_notification_config=replace(HOOK, authentication=given))
    await d.settled()
    headers = d.recorder.posts[0].headers
    assert headers["Authorization"] == "bEaReR abc def=="
    assert headers["X-A2A-Notification-Token"] == headers["A2A-Notification-Token"] == "secret"


@pytest.mark.parametrize("given", [None, AuthenticationInfo(scheme="Bearer"), AuthenticationInfo(scheme="")])
async def test_without_credentials_and_token_there_are_no_such_headers(
    desk: OpenDesk, given: AuthenticationInfo | None
) -> None:
    d = desk(works)
    await d.bench.send(task_push_notification_config=replace(HOOK, token="", authentication=given))
    await d.settled()
    assert set(d.recorder.posts[0].headers) == {"Content-Type"}


# -- registration


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("url", {"url": "http://127.0.0.1/"}),
        ("url", {"url": "http://169.254.169.254/latest/meta-data"}),
        ("url", {"url": "http://[::ffff:10.0.0.1]/"}),
        ("url", {"url": "http://0x7f000001/"}),
        ("url", {"url": "http://user@client.example/"}),
        ("url", {"url": "http://inside.example/"}),
        ("token", {"token": "a\r\nb: c"}),
        ("authentication.scheme", {"authentication": AuthenticationInfo(scheme="Bearer\n", credentials="x")}),
        ("authentication.credentials", {"authentication": AuthenticationInfo(scheme="Bearer", credentials="x\0")}),
        ("url", {"url": "http://client.example/" + "x" * 8_192}),
        ("token", {"token": "x" * 8_193}),
        ("id", {"id": "x" * 8_193}),
    ],
    ids=lambda one: one if isinstance(one, str) else str(one)[:60],
)
async def test_what_may_not_be_called_or_sent_is_refused_when_registered(
    desk: OpenDesk, field: str, fields: dict[str, Any], inline: bool
) -> None:
    d = desk(asks, guard=guard_for(**{"client.example": "8.8.8.8", "inside.example": "10.0.0.1"}))
    task = await d.bench.send()
    with pytest.raises(InvalidParamsError) as caught:
        if inline:
            await d.bench.send(task_push_notification_config=replace(HOOK, **fields))
        else:
            await d.register(task.id, **fields)
    assert [name for name, _ in caught.value.violations] == [field]
    with pytest.raises(InvalidParamsError):
        await d.bench.send(task=task.id, task_push_notification_config=replace(HOOK, **fields))
    assert await d.configs(task.id) == ()


async def test_a_host_that_cannot_be_found_yet_may_be_registered(desk: OpenDesk) -> None:
    d = desk(asks, guard=guard_for())
    task = await d.bench.send()
    await d.register(task.id)
    assert len(await d.configs(task.id)) == 1


async def test_a_look_up_that_hangs_does_not_hold_up_a_registration(desk: OpenDesk) -> None:
    async def resolver(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError

    d = desk(asks, guard=Guard(resolver=resolver), limits=PushLimits(admission=0))
    task = await d.bench.send()
    await d.register(task.id)
    assert len(await d.configs(task.id)) == 1


async def test_a_task_has_a_limited_number_of_webhooks(desk: OpenDesk) -> None:
    d = desk(asks)
    task = await d.bench.send()
    for number in range(configs.MAX_CONFIGS):
        await d.register(task.id, id=str(number))
    await d.register(task.id, id="0")
    with pytest.raises(InvalidParamsError):
        await d.register(task.id, id="more")


def guard_for(**hosts: str) -> Guard:
    async def resolver(host: str, port: int) -> Sequence[str]:
        if host not in hosts:
            raise OSError("not found")
        return [hosts[host]]

    return Guard(resolver=resolver)


# -- acknowledgement, retries, order


@pytest.mark.parametrize("status", [200, 201, 202, 204])
async def test_2xx_acknowledges(desk: OpenDesk, status: int) -> None:
    d = desk(asks, status, status)
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED", "INPUT_REQUIRED"]
    assert d.waits == []


FAILURES = [301, 302, 307, 400, 401, 404, 429, 500, 503, TransportError("x"), OSError("x"), TargetRefused("x")]


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
async def test_anything_else_is_tried_again(desk: OpenDesk, failure: int | Exception) -> None:
    d = desk(asks, failure)
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED", "task SUBMITTED", "INPUT_REQUIRED"]
    assert d.recorder.posts[0] == d.recorder.posts[1]
    assert (d.courier.counts.delivered, d.courier.counts.retried, d.courier.counts.dead) == (2, 1, 0)


async def test_a_webhook_that_does_not_answer_in_time_is_tried_again(desk: OpenDesk) -> None:
    d = desk(asks, limits=PushLimits(timeout=0), retry=Retry(tries=3))
    d.recorder.open.clear()
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.courier.counts.retried == 4
    assert d.courier.counts.dead == 2


async def test_waits_grow_up_to_a_ceiling_over_all_failures_in_a_row(desk: OpenDesk) -> None:
    d = desk(asks, *[500] * 8, retry=Retry(tries=4, first=1, most=20))
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.waits == [1, 2, 4, 8, 16, 20, 20]
    assert d.courier.counts.dead == 2


async def test_an_acknowledgement_ends_the_row_of_failures(desk: OpenDesk) -> None:
    d = desk(asks, 500, 500, 200, 500, 200, retry=Retry(first=1, most=20))
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.waits == [1, 2, 1]


def test_jitter_only_shortens_a_wait() -> None:
    retry = Retry(first=8, most=8, jitter=0.5)
    assert [retry.delay(1, random) for random in (0.0, 0.5, 1.0)] == [8, 6, 4]
    assert retry.delay(10_000, 0.0) == 8


@pytest.mark.parametrize("fields", [{"tries": 0}, {"jitter": 2}, {"first": -1}, {"first": 9, "most": 1}])
def test_a_retry_policy_that_makes_no_sense_is_a_config_error(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Retry(**fields)


async def test_one_notification_at_a_time_is_on_its_way_and_in_order(desk: OpenDesk) -> None:
    async def handler(turn: Turn) -> None:
        for number in range(9):
            await turn.artifact("x", artifact_id=str(number))

    d = desk(handler)
    d.recorder.open.clear()
    await d.bench.send(task_push_notification_config=HOOK)
    d.recorder.open.set()
    await d.settled()
    ids = [
        body["artifactUpdate"]["artifact"]["artifactId"]
        for p in d.recorder.posts
        if "artifactUpdate" in (body := p.json)
    ]
    assert ids == [str(number) for number in range(9)]
    assert d.recorder.most_at_once == 1


async def test_a_slow_webhook_slows_neither_the_task_nor_its_streams_nor_other_webhooks(desk: OpenDesk) -> None:
    d = desk(works)
    d.recorder.open.clear()
    other = replace(HOOK, url="https://client.example/other", id="other")
    events = await drain(await d.bench.stream(task_push_notification_config=HOOK))
    assert events[-1].status_update is not None
    task = await d.bench.send(task_push_notification_config=other)
    assert task.status.state is TaskState.COMPLETED
    assert {post.url for post in d.recorder.posts} >= {HOOK.url}
    d.recorder.open.set()
    await d.settled()
    assert d.recorder.told.count("COMPLETED") == 2


async def test_only_so_many_attempts_are_on_their_way_at_a_time(desk: OpenDesk) -> None:
    d = desk(asks, limits=PushLimits(in_flight=2))
    d.recorder.open.clear()
    for _ in range(5):
        await d.bench.send(task_push_notification_config=HOOK)
    d.recorder.open.set()
    await d.settled()
    assert d.recorder.most_at_once == 2
    assert d.courier.counts.delivered == 10


async def test_a_webhook_that_is_too_slow_gets_the_whole_task_in_place_of_events(desk: OpenDesk) -> None:
    async def handler(turn: Turn) -> None:
        for number in range(10):
            await turn.artifact("x", artifact_id="a", append=number > 0)

    d = desk(handler, limits=PushLimits(queue=3))
    d.recorder.open.clear()
    await d.bench.send(task_push_notification_config=HOOK)
    d.recorder.open.set()
    await d.settled()
    assert "COMPLETED" in d.recorder.told[-1]
    assert d.courier.counts.coalesced > 0
    assert parts_seen(d.recorder.posts) == 10


def parts_seen(posts: Sequence[Posted]) -> int:
    """How many parts of the artifact a reader has who follows the notifications."""
    parts = 0
    for post in posts:
        body = post.json
        if "task" in body:
            parts = sum(len(artifact["parts"]) for artifact in body["task"].get("artifacts", ()))
        elif "artifactUpdate" in body:
            update = body["artifactUpdate"]
            parts = parts * update.get("append", False) + len(update["artifact"]["parts"])
    return parts


async def test_after_giving_up_the_whole_task_comes_next(desk: OpenDesk) -> None:
    d = desk(works, 500, 500, retry=Retry(tries=2))
    task = await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED", "task SUBMITTED", "task COMPLETED"]
    assert d.recorder.posts[-1].json["task"]["artifacts"][0]["parts"] == [{"text": "result"}]
    assert (d.courier.counts.dead, d.courier.counts.coalesced) == (1, 2)
    assert await d.configs(task.id) == ()


# -- the end of a webhook


async def test_a_webhook_is_forgotten_once_the_final_event_was_acknowledged(desk: OpenDesk) -> None:
    d = desk(works)
    d.recorder.open.clear()
    task = await d.bench.send(task_push_notification_config=HOOK)
    assert len(await d.configs(task.id)) == 1
    d.recorder.open.set()
    await d.settled()
    assert await d.configs(task.id) == ()
    assert d.courier.tasks == {}


async def test_a_webhook_is_forgotten_once_the_final_event_was_given_up(desk: OpenDesk) -> None:
    d = desk(works, *[500] * 99, retry=Retry(tries=2))
    task = await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told[-1] == "task COMPLETED"
    assert await d.configs(task.id) == ()
    assert d.courier.counts.dead == 2


async def test_a_webhook_that_is_gone_is_forgotten_at_once(desk: OpenDesk) -> None:
    d = desk(works, 410)
    task = await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED"]
    assert await d.configs(task.id) == ()


async def test_a_deleted_webhook_hears_nothing_more(desk: OpenDesk) -> None:
    d = desk(asks)
    d.recorder.open.clear()
    task = await d.bench.send(task_push_notification_config=replace(HOOK, id="mine"))
    request = DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="mine")
    await d.bench.engine.call(DELETE_PUSH_CONFIG, request, d.bench.ctx)
    await d.bench.send(task=task.id)
    d.recorder.open.set()
    await d.settled()
    assert d.recorder.told in ([], ["task SUBMITTED"])
    assert d.courier.counts.delivered == 0


async def test_a_replaced_webhook_is_told_at_its_new_place_what_the_old_one_was_not(desk: OpenDesk) -> None:
    started, go = asyncio.Event(), asyncio.Event()

    async def handler(turn: Turn) -> None:
        await turn.working()
        started.set()
        await go.wait()

    d = desk(handler)
    d.recorder.open.clear()
    task = await d.bench.send(task_push_notification_config=replace(HOOK, id="mine"), return_immediately=True)
    await started.wait()
    await d.register(task.id, id="mine", url="https://client.example/new")
    d.recorder.open.set()
    go.set()
    assert await d.bench.outcome(task.id) is TaskState.COMPLETED
    await d.settled()
    new = [_word(post.json) for post in d.recorder.posts if post.url.endswith("new")]
    assert new == ["task WORKING", "COMPLETED"]
    assert len(d.recorder.posts) == 3


async def test_a_webhook_that_comes_after_the_end_is_told_the_end(desk: OpenDesk) -> None:
    d = desk(works)
    task = await d.bench.send()
    await d.register(task.id)
    await d.settled()
    assert d.recorder.told == ["task COMPLETED"]
    assert await d.configs(task.id) == ()


async def test_a_canceled_task_tells_its_webhooks(desk: OpenDesk) -> None:
    d = desk(asks)
    task = await d.bench.send()
    await d.register(task.id)
    await d.bench.cancel(task.id)
    await d.settled()
    assert d.recorder.told == ["CANCELED"]


async def test_a_task_at_rest_costs_the_courier_nothing_and_its_webhooks_go_on_later(desk: OpenDesk) -> None:
    d = desk(asks)
    task = await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.courier.tasks == {}
    await d.bench.send(task=task.id)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED", "INPUT_REQUIRED", "WORKING", "COMPLETED"]


async def test_a_task_that_goes_on_before_its_webhook_has_heard_all_keeps_it(desk: OpenDesk) -> None:
    go = asyncio.Event()

    async def handler(turn: Turn) -> None:
        await turn.ask("name?") if turn.task is None else await go.wait()

    d = desk(handler)
    d.recorder.open.clear()
    task = await d.bench.send(task_push_notification_config=HOOK)
    await d.bench.send(task=task.id, return_immediately=True)
    d.recorder.open.set()
    await d.settled()
    go.set()
    await d.bench.outcome(task.id)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED", "INPUT_REQUIRED", "WORKING", "COMPLETED"]


async def test_webhooks_that_another_process_stored_are_called(desk: OpenDesk) -> None:
    store = MemoryStore()
    first = desk(asks, store=store)
    task = await first.bench.send(task_push_notification_config=HOOK)
    await first.settled()
    second = desk(asks, store=store)
    await second.bench.send(task=task.id)
    await second.settled()
    assert second.recorder.told == ["WORKING", "COMPLETED"]


async def test_an_agent_that_is_shut_down_tells_the_webhooks_of_its_tasks(desk: OpenDesk) -> None:
    async def handler(turn: Turn) -> None:
        await turn.working()
        await asyncio.Event().wait()

    d = desk(handler)
    await d.bench.send(task_push_notification_config=HOOK, return_immediately=True)
    await d.bench.engine.aclose()
    await d.courier.aclose()
    assert d.recorder.told[-1] == "FAILED"
    assert d.recorder.closed


async def test_closing_waits_only_so_long_and_counts_what_was_not_delivered(desk: OpenDesk) -> None:
    d = desk(asks, limits=PushLimits(drain=0))
    d.recorder.open.clear()
    await d.bench.send(task_push_notification_config=HOOK)
    await d.courier.aclose()
    assert d.courier.counts.dead == 2
    assert d.recorder.at_once == 0


async def test_without_a_pusher_configs_are_kept_and_nothing_is_delivered() -> None:
    b = open_bench(asks)
    task = await b.send(task_push_notification_config=HOOK)
    request = ListTaskPushNotificationConfigsRequest(task_id=task.id)
    assert len((await b.engine.call(LIST_PUSH_CONFIGS, request, b.ctx)).configs) == 1
    await b.engine.aclose()


async def test_a_mistake_of_ours_does_not_end_a_line(desk: OpenDesk) -> None:
    d = desk(asks, ValueError("a mistake of ours"))
    await d.bench.send(task_push_notification_config=HOOK)
    await d.settled()
    assert d.recorder.told == ["task SUBMITTED", "task INPUT_REQUIRED"]
    assert d.courier.counts.dead == 1


# -- over real sockets


class Hook:
    """A webhook on loopback that answers with a fixed head; with a ``length`` it keeps the body back until done."""

    def __init__(self, head: bytes, length: int = 0) -> None:
        self._head = head + f"content-length: {length}\r\nconnection: close\r\n\r\n".encode()
        self.done = asyncio.Event()
        if not length:
            self.done.set()
        self.requests: list[bytes] = []
        self.port = 0

    async def __aenter__(self) -> Hook:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        writer.write(self._head)
        await writer.drain()
        await self.done.wait()
        writer.close()


def leads(*addresses: str, **options: Any) -> Guard:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return addresses

    return Guard(resolver=resolver, **options)


async def test_the_address_that_was_checked_is_the_one_that_is_dialled() -> None:
    post = HttpPost(leads("127.0.0.1", private=True))
    async with Hook(b"HTTP/1.1 202 OK\r\n") as hook:
        url = f"http://Hook.Invalid:{hook.port}/path?q=1"  # a name that no resolver knows
        assert await post.post(url, {"Content-Type": "application/json", "A2A-Notification-Token": "t"}, b"{}") == 202
    await post.aclose()
    head = hook.requests[0].lower()
    assert head.startswith(b"post /path?q=1 http/1.1\r\n")
    assert f"host: hook.invalid:{hook.port}".encode() in head
    assert b"content-type: application/json\r\n" in head
    assert b"a2a-notification-token: t\r\n" in head
    assert head.endswith(b"\r\n\r\n{}")


async def test_a_name_that_is_rebound_between_two_notifications_is_not_dialled() -> None:
    answers = [["127.0.0.2"], ["127.0.0.1"]]

    async def resolver(host: str, port: int) -> Sequence[str]:
        return answers.pop()

    post = HttpPost(Guard(["127.0.0.1"], resolver=resolver))
    async with Hook(b"HTTP/1.1 200 OK\r\n") as hook:
        url = f"http://hook.invalid:{hook.port}/"
        assert await post.post(url, {}, b"{}") == 200
        with pytest.raises(TargetRefused):
            await post.post(url, {}, b"{}")
    await post.aclose()
    assert len(hook.requests) == 1


async def test_two_webhooks_of_one_host_are_not_mixed_up() -> None:
    """One names a port and the other means the scheme's: a pinned address must not bring the first one's port along."""
    post = HttpPost(leads("127.0.0.1", private=True))
    async with Hook(b"HTTP/1.1 200 OK\r\n") as hook:
        assert await post.post(f"http://shared.invalid:{hook.port}/mine", {}, b"{}") == 200
        with contextlib.suppress(TransportError):  # whoever has port 80 here, if anybody
            await post.post("http://shared.invalid/yours", {"authorization": "Bearer secret"}, b"{}")
    await post.aclose()
    assert len(hook.requests) == 1


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    post = HttpPost(leads(private=True))
    async with Hook(b"HTTP/1.1 200 OK\r\n") as inner:
        answer = f"HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:{inner.port}/\r\n".encode()
        async with Hook(answer) as hook:
            assert await post.post(f"http://127.0.0.1:{hook.port}/", {}, b"{}") == 307
    await post.aclose()
    assert (len(hook.requests), len(inner.requests)) == (1, 0)


async def test_a_refused_address_is_not_dialled() -> None:
    post = HttpPost(Guard())
    async with Hook(b"HTTP/1.1 200 OK\r\n") as hook:
        with pytest.raises(TargetRefused):
            await post.post(f"http://127.0.0.1:{hook.port}/", {}, b"{}")
    await post.aclose()
    assert hook.requests == []


async def test_the_body_of_a_reply_is_not_waited_for() -> None:
    post = HttpPost(leads(private=True))
    async with Hook(b"HTTP/1.1 200 OK\r\n", length=9) as hook:  # of which none comes
        assert await post.post(f"http://127.0.0.1:{hook.port}/", {}, b"{}") == 200
        hook.done.set()
    await post.aclose()


async def test_a_webhook_that_does_not_listen_is_a_transport_error() -> None:
    async with Hook(b"") as hook:
        pass
    post = HttpPost(leads(private=True))
    with pytest.raises(TransportError):
        await post.post(f"http://127.0.0.1:{hook.port}/", {}, b"{}")
    await post.aclose()


async def test_only_so_many_clients_stay_open() -> None:
    post = HttpPost(leads("127.0.0.1", private=True), kept=2)
    async with Hook(b"HTTP/1.1 200 OK\r\n") as hook:
        for number in range(4):
            assert await post.post(f"http://h{number}.invalid:{hook.port}/", {}, b"{}") == 200
    assert len(post._clients) == 2
    await post.aclose()


async def test_engine_and_courier_reach_a_webhook_over_http() -> None:
    guard = leads(private=True)
    courier = Courier(HttpPost(guard), guard)
    async with Hook(b"HTTP/1.1 200 OK\r\n") as hook:
        b = open_bench(works, pusher=courier)
        await b.send(task_push_notification_config=replace(HOOK, url=f"http://127.0.0.1:{hook.port}/hook"))
        await b.engine.aclose()
        await courier.aclose()
    assert len(hook.requests) == 4
    assert b"TASK_STATE_COMPLETED" in hook.requests[-1]
