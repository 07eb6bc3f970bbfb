"""Unary calls over both HTTP bindings: what is sent, and what each kind of reply becomes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import errors
from dragoman.client.client import Client, Resume, Timeouts, connect
from dragoman.model import DeleteTaskPushNotificationConfigRequest, TaskPushNotificationConfig, TaskState
from tests.client.peers import DONE, TASK, Peer, Reply, card, interface, reply, rpc

KIND_TASK = '{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"completed"}}'
PROTO_TASK = '{"task":{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}}'
SENT: dict[str, tuple[str, str, Reply]] = {
    "1.0/JSONRPC": ("POST", "/a2a", reply(rpc(f'{{"task":{DONE}}}'))),
    "0.3/JSONRPC": ("POST", "/a2a", reply(rpc(KIND_TASK))),
    "1.0/HTTP+JSON": ("POST", "/a2a/message:send", reply(f'{{"task":{DONE}}}')),
    "0.3/HTTP+JSON": ("POST", "/a2a/v1/message:send", reply(PROTO_TASK, status=201)),
}


async def client(peer: Peer, face: str = "1.0/JSONRPC", tenant: str = "", **more: Any) -> Client:
    return await connect(card(interface(f"{peer.url}/a2a", face, tenant)), **more)


@pytest.mark.parametrize("face", SENT)
async def test_a_text_is_sent_and_its_task_comes_back_over_every_http_face(peer: Peer, face: str) -> None:
    method, path, answer = SENT[face]
    peer.plays(answer)
    async with await client(peer, face) as agent:
        got = await agent.send_text("hello")
    assert got.task is not None and (got.task.id, got.task.status.state) == ("t-1", TaskState.COMPLETED)
    asked = peer.asked[0]
    assert (asked.method, asked.path) == (method, path)
    assert asked.headers["a2a-version"] == face[:3]
    assert asked.headers["content-type"] == "application/json"
    assert b"hello" in asked.body


async def test_the_version_of_the_interface_stands_above_the_callers_own_headers(peer: Peer) -> None:
    peer.plays(reply(rpc(TASK)))
    async with await client(peer, headers={"A2A-Version": "9.9", "X-Own": "1"}) as agent:
        await agent.get_task("t-1", headers={"a2a-version": "0.1", "Content-Type": "text/plain", "X-Call": "2"})
    sent = peer.asked[0].headers
    assert (sent["a2a-version"], sent["content-type"]) == ("1.0", "application/json")
    assert (sent["x-own"], sent["x-call"]) == ("1", "2")


@pytest.mark.parametrize(
    ("face", "name", "answer"),
    [
        ("1.0/JSONRPC", "a2a-extensions", rpc(TASK)),
        ("0.3/JSONRPC", "x-a2a-extensions", rpc(KIND_TASK)),
    ],
)
async def test_extensions_are_asked_for_under_the_name_of_the_version(
    peer: Peer, face: str, name: str, answer: str
) -> None:
    peer.plays(reply(answer))
    async with await client(peer, face, extensions=["urn:a"]) as agent:
        await agent.get_task("t-1", extensions=["urn:b", "urn:a"])
    assert peer.asked[0].headers[name] == "urn:a, urn:b"


async def test_the_tenant_of_the_interface_goes_into_every_request(peer: Peer) -> None:
    peer.plays(reply(rpc(TASK)))
    async with await client(peer, tenant="acme") as agent:
        await agent.get_task("t-1")
    assert msgspec.json.decode(peer.asked[0].body)["params"]["tenant"] == "acme"


async def test_http_json_uses_the_tenants_route_and_falls_back_to_the_plain_one_for_good(peer: Peer) -> None:
    peer.plays(reply("no", "text/plain", 404), reply(TASK), reply(TASK))
    async with await client(peer, "1.0/HTTP+JSON", tenant="acme") as agent:
        await agent.get_task("t-1")
        await agent.get_task("t-1")
    plain = "/a2a/tasks/t-1?tenant=acme"
    assert [asked.path for asked in peer.asked] == ["/a2a/acme/tasks/t-1", plain, plain]


async def test_a_missing_task_is_not_taken_for_a_missing_route(peer: Peer) -> None:
    info = (
        '[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]'
    )
    peer.plays(reply(f'{{"error":{{"code":404,"status":"NOT_FOUND","message":"no","details":{info}}}}}', status=404))
    async with await client(peer, "1.0/HTTP+JSON", tenant="acme") as agent:
        with pytest.raises(errors.TaskNotFoundError):
            await agent.get_task("t-1")
    assert len(peer.asked) == 1


@pytest.mark.parametrize("answer", [reply("", "", 204), reply("{}"), reply("null"), reply("")])
async def test_any_confirmation_of_a_delete_will_do(peer: Peer, answer: Reply) -> None:
    peer.plays(answer)
    async with await client(peer, "1.0/HTTP+JSON") as agent:
        await agent.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id="t", id="c"))
    assert (peer.asked[0].method, peer.asked[0].path) == ("DELETE", "/a2a/tasks/t/pushNotificationConfigs/c")


PAGE = "<!DOCTYPE html><title>Sign in</title>"
REFUSALS: list[tuple[str, Reply, type[Exception], str]] = [
    ("a typed error", reply('{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone"}}'),
     errors.TaskNotFoundError, "gone"),
    ("a typed error with 400", reply('{"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"no"}}', status=400),
     errors.VersionNotSupportedError, "no"),
    ("401 without body", reply("", "", 401, www_authenticate="Bearer realm=x"), errors.UnauthenticatedError, "realm=x"),
    ("403 page", reply(PAGE, "text/html", 403), errors.PermissionDeniedError, "403"),
    ("413 page", reply(PAGE, "text/html", 413), errors.InvalidRequestError, "larger than the peer"),
    ("429", reply("slow down", "text/plain", 429, retry_after="7"), errors.RateLimitedError, "rate"),
    ("502 page", reply(PAGE, "text/html", 502), errors.UnavailableError, "proxy"),
    ("plain text 400", reply("A2A-Version is missing", "text/plain", 400), errors.PeerError, "A2A-Version is missing"),
    ("404 page", reply(PAGE, "text/html", 404), errors.PeerError, "nothing is served at this url"),
    ("login page", reply(PAGE, "text/html"), errors.PeerError, "login page"),
    ("no JSON", reply("hello", "text/plain"), errors.PeerError, "text/plain"),
    ("redirect", reply("", "", 302, location="https://other.example/"), errors.PeerError, "https://other.example/"),
    ("cut off", Reply(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"), errors.TransportError, "cut off"),
    ("closed", Reply(b""), errors.TransportError, "lost"),
    ("no HTTP", Reply(b"hello\r\n\r\n"), errors.PeerError, "HTTP"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "kind", "text"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
async def test_whatever_is_no_reply_becomes_a_typed_error_that_says_what_it_was(
    peer: Peer, answer: Reply, kind: type[Exception], text: str
) -> None:
    peer.plays(answer)
    async with await client(peer) as agent:
        with pytest.raises(kind, match=text):
            await agent.send_text("hello")
    assert len(peer.asked) == 1, "a message is never sent twice"


async def test_what_a_peer_asks_us_to_wait_is_kept(peer: Peer) -> None:
    peer.plays(reply("", "", 503, retry_after="12"))
    async with await client(peer) as agent:
        with pytest.raises(errors.UnavailableError) as caught:
            await agent.get_task("t-1")
    assert caught.value.retry_after == 12


async def test_a_reply_that_does_not_come_in_time_is_a_transport_error(peer: Peer) -> None:
    peer.plays(Reply(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", hold=True))
    async with await client(peer, timeouts=Timeouts(reply=0.05)) as agent:
        with pytest.raises(errors.TransportError, match="in time") as caught:
            await agent.get_task("t-1")
    assert caught.value.sent


async def test_a_reply_beyond_the_limit_is_refused(peer: Peer) -> None:
    from dragoman.client.options import Limits

    peer.plays(reply(rpc(TASK)))
    async with await client(peer, limits=Limits(body=20)) as agent:
        with pytest.raises(errors.PeerError, match="20 bytes"):
            await agent.get_task("t-1")


async def test_an_operation_that_the_version_lacks_is_refused_without_a_call(peer: Peer) -> None:
    async with await client(peer, "0.3/JSONRPC") as agent:
        with pytest.raises(errors.UnsupportedOperationError, match="ListTasks"):
            await agent.list_tasks()
    assert not peer.asked


async def test_what_was_forgiven_is_said_or_refused(peer: Peer) -> None:
    bare = rpc(DONE)  # a send is answered by a task without its member
    peer.plays(reply(bare), reply(bare))
    notes: list[str] = []
    async with await client(peer, on_note=notes.append) as agent:
        assert (await agent.send_text("hello")).task is not None
    assert len(notes) == 1 and "SendMessage over 1.0/JSONRPC" in notes[0]
    async with await client(peer, lenient=False, resume=Resume(tries=0)) as agent:
        with pytest.raises(errors.PeerError):
            await agent.send_text("hello")


@pytest.mark.parametrize("headers", [{"X-Key": "a\r\nb"}, {"X-Key": "ключ"}])
async def test_a_header_that_cannot_be_sent_is_our_callers_mistake(peer: Peer, headers: dict[str, str]) -> None:
    with pytest.raises(errors.ConfigError, match="X-Key"):
        await (await client(peer)).get_task("t-1", headers=headers)


NEEDS_BARE = '{"code":-32602,"message":"TaskPushNotificationConfig missing pushNotificationConfig"}'
CREATED = '{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"id":"c","url":"https://h.example/"}}'


async def test_a_webhook_is_created_in_the_other_shape_where_the_agent_wants_that(peer: Peer) -> None:
    config = TaskPushNotificationConfig(task_id="t", id="c", url="https://h.example/")
    peer.plays(reply(NEEDS_BARE, status=400), reply(CREATED, status=201), reply(CREATED, status=201))
    async with await connect(card(interface(peer.url, "0.3/HTTP+JSON"))) as agent:
        for _ in range(2):
            assert (await agent.create_task_push_notification_config(config)).url == config.url
    shapes = [sorted(json.loads(one.body)) for one in peer.asked]
    whole, bare = ["config", "configId", "parent"], ["name", "parent", "pushNotificationConfig"]
    assert shapes == [whole, bare, bare]  # and it is remembered


async def test_a_webhook_that_is_refused_in_both_shapes_is_refused(peer: Peer) -> None:
    config = TaskPushNotificationConfig(task_id="t", id="c", url="https://h.example/")
    peer.plays(reply(NEEDS_BARE, status=400), reply(NEEDS_BARE, status=400))
    async with await connect(card(interface(peer.url, "0.3/HTTP+JSON"))) as agent:
        with pytest.raises(errors.InvalidParamsError):
            await agent.create_task_push_notification_config(config)
    assert len(peer.asked) == 2
