"""Finding the card of an agent, and connecting by it."""

from __future__ import annotations

import socket
from collections.abc import Callable

import msgspec
import pytest

from dragoman import errors
from dragoman.client.client import Limits, connect
from dragoman.client.resolve import card_urls, resolve
from dragoman.model import AgentCard
from tests.client.peers import TASK, Answer, Asked, Peer, Reply, card, card_json, interface, reply, rpc

WELL_KNOWN = "/.well-known/agent-card.json"


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("https://a.example", [WELL_KNOWN, "/.well-known/agent.json"]),
        ("https://a.example/", [WELL_KNOWN, "/.well-known/agent.json"]),
        (
            "https://a.example/x/",
            [f"/x{WELL_KNOWN}", WELL_KNOWN, "/x/.well-known/agent.json", "/.well-known/agent.json", "/x/"],
        ),
        ("https://a.example/x/card.json", ["/x/card.json"]),
        ("https://a.example/.well-known/agents?id=1", ["/.well-known/agents?id=1"]),
    ],
)
def test_where_a_card_is_looked_for(url: str, places: list[str]) -> None:
    assert card_urls(url) == tuple(f"https://a.example{place}" for place in places)


@pytest.mark.parametrize("url", ["a.example", "localhost:8000", "ftp://a.example", "https://", ""])
def test_what_is_no_url_of_an_agent_is_our_callers_mistake(url: str) -> None:
    with pytest.raises(errors.ConfigError, match="http://"):
        card_urls(url)


def at(peer: Peer, places: dict[str, Answer]) -> None:
    """Let the peer answer by path."""

    def route(asked: Asked) -> Reply:
        answer = places.get(asked.path, reply("not found", "text/plain", 404))
        return answer(asked) if callable(answer) else answer

    peer.otherwise = route


def agent_card(peer: Peer, face: str = "1.0/JSONRPC", path: str = "/a2a") -> AgentCard:
    return card(interface(f"{peer.url}{path}", face))


OLD = '{"name":"Old","url":"%s/a2a","protocolVersion":"0.3.0","preferredTransport":"JSONRPC","capabilities":{},' \
      '"description":"","version":"1","defaultInputModes":[],"defaultOutputModes":[],"skills":[]}'  # fmt: skip


@pytest.mark.parametrize("path", [f"/x{WELL_KNOWN}", WELL_KNOWN, "/.well-known/agent.json", "/x"])
async def test_the_card_is_found_wherever_it_may_be(peer: Peer, path: str) -> None:
    at(peer, {path: reply(card_json(agent_card(peer)))})
    found = await resolve(f"{peer.url}/x")
    assert (found.card, found.url) == (agent_card(peer), peer.url + path)
    assert peer.asked[0].headers["a2a-version"] == "1.0"
    assert "application/json" in peer.asked[0].headers["accept"]


async def test_a_card_of_0_3_is_read(peer: Peer) -> None:
    at(peer, {WELL_KNOWN: reply(OLD % peer.url)})
    found = await resolve(peer.url)
    assert [(one.url, one.protocol_version[:3]) for one in found.card.supported_interfaces] == [
        (f"{peer.url}/a2a", "0.3")
    ]


async def test_redirects_are_followed_within_the_origin_only(peer: Peer) -> None:
    at(peer, {WELL_KNOWN: reply("", "", 302, location="/card"), "/card": reply(card_json(agent_card(peer)))})
    assert (await resolve(peer.url)).url == f"{peer.url}/card"
    at(peer, {WELL_KNOWN: reply("", "", 301, location="http://127.0.0.1:1/card")})
    with pytest.raises(errors.PeerError, match="a redirect to http://127"):
        await resolve(peer.url)


async def test_a_circle_of_redirects_ends(peer: Peer) -> None:
    at(peer, {WELL_KNOWN: reply("", "", 302, location=WELL_KNOWN)})
    with pytest.raises(errors.PeerError, match="redirect"):
        await resolve(peer.url)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (reply("<html>hi</html>", "text/html"), errors.PeerError, "an HTML page"),
        (reply("{}"), errors.PeerError, "an empty document"),
        (reply('{"name":"x"}'), errors.PeerError, "supportedInterfaces"),
        (reply("[1]"), errors.PeerError, "not a card"),
        (reply("no json"), errors.PeerError, "not a card"),
        (reply("", "", 500), errors.PeerError, "HTTP 500"),
        (reply("", "", 401), errors.UnauthenticatedError, "pass bearer="),
        (reply("", "", 403), errors.PermissionDeniedError, "403"),
        (reply("x" * 2000), errors.PeerError, "1000 bytes"),
        (Reply(b""), errors.TransportError, "lost"),
    ],
    ids=["html", "empty", "no interface", "array", "no json", "500", "401", "403", "too large", "closed"],
)
async def test_what_is_no_card_is_named_with_what_to_do(
    peer: Peer, answer: Answer, kind: type[Exception], said: str
) -> None:
    peer.otherwise = answer
    with pytest.raises(kind, match=said):
        await resolve(peer.url, limits=Limits(card=1000))


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_an_agent_that_is_away_is_not_looked_for_elsewhere(peer: Peer, status: int) -> None:
    peer.plays(reply("", "", status))
    with pytest.raises(errors.TransportError, match=f"HTTP {status}"):
        await resolve(peer.url + "/billing")
    assert len(peer.asked) == 1


async def test_nobody_there_is_a_transport_error_that_was_not_sent() -> None:
    with pytest.raises(errors.TransportError, match="Cannot connect") as caught:
        await resolve(f"http://127.0.0.1:{closed_port()}")
    assert not caught.value.sent


