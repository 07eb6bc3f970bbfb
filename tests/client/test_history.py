"""``historyLength: 0`` toward agents of both versions: said where it can be, else cut from the reply."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.client.client import Client, connect
from dragoman.model import GetTaskRequest, SendMessageConfiguration, SendMessageRequest, Task
from tests.client.peers import Peer, card, events, interface, reply, rpc
from tests.server.callers import sending

KIND = (
    '{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"completed"},"history":[{"kind":"message",'
    '"messageId":"m-1","role":"user","parts":[{"kind":"text","text":"hello"}]}]}'
)
PROTO = (
    '{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"},"history":[{"messageId":"m-1",'
    '"role":"ROLE_USER","%s":[{"text":"hello"}]}]}'
)
V1, V03_PROTO = PROTO % "parts", PROTO % "content"
GOT = {
    "0.3/JSONRPC": rpc(KIND),
    "0.3/HTTP+JSON": V03_PROTO,
    "1.0/JSONRPC": rpc(V1),
}
SENT = {
    "0.3/JSONRPC": rpc(KIND),
    "0.3/HTTP+JSON": f'{{"task":{V03_PROTO}}}',
    "1.0/JSONRPC": rpc(f'{{"task":{V1}}}'),
}
OLD = ["0.3/JSONRPC", "0.3/HTTP+JSON"]
lengths = pytest.mark.parametrize(("length", "kept"), [(0, 0), (1, 1), (None, 1)])


async def client(peer: Peer, face: str) -> Client:
    return await connect(card(interface(peer.url, face)))


def asking(length: int | None) -> SendMessageRequest:
    return sending("hello", configuration=SendMessageConfiguration(history_length=length))


def said(peer: Peer) -> Any:
    """The historyLength that the peer was asked for, wherever it stands."""
    asked = peer.asked[0]
    body = msgspec.json.decode(asked.body) if asked.body else {}
    message = body.get("params", body)
    return message.get("configuration", message).get("historyLength", "historyLength" in asked.path or None)


@lengths
@pytest.mark.parametrize("face", OLD)
async def test_a_task_fetched_from_a_03_agent_has_no_history_if_none_is_wanted(
    peer: Peer, face: str, length: int | None, kept: int
) -> None:
    peer.plays(reply(GOT[face]))
    async with await client(peer, face) as agent:
        task = await agent.get_task(GetTaskRequest(id="t-1", history_length=length))
    assert len(task.history) == kept
    assert bool(said(peer)) is bool(length)


@lengths
@pytest.mark.parametrize("face", OLD)
async def test_a_task_sent_to_a_03_agent_has_no_history_if_none_is_wanted(
    peer: Peer, face: str, length: int | None, kept: int
) -> None:
    peer.plays(reply(SENT[face]))
    async with await client(peer, face) as agent:
        task = (await agent.send_message(asking(length))).task
    assert task is not None and len(task.history) == kept
    assert said(peer) == (length or None)


@lengths
@pytest.mark.parametrize("face", OLD)
async def test_a_stream_of_a_03_agent_has_no_history_if_none_is_wanted(
    peer: Peer, face: str, length: int | None, kept: int
) -> None:
    peer.plays(events(f"data: {SENT[face]}\n\n"))
    async with await client(peer, face) as agent:
        stream = await agent.send_streaming_message(asking(length))
        tasks = [event.task async for event in stream]
        await stream.aclose()
    assert [len(task.history) for task in tasks if task] == [kept]


@pytest.mark.parametrize("face", OLD)
async def test_a_direct_answer_has_no_history_to_cut(peer: Peer, face: str) -> None:
    kind = '{"kind":"message","messageId":"m-2","role":"agent","parts":[{"kind":"text","text":"hi"}]}'
    proto = '{"message":{"messageId":"m-2","role":"ROLE_AGENT","content":[{"text":"hi"}]}}'
    peer.plays(reply(rpc(kind) if face == "0.3/JSONRPC" else proto))
    async with await client(peer, face) as agent:
        answer = await agent.send_message(asking(0))
    assert answer.message is not None and answer.message.parts[0].text == "hi"


async def test_a_1_0_agent_is_told_and_its_answer_stands(peer: Peer) -> None:
    peer.plays(reply(GOT["1.0/JSONRPC"]))
    async with await client(peer, "1.0/JSONRPC") as agent:
        task: Task = await agent.get_task(GetTaskRequest(id="t-1", history_length=0))
    assert said(peer) == 0 and len(task.history) == 1
