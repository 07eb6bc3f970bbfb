"""Whatever an agent, or a proxy before it, answers: callers are not told where it is."""

from __future__ import annotations

import pytest

from dragoman.faces import ALL_FACES, Face
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE
from dragoman.service import AnyOperation
from tests.client.peers import Peer, Reply, reply
from tests.gateway.fronts import client_of_peer, front
from tests.server.callers import send, sending, wire

PAGE = "<html>no</html>"
ANSWERS = {
    **{
        str(status): reply(PAGE, "text/html", status)
        for status in (301, 401, 403, 404, 413, 415, 429, 500, 502, 503, 504)
    },
    "page": reply(PAGE, "text/html"),
    "no JSON": reply("{"),
    "cut": Reply(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\ncontent-type: application/json\r\n\r\n{"),
    "no HTTP": Reply(b"hello\r\n\r\n"),
}


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("upstream", [Face("JSONRPC", "1.0"), Face("HTTP+JSON", "0.3")], ids=str)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_no_caller_is_told_where_the_agent_is(
    peer: Peer, answer: Reply, upstream: Face, op: AnyOperation
) -> None:
    async with await client_of_peer(peer, upstream) as client:
        app = front(client)
        for face in ALL_FACES:
            peer.plays(answer, answer)
            told = await send(app, wire(face, op, sending("hello")))
            whole = told.body + repr((told.headers, told.trailers)).encode()
            assert str(peer.port).encode() not in whole and b"127.0.0.1" not in whole, whole
            peer.queue.clear()
