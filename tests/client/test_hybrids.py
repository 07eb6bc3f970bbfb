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


def test_a_card_without_interfaces_is_no_hybrid() -> None:
    assert hybrid_of(replace(card(interface("http://a.example", "1.0/JSONRPC")), supported_interfaces=())) is None
