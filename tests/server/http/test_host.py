"""The server around the connections: lifespan, TLS, addresses, and the end."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from dragoman.errors import ConfigError
from dragoman.server.asgi import App, Receive, Scope, Send
from dragoman.server.host import Limits, Server, TlsFiles, serve
from tests.server.http.driver import HELLO, LIMIT, SHORT, Raw, connected, echo, peer, read_all, respond, undated

GET = b"GET /a HTTP/1.1\r\nhost: a\r\n"
POST = b"POST /p HTTP/1.1\r\nhost: a\r\n"
LAST = b"connection: close\r\n\r\n"
LARGE = 20_000_000  # octets, more than sockets hold


# --- lifespan ---


def spoken(words: list[str], *answers: str) -> App:
    """An app that answers each word of the lifespan with the next of ``answers``."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            words.append("request")
            await respond(send, scope["state"].get("from", b""))
            return
        for answer in answers:
            words.append((await receive())["type"])
            scope["state"]["from"] = b"startup"
            await send({"type": f"lifespan.{answer}", "message": "of the app"})

    return app


@pytest.mark.parametrize("http2", [False, True])
async def test_the_app_starts_before_the_first_request_and_ends_after_the_last(http2: bool) -> None:
    words: list[str] = []
    async with serve(spoken(words, "startup.complete", "shutdown.complete")) as server:
        assert words == ["lifespan.startup"]
        if http2:
            async with peer(server) as client:
                assert (await client.call()).body == b"startup"
        else:
            async with connected(server) as raw:
                raw.send(GET + LAST)
                assert (await raw.rest()).endswith(b"\r\n\r\nstartup")
    assert words == ["lifespan.startup", "request", "lifespan.shutdown"]


async def test_an_app_that_cannot_start_is_a_config_error_with_its_words() -> None:
    with pytest.raises(ConfigError, match="of the app"):
        async with serve(spoken([], "startup.failed")):
            pass


async def test_the_port_of_an_app_that_cannot_start_is_free_again() -> None:
    async with serve(echo) as first:
        port = first.port
    with pytest.raises(ConfigError):
        async with serve(spoken([], "startup.failed"), port=port):
            pass
    async with serve(echo, port=port) as again:
        assert again.port == port


async def test_an_app_that_cannot_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with serve(spoken([], "startup.complete", "shutdown.failed")):
        pass
    assert "of the app" in caplog.text


async def raises(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        raise LookupError("no lifespan")
    await echo(scope, receive, send)


@pytest.mark.parametrize("app", [echo, raises], ids=["returns", "raises"])
async def test_an_app_without_a_lifespan_is_served(app: App, caplog: pytest.LogCaptureFixture) -> None:
    async with serve(app) as server, connected(server) as raw:
        raw.send(GET + LAST)
        assert (await raw.rest()).endswith(b"GET /a ")
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG]


# --- addresses ---


async def test_a_port_in_use_is_a_config_error() -> None:
    async with serve(echo) as first:
        with pytest.raises(ConfigError, match=f"port {first.port}.*in use"):
            async with serve(echo, port=first.port):
                pass


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("203.0.113.1", 0), ("no.such.host.invalid", 0)])
async def test_an_address_that_cannot_be_had_is_a_config_error(host: str, port: int) -> None:
    with pytest.raises(ConfigError, match="Cannot listen"):
        async with serve(echo, host=host, port=port):
            pass


async def test_the_url_says_where_the_server_listens() -> None:
    async with serve(echo) as server:
        assert server.url == f"http://127.0.0.1:{server.port}"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
async def test_an_ipv6_address_is_in_brackets() -> None:
    async with serve(echo, host="::1") as server:
        assert server.url == f"http://[::1]:{server.port}"


# --- TLS ---


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., TlsFiles]:
    """TLS files of ``localhost``; the keywords go to ``TlsFiles``."""
    folder: Path = tmp_path_factory.mktemp("tls")
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(folder / "certificate.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")

    def make(clients: bool = False, require: bool = False) -> TlsFiles:
        ca = folder / "ca.pem" if clients else None
        return TlsFiles(certificate=folder / "certificate.pem", key=folder / "key.pem", client_ca=ca, require=require)

    return make


