"""What connections rest on: certificates, packages that may be missing, hints about the wrong version."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

from dragoman import errors
from dragoman.client.client import Tls, connect
from dragoman.heeding import Heeding
from tests.client.peers import TASK, Peer, card, interface, reply, rpc


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def secure(authority: trustme.CA) -> AsyncIterator[Peer]:
    """A peer behind TLS that wants a client certificate of the same authority, if it gets one at all."""
    peer = Peer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    server = await asyncio.start_server(peer.serve, "localhost", 0, ssl=context)
    peer.port = server.sockets[0].getsockname()[1]
    peer.otherwise = reply(rpc(TASK))
    yield peer
    server.close()


async def test_https_is_checked_against_the_given_root(secure: Peer, authority: trustme.CA, tmp_path: Path) -> None:
    there = card(interface(f"https://localhost:{secure.port}/a2a", "1.0/JSONRPC"))
    root = tmp_path / "root.pem"
    root.write_bytes(authority.cert_pem.bytes())
    for ca in (root, str(root), authority.cert_pem.bytes()):
        async with connect(there, tls=Tls(ca=ca)) as agent:
            assert (await agent.get_task("t-1")).id == "t-1"
    async with connect(there, tls=Tls(verify=False)) as agent:
        assert (await agent.get_task("t-1")).id == "t-1"


async def test_an_unknown_root_refuses_the_connection_before_anything_is_sent(secure: Peer) -> None:
    there = card(interface(f"https://localhost:{secure.port}/a2a", "1.0/JSONRPC"))
    async with connect(there) as agent:
        with pytest.raises(errors.TransportError, match="certificate") as caught:
            await agent.get_task("t-1")
    assert not caught.value.sent
    assert not secure.asked


async def test_our_own_certificate_is_shown(secure: Peer, authority: trustme.CA) -> None:
    own = authority.issue_cert("client")
    chain = b"".join(part.bytes() for part in own.cert_chain_pems)
    tls = Tls(ca=authority.cert_pem.bytes(), cert=chain, key=own.private_key_pem.bytes())
    async with connect(card(interface(f"https://localhost:{secure.port}/a2a", "1.0/JSONRPC")), tls=tls) as agent:
        assert (await agent.get_task("t-1")).id == "t-1"


async def test_certificates_that_cannot_be_used_are_our_callers_mistake(tmp_path: Path) -> None:
    there = card(interface("https://localhost:1/", "1.0/JSONRPC"))
    with pytest.raises(errors.ConfigError, match="key"):
        Tls(cert=b"x")
    with pytest.raises(errors.ConfigError, match=r"missing\.pem"):
        await connect(there, tls=Tls(ca=tmp_path / "missing.pem"))
    with pytest.raises(errors.ConfigError, match="TLS"):
        await connect(there, tls=Tls(cert=b"x", key=b"y"))
    with pytest.raises(errors.ConfigError, match="gRPC"):
        await connect(card(interface("https://localhost:1", "1.0/GRPC")), tls=Tls(verify=False))


@pytest.mark.parametrize(
    ("package", "face", "extra"), [("grpc", "1.0/GRPC", "grpc"), ("pyreqwest", "1.0/JSONRPC", "client")]
)
async def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, package: str, face: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(errors.ConfigError, match=rf"pip install dragoman\[{extra}\]"):
        await connect(card(interface("http://localhost:1", face)))


async def test_another_interface_is_called_when_the_package_for_the_first_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    both = card(interface("grpc://localhost:1", "1.0/GRPC"), interface("http://localhost:1", "1.0/JSONRPC"))
    async with connect(both) as agent:
        assert agent.face.binding == "JSONRPC"


async def test_a_peer_that_does_not_know_the_name_is_doubted_in_words(peer: Peer) -> None:
    peer.plays(reply('{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'))
    notes: list[str] = []
    async with connect(card(interface(peer.url, "1.0/JSONRPC")), on_note=notes.append) as agent:
        with pytest.raises(errors.MethodNotFoundError):
            await agent.send_text("hello")
    assert len(notes) == 1 and "pin version='0.3'" in notes[0]


async def deaf(ending: Exception | None = None) -> bytes:
    """What is there, or fails, at the very moment in which whoever waits for it is told to stop."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    if ending is not None:
        raise ending
    return b"x"


@pytest.mark.parametrize("ending", [None, ValueError("refused")], ids=["a result", "an error"])
async def test_a_cancellation_is_heard_whatever_the_library_makes_of_it(ending: Exception | None) -> None:
    async def read() -> bytes:
        with Heeding():
            return await deaf(ending)

    reading = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_so_is_a_time_limit_and_nothing_that_came_before() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            with Heeding():
                await deaf()
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    with Heeding():
        await asyncio.sleep(0)
    task.uncancel()
