"""What a gateway adds to its pairs: what it forwards, what it passes undecoded, and an upstream that misbehaves."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.client.client import Client
from dragoman.client.options import Timeouts
from dragoman.errors import ConfigError
from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.forwarding import forwarded_names
from dragoman.gateway.gateway import Gateway
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    AgentCardSignature,
    APIKeySecurityScheme,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    SecurityScheme,
    TaskState,
)
from dragoman.protocol.grpc import frame
from dragoman.server.app import A2AApp
from dragoman.server.asgi import Receive, Scope, Send
from dragoman.server.host import serve
from tests.client.peers import DONE, TASK, Peer, Reply, card, events, interface, reply, rpc
from tests.gateway.fronts import Upstream, client_of, client_of_peer, front, nobody, upstream
from tests.server.callers import (
    CARD,
    ERRORS,
    Wire,
    check_failure,
    expected,
    failure,
    reply_task,
    send,
    sending,
    wire,
)
from tests.server.test_card import urls
from tests.server.test_streams import check_broken, clean, request_of_03

JSONRPC, REST, OLD = Face("JSONRPC", "1.0"), Face("HTTP+JSON", "1.0"), Face("JSONRPC", "0.3")
KEYED = replace(
    CARD,
    security_schemes={
        "key": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name="X-Api-Key")),
        "query": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="query", name="X-Query-Key")),
        "cookie": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="cookie", name="session")),
    },
)


# -- header fields

GO_ON = {
    "authorization": "Bearer callers-own",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=1",
    "baggage": "k=v",
    "x-api-key": "secret",
    "cookie": "session=1",
    "x-wanted": "yes",
}
STAY = {
    "x-other": "1",
    "x-query-key": "1",
    "x-forwarded-for": "203.0.113.9",
    "forwarded": "for=203.0.113.9",
    "proxy-authorization": "Basic x",
    "te": "trailers, deflate",
    "origin": "https://evil.test",
    "referer": "https://evil.test/",
    "keep-alive": "timeout=5",
    "x-a2a-notification-token": "t",
}


@pytest.mark.parametrize("far", ALL_FACES, ids=str)
@pytest.mark.parametrize("near", [JSONRPC, Face("GRPC", "0.3")], ids=str)
async def test_credentials_and_trace_go_on_and_nothing_else(near: Face, far: Face) -> None:
    async with upstream(card=KEYED) as one, await client_of(one, far) as client:
        app = front(client, forwarded=("X-Wanted",))
        for op in (SEND_MESSAGE, SEND_STREAMING_MESSAGE):
            await send(app, wire(near, op, sending("x"), headers={**GO_ON, **STAY}))
            got = one.arrived[-1].headers
            assert {name: got.get(name) for name in GO_ON} == GO_ON
            assert not {name: got[name] for name, value in STAY.items() if got.get(name) == value}
            assert got.get("a2a-version", "0.3") == far.version
            assert "agent.test" not in (got.get("host"), got.get(":authority"))


async def test_the_callers_version_header_never_reaches_an_upstream_of_another_version() -> None:
    """Case 7."""
    async with upstream() as one, await client_of(one, OLD) as client:
        answer = await send(front(client), wire(JSONRPC, SEND_MESSAGE, sending("x")))
        assert answer.status == 200 and b'"result"' in answer.body
        assert one.arrived[-1].headers.get("a2a-version", "0.3") == "0.3"


@pytest.mark.parametrize("name", ["Connection", "te", "Content-Length", "A2A-Version", "x-a2a-extensions", "host"])
def test_a_field_of_each_connection_cannot_be_forwarded(name: str) -> None:
    with pytest.raises(ConfigError, match=name.lower()):
        forwarded_names(CARD, [name])


# -- bytes that pass

EXTRA = b'"xUnknown":{"deep":[1,{"n":12345678901234567890}]}'
GOOD = b'"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}'
SEND = b'{"jsonrpc":"2.0","id":"q","method":"SendMessage","params":{' + EXTRA + b"," + GOOD + b"}}"
JSON_TYPE = {"content-type": "application/json", "a2a-version": "1.0"}
POSTS = {
    JSONRPC: Wire("POST", "/", JSON_TYPE, SEND),
    REST: Wire("POST", "/message:send", JSON_TYPE, b"{" + EXTRA + b"," + GOOD + b"}"),
}


def in_reply(far: Face) -> str:
    task = TASK[:-1] + "," + EXTRA.decode() + "}"
    result = f'{{"task":{task},{EXTRA.decode()}}}'
    return rpc(result) if far.binding == "JSONRPC" else result


@pytest.mark.parametrize("far", [JSONRPC, REST], ids=str)
@pytest.mark.parametrize("near", [JSONRPC, REST], ids=str)
async def test_what_nobody_knows_passes_both_ways_between_faces_of_one_dialect(
    peer: Peer, near: Face, far: Face
) -> None:
    async with await client_of_peer(peer, far) as client:
        peer.plays(reply(in_reply(far)))
        answer = await send(front(client), POSTS[near])
        assert answer.status == 200
        assert answer.body.count(EXTRA) == 2
        assert EXTRA in peer.asked[0].body
        if near.binding == "JSONRPC":
            assert json.loads(answer.body)["id"] == "q"


async def test_what_nobody_knows_is_left_out_where_the_dialect_changes(peer: Peer) -> None:
    async with await client_of_peer(peer, OLD) as client:
        state = '"status":{"state":"working"}'
        peer.plays(reply(rpc(f'{{"kind":"task","id":"t","contextId":"c",{state},{EXTRA.decode()}}}')))
        answer = await send(front(client), POSTS[JSONRPC])
        assert json.loads(answer.body)["result"]["task"]["id"] == "t"
        assert EXTRA not in answer.body and EXTRA not in peer.asked[0].body


async def test_unknown_events_pass_in_a_stream_of_one_dialect(peer: Peer) -> None:
    async with await client_of_peer(peer, JSONRPC) as client:
        found = [f'{{"task":{TASK}}}', "{" + EXTRA.decode() + "}", f'{{"task":{DONE}}}']
        peer.plays(events("".join(f"data: {rpc(one)}\n\n" for one in found)))
        request = POSTS[REST]._replace(path="/message:stream")
        answer = await send(front(client), request)
        assert [block.partition(b"data: ")[2].decode() for block in answer.body.split(b"\n\n") if block] == found
        assert clean(REST, answer)


async def test_unknown_fields_of_protobuf_pass_between_grpc_faces_of_one_version(
    behind: Upstream, clients: dict[Face, Client]
) -> None:
    face = Face("GRPC", "1.0")
    unknown = b"\xfa\x3e\x05extra"  # field 1007
    request = wire(face, SEND_MESSAGE, sending("x"))
    answer = await send(front(clients[face]), request._replace(body=frame(request.body[5:] + unknown)))
    assert answer.trailers is not None and answer.trailers["grpc-status"] == "0"
    assert unknown in behind.arrived[-1].body


# -- the card


@pytest.mark.parametrize("version", ["1.0", "0.3", ""])
async def test_a_signature_does_not_survive_a_change_of_the_card(version: str) -> None:
    """Case 17."""
    signed = replace(CARD, signatures=(AgentCardSignature(protected="e30", signature="AA"),))
    client = Client(Nothing(), signed)  # type: ignore[arg-type]  # is never called
    app = A2AApp(Nothing(), Gateway(client).card)  # type: ignore[arg-type]  # is never called
    answer = await send(app, Wire("GET", "/.well-known/agent-card.json", {"a2a-version": version}, b""))
    assert answer.status == 200 and b"signature" not in answer.body


class Nothing:
    """A service that nobody calls."""


@pytest.mark.parametrize(
    ("public", "root", "wanted"),
    [
        ("https://edge.example/gw", "", "https://edge.example/gw"),
        ("https://edge.example/gw/", "/gw", "https://edge.example/gw"),
        ("", "/gw", "http://agent.test/gw"),
    ],
)
async def test_the_card_names_the_gateway_once_and_never_the_upstream(
    behind: Upstream, clients: dict[Face, Client], public: str, root: str, wanted: str
) -> None:
    """Cases 15 and 16."""
    app = front(clients[JSONRPC], public_url=public)
    path = root + "/.well-known/agent-card.json"
    for version in ("1.0", "0.3", ""):
        answer = await send(app, Wire("GET", path, {"host": "agent.test", "a2a-version": version}, b""), root_path=root)
        web = {url.rstrip("/") for url in urls(answer) if url.startswith("http")}
        assert web == {wanted}
        assert str(behind.port) not in answer.body.decode()


@pytest.mark.parametrize("far", ALL_FACES, ids=str)
@pytest.mark.parametrize(("binding", "waits"), [("JSONRPC", True), ("HTTP+JSON", False)])
async def test_a_0_3_caller_that_says_nothing_of_blocking_waits_for_the_upstream(
    behind: Upstream, clients: dict[Face, Client], far: Face, binding: Any, waits: bool
) -> None:
    """Case 25: as its binding means it, whatever the upstream's would mean."""
    request = request_of_03(binding, ',"configuration":{"acceptedOutputModes":["text/plain"]}')
    running = asyncio.create_task(send(front(clients[far]), request))
    await behind.behind.stage.begun.wait()
    if waits:
        behind.behind.stage.go.set()
    task = reply_task(Face(binding, "0.3"), await running)
    assert task.status.state is (TaskState.COMPLETED if waits else TaskState.WORKING)


