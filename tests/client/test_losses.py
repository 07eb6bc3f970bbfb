"""What cannot be said to a 0.3 agent is counted, and said once aloud."""

from __future__ import annotations

import logging

import pytest

from dragoman.client.connect import connect
from dragoman.ledger import Ledger
from dragoman.model import Message, Part, Role, SendMessageRequest
from tests.client.peers import Peer, card, interface, reply, rpc

KIND_TASK = '{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"completed"}}'


async def test_a_tenant_that_0_3_cannot_carry_is_warned_of_once(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="hi"),))
    caplog.set_level(logging.INFO, logger="dragoman.ledger")
    async with await connect(card(interface(f"{peer.url}/a2a", "0.3/JSONRPC"))) as agent:
        for _ in range(2):
            peer.plays(reply(rpc(KIND_TASK)))
            await agent.send_message(SendMessageRequest(tenant="acme", message=message))
    said = [record.levelno for record in caplog.records if "tenant" in record.getMessage()]
    assert said == [logging.WARNING, logging.INFO]
    assert not any("acme" in record.getMessage() for record in caplog.records)


def test_a_ledger_counts_by_kind() -> None:
    ledger = Ledger("here")
    ledger.enter("SendMessage", ["tenant", "file-name"])
    ledger.enter("GetTask", ["tenant"])
    assert ledger.counts == {"tenant": 2, "file-name": 1}
