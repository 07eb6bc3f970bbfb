"""Another interface takes over, for typed calls and for bytes of the first one's dialect; connections over TLS."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from dragoman.client.client import Client, connect
from dragoman.client.options import Tls
from dragoman.errors import TransportError
from dragoman.faces import FACES, Face
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE
from dragoman.server.asgi import Receive, Scope, Send
from dragoman.server.host import TlsFiles, serve
from dragoman.service import Context
from tests.client.peers import card, interface
from tests.server.callers import bench, sending

FIRST = Face("JSONRPC", "1.0")


def dead() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


@asynccontextmanager
async def client_of(*others: str) -> AsyncIterator[Client]:
    """A client of an agent whose first interface is away."""
    one = bench()
    async with serve(one.app) as server:
        places = [interface(dead(), str(FIRST)), *(interface(server.url, face) for face in others)]
        async with await connect(card(*places)) as client:
            yield client
    await one.engine.aclose()


@pytest.mark.parametrize("other", ["1.0/JSONRPC", "0.3/JSONRPC", "1.0/GRPC", "0.3/HTTP+JSON"])
async def test_bytes_reach_another_interface_and_the_reply_is_in_their_own_dialect(other: str) -> None:
    dialect = FACES[FIRST].dialect
    body = dialect.dump_request(SEND_MESSAGE, sending("hello"))
    async with client_of(other) as client:
        reply = dialect.load_reply(SEND_MESSAGE, await client.exchange(SEND_MESSAGE, body, Context()))
        assert reply.task is not None and reply.task.artifacts[0].parts[0].text == "hello"
        assert str(client.face) == other


@pytest.mark.parametrize("other", ["0.3/JSONRPC", "1.0/GRPC"])
async def test_a_stream_of_bytes_does_too(other: str) -> None:
    dialect = FACES[FIRST].dialect
    body = dialect.dump_request(SEND_STREAMING_MESSAGE, sending("hello"))
    async with client_of(other) as client:
        stream = await client.exchange_stream(SEND_STREAMING_MESSAGE, body, Context())
        events = [dialect.load_reply(SEND_STREAMING_MESSAGE, event) async for event in stream]
        await stream.aclose()
        assert events[0].task is not None and events[-1].status_update is not None


async def test_the_first_interface_is_tried_again_when_it_is_preferred() -> None:
    async with client_of("1.0/GRPC") as client:
        await client.send_text("hello")
        assert str(client.face) == "1.0/GRPC"
        service: Any = client.service
        service.prefer_first()
        assert client.face == FIRST
        await client.send_text("hello")
        assert str(client.face) == "1.0/GRPC"


async def test_without_another_interface_the_failure_is_the_first_ones() -> None:
    body = FACES[FIRST].dialect.dump_request(SEND_MESSAGE, sending("hello"))
    async with client_of() as client:
        with pytest.raises(TransportError) as raised:
            await client.exchange(SEND_MESSAGE, body, Context())
        assert not raised.value.sent


async def test_over_tls_every_call_has_a_connection_of_its_own(tmp_path: Path) -> None:
    """A peer that offers HTTP/2 gets HTTP/1.1: no limit of streams on one connection stands in the way."""
    ca, one, versions = trustme.CA(), bench(), set[str]()
    issued = ca.issue_cert("localhost")
    issued.private_key_pem.write_to_path(tmp_path / "key")
    for place, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(tmp_path / "cert", append=place > 0)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        versions.add(scope.get("http_version", "1.1"))
        await one.app(scope, receive, send)

    files = TlsFiles(certificate=tmp_path / "cert", key=tmp_path / "key")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(app, host="localhost", tls=files))
        found = connect(server.url, tls=Tls(ca=ca.cert_pem.bytes()), binding="JSONRPC")
        client = await stack.enter_async_context(found)
        await client.send_text("hello")
        assert versions == {"1.1"}
    await one.engine.aclose()


async def test_certificates_are_renewed_for_who_connects_from_then_on(tmp_path: Path) -> None:
    one = bench()
    first, second = trustme.CA(), trustme.CA()

    def write(ca: trustme.CA) -> None:
        issued = ca.issue_cert("localhost")
        issued.private_key_pem.write_to_path(tmp_path / "key")
        issued.cert_chain_pems[0].write_to_path(tmp_path / "cert")

    async def reaches(url: str, ca: trustme.CA) -> bool:
        try:
            async with connect(url, tls=Tls(ca=ca.cert_pem.bytes())):
                return True
        except TransportError:
            return False

    write(first)
    files = TlsFiles(certificate=tmp_path / "cert", key=tmp_path / "key")
    async with serve(one.app, host="localhost", tls=files) as server:
        assert await reaches(server.url, first)
        write(second)
        assert not await reaches(server.url, second)
        server.renew_tls()
        assert await reaches(server.url, second) and not await reaches(server.url, first)
    await one.engine.aclose()
