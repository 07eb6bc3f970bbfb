"""What would be lost on its way is refused where the operator wants it, before anything is sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.dialects.losses import DROPPED, LOSSES, REFUSABLE
from dragoman.faces import Face
from dragoman.gateway.config.reading import ConfigFileError, parse
from dragoman.model import GET_TASK, SEND_MESSAGE, SEND_STREAMING_MESSAGE, GetTaskRequest, Part
from tests.client.peers import Peer, events, reply, rpc
from tests.gateway.fronts import client_of_peer, front
from tests.server.callers import send, sending, wire

NEW, OLD = Face("JSONRPC", "1.0"), Face("JSONRPC", "0.3")
TASK_03: dict[str, Any] = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}
TASK_1: dict[str, Any] = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
UNSUPPORTED = -32004


def error(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.body.removeprefix(b"data: "))["error"]
    return found


async def test_a_request_that_would_lose_something_is_not_sent(peer: Peer) -> None:
    peer.plays(reply(rpc(json.dumps(TASK_03))))
    async with await client_of_peer(peer, OLD, refuse_losses=DROPPED) as client:
        answer = await send(front(client), wire(NEW, SEND_MESSAGE, sending("hello", tenant="acme")))
        assert error(answer)["code"] == UNSUPPORTED and "tenant" in error(answer)["message"]
        assert not peer.asked
        answer = await send(front(client), wire(NEW, SEND_MESSAGE, sending("hello")))
        assert json.loads(answer.body)["result"]["task"]["id"] == "t"


async def test_what_is_only_carried_is_refused_by_name(peer: Peer) -> None:
    request = sending("hello")
    named = replace(request, message=replace(request.message, parts=(Part(text="x", filename="a.txt"),)))
    peer.plays(reply(rpc(json.dumps(TASK_03))))
    async with await client_of_peer(peer, OLD, refuse_losses={"part-filename"}) as client:
        answer = await send(front(client), wire(NEW, SEND_MESSAGE, named))
        assert "part-filename" in error(answer)["message"] and not peer.asked
    async with await client_of_peer(peer, OLD, refuse_losses=DROPPED) as client:
        answer = await send(front(client), wire(NEW, SEND_MESSAGE, named))
        assert "error" not in json.loads(answer.body)


async def test_a_reply_that_would_lose_something_is_an_error_instead(peer: Peer) -> None:
    odd = {**TASK_1, "artifacts": [{"artifactId": "a", "parts": [{"data": [1, 2]}]}]}
    peer.plays(reply(rpc(json.dumps(odd))))
    async with await client_of_peer(peer, NEW) as client:
        app = front(client, refuse_losses={"non-object-data"})
        answer = await send(app, wire(OLD, GET_TASK, GetTaskRequest(id="t")))
    assert error(answer)["code"] == UNSUPPORTED and "non-object-data" in error(answer)["message"]


async def test_in_a_stream_the_error_stands_behind_the_events_that_lose_nothing(peer: Peer) -> None:
    odd = {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": [{"data": [1, 2]}]}}
    working = {**TASK_1, "status": {"state": "TASK_STATE_WORKING"}}
    told = ({"task": working}, {"artifactUpdate": odd}, {"task": TASK_1})
    peer.plays(events("".join(f"data: {rpc(json.dumps(one))}\n\n" for one in told)))
    async with await client_of_peer(peer, NEW) as client:
        app = front(client, refuse_losses={"non-object-data"})
        answer = await send(app, wire(OLD, SEND_STREAMING_MESSAGE, sending("hello")))
    first, last = (json.loads(one.removeprefix(b"data: ")) for one in answer.body.split(b"\n\n") if one)
    assert first["result"]["kind"] == "task" and last["error"]["code"] == UNSUPPORTED


def test_what_is_equivalent_and_what_a_card_cannot_say_are_not_refused() -> None:
    assert "implied-media-type" not in REFUSABLE and "pkce-required" not in REFUSABLE
    assert DROPPED < REFUSABLE < LOSSES.keys()


def test_an_unknown_loss_in_the_configuration_is_told_with_the_one_that_was_meant() -> None:
    text = '[[upstream]]\nurl = "http://a.example"\nrefuse_losses = ["tennant"]\n'
    with pytest.raises(ConfigFileError, match=r":3: upstream\[0\].refuse_losses: .*did you mean tenant\?"):
        parse(text, environment={})
