"""What may be posted to a callback, by whom, and what it is taken for."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.dialects import v1
from dragoman.errors import InvalidParamsError, UnavailableError
from dragoman.gateway.background import Background
from dragoman.gateway.config import Relay as Settings
from dragoman.gateway.config import Server
from dragoman.gateway.relay.callbacks import Callbacks, is_callback
from dragoman.gateway.relay.reading import Secrets, callback
from dragoman.gateway.relay.relay import CALLBACKS, Relay, listening_at
from dragoman.gateway.relay.webhooks import Webhooks, bound
from dragoman.model import GET_TASK, Task, TaskPushNotificationConfig, TaskState, TaskStatus
from dragoman.protocol.operations import Version
from dragoman.runtime.webhooks import Answer
from dragoman.store.opening import open_database
from dragoman.store.outbox import Change, Scope, State, Watch
from dragoman.store.sql.outbox import Outbox
from tests.asgi_driver import Answer as Response
from tests.asgi_driver import request

SCOPE = Scope("agent", "", "ada")
HOOK = TaskPushNotificationConfig(url="https://h.example/x", id="mine")
AT = "2026-01-01T00:00:0{}.000Z"


class Nowhere:
    """Delivers nothing."""

    async def ask(self, url: str, headers: object, body: bytes) -> Answer:
        return Answer(503)

    async def aclose(self) -> None:
        """Nothing is held."""


class Stage:
    """A relay that delivers nothing, so that what is to be told stays where it can be seen."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.relay = Relay(outbox, Settings(), Server(), Background(), post=Nowhere())
        self.webhooks = Webhooks(self.relay, "agent", lambda ctx: "ada")
        self.app = Callbacks(self.relay, limit=10_000)

    async def opened(self, task_id: str = "t", version: Version = "1.0") -> tuple[Watch, Secrets]:
        return await self.webhooks.open(SCOPE, task_id, HOOK, version)

    async def post(self, made: Secrets, body: Any, **headers: str) -> Response:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = {"x-a2a-notification-token": made.token, "content-type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await request(self.app, "POST", CALLBACKS + made.reference, headers=fields, body=raw)

    async def told(self) -> list[Any]:
        """What waits, in its order."""
        claims = await self.outbox.claim("test", 1e12, lines=10, each=100)
        await self.outbox.release("test")
        return [json.loads(one.body) for claim in claims for one in claim.deliveries]

    async def state(self, task_id: str = "t") -> State:
        [state] = await self.outbox.find(SCOPE, task_id)
        return state


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    database = await open_database("memory")
    yield Stage(Outbox(database))
    await database.aclose()


def status(state: str = "TASK_STATE_WORKING", second: int = 1, task_id: str = "t", **more: Any) -> dict[str, Any]:
    told = {"state": state, "timestamp": AT.format(second), **more}
    return {"statusUpdate": {"taskId": task_id, "contextId": "c", "status": told}}


def chunk(text: str, *, append: bool, task_id: str = "t") -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task_id, "contextId": "c", "artifact": artifact, "append": append}}


TASK_1 = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
TASK_03 = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}
STATUS_03 = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "working"}, "final": False}
PART_03 = {"kind": "text", "text": "x"}
ARTIFACT_03 = {"kind": "artifact-update", "taskId": "t", "contextId": "c"}


