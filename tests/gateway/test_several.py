"""Several upstreams behind one gateway, over real sockets: which of them a call reaches, and what the others notice."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from dragoman.client.client import connect
from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.agents import Agent, Backoff
from dragoman.gateway.catalogue import prefers_html
from dragoman.gateway.common import common_of
from dragoman.gateway.config import Config, Secret, Server, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.plan import plan, why
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE, AgentCard, AgentInterface
from dragoman.server.host import serve
from tests.asgi_driver import Answer, request
from tests.gateway.fronts import nobody, upstream
from tests.server.callers import CARD, begin, check_failure, good_call, send, sending, wire

HTTP_FACES = [face for face in ALL_FACES if face.binding != "GRPC"]
GRPC_FACES = [face for face in ALL_FACES if face.binding == "GRPC"]
QUICKLY = Backoff(first=0.01, most=0.01)
WELL_KNOWN = "/.well-known/agent-card.json"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def named(name: str) -> AgentCard:
    return replace(CARD, name=name, description=f"<b>{name}</b>")


@asynccontextmanager
async def gateway(*several: Configured, server: Server = Server(), **options: Any) -> AsyncIterator[Switchboard]:  # noqa: B008
    async with Switchboard(completed(Config(upstream=several, server=server)), **options) as board:
        yield board


@pytest.fixture
async def agents() -> AsyncIterator[dict[str, str]]:
    """Two upstreams by name, the urls of them."""
    async with AsyncExitStack() as stack:
        found = {}
        for name in ("alpha", "beta"):
            one = await stack.enter_async_context(upstream(card=named(name)))
            found[name] = f"http://127.0.0.1:{one.port}"
        yield found


def configured(agents: dict[str, str], **more: dict[str, Any]) -> list[Configured]:
    return [Configured(url=url, name=name, **more.get(name, {})) for name, url in agents.items()]


async def card_at(app: Any, path: str, host: str = "gw.test") -> dict[str, Any]:
    answer = await request(app, "GET", path + WELL_KNOWN, headers={"host": host, "a2a-version": "1.0"})
    assert answer.status == 200, answer.body
    card: dict[str, Any] = json.loads(answer.body)
    return card


def urls_by_binding(card: dict[str, Any]) -> dict[str, str]:
    return {one["protocolBinding"]: one["url"] for one in card["supportedInterfaces"]}


# -- by path


@pytest.mark.parametrize("face", HTTP_FACES, ids=str)
async def test_each_agent_is_called_under_its_own_path(agents: dict[str, str], face: Face) -> None:
    async with gateway(*configured(agents, beta={"path": "/tools/beta"})) as board:
        for agent in board.agents:
            path = agent.config.path
            async with serve(board) as server:
                found = await connect(
                    f"http://127.0.0.1:{server.port}{path}", version=face.version, binding=face.binding
                )
                async with found as client:
                    assert client.card.name == agent.config.name
                    assert urlsplit(client.interface.url).path.rstrip("/") == path
                    reply = await client.send_text("hello")
                    assert reply.task is not None and reply.task.artifacts[0].parts[0].text == "hello"


async def test_cards_list_what_can_be_reached_under_the_path_and_grpc_by_tenant(agents: dict[str, str]) -> None:
    async with gateway(*configured(agents)) as board:
        card = await card_at(board, "/alpha")
        listed = [
            (one["protocolVersion"], one["protocolBinding"], one["url"], one.get("tenant", ""))
            for one in card["supportedInterfaces"]
        ]
        assert sorted(listed) == [
            ("0.3", "HTTP+JSON", "http://gw.test/alpha", ""),
            ("0.3", "JSONRPC", "http://gw.test/alpha/", ""),
            ("1.0", "GRPC", "gw.test:80", "alpha"),
            ("1.0", "HTTP+JSON", "http://gw.test/alpha", ""),
            ("1.0", "JSONRPC", "http://gw.test/alpha/", ""),
        ]


async def test_a_public_url_stands_before_the_path(agents: dict[str, str]) -> None:
    several = configured(agents, beta={"public_url": "https://beta.example"})
    async with gateway(*several, server=Server(public_url="https://gw.example/a2a/")) as board:
        assert urls_by_binding(await card_at(board, "/alpha"))["HTTP+JSON"] == "https://gw.example/a2a/alpha"
        assert urls_by_binding(await card_at(board, "/beta"))["HTTP+JSON"] == "https://beta.example"


async def test_a_mount_and_a_proxys_prefix_stand_before_the_path(agents: dict[str, str]) -> None:
    async with gateway(*configured(agents), server=Server(trusted_proxies=("192.0.2.0/24",))) as board:
        headers = {"x-forwarded-prefix": "/outer", "x-forwarded-host": "pub.test", "a2a-version": "1.0"}
        path = f"/inner/alpha{WELL_KNOWN}"
        answer = await request(board, "GET", path, headers=headers, root_path="/inner")
        assert urls_by_binding(json.loads(answer.body))["HTTP+JSON"] == "http://pub.test/outer/inner/alpha"


@pytest.mark.parametrize(
    "path", ["/alph", "/alphabet", "/gamma", "/al%70ha", "/alpha%2F", "/Alpha", "//alpha", ""], ids=repr
)
async def test_a_path_that_is_nobodys_reaches_nobody(agents: dict[str, str], path: str) -> None:
    async with gateway(*configured(agents)) as board:
        answer = await request(board, "GET", f"{path}{WELL_KNOWN}")
        assert answer.status == 404
        assert b"GET / of this gateway" in answer.body


async def test_the_longest_path_decides_and_the_rest_is_the_roots(agents: dict[str, str]) -> None:
    third = Configured(url=agents["alpha"], name="gamma", path="/a/b")
    several = configured(agents, alpha={"path": "/a"}, beta={"path": "/"})
    async with gateway(*several, third) as board:
        found = [(await card_at(board, path))["name"] for path in ("/a", "/a/b", "")]
        assert found == ["alpha", "alpha", "beta"]
        assert urls_by_binding(await card_at(board, "/a/b"))["HTTP+JSON"] == "http://gw.test/a/b"
        assert urls_by_binding(await card_at(board, ""))["GRPC"] == "gw.test:80"


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_a_call_that_is_for_nobody_is_refused_in_its_own_shape(agents: dict[str, str], face: Face) -> None:
    async with gateway(*configured(agents)) as board:
        answer = await send(board, wire(face, SEND_MESSAGE, sending("x")))
        if face.binding == "JSONRPC":
            assert json.loads(answer.body)["error"]["code"] == -32601
        elif face.binding == "GRPC":
            assert answer.headers["grpc-status"] == "12"
        else:
            assert answer.status == 404


# -- gRPC


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_grpc_calls_are_told_apart_by_host(agents: dict[str, str], face: Face) -> None:
    several = configured(agents, alpha={"authority": "alpha.test"}, beta={"authority": "beta.test:50051"})
    async with gateway(*several) as board:
        for host in ("ALPHA.test", "alpha.test:8000", "beta.test:50051"):
            call = wire(face, SEND_MESSAGE, sending("x"), headers={"host": host})
            answer = await send(board, call)
            assert answer.status == 200 and answer.trailers is not None and answer.trailers["grpc-status"] == "0"
        nobody = await send(board, wire(face, SEND_MESSAGE, sending("x"), headers={"host": "beta.test"}))
        assert nobody.headers["grpc-status"] == "12"


async def test_grpc_calls_of_a_host_reach_its_agent_only() -> None:
    async with upstream(card=named("alpha")) as alpha, upstream(card=named("beta")) as beta:
        several = [
            Configured(url=f"http://127.0.0.1:{one.port}", name=name, authority=f"{name}.test")
            for name, one in (("alpha", alpha), ("beta", beta))
        ]
        async with gateway(*several) as board:
            await send(board, wire(Face("GRPC", "1.0"), SEND_MESSAGE, sending("x"), headers={"host": "beta.test"}))
        assert (len(alpha.arrived), len(beta.arrived)) == (0, 1)


async def test_a_card_lists_grpc_at_its_host(agents: dict[str, str]) -> None:
    async with gateway(*configured(agents, alpha={"authority": "alpha.test"})) as board:
        assert urls_by_binding(await card_at(board, "/alpha", "gw.test:8000"))["GRPC"] == "alpha.test:8000"
        assert urls_by_binding(await card_at(board, "/beta"))["GRPC"] == "gw.test:80"


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_a_port_of_its_own_serves_every_face(agents: dict[str, str], face: Face) -> None:
    port = free_port()
    async with gateway(*configured(agents, alpha={"port": port})) as board:
        alpha = board.agents[0]
        async with serve(board) as shared, serve(alpha, port=port):
            listed = urls_by_binding(await card_at(board, "/alpha", f"127.0.0.1:{shared.port}"))
            assert listed["GRPC"] == f"127.0.0.1:{port}"
            async with connect(f"http://127.0.0.1:{port}", version=face.version, binding=face.binding) as client:
                assert (await client.send_text("hello")).task is not None


# -- upstreams that are away


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_an_agent_that_is_away_is_unavailable_in_the_callers_face(face: Face, op: Any) -> None:
    with nobody() as port:
        gone = Configured(url=f"http://127.0.0.1:{port}")
        async with gateway(gone, backoff=Backoff(first=60, most=60)) as board:
            answer = await send(board, wire(face, op, sending("x")))
            check_failure(face, answer, "unavailable")


async def test_an_agent_that_is_away_stops_no_other_and_is_found_when_it_comes(agents: dict[str, str]) -> None:
    port, said, came = free_port(), list[str](), asyncio.Event()

    def hear(told: str) -> None:
        said.append(told)
        if "it answers now" in told:
            came.set()

    gone = Configured(url=f"http://127.0.0.1:{port}", name="late")
    async with gateway(gone, *configured(agents), tell=hear, backoff=QUICKLY) as board:
        late = board.agents[0]
        assert (await card_at(board, "/alpha"))["name"] == "alpha"
        answer = await request(board, "GET", f"/late{WELL_KNOWN}")
        assert answer.status == 503 and int(answer.headers["retry-after"]) >= 1
        assert str(port).encode() not in answer.body
        planned = plan(late, "http://gw.test")
        assert planned.face == "" and str(port) in planned.error
        assert any(one.startswith("late: ") and "tried again" in one for one in said)
        async with upstream(card=named("late")) as one, serve(one.app, port=port):
            async with asyncio.timeout(5):
                await came.wait()
            assert (await card_at(board, "/late"))["name"] == "late"
            assert plan(late, "http://gw.test").error == ""
            await good_call(late.app, Face("JSONRPC", "1.0"))


async def test_a_start_does_not_wait_for_ever() -> None:
    """An upstream that accepts and never answers."""
    async with AsyncExitStack() as stack:
        ended = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await ended.wait()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        stack.callback(server.close)
        stack.callback(ended.set)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        board = await stack.enter_async_context(gateway(Configured(url=url), patience=0.05))
        assert plan(board.agents[0], "http://gw.test").error == "has not answered yet"
        answer = await request(board, "GET", WELL_KNOWN)
        assert answer.status == 503


async def test_the_end_lets_calls_in_progress_get_their_answers() -> None:
    async with upstream(card=named("alpha")) as one:
        stage = one.behind.stage
        async with gateway(Configured(url=f"http://127.0.0.1:{one.port}")) as board:
            call = begin(board, wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("hold")))
            stream = begin(board, wire(Face("JSONRPC", "1.0"), SEND_STREAMING_MESSAGE, sending("hold")))
            running = asyncio.gather(call.run(), stream.run())
            await stream.until(lambda answer: b"holding" in answer.body)
            await stage.begun.wait()
            await board.aclose()
            stage.go.set()
            answered, broken = await running
        assert json.loads(answered.body)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert b"error" in broken.body and broken.complete


def test_attempts_grow_apart_up_to_a_limit() -> None:
    backoff = Backoff(first=1, most=60)
    for attempt, longest in [(0, 1), (3, 8), (6, 60), (5000, 60)]:
        assert longest / 2 <= backoff.delay(attempt) <= longest


# -- the catalogue


async def root(board: Switchboard, method: str = "GET", **headers: str) -> Answer:
    return await request(board, method, "/", headers={"host": "gw.test", **headers})


async def test_the_root_lists_the_agents(agents: dict[str, str]) -> None:
    with nobody() as port:
        gone = Configured(url=f"http://127.0.0.1:{port}", name="gone")
        async with gateway(*configured(agents, beta={"authority": "beta.test"}), gone) as board:
            answer = await root(board)
            assert answer.headers["content-type"] == "application/json" and answer.headers["vary"] == "Accept"
            listed = json.loads(answer.body)["agents"]
            assert [(one["name"], one["available"]) for one in listed] == [
                ("alpha", True),
                ("beta", True),
                ("gone", False),
            ]
            assert listed[0]["card"] == f"http://gw.test/alpha{WELL_KNOWN}"
            assert "beta.test:80" in [one["url"] for one in listed[1]["interfaces"]]
            assert b"127.0.0.1" not in answer.body
            head = await root(board, "HEAD")
            assert (head.body, head.headers["content-length"]) == (b"", answer.headers["content-length"])


async def test_people_get_a_page_in_which_nothing_of_an_agent_is_markup(agents: dict[str, str]) -> None:
    async with gateway(*configured(agents)) as board:
        answer = await root(board, accept="text/html,application/xhtml+xml,*/*;q=0.8")
        assert answer.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert b"&lt;b&gt;alpha&lt;/b&gt;" in answer.body and b"<b>" not in answer.body
        assert f'href="http://gw.test/beta{WELL_KNOWN}"'.encode() in answer.body


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("text/html", True),
        ("text/html;q=0.5, application/json", False),
        ("application/json;q=0.5, TEXT/HTML; q=0.9", True),
        ("text/html;q=0", False),
        ("text/html;q=x", False),
    ],
)
def test_a_page_goes_to_who_prefers_one(accept: str, html: bool) -> None:
    assert prefers_html(accept) is html


async def test_one_agent_alone_is_at_the_root_with_every_face(agents: dict[str, str]) -> None:
    async with gateway(Configured(url=agents["alpha"])) as board:
        assert len((await card_at(board, ""))["supportedInterfaces"]) == 6
        assert (await root(board)).status != 200
        for face in ALL_FACES:
            await good_call(board, face)


# -- the plan


def listing(*faces: str) -> AgentCard:
    entries = (Face.parse(face) for face in faces)
    return replace(
        CARD,
        supported_interfaces=tuple(
            AgentInterface(url="http://a.test", protocol_binding=one.binding, protocol_version=one.version)
            for one in entries
        ),
    )


@pytest.mark.parametrize(
    ("listed", "chosen", "pinned", "told"),
    [
        (["1.0/JSONRPC", "0.3/GRPC"], "0.3/GRPC", True, "the configuration says so"),
        (["0.3/GRPC"], "0.3/GRPC", False, "its card lists no other"),
        (["1.0/GRPC", "1.0/JSONRPC"], "1.0/GRPC", False, "the first of its card"),
        (["0.3/JSONRPC", "1.0/JSONRPC"], "1.0/JSONRPC", False, "newer than the first of its card"),
        (["1.0/GRPC", "1.0/JSONRPC"], "1.0/JSONRPC", False, "those before it in the card cannot be called"),
    ],
)
def test_the_plan_says_why_a_face_was_chosen(listed: list[str], chosen: str, pinned: bool, told: str) -> None:
    assert why(listing(*listed), Face.parse(chosen), pinned=pinned) == told


async def test_the_plan_says_which_face_is_called_and_where_it_is_served(agents: dict[str, str]) -> None:
    several = configured(agents, alpha={"face": "0.3/GRPC", "versions": ("1.0",), "authority": "a.test"})
    async with gateway(*several) as board:
        alpha, beta = (plan(agent, "http://gw.test") for agent in board.agents)
        assert (alpha.face, alpha.why, alpha.grpc) == ("0.3/GRPC", "the configuration says so", "host a.test")
        assert "1.0/JSONRPC" in alpha.others and "0.3/GRPC" not in alpha.others
        assert {one.protocol_version for one in alpha.interfaces} == {"1.0"}
        assert [one.url for one in alpha.interfaces if one.protocol_binding == "GRPC"] == ["a.test:80"]
        assert (beta.face, beta.why) == ("1.0/JSONRPC", "the first of its card")
        assert beta.grpc == "tenant beta, 1.0 only: 0.3 has none"


async def test_an_agent_is_called_with_its_own_credentials_only() -> None:
    async with upstream(card=named("alpha")) as alpha, upstream(card=named("beta")) as beta:
        several = [
            Configured(url=f"http://127.0.0.1:{alpha.port}", name="alpha", bearer=Secret("for-alpha")),
            Configured(url=f"http://127.0.0.1:{beta.port}", name="beta", headers={"X-Api-Key": Secret("for-beta")}),
        ]
        async with gateway(*several) as board:
            for path in ("/alpha/", "/beta/"):
                call = wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("x"))
                assert (await send(board, call._replace(path=path))).status == 200
        assert alpha.arrived[0].headers["authorization"] == "Bearer for-alpha"
        assert "authorization" not in beta.arrived[0].headers
        assert beta.arrived[0].headers["x-api-key"] == "for-beta" and "x-api-key" not in alpha.arrived[0].headers


async def test_an_agent_is_closed_while_it_is_still_looked_for() -> None:
    with nobody() as port:
        agent = Agent(
            Configured(url=f"http://127.0.0.1:{port}", path="/"), common_of(Config(upstream=())), backoff=QUICKLY
        )
        agent.start()
        await agent.tried.wait()
        await agent.aclose()
    assert agent.client is None and agent.error is not None
