"""0.3 HTTP+JSON on both sides of a gateway, where caller and agent write variants of it."""

from __future__ import annotations

import pytest

from dragoman.faces import ALL_FACES, FACES, Face, rows
from tests.client.peers import Peer, Reply, reply
from tests.gateway.fronts import client_of_peer, front
from tests.server.callers import Wire, send

FACE = Face("HTTP+JSON", "0.3")
HEADERS = {"content-type": "application/json", "a2a-version": "0.3"}
DOUBLED, PLAIN = "WVdKag==", "YWJj"  # of the bytes abc


def written(content: str) -> str:
    """A file as one side writes its content."""
    return f'{{"file":{{"fileWithBytes":"{content}","mimeType":"text/plain"}}}}'


def sent(part: str) -> Wire:
    body = f'{{"message":{{"messageId":"m","role":"ROLE_USER","content":[{part}]}}}}'
    return Wire("POST", "/v1/message:send", HEADERS, body.encode())


def answered(part: str) -> Reply:
    return reply(f'{{"message":{{"messageId":"n","role":"ROLE_AGENT","content":[{part}]}}}}')


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("near", [False, True])
async def test_each_side_gets_the_bytes_of_a_file_as_it_writes_them(peer: Peer, near: bool, far: bool) -> None:
    at_caller, at_agent = (DOUBLED if base64_files else PLAIN for base64_files in (near, far))
    async with await client_of_peer(peer, FACE, base64_files=far) as client:
        peer.plays(answered(written(at_agent)))
        answer = await send(front(client, rows=rows(base64_files=near)), sent(written(at_caller)))
        assert answer.status == 200
        assert f'"{at_agent}"' in peer.asked[0].body.decode()
        assert f'"{at_caller}"' in answer.body.decode()


async def test_a_caller_of_the_kind_shape_is_translated_for_an_agent_of_the_other(peer: Peer) -> None:
    message = '{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}'
    async with await client_of_peer(peer, FACE) as client:
        peer.plays(answered('{"text":"y"}'))
        request = Wire("POST", "/v1/message:send", HEADERS, f'{{"message":{message}}}'.encode())
        answer = await send(front(client), request)
        assert b'"content":[{"text":"x"}]' in peer.asked[0].body
        assert b'"parts":[{"kind":"text","text":"y"}]' in answer.body


async def test_a_subscription_that_the_agent_cuts_is_answered_with_why(peer: Peer) -> None:
    cut = Reply(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    async with await client_of_peer(peer, FACE) as client:
        peer.plays(cut, reply('{"message":"Task not found"}', status=404))
        answer = await send(front(client), Wire("GET", "/v1/tasks/t:subscribe", HEADERS, b""))
        assert answer.status == 404 and b"TaskNotFoundError" in answer.body


def test_the_switch_changes_two_faces_of_0_3_and_nothing_else() -> None:
    changed = {face for face in ALL_FACES if rows(base64_files=True)[face].dialect is not FACES[face].dialect}
    assert changed == {FACE, Face("GRPC", "0.3")}
    assert rows() == FACES