NOTIFICATIONS: list[tuple[Any, str]] = [
    ({"task": TASK_1}, "task"),
    (status(), "statusUpdate"),
    (chunk("x", append=False), "artifactUpdate"),
    ({"status_update": status()["statusUpdate"]}, "statusUpdate"),
    ({"taskStatusUpdate": status()["statusUpdate"]}, "statusUpdate"),
    (TASK_03, "task"),
    ({key: value for key, value in TASK_03.items() if key != "kind"}, "task"),
    (STATUS_03, "statusUpdate"),
    ({key: value for key, value in STATUS_03.items() if key != "kind"}, "statusUpdate"),
    ({**ARTIFACT_03, "artifact": {"artifactId": "a", "parts": [PART_03]}}, "artifactUpdate"),
    ({"statusUpdate": {**status()["statusUpdate"], "status": {"state": "working"}}}, "statusUpdate"),
    ({"jsonrpc": "2.0", "id": 1, "result": TASK_03}, "task"),
    ({"jsonrpc": "2.0", "id": None, "result": status()}, "statusUpdate"),
    ({"message": {"messageId": "m", "taskId": "t", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}, "message"),
    ({"kind": "message", "messageId": "m", "taskId": "t", "role": "agent", "parts": [PART_03]}, "message"),
]


@pytest.mark.parametrize(("body", "member"), NOTIFICATIONS, ids=map(str, range(len(NOTIFICATIONS))))
async def test_notifications_of_either_version_are_understood(stage: Stage, body: Any, member: str) -> None:
    _, made = await stage.opened()
    assert (await stage.post(made, body)).status == 200
    [told] = await stage.told()
    assert list(told) == [member]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        *((body, 400) for body in (b"<html>", b"[]", b'{"kind":"task"}', b"{}", b"\xff", b"[" * 5000)),
        (b"x" * 10_001, 413),
    ],
    ids=["page", "array", "no-task", "empty", "no-utf-8", "deep", "long"],
)
async def test_what_is_no_notification_is_refused(stage: Stage, body: bytes, status: int) -> None:
    _, made = await stage.opened()
    assert (await stage.post(made, body)).status == status
    assert await stage.told() == []
    assert stage.relay.counts.refused == 1


async def test_a_media_type_that_is_no_json_is_refused(stage: Stage) -> None:
    _, made = await stage.opened()
    assert (await stage.post(made, status(), content_type="text/plain")).status == 415
    assert (await stage.post(made, status(second=2), content_type="application/a2a+json; charset=utf-8")).status == 200
    assert (await stage.post(made, status(second=3), content_type="")).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"x-a2a-notification-token": "{}"},
        {"a2a-notification-token": "{}"},
        {"authorization": "Bearer {}"},
        {"authorization": "bearer  {}"},
        {"x-a2a-notification-token": "wrong", "authorization": "Bearer {}"},
    ],
    ids=lambda headers: "-".join(headers.values()) + str(len("".join(headers))),
)
async def test_the_secret_is_found_wherever_agents_put_it(stage: Stage, headers: dict[str, str]) -> None:
    _, made = await stage.opened()
    fields = {name: value.format(made.token) for name, value in headers.items()}
    answer = await request(
        stage.app, "POST", CALLBACKS + made.reference, headers=fields, body=json.dumps(status()).encode()
    )
    assert answer.status == 200


async def test_whether_an_address_or_a_secret_is_wrong_cannot_be_told(stage: Stage) -> None:
    _, made = await stage.opened()
    other = Secrets(secrets.token_urlsafe(32), made.token)
    wrong = [
        await stage.post(other, status()),
        await stage.post(Secrets(made.reference, "wrong"), status()),
        await stage.post(Secrets("short", made.token), status()),
        await stage.post(Secrets(made.reference + "/..", made.token), status()),
    ]
    assert {(answer.status, answer.body) for answer in wrong} == {(404, wrong[0].body)}
    for reference in (made.reference, other.reference):
        answer = await request(stage.app, "POST", CALLBACKS + reference, body=b"{}")
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert (await request(stage.app, "GET", CALLBACKS + made.reference)).status == 405
    assert await stage.told() == []


async def test_no_secret_of_ours_is_kept(stage: Stage) -> None:
    watch, made = await stage.opened()
    config = callback(made, "https://gw.example" + CALLBACKS, id=watch.id)
    assert config.url.endswith(made.reference) and config.token == made.token
    kept = repr(await stage.outbox.known(watch.reference))
    assert made.reference not in kept and made.token not in kept


