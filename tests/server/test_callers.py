"""Who may call, on every face: the refusal in the face's own shape, and the caller that a service is told."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme
from h2.connection import H2Connection
from h2.events import ResponseReceived

from dragoman.client.connect import connect
from dragoman.client.options import Resume, Timeouts, Tls
from dragoman.errors import TaskNotFoundError, UnauthenticatedError
from dragoman.faces import Face
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
)
from dragoman.protocol.messages import Headers
from dragoman.security.callers import Verifier
from dragoman.security.certificates import CertificateRule, Certificates
from dragoman.security.keys import Keys
from dragoman.server.host import TlsFiles, serve
from dragoman.service import AnyOperation, Context
from tests.asgi_driver import LIMIT, Answer, Exchange, scope
from tests.security.issuer import Trusted, mac_with_public_key, rsa, token, unsigned
from tests.server.callers import (
    EACH_FACE,
    Bench,
    bench,
    check_failure,
    failure,
    reply,
    reply_task,
    send,
    sending,
    wire,
)

CLOSED = 'Bearer realm="dragoman"'
KEYS = Keys([("ci", "ci-secret"), ("ops", "ops-secret")])


def verifying(trusted: Trusted | None = None, **more: Any) -> Bench:
    """An app that wants to know who is calling."""
    tokens = (trusted or Trusted(rsa("a"))).tokens
    return bench(callers=Verifier(keys=KEYS, tokens=tokens), **more)


def refused(face: Face, answer: Answer) -> str:
    """The challenge of an answer that is exactly a refusal to a stranger in the shape of a face."""
    found = failure(face, answer)
    named = face.binding == "GRPC" or face == Face("HTTP+JSON", "1.0")
    assert found.told == ("UNAUTHENTICATED" if named else -32000)
    assert found.http == (200 if face.binding == "GRPC" else 401)
    assert found.reason == ("UNAUTHENTICATED" if face.version == "1.0" else "")
    return answer.headers["www-authenticate"]


class Shown(NamedTuple):
    """Credentials, and what becomes of them: why they are refused, or nothing."""

    name: str
    make: Callable[[], Mapping[str, str]]
    why: str | None = None


def bearer(make: Callable[[], str]) -> Callable[[], Mapping[str, str]]:
    return lambda: {"authorization": f"Bearer {make()}"}


WRONG = (
    Shown("nothing", dict, ""),
    Shown("wrong key", lambda: {"x-api-key": "nonsense"}, "The key in X-API-Key is not valid"),
    Shown("wrong bearer", bearer(lambda: "nonsense"), "The token is not valid"),
    Shown("expired", bearer(lambda: token(rsa("a"), exp=1)), "The token has expired"),
    Shown("no expiry", bearer(lambda: token(rsa("a"), exp=None)), "The token is not valid"),
    Shown("audience", bearer(lambda: token(rsa("a"), aud="other")), "The token is for another audience"),
    Shown("issuer", bearer(lambda: token(rsa("a"), iss="https://x.example")), "The token is of an unknown issuer"),
    Shown("none", bearer(unsigned), "The token is signed with an algorithm that is not allowed"),
    Shown(
        "mac",
        bearer(lambda: mac_with_public_key(rsa("a"))),
        "The token is signed with an algorithm that is not allowed",
    ),
    Shown("unknown key", bearer(lambda: token(rsa("z"))), "The token is signed with an unknown key"),
    Shown("forged", bearer(lambda: token(rsa("z"), "RS256", {"kid": "a"})), "The signature of the token is wrong"),
)
GOOD = (
    Shown("key", lambda: {"x-api-key": "ci-secret"}),
    Shown("bearer", bearer(lambda: "ci-secret")),
    Shown("token", bearer(lambda: token(rsa("a")))),
)


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("shown", WRONG, ids=lambda one: one.name)
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_stranger_is_refused_in_the_shape_of_its_face(face: Face, shown: Shown, op: AnyOperation) -> None:
    answer = await send(verifying().app, wire(face, op, sending("hello"), headers=shown.make()))
    challenge = refused(face, answer)
    wanted = f'{CLOSED}, error="invalid_token", error_description="{shown.why}"' if shown.why else CLOSED
    assert challenge == wanted


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("field", ["authorization", "x-api-key"])
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_credentials_that_come_twice_are_no_request_of_any_face(face: Face, field: str, op: AnyOperation) -> None:
    request = wire(face, op, sending("hello"), headers={"authorization": "Bearer ci-secret"})
    asked = scope(request.method, request.path, request.headers)
    asked["headers"] += [(field.encode(), b"Bearer ci-secret")] * 2
    check_failure(face, await Exchange(verifying().app, asked, [request.body]).run(), "request")


@pytest.mark.parametrize("shown", GOOD, ids=lambda one: one.name)
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_known_caller_is_served(face: Face, shown: Shown) -> None:
    answer = await send(verifying().app, wire(face, SEND_MESSAGE, sending("hello"), headers=shown.make()))
    assert reply_task(face, answer).artifacts[0].parts[0].text == "hello"


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_task_is_its_callers_and_nobody_elses(face: Face) -> None:
    app = verifying().app
    mine = {"x-api-key": "ci-secret"}
    task = reply_task(face, await send(app, wire(face, SEND_MESSAGE, sending("hello"), headers=mine)))
    asking = GetTaskRequest(id=task.id)
    assert reply(face, GET_TASK, await send(app, wire(face, GET_TASK, asking, headers=mine))).id == task.id
    for other in ({"x-api-key": "ops-secret"}, {"authorization": f"Bearer {token(rsa('a'), sub='ci')}"}):
        check_failure(face, await send(app, wire(face, GET_TASK, asking, headers=other)), "task not found")


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_keys_that_cannot_be_fetched_are_our_trouble_and_not_the_callers(face: Face) -> None:
    trusted = Trusted(rsa("a"))
    trusted.endpoint.down = True
    app = verifying(trusted).app
    shown = {"authorization": f"Bearer {token(rsa('a'))}"}
    check_failure(face, await send(app, wire(face, SEND_MESSAGE, sending("hello"), headers=shown)), "unavailable")
    good = await send(app, wire(face, SEND_MESSAGE, sending("hello"), headers={"x-api-key": "ci-secret"}))
    assert reply_task(face, good)


async def test_the_public_card_is_for_everybody() -> None:
    for path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
        assert (await Exchange(verifying().app, scope("GET", path, {}), []).run()).status == 200


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_the_extended_card_is_not(face: Face) -> None:
    app = verifying().app
    asking = GetExtendedAgentCardRequest()
    refused(face, await send(app, wire(face, GET_EXTENDED_AGENT_CARD, asking)))
    known = await send(app, wire(face, GET_EXTENDED_AGENT_CARD, asking, headers={"x-api-key": "ci-secret"}))
    assert reply(face, GET_EXTENDED_AGENT_CARD, known).description == "for those we know"


@pytest.mark.parametrize(
    "path", ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"]
)
async def test_the_services_beside_are_not_for_strangers(path: str) -> None:
    app = verifying(health=True, reflection=True).app
    head = {"content-type": "application/grpc"}
    answer = await Exchange(app, scope("POST", path, head), [bytes(5)]).run()
    refused(Face("GRPC", "1.0"), answer)
    known = await Exchange(app, scope("POST", path, {**head, "x-api-key": "ci-secret"}), [bytes(5)]).run()
    assert (known.trailers or {}).get("grpc-status") == "0"


# What a stranger's request is good for


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_the_id_of_a_small_call_is_given_back(version: Any) -> None:
    face = Face("JSONRPC", version)
    request = wire(face, SEND_MESSAGE, sending("hello"))
    body = request.body.replace(b'"id":1', b'"id":"mine"')
    answer = await send(verifying().app, request._replace(body=body))
    assert json.loads(answer.body)["id"] == "mine"


async def test_a_call_that_names_no_version_is_refused_in_the_one_that_its_method_is_of() -> None:
    for version in ("0.3", "1.0"):
        face = Face("JSONRPC", "1.0" if version == "1.0" else "0.3")
        request = wire(face, SEND_MESSAGE, sending("hello"))
        del request.headers["a2a-version"]
        refused(face, await send(verifying(lenient=True).app, request))


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_little_is_read_of_a_large_body(face: Face) -> None:
    request = wire(face, SEND_MESSAGE, sending("hello"))
    exchange = Exchange(verifying().app, scope(request.method, request.path, request.headers), [b"x" * 16_384] * 100)
    refused(face, await exchange.run())
    assert exchange._incoming.qsize() >= 95


BROKEN = (b"", b"no JSON", b"{}", b'{"jsonrpc":"2.0","method":"Nonsense","id":7}', b"\xff" * 9)


@pytest.mark.parametrize("body", BROKEN, ids=["empty", "text", "no call", "no method", "no UTF-8"])
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_stranger_is_told_nothing_of_what_else_is_wrong(face: Face, body: bytes) -> None:
    request = wire(face, SEND_MESSAGE, sending("hello"))
    refused(face, await send(verifying().app, request._replace(body=body)))


@pytest.mark.parametrize("path", ["/nonsense", "/tasks/1/nonsense"])
async def test_nor_of_what_is_served_where(path: str) -> None:
    answer = await Exchange(verifying().app, scope("POST", path, {"a2a-version": "1.0"}), [b"{}"]).run()
    refused(Face("HTTP+JSON", "1.0"), answer)


async def test_a_stranger_that_leaves_is_not_answered() -> None:
    request = wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("hello"))
    exchange = Exchange(verifying().app, scope(request.method, request.path, request.headers), [b"{", b""])
    exchange._incoming = asyncio.Queue()
    exchange.disconnect()
    assert (await exchange.run()).status == 0


UPLOADS = {
    "says its size": (b"content-length: 17000000\r\n\r\n", b"x" * 100_000),
    "sends chunks": (b"transfer-encoding: chunked\r\n\r\n", b"186a0\r\n" + b"x" * 100_000),
    "waits to be let": (b"content-length: 17000000\r\nexpect: 100-continue\r\n\r\n", b""),
}


@pytest.mark.parametrize("upload", UPLOADS)
@pytest.mark.parametrize("path", ["/", "/message:send"])
async def test_a_stranger_gets_its_answer_before_it_has_sent_all(path: str, upload: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ncontent-type: application/json\r\n"
    async with serve(verifying().app) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        try:
            writer.write(head.encode() + b"".join(UPLOADS[upload]))
            async with asyncio.timeout(LIMIT):
                assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


# Client certificates over sockets


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder: Path = tmp_path_factory.mktemp("mutual")
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return TlsFiles(certificate=folder / "cert.pem", key=folder / "key.pem", client_ca=folder / "ca.pem")


def shows(authority: trustme.CA, *names: str) -> Tls:
    ca = authority.cert_pem.bytes()
    if not names:
        return Tls(ca=ca)
    issued = authority.issue_cert(*names)
    return Tls(ca=ca, cert=b"".join(one.bytes() for one in issued.cert_chain_pems), key=issued.private_key_pem.bytes())


FLEET = Verifier(certificates=Certificates([CertificateRule(san="*.fleet.example")]))
QUICK: dict[str, Any] = {"timeouts": Timeouts(connect=5, reply=10, silence=10), "resume": Resume(tries=0)}


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_client_certificate_is_a_caller(face: Face, authority: trustme.CA, files: TlsFiles) -> None:
    one = bench(callers=FLEET)
    async with serve(one.app, tls=files) as server:
        where = f"https://localhost:{server.port}"
        chosen = {"version": face.version, "binding": face.binding, **QUICK}
        mine = await connect(where, tls=shows(authority, "a.fleet.example"), **chosen)
        other = await connect(where, tls=shows(authority, "b.fleet.example"), **chosen)
        strangers = [await connect(where, tls=shows(authority, *names), **chosen) for names in ((), ("x.example",))]
        try:
            sent = await mine.call(SEND_MESSAGE, sending("hello"), Context())
            assert sent.task is not None
            asking = GetTaskRequest(id=sent.task.id)
            assert (await mine.call(GET_TASK, asking, Context())).id == sent.task.id
            with pytest.raises(TaskNotFoundError):
                await other.call(GET_TASK, asking, Context())
            for stranger in strangers:
                with pytest.raises(UnauthenticatedError, match="a client certificate"):
                    await stranger.call(GET_TASK, asking, Context())
        finally:
            await asyncio.gather(*(client.aclose() for client in (mine, other, *strangers)))
    await one.engine.aclose()


@pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
async def test_over_either_protocol_of_http(protocol: str, authority: trustme.CA, files: TlsFiles) -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("has none")
        seen.append((scope["http_version"], FLEET.known(_NONE, scope)))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with serve(app, tls=files) as server:
        await _get(server.port, protocol, authority)
    assert seen == [(protocol.removeprefix("http/").removeprefix("h"), seen[0][1])]
    assert seen[0][1].name == "certificate#a.fleet.example"


_NONE = Headers()


async def _get(port: int, protocol: str, authority: trustme.CA) -> None:
    """One request over TLS that ends when its answer has begun."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    authority.issue_cert("a.fleet.example").configure_cert(context)
    context.set_alpn_protocols([protocol])
    reader, writer = await asyncio.open_connection("localhost", port, ssl=context)
    if protocol == "h2":
        peer = H2Connection()
        peer.initiate_connection()
        head = [(":method", "GET"), (":scheme", "https"), (":path", "/"), (":authority", "localhost")]
        peer.send_headers(1, head, end_stream=True)
        writer.write(peer.data_to_send())
        async with asyncio.timeout(LIMIT):
            while not any(
                isinstance(event, ResponseReceived) for event in peer.receive_data(await reader.read(65_536))
            ):
                pass
    else:
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        async with asyncio.timeout(LIMIT):
            assert (await reader.readline()).startswith(b"HTTP/1.1 204")
    writer.close()
    await writer.wait_closed()
