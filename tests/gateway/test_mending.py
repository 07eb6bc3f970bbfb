"""Agents that claim a version and write something else: what their callers get although bytes would pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.faces import FACES, Face
from dragoman.gateway.mending import SAMPLE, Mending
from dragoman.model import GET_TASK, SEND_MESSAGE, SEND_STREAMING_MESSAGE, GetTaskRequest
from tests.client.peers import Peer, events, reply, rpc
from tests.gateway.fronts import client_of_peer, front
from tests.server.callers import send, sending, wire

JSONRPC = Face("JSONRPC", "1.0")
STATUS = {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-02T03:04:05.678Z"}
SOUND: dict[str, Any] = {"task": {"id": "t-1", "contextId": "c-1", "status": STATUS}}


def changed(**status: Any) -> dict[str, Any]:
    return {"task": {**SOUND["task"], "status": {**STATUS, **status}}}


HYBRIDS = {
    "a time without a zone": changed(timestamp="2026-01-02T03:04:05.678"),
    "a state of 0.3": changed(state="completed"),
    "a kind of 0.3": {"task": {**SOUND["task"], "kind": "task"}},
}


@pytest.mark.parametrize("hybrid", HYBRIDS.values(), ids=HYBRIDS.keys())
async def test_a_reply_between_the_versions_is_mended_for_callers_of_its_own_face(
    peer: Peer, hybrid: dict[str, Any]
) -> None:
    peer.plays(reply(rpc(json.dumps(hybrid))), reply(rpc(json.dumps(SOUND["task"]))))
    async with await client_of_peer(peer, JSONRPC) as client:
        app = front(client)
        answer = await send(app, wire(JSONRPC, SEND_MESSAGE, sending("hello")))
        assert json.loads(answer.body)["result"] == SOUND
        assert not app.desk.service.passes(FACES[JSONRPC].dialect, GET_TASK)  # type: ignore[attr-defined]
        answer = await send(app, wire(JSONRPC, GET_TASK, GetTaskRequest(id="t-1")))
        assert json.loads(answer.body)["result"] == SOUND["task"]


@pytest.mark.parametrize("hybrid", HYBRIDS.values(), ids=HYBRIDS.keys())
async def test_so_is_an_event_of_a_stream(peer: Peer, hybrid: dict[str, Any]) -> None:
    peer.plays(events("data: " + rpc(json.dumps(hybrid)) + "\n\n"))
    async with await client_of_peer(peer, JSONRPC) as client:
        answer = await send(front(client), wire(JSONRPC, SEND_STREAMING_MESSAGE, sending("hello")))
    assert json.loads(answer.body.removeprefix(b"data: "))["result"] == SOUND


async def test_a_field_of_the_future_passes(peer: Peer) -> None:
    newer = {"task": {**SOUND["task"], "priority": 3}}
    peer.plays(reply(rpc(json.dumps(newer))))
    async with await client_of_peer(peer, JSONRPC) as client:
        answer = await send(front(client), wire(JSONRPC, SEND_MESSAGE, sending("hello")))
    assert json.loads(answer.body)["result"] == newer


def test_an_agent_that_was_sound_for_a_while_is_looked_into_no_more() -> None:
    said: list[str] = []
    mending, dialect = Mending(said.append), FACES[JSONRPC].dialect
    sound, hybrid = json.dumps(SOUND).encode(), json.dumps(HYBRIDS["a state of 0.3"]).encode()
    for _ in range(SAMPLE):
        assert mending.looked_into(SEND_MESSAGE, dialect, sound) is sound
    assert mending.looked_into(SEND_MESSAGE, dialect, hybrid) is hybrid
    assert mending.looked_into(GET_TASK, dialect, json.dumps(HYBRIDS["a state of 0.3"]["task"]).encode()) != hybrid
    assert mending.needed and len(said) == 1