# -- connecting


async def test_a_url_becomes_a_client_of_the_interface_in_its_card(peer: Peer) -> None:
    at(peer, {WELL_KNOWN: reply(card_json(agent_card(peer))), "/a2a": reply(rpc(TASK))})
    async with connect(peer.url, bearer="secret", headers={"X-Key": "k"}) as agent:
        assert (str(agent.face), agent.interface.url, agent.card.name) == ("1.0/JSONRPC", f"{peer.url}/a2a", "Peer")
        await agent.get_task("t-1")
    for asked in peer.asked:
        assert (asked.headers["authorization"], asked.headers["x-key"]) == ("Bearer secret", "k")


@pytest.fixture
async def elsewhere(peer: Peer) -> Callable[[], str]:
    """An origin of another name at the same port: the peer under its other address."""
    return lambda: f"http://localhost:{peer.port}/a2a"


@pytest.mark.parametrize("allowed", [False, True])
async def test_credentials_go_to_another_origin_only_if_it_is_allowed_by_name(
    peer: Peer, elsewhere: Callable[[], str], allowed: bool
) -> None:
    published = card(interface(elsewhere(), "1.0/JSONRPC"))
    at(peer, {WELL_KNOWN: reply(card_json(published)), "/a2a": reply(rpc(TASK))})
    notes: list[str] = []
    origins = [f"http://localhost:{peer.port}"] if allowed else []
    async with connect(peer.url, bearer="secret", credential_origins=origins, on_note=notes.append) as agent:
        await agent.get_task("t-1", headers={"X-Key": "k", "traceparent": "00-1"})
    sent = peer.asked[-1].headers
    assert ("authorization" in sent, "x-key" in sent) == (allowed, allowed)
    assert sent["traceparent"] == "00-1"
    assert any("credential_origins" in note for note in notes) is not allowed


async def test_a_url_that_cannot_be_right_is_replaced_and_said(peer: Peer) -> None:
    published = card(interface("http://worker:8000/a2a", "1.0/JSONRPC"))
    at(peer, {WELL_KNOWN: reply(card_json(published)), "/a2a": reply(rpc(TASK))})
    notes: list[str] = []
    async with connect(peer.url, on_note=notes.append) as agent:
        assert agent.interface.url == f"{peer.url}/a2a"
        assert agent.card == published
        await agent.get_task("t-1")
    assert len(notes) == 1 and "http://worker:8000/a2a" in notes[0]


async def test_the_next_interface_is_tried_while_nothing_can_have_arrived(peer: Peer) -> None:
    dead = f"http://127.0.0.1:{closed_port()}/"
    both = card(interface(dead, "1.0/JSONRPC"), interface(f"{peer.url}/rest", "1.0/HTTP+JSON"))
    peer.plays(reply(TASK), reply(TASK))
    notes: list[str] = []
    async with connect(both, on_note=notes.append) as agent:
        await agent.get_task("t-1")
        assert str(agent.face) == "1.0/HTTP+JSON"
        await agent.get_task("t-1")
    assert len(peer.asked) == 2
    assert len(notes) == 1 and "trying 1.0/HTTP+JSON" in notes[0]


async def test_a_message_that_may_have_arrived_is_not_sent_to_another_interface(peer: Peer) -> None:
    both = card(interface(f"{peer.url}/a", "1.0/JSONRPC"), interface(f"{peer.url}/b", "1.0/HTTP+JSON"))
    peer.otherwise = Reply(b"")
    async with connect(both) as agent:
        with pytest.raises(errors.TransportError) as caught:
            await agent.send_text("hello")
        with pytest.raises(errors.TransportError):
            await agent.stream_text("hello")
    assert caught.value.sent
    assert [asked.path for asked in peer.asked] == ["/a", "/a"]


async def test_with_no_interface_in_reach_the_first_failure_stands() -> None:
    first, second = closed_port(), closed_port()
    both = card(*(interface(f"http://127.0.0.1:{port}/", "1.0/JSONRPC") for port in (first, second)))
    async with connect(both) as agent:
        with pytest.raises(errors.TransportError, match=str(first)):
            await agent.send_text("hello")


async def test_a_call_whose_capability_is_not_declared_is_refused_unless_told_to_ask(peer: Peer) -> None:
    bare = card(interface(f"{peer.url}/a2a", "1.0/JSONRPC"), streaming=False, push=False, extended=False)
    async with connect(bare) as agent:
        with pytest.raises(errors.UnsupportedOperationError, match="streaming"):
            await agent.stream_text("hello")
        with pytest.raises(errors.PushNotificationNotSupportedError):
            await agent.list_task_push_notification_configs("t-1")
    assert not peer.asked
    peer.plays(reply('{"jsonrpc":"2.0","id":1,"result":{"configs":[]}}'))
    async with connect(bare, check_card=False) as agent:
        assert (await agent.list_task_push_notification_configs("t-1")).configs == ()


async def test_the_extended_card_takes_the_place_of_the_public_one(peer: Peer) -> None:
    extended = card(interface(f"{peer.url}/a2a", "1.0/JSONRPC"), name="Extended")
    peer.plays(reply(rpc(msgspec.json.encode(extended).decode())))
    async with connect(card(interface(f"{peer.url}/a2a", "1.0/JSONRPC"))) as agent:
        assert (await agent.get_extended_agent_card()).name == "Extended"
        assert agent.card.name == "Extended"