def caller(authority: trustme.CA, *protocols: str, shows: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.set_alpn_protocols(protocols)
    if shows:
        authority.issue_cert(shows, common_name=shows).configure_cert(context)
    return context


async def told(scope: Scope, receive: Receive, send: Send) -> None:
    """Scheme, version of HTTP, version of TLS and the client's name."""
    if scope["type"] == "http":
        tls = scope["extensions"]["tls"]
        assert bool(tls["client_cert_name"]) == bool(tls["client_cert_chain"])
        assert all("BEGIN CERTIFICATE" in pem for pem in tls["client_cert_chain"])
        await read_all(receive)
        name = tls["client_cert_name"] or ""
        await respond(send, f"{scope['scheme']} {scope['http_version']} {tls['tls_version']:#x} {name}".encode())


async def test_one_port_speaks_both_over_tls(authority: trustme.CA, files: Callable[..., TlsFiles]) -> None:
    async with serve(told, tls=files()) as server:
        assert server.url.startswith("https://")
        async with peer(server, context=caller(authority, "h2", "http/1.1")) as client:
            assert (await client.call()).body == b"http 2 0x304 "
        for protocols in (("http/1.1",), ()):
            async with connected(server, caller(authority, *protocols)) as raw:
                raw.send(GET + LAST)
                assert (await raw.rest()).endswith(b"https 1.1 0x304 ")


async def test_tls_1_2_is_spoken_and_nothing_older(authority: trustme.CA, files: Callable[..., TlsFiles]) -> None:
    context = caller(authority, "h2")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serve(told, tls=files()) as server, peer(server, context=context) as client:
        assert b" 0x303 " in (await client.call()).body


@pytest.mark.parametrize("require", [False, True])
@pytest.mark.parametrize("http2", [False, True])
async def test_the_app_is_told_who_shows_a_certificate(
    authority: trustme.CA, files: Callable[..., TlsFiles], http2: bool, require: bool
) -> None:
    context = caller(authority, "h2" if http2 else "http/1.1", shows="me.example")
    async with serve(told, tls=files(True, require)) as server:
        if http2:
            async with peer(server, context=context) as client:
                text = (await client.call()).body
        else:
            async with connected(server, context) as raw:
                raw.send(GET + LAST)
                text = await raw.rest()
    assert b"commonName=me.example" in text or b"CN=me.example" in text


async def test_a_certificate_may_be_left_out_where_it_is_optional(
    authority: trustme.CA, files: Callable[..., TlsFiles]
) -> None:
    async with serve(told, tls=files(True)) as server, peer(server, context=caller(authority, "h2")) as client:
        assert (await client.call()).body.endswith(b" 0x304 ")


@pytest.mark.parametrize("other", [False, True], ids=["none", "of another authority"])
async def test_no_certificate_is_no_connection_where_it_is_required(
    authority: trustme.CA, files: Callable[..., TlsFiles], other: bool
) -> None:
    context = caller(authority, "http/1.1")
    if other:
        trustme.CA().issue_cert("me.example").configure_cert(context)
    async with serve(told, tls=files(True, True)) as server, connected(server, context) as raw:
        raw.send(GET + LAST)
        try:
            answer = await raw.rest()
        except ssl.SSLError:  # in TLS 1.3 the refusal comes with the first read
            answer = b""
        assert answer == b""


async def test_clear_text_on_a_tls_port_is_closed(files: Callable[..., TlsFiles]) -> None:
    async with serve(told, tls=files()) as server, connected(server) as raw:
        raw.send(GET + LAST)
        assert b"HTTP" not in await raw.rest()


async def test_a_handshake_that_does_not_end_is_cut(files: Callable[..., TlsFiles]) -> None:
    async with serve(told, tls=files(), limits=SHORT) as server, connected(server) as raw:
        assert await raw.rest() == b""


@pytest.mark.parametrize("broken", ["missing", "swapped"])
async def test_tls_files_that_cannot_be_used_are_a_config_error(files: Callable[..., TlsFiles], broken: str) -> None:
    good = files()
    bad = (
        TlsFiles(certificate=good.key, key=good.key)
        if broken == "swapped"
        else TlsFiles(certificate=good.certificate.with_name("none.pem"), key=good.key)
    )
    with pytest.raises(ConfigError, match="TLS files"):
        async with serve(echo, tls=bad):
            pass


# --- the end ---


IDLE = {"new": b"", "half a preface": b"PRI * HT", "kept": GET + b"\r\n", "half a head": GET, "HTTP/2": HELLO}


@pytest.mark.parametrize("said", IDLE.values(), ids=IDLE.keys())
async def test_an_idle_connection_is_closed_at_once(said: bytes) -> None:
    async with serve(echo) as server, connected(server) as raw, asyncio.timeout(LIMIT):
        async with connected(server) as other:  # it was accepted later than the first
            other.send(GET + LAST)
            await other.rest()
        raw.send(said)
        if said == GET + b"\r\n":
            await raw.until(b"GET /a ")
        elif said == HELLO:
            await raw.until(b"\0\0\0\x04\x01\0\0\0\0")
        server.close()
        await raw.rest()
        await server.wait_closed()


async def test_a_request_at_work_is_finished_its_body_too_and_the_next_one_is_not_taken() -> None:
    begun = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            begun.set()
            await echo(scope, receive, send)

    async with serve(app) as server, connected(server) as raw, asyncio.timeout(LIMIT):
        raw.send(POST + b"content-length: 3\r\n\r\na")
        await begun.wait()
        server.close()
        while True:  # until the port is closed
            try:
                async with connected(server) as late:
                    await late.rest()
            except ConnectionError:
                break
        raw.send(b"bc" + GET + b"\r\n")
        text = undated(await raw.rest())
        assert text == b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\nPOST /p abc"
        await server.wait_closed()


async def test_a_request_that_does_not_finish_is_cancelled_and_told() -> None:
    begun = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            begun.set()
            await asyncio.Event().wait()

    async with serve(app, limits=Limits(graceful_timeout=0.1)) as server, connected(server) as raw:
        raw.send(GET + b"\r\n")
        async with asyncio.timeout(LIMIT):
            await begun.wait()
        server.close()
        text = await raw.rest()
        assert text == b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def ending(app: App, limits: Limits) -> AsyncIterator[tuple[Raw, Server]]:
    """A server that was told to end while its reply is on its way to a reader that has not begun to read."""
    async with serve(app, limits=limits) as server, connected(server, receive_buffer=4_096) as raw:
        raw.send(GET + b"\r\n")
        await raw.until(b"\r\n\r\n")
        server.close()
        yield raw, server


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await respond(send, bytes(LARGE))


async def test_a_reply_that_is_on_its_way_leaves_before_the_end() -> None:
    async with ending(large, Limits()) as (raw, server):
        assert len(await raw.rest()) == LARGE
        await server.wait_closed()


async def test_a_reader_that_stops_does_not_hold_up_the_end() -> None:
    async with ending(large, Limits(graceful_timeout=0.1)) as (_, server), asyncio.timeout(LIMIT):
        await server.wait_closed()