async def test_a_notification_about_another_task_is_refused(stage: Stage) -> None:
    _, made = await stage.opened()
    assert (await stage.post(made, status(task_id="other"))).status == 403
    assert (await stage.post(made, {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": []}})).status in (
        400,
        403,
    )
    assert await stage.told() == []


async def test_a_notification_that_comes_before_the_reply_names_the_task(stage: Stage) -> None:
    watch, made = await stage.opened(task_id="")
    assert (await stage.post(made, status())).status == 200
    assert (await stage.state()).watch.task_id == "t"
    assert (await stage.post(made, status(task_id="other"))).status == 403
    await stage.webhooks.bind(watch.id, Task(id="t", status=TaskStatus(state=TaskState.SUBMITTED)))
    assert (await stage.state()).watch.task_id == "t"
    await stage.webhooks.refused(watch.id)
    assert len((await stage.state()).lines) == 1


async def test_a_task_under_an_id_of_the_gateways_own_is_told_of_under_that(stage: Stage) -> None:
    watch, made = await stage.opened(task_id="")
    await stage.webhooks.bind(watch.id, Task(id="dragoman-1", status=TaskStatus(state=TaskState.SUBMITTED)))
    assert (await stage.post(made, status())).status == 200
    assert (await stage.post(made, {"task": {**TASK_1, "id": "other"}})).status == 403
    assert (await stage.post(made, chunk("x", append=False))).status == 200
    first, second = await stage.told()
    assert first["statusUpdate"]["taskId"] == second["artifactUpdate"]["taskId"] == "dragoman-1"


async def test_a_task_may_be_named_by_a_notification_and_then_by_an_id_of_our_own(stage: Stage) -> None:
    watch, made = await stage.opened(task_id="")
    assert (await stage.post(made, status())).status == 200
    change = await stage.outbox.change(
        watch.id, bound(Task(id="dragoman-1", status=TaskStatus(state=TaskState.SUBMITTED)))
    )
    assert isinstance(change, Change) and change.watch is not None
    assert (change.watch.task_id, change.watch.peer_id) == ("dragoman-1", "t")
    assert (await stage.post(made, status(second=2))).status == 200


async def test_a_repetition_is_told_once_and_a_chunk_that_looks_like_one_is_not(stage: Stage) -> None:
    _, made = await stage.opened()
    posted = [status(), status(), {"task": TASK_1}, status(), chunk("a", append=False), chunk("b", append=True)]
    posted += [chunk("b", append=True), status("TASK_STATE_COMPLETED", 2), status("TASK_STATE_COMPLETED", 2), status()]
    for body in posted:
        assert (await stage.post(made, body)).status == 200
    told = await stage.told()
    assert len(told) == 6
    assert [next(iter(one)) for one in told] == ["statusUpdate", "task", *["artifactUpdate"] * 3, "statusUpdate"]
    assert stage.relay.counts.repeated == 4
    snapshot = (await stage.state()).watch.snapshot
    assert snapshot is not None
    assert [part.text for part in snapshot.artifacts[0].parts] == ["a", "b", "b"]


async def test_who_gets_the_task_is_told_of_artifacts_once_and_of_no_state_too_early(stage: Stage) -> None:
    _, made = await stage.opened(version="0.3")
    for body in (status(), chunk("a", append=False), chunk("b", append=True), status("TASK_STATE_COMPLETED", 2)):
        assert (await stage.post(made, body)).status == 200
    first, last = await stage.told()
    assert (first["status"]["state"], first.get("artifacts")) == ("working", None)
    assert last["status"]["state"] == "completed"
    assert [part["text"] for part in last["artifacts"][0]["parts"]] == ["a", "b"]


async def test_what_the_reply_knew_at_the_end_is_told_with_the_end(stage: Stage) -> None:
    watch, made = await stage.opened(version="0.3", task_id="")
    body = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    reply = v1.JSON.load_reply(
        GET_TASK, json.dumps({**body, "artifacts": [{"artifactId": "a", "parts": [{"text": "x"}]}]}).encode()
    )
    await stage.webhooks.bind(watch.id, reply)
    assert (await stage.post(made, status())).status == 200
    assert (await stage.post(made, status("TASK_STATE_COMPLETED", 2))).status == 200
    first, last = await stage.told()
    assert first.get("artifacts") is None and last["artifacts"][0]["parts"][0]["text"] == "x"


async def test_a_full_line_goes_on_with_the_whole_task(stage: Stage) -> None:
    stage.relay.queue = 3
    _, made = await stage.opened()
    for number in range(5):
        assert (await stage.post(made, chunk(str(number), append=bool(number)))).status == 200
    told = await stage.told()
    assert [next(iter(one)) for one in told] == ["task", "artifactUpdate"]
    assert [part["text"] for part in told[0]["task"]["artifacts"][0]["parts"]] == ["0", "1", "2", "3"]
    assert stage.relay.counts.coalesced == 3


async def test_an_agent_is_asked_to_come_again_when_nothing_can_be_put_down(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = await stage.opened()

    async def fails(*_: object) -> None:
        raise UnavailableError("the database cannot be used at the moment")

    monkeypatch.setattr(stage.outbox, "change", fails)
    answer = await stage.post(made, status())
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


@pytest.mark.parametrize(
    ("error", "told"),
    [(InvalidParamsError("A value is too long"), 400), (RuntimeError("a bug"), 503)],
    ids=["cannot be kept", "of no kind"],
)
async def test_what_cannot_be_put_down_is_answered_and_told_in_a_line(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception, told: int
) -> None:
    _, made = await stage.opened()

    async def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(stage.outbox, "change", fails)
    assert (await stage.post(made, status())).status == told
    [record] = caplog.records
    assert str(error) in record.getMessage() and record.exc_info is None


async def test_a_callback_that_was_removed_is_unknown_even_if_it_was_known(stage: Stage) -> None:
    watch, made = await stage.opened()
    assert (await stage.post(made, status())).status == 200
    await stage.webhooks.forget(watch.id)
    assert (await stage.post(made, status(second=2))).status == 404


async def test_many_at_once_are_all_put_down(stage: Stage) -> None:
    several = [(await stage.opened(task_id=f"t{number}"))[1] for number in range(100)]
    posts = (stage.post(made, status(task_id=f"t{number}")) for number, made in enumerate(several))
    assert {answer.status for answer in await asyncio.gather(*posts)} == {200}
    assert (await stage.outbox.stock()).pending == 100


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (Server(), "http://127.0.0.1:8000"),
        (Server(host="0.0.0.0", port=1), "http://127.0.0.1:1"),
        (Server(host="::1", port=1), "http://[::1]:1"),
    ],
)
async def test_agents_are_told_where_the_gateway_listens_unless_it_is_said(
    stage: Stage, server: Server, url: str
) -> None:
    assert listening_at(server) == url
    public = replace(server, public_url="https://gw.example/a2a/")
    for settings, one, base in (
        (Settings(), public, "https://gw.example/a2a"),
        (Settings(callback_url="https://in.example"), public, "https://in.example"),
    ):
        relay = Relay(stage.outbox, settings, one, Background(), post=Nowhere())
        relay.listens("http://127.0.0.1:9")
        assert relay.callbacks == base + CALLBACKS
    relay = Relay(stage.outbox, Settings(), server, Background(), post=Nowhere())
    for at, where in (
        ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
        ("https://0.0.0.0:9", "https://127.0.0.1:9"),
        ("http://[::]:9", "http://127.0.0.1:9"),
        ("http://[fd00::1]:9", "http://[fd00::1]:9"),
    ):
        relay.listens(at)
        assert relay.callbacks == where + CALLBACKS


def test_the_address_of_callbacks_is_known_below_a_mount() -> None:
    scope = {"type": "http", "path": f"/gw{CALLBACKS}x", "root_path": "/gw"}
    assert is_callback(scope)
    assert not is_callback({**scope, "root_path": ""})
    assert not is_callback({**scope, "path": "/gw/x", "root_path": ""})