# -- an upstream that misbehaves

HTML = "<!doctype html><title>Sign in</title>"
HEAD_OF_NINE = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"
TWO_ANSWERS = '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}'
FAULTS: list[tuple[str, Callable[[], Reply], str]] = [
    ("a login page", lambda: reply(HTML, "text/html"), "bad reply"),
    ("a page that says it is JSON", lambda: reply(HTML), "bad reply"),
    ("not found by a proxy", lambda: reply(HTML, "text/html", 404), "bad reply"),
    ("broken by a proxy", lambda: reply(HTML, "text/html", 500), "bad reply"),
    ("no gateway", lambda: reply(HTML, "text/html", 502), "unavailable"),
    ("not there now", lambda: reply("", "", 503), "unavailable"),
    ("a redirect", lambda: reply("", "", 302, location="https://elsewhere.test/"), "bad reply"),
    ("hung up", lambda: Reply(b""), "unavailable"),
    ("cut in the head", lambda: Reply(b"HTTP/1.1 200 OK\r\ncontent-le"), "unavailable"),
    ("cut in the body", lambda: Reply(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"), "unavailable"),
    ("no HTTP", lambda: Reply(b"SSH-2.0-OpenSSH_9.6\r\n"), "bad reply"),
    ("silence", lambda: Reply(b"", hold=True), "unavailable"),
    (
        "silence after the head",
        lambda: Reply(HEAD_OF_NINE, hold=True),
        "unavailable",
    ),
    ("nothing", lambda: reply("", "application/json"), "bad reply"),
    ("null", lambda: reply("null"), "bad reply"),
    ("a list", lambda: reply("[]"), "bad reply"),
    ("half a JSON", lambda: reply('{"jsonrpc":"2.0","id":1,"result":{"ta'), "bad reply"),
    ("neither result nor error", lambda: reply('{"jsonrpc":"2.0","id":1}'), "bad reply"),
    (
        "result and error",
        lambda: reply(TWO_ANSWERS),
        "bad reply",
    ),
    ("another's id", lambda: reply(rpc(f'{{"task":{TASK}}}').replace('"id":1,"re', '"id":99,"re')), "bad reply"),
    ("bad UTF-8", lambda: reply(rpc(f'{{"task":{TASK}}}').encode().replace(b"t-1", b"t-\xff")), "bad reply"),
    ("deep", lambda: reply(rpc("[" * 100_000)), "bad reply"),
    ("a stream", lambda: events(f"data: {rpc(TASK)}\n\n"), "bad reply"),
    (
        "gzip that nobody asked for",
        lambda: reply(gzip.compress(b"{}"), content_encoding="gzip"),
        "bad reply",
    ),
    ("a code of nobody", lambda: reply('{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}'), "bad reply"),
]
NEAR = [JSONRPC, REST, OLD, Face("GRPC", "1.0"), Face("GRPC", "0.3")]


#: A fault that is a wait is waited for briefly; no other may depend on how busy the machine is.
IMPATIENT = Timeouts(connect=20, reply=0.5, silence=0.5)
PATIENT = Timeouts(connect=20, reply=20, silence=20)


@pytest.fixture
async def client(peer: Peer, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    timeouts = IMPATIENT if request.node.callspec.params["play"]().hold else PATIENT
    async with await client_of_peer(peer, JSONRPC, timeouts=timeouts) as made:
        yield made


@pytest.mark.parametrize(("play", "told"), [pytest.param(*row[1:], id=row[0]) for row in FAULTS])
@pytest.mark.parametrize("near", NEAR, ids=str)
async def test_a_fault_of_the_upstream_is_a_typed_error_of_the_callers_face(
    peer: Peer, client: Client, near: Face, play: Callable[[], Reply], told: str
) -> None:
    app = front(client)
    peer.plays(play())
    answer = await send(app, wire(near, SEND_MESSAGE, sending("x")))
    check_failure(near, answer, told)
    assert b"<title>" not in answer.body
    assert len(peer.asked) == 1  # nothing is sent twice
    peer.plays(reply(rpc(f'{{"task":{TASK}}}')))
    after = await send(app, wire(near, SEND_MESSAGE, sending("x")))
    assert after.status == 200 and b"t-1" in after.body


NOT_JSON = [b'{"task":', b"oops", b"{}{}", b'{"task":{"id":"t-\xff"}}', b'{"a":' + b"[" * 100_000]


@pytest.mark.parametrize("body", NOT_JSON, ids=["cut", "a word", "two values", "bad UTF-8", "deep"])
@pytest.mark.parametrize("near", NEAR, ids=str)
async def test_bytes_that_would_spoil_the_envelope_do_not_pass(peer: Peer, near: Face, body: bytes) -> None:
    async with await client_of_peer(peer, REST) as client:
        app = front(client)
        peer.plays(reply(body), events(b"data: " + body + b"\n\n"))
        check_failure(near, await send(app, wire(near, SEND_MESSAGE, sending("x"))), "bad reply")
        answer = await send(app, wire(near, SEND_STREAMING_MESSAGE, sending("x")))
        assert not clean(near, answer)
        if answer.headers["content-type"].startswith("text/event-stream") or answer.trailers:
            check_broken(near, answer, "bad reply")
        else:
            check_failure(near, answer, "bad reply")


BAD_STREAMS: list[tuple[str, Callable[[], Reply], str]] = [
    ("hung up", lambda: events(event(TASK)), "unavailable"),
    ("cut in an event", lambda: events(event(TASK) + "data: {"), "unavailable"),
    ("silence", lambda: events(event(TASK), hold=True), "unavailable"),
    ("no JSON", lambda: events(event(TASK) + "data: oops\n\n"), "bad reply"),
    ("neither result nor error", lambda: events(event(TASK) + "data: {}\n\n"), "bad reply"),
    ("another's id", lambda: events(event(TASK) + event(DONE).replace('"id":1,"re', '"id":9,"re')), "bad reply"),
    ("an error", lambda: events(event(TASK) + "data: " + ERROR + "\n\n"), "task not found"),
    ("bad UTF-8", lambda: events(event(TASK).encode() + event(DONE).encode().replace(b"t-1", b"t\xff")), "bad reply"),
]
ERROR = '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone"}}'


def event(task: str) -> str:
    return "data: " + rpc('{"task":' + task + "}") + "\n\n"


@pytest.mark.parametrize(("play", "told"), [pytest.param(*row[1:], id=row[0]) for row in BAD_STREAMS])
@pytest.mark.parametrize("near", NEAR, ids=str)
async def test_a_stream_that_the_upstream_breaks_never_ends_cleanly(
    peer: Peer, client: Client, near: Face, play: Callable[[], Reply], told: str
) -> None:
    peer.plays(play())
    answer = await send(front(client), wire(near, SEND_STREAMING_MESSAGE, sending("x")))
    assert not clean(near, answer)
    check_broken(near, answer, told)
    assert sum(b"SendStreamingMessage" in asked.body for asked in peer.asked) == 1


NOT_STREAMS: list[tuple[str, Callable[[], Reply], str]] = [
    ("a login page", lambda: events(HTML, "text/html"), "bad reply"),
    ("an error as JSON", lambda: reply(ERROR), "task not found"),
    ("an error as first event", lambda: events(f"data: {ERROR}\n\n"), "task not found"),
    ("nothing", lambda: events(""), "bad reply"),
    ("hung up", lambda: Reply(b""), "unavailable"),
    ("silence", lambda: Reply(b"", hold=True), "unavailable"),
    ("silence after the head", lambda: events("", hold=True), "unavailable"),
    ("unauthorized", lambda: reply(HTML, "text/html", 401), "401"),
]


@pytest.mark.parametrize(("play", "told"), [pytest.param(*row[1:], id=row[0]) for row in NOT_STREAMS])
@pytest.mark.parametrize("near", NEAR, ids=str)
async def test_a_stream_that_never_was_is_refused(
    peer: Peer, client: Client, near: Face, play: Callable[[], Reply], told: str
) -> None:
    """Cases 32 to 34."""
    peer.plays(play())
    answer = await send(front(client), wire(near, SEND_STREAMING_MESSAGE, sending("x")))
    assert not clean(near, answer)
    if told == "401":
        assert (failure(near, answer).told == "UNAUTHENTICATED") if near.binding == "GRPC" else answer.status == 401
    elif answer.headers["content-type"].startswith("text/event-stream") or answer.trailers:
        check_broken(near, answer, told)
    else:
        check_failure(near, answer, told)


@pytest.mark.parametrize("near", ALL_FACES, ids=str)
@pytest.mark.parametrize("far", ALL_FACES, ids=str)
async def test_an_upstream_that_is_not_there_is_unavailable(near: Face, far: Face) -> None:
    with nobody() as port:
        peer = Peer(port)
        async with await client_of_peer(peer, far, card(interface(peer.url, str(far)))) as client:
            app = front(client)
            check_failure(near, await send(app, wire(near, GET_TASK, GetTaskRequest(id="t"))), "unavailable")
            answer = await send(app, wire(near, SEND_STREAMING_MESSAGE, sending("x")))
            check_failure(near, answer, "unavailable")


@pytest.mark.parametrize("far", [face for face in ALL_FACES if face.binding == "GRPC"], ids=str)
async def test_a_grpc_upstream_that_answers_in_http_breaks_the_protocol(far: Face) -> None:
    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for word in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{word}.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": HTML.encode()})

    async with serve(page) as server:
        peer = Peer(server.port)
        async with await client_of_peer(peer, far) as client:
            answer = await send(front(client), wire(JSONRPC, GET_TASK, GetTaskRequest(id="t")))
            found = failure(JSONRPC, answer)
            assert found.told in (ERRORS["bad reply"].code, ERRORS["unavailable"].code, ERRORS["internal"].code)


async def test_an_upstream_that_says_no_more_of_a_grpc_deadline_ends_in_time(peer: Peer) -> None:
    async with await client_of_peer(peer, JSONRPC) as client:
        peer.plays(Reply(b"", hold=True))
        face = Face("GRPC", "1.0")
        answer = await send(front(client), wire(face, SEND_MESSAGE, sending("x"), headers={"grpc-timeout": "50m"}))
        assert failure(face, answer).told in ("DEADLINE_EXCEEDED", "UNAVAILABLE")


@pytest.mark.parametrize("near", ALL_FACES, ids=str)
async def test_what_the_card_does_not_declare_is_refused_without_asking(peer: Peer, near: Face) -> None:
    plain = card(interface(peer.url, "1.0/JSONRPC"), streaming=False, push=False, extended=False)
    async with await client_of_peer(peer, JSONRPC, plain) as client:
        app = front(client)
        for op, request in (
            (SEND_STREAMING_MESSAGE, sending("x")),
            (GET_EXTENDED_AGENT_CARD, GetExtendedAgentCardRequest()),
        ):
            found = failure(near, await send(app, wire(near, op, request)))
            assert (found.http, found.told, found.reason) == expected(near, "unsupported")
        assert peer.asked == []
