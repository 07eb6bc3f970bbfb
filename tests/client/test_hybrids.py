"""Agents that follow neither document: recognised by what their card shows, or declared."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from dragoman.client.connect import connect
from dragoman.client.hybrids import HYBRIDS, hybrid_of
from dragoman.errors import ConfigError
from tests.client.peers import Peer, card, events, interface, reply, rpc

TASK = '{"kind":"task","id":"t","context_id":"c","status":{"state":"completed"}}'


async def test_agno_gets_each_call_at_its_own_url(peer: Peer) -> None:
    notes: list[str] = []
    known = card(interface(f"{peer.url}/a2a/agents/parrot/v1/message:stream", "0.3/JSONRPC"))
    peer.plays(reply(rpc(TASK)), reply(rpc(TASK)), reply(rpc(TASK)), events(f"event: task\ndata: {rpc(TASK)}\n\n"))
    async with await connect(known, on_note=notes.append) as agent:
        assert agent.hybrid is HYBRIDS["agno"]
        sent = (await agent.send_text("hello")).task
        assert sent is not None and sent.context_id == "c"
        await agent.get_task("t")
        await agent.cancel_task("t")
        async for event in await agent.stream_text("hello"):
            assert event.task is not None
    asked = [(one.path.removeprefix("/a2a/agents/parrot"), json.loads(one.body)["method"]) for one in peer.asked]
    assert asked == [
        ("/v1/message:send", "message/send"),
        ("/v1/tasks:get", "tasks/get"),
        ("/v1/tasks:cancel", "tasks/cancel"),
        ("/v1/message:stream", "message/stream"),
    ]
    assert any("agno" in note for note in notes)


async def test_a_hybrid_that_no_card_shows_is_declared(peer: Peer) -> None:
    known = card(interface(peer.url, "1.0/JSONRPC"))
    assert hybrid_of(known) is None
    async with await connect(known, hybrid="fasta2a") as agent:
        assert agent.hybrid is HYBRIDS["fasta2a"]
    with pytest.raises(ConfigError, match="agno, fasta2a, langgraph"):
        await connect(known, hybrid="nobody")


@pytest.mark.parametrize(("card_says", "declared"), [("1.0/JSONRPC", "wire-0.3"), ("0.3/JSONRPC", "wire-1.0")])
async def test_an_agent_that_speaks_another_version_than_its_card_says_is_called_in_that(
    peer: Peer, card_says: str, declared: str
) -> None:
    old = declared == "wire-0.3"
    peer.plays(reply(rpc(TASK if old else '{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"}}}')))
    async with await connect(card(interface(peer.url, card_says)), hybrid=declared) as agent:
        assert str(agent.face) == f"{declared.removeprefix('wire-')}/JSONRPC"
        sent = (await agent.send_text("hello")).task
    assert sent is not None and sent.id == "t"
    assert json.loads(peer.asked[0].body)["method"] == ("message/send" if old else "SendMessage")


async def test_vertex_is_asked_for_events_where_a_stream_is_opened_and_nowhere_else(peer: Peer) -> None:
    at_google = card(interface("https://europe-west1-aiplatform.googleapis.com/v1beta1/a/b/a2a", "0.3/HTTP+JSON"))
    assert hybrid_of(at_google) == (HYBRIDS["vertex"], "its card's url is at aiplatform.googleapis.com")
    task = '{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}'
    peer.plays(events(f"data: {task}\n\n"), reply(task))
    async with await connect(card(interface(f"{peer.url}/a2a?key=k", "0.3/HTTP+JSON")), hybrid="vertex") as agent:
        assert [event.task.id async for event in await agent.stream_text("hello") if event.task] == ["t"]
        await agent.send_text("hello")
    assert [one.path for one in peer.asked] == ["/a2a/v1/message:stream?key=k&alt=sse", "/a2a/v1/message:send?key=k"]


def test_a_card_without_interfaces_is_no_hybrid() -> None:
    assert hybrid_of(replace(card(interface("http://a.example", "1.0/JSONRPC")), supported_interfaces=())) is None
