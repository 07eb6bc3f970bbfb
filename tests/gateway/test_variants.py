"""0.3 HTTP+JSON on both sides of a gateway, where caller and agent write variants of it."""

from __future__ import annotations

from base64 import b64encode

import pytest

from dragoman.dialects.files import Files
from dragoman.faces import ALL_FACES, FACES, Face, rows
from dragoman.model import SEND_MESSAGE, Message, Part, Role, SendMessageRequest
from dragoman.protocol.messages import Headers
from dragoman.security.callers import Verified
from dragoman.server.forms import CallerForms
from dragoman.service import Context
from tests.client.peers import Peer, Reply, reply
from tests.gateway.fronts import client_of_peer, front
from tests.server.callers import Wire, send, wire

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


PNG = b"\x89PNG\r\n\x1a\n\x00"
PNG_BYTES, PNG_TEXT = b64encode(PNG).decode(), b64encode(b64encode(PNG)).decode()
V1 = Face("HTTP+JSON", "1.0")
A_FILE = SendMessageRequest(message=Message(message_id="m", role=Role.USER, parts=(Part(raw=b"abc"),)))


def image(content: str) -> str:
    return f'{{"file":{{"fileWithBytes":"{content}","mimeType":"image/png"}}}}'


def seen(peer: Peer) -> str:
    return peer.asked[-1].body.decode()


async def test_files_of_two_peers_that_nobody_knows_cross_as_they_are_and_are_counted(peer: Peer) -> None:
    async with await client_of_peer(peer, FACE) as client:
        app = front(client, files=CallerForms())
        for at_caller, at_agent in ((PLAIN, DOUBLED), (DOUBLED, PLAIN)):
            peer.plays(answered(written(at_agent)))
            answer = await send(app, sent(written(at_caller)))
            assert f'"{at_caller}"' in seen(peer) and f'"{at_agent}"' in answer.body.decode()
        assert app.desk.losses.counts["file-form"] == client.remote.losses.counts["file-form"] == 2 * 2


async def test_what_a_caller_shows_changes_nothing_toward_an_agent_that_nobody_knows(peer: Peer) -> None:
    async with await client_of_peer(peer, FACE) as client:
        peer.plays(answered(f"{image(PNG_TEXT)},{written(DOUBLED)}"))
        answer = await send(front(client, files=CallerForms()), sent(f"{image(PNG_TEXT)},{written(DOUBLED)}"))
        for text in (seen(peer), answer.body.decode()):
            assert f'"{PNG_TEXT}"' in text and f'"{DOUBLED}"' in text


async def test_an_agent_is_learnt_from_its_files_and_gets_its_own_form_from_then_on(peer: Peer) -> None:
    async with await client_of_peer(peer, FACE) as client:
        app = front(client)
        asked = wire(V1, SEND_MESSAGE, A_FILE)
        for at_agent, told in ((written(DOUBLED), DOUBLED), (image(PNG_TEXT), PNG_BYTES), (written(DOUBLED), PLAIN)):
            peer.plays(answered(at_agent))
            assert f'"{told}"' in (await send(app, asked)).body.decode()
        peer.plays(answered("{}"))
        assert f'"{DOUBLED}"' in seen(peer)
        assert client.remote.losses.counts["file-form"] > 0


@pytest.mark.parametrize("far", [False, True])
async def test_a_caller_that_shows_its_form_is_answered_in_it(peer: Peer, far: bool) -> None:
    at_agent, image_at_agent = (DOUBLED, PNG_TEXT) if far else (PLAIN, PNG_BYTES)
    async with await client_of_peer(peer, FACE, base64_files=far) as client:
        app = front(client, files=CallerForms())
        peer.plays(answered(written(at_agent)))
        answer = await send(app, sent(image(PNG_TEXT)))
        assert f'"{image_at_agent}"' in seen(peer) and f'"{DOUBLED}"' in answer.body.decode()
        assert not app.desk.losses.counts["file-form"]


async def test_one_caller_whom_nobody_verified_decides_nothing_for_another(peer: Peer) -> None:
    async with await client_of_peer(peer, FACE, base64_files=False) as client:
        app = front(client, files=CallerForms())
        for part, expected in ((image(PNG_TEXT), PNG_BYTES), (written(PLAIN), PLAIN), (image(PNG_BYTES), PNG_BYTES)):
            peer.plays(answered(written(PLAIN)))
            await send(app, sent(part))
            assert f'"{expected}"' in seen(peer)


def test_a_verified_caller_is_remembered_with_the_client_that_it_uses() -> None:
    forms = CallerForms()

    def files(name: str, client: bytes) -> Files:
        return forms(Context(caller=Verified(name=name), headers=Headers([(b"user-agent", client)])))

    files("alice", b"python").of(b64encode(PNG), "image/png")
    assert files("alice", b"python").form == "base64 text"
    assert files("alice", b"node").form is files("bob", b"python").form is forms(Context()).form is None
    for number in range(1_000):
        files(f"caller {number}", b"")
        assert files("alice", b"node") is files("alice", b"node")
    assert files("alice", b"python").form is None  # long not seen


async def test_files_that_could_be_either_may_be_refused(peer: Peer) -> None:
    async with await client_of_peer(peer, FACE, refuse_losses=("file-form",)) as client:
        answer = await send(front(client), wire(V1, SEND_MESSAGE, A_FILE))
        assert answer.status == 400 and b"base64_files" in answer.body and not peer.asked


@pytest.mark.parametrize(
    ("near", "far", "passes"),
    [(False, False, True), (True, True, True), (False, True, False), (None, False, False), (True, None, False)],
)
async def test_bytes_pass_undecoded_where_both_forms_are_known(
    peer: Peer, near: bool | None, far: bool | None, passes: bool
) -> None:
    odd = '{"messageId":"n",  "role":"ROLE_AGENT","content":[]}'
    async with await client_of_peer(peer, FACE, base64_files=far) as client:
        app = front(client, rows=rows(base64_files=near or False), files=None if near is not None else CallerForms())
        peer.plays(reply(f'{{"message":{odd}}}'))
        assert (odd in (await send(app, sent('{"text":"x"}'))).body.decode()) is passes


def test_the_switch_changes_two_faces_of_0_3_and_nothing_else() -> None:
    changed = {face for face in ALL_FACES if rows(base64_files=True)[face].dialect is not FACES[face].dialect}
    assert changed == {FACE, Face("GRPC", "0.3")}
    assert rows() == FACES
