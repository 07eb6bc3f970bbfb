"""Another configuration while the gateway runs: what changes, what stays, and that nobody notices."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dragoman.faces import Face
from dragoman.gateway.agents import Agent, Backoff
from dragoman.gateway.config.reading import load_all
from dragoman.gateway.reload import Reloader
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import GET_TASK, SEND_MESSAGE, SEND_STREAMING_MESSAGE, GetTaskRequest
from tests.asgi_driver import Answer, request
from tests.gateway.fronts import Upstream, upstream
from tests.gateway.waiting import until
from tests.server.callers import begin, good_call, reply, send, sending, wire

JSON = Face("JSONRPC", "1.0")
WELL_KNOWN = "/.well-known/agent-card.json"


@dataclass
class Scene:
    """A gateway over a file, and whoever reloads it."""

    file: Path
    board: Switchboard
    reloader: Reloader
    said: list[str] = field(default_factory=list)

    async def write(self, text: str, *, asked: bool = True) -> bool:
        self.file.write_text(text)
        return await self.reloader.reload(asked=asked)

    def agent(self, name: str) -> Agent:
        return next(one for one in self.board.agents if one.config.name == name)


@asynccontextmanager
async def scene(file: Path, text: str, *, meanwhile: str = "", **more: Any) -> AsyncIterator[Scene]:
    file.write_text(text)  # noqa: ASYNC240 - a small file
    said: list[str] = []
    loaded = load_all(file)
    options = {"backoff": Backoff(first=60, most=60), **more.pop("options", {})}
    file.write_text(meanwhile or text)  # noqa: ASYNC240
    async with Switchboard(loaded.config, tell=said.append, **options) as board:
        reloader = Reloader(board, lambda: load_all(file), loaded, said.append, every=0.01, **more)
        yield Scene(file, board, reloader, said)


@pytest.fixture
async def two() -> AsyncIterator[list[Upstream]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(upstream()) for _ in range(2)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gateway.toml"


def table(one: Upstream, name: str, more: str = "") -> str:
    return f'[[upstream]]\nname = "{name}"\nurl = "http://127.0.0.1:{one.port}"\n{more}\n'


async def at(board: Any, path: str, text: str = "hello", op: Any = SEND_MESSAGE) -> Answer:
    return await send(board, wire(JSON, op, sending(text))._replace(path=f"{path}/"))


def worked(answer: Answer) -> bool:
    return answer.status == 200 and b'"error"' not in answer.body


# -- what changes and what stays


async def test_upstreams_come_and_go_and_those_that_stay_are_the_same(two: list[Upstream], file: Path) -> None:
    first, second = two
    async with scene(file, table(first, "a") + table(first, "b")) as one:
        a, b = one.board.agents
        client = a.client
        assert await one.write(table(first, "a") + table(second, "c"))
        assert one.agent("a") is a and a.client is client
        assert worked(await at(one.board, "/a")) and worked(await at(one.board, "/c"))
        assert (await at(one.board, "/b")).status == 404
        assert len(second.arrived) == 1
        await until(lambda: b.client is None)
        assert one.said[-1] == "Reloaded the configuration"


async def test_an_upstream_that_changed_is_replaced_and_knows_who_has_which_task(
    two: list[Upstream], file: Path
) -> None:
    first, second = two
    replicas = f'replicas = ["http://127.0.0.1:{second.port}"]\n'
    async with scene(file, table(first, "a", replicas + 'path = "/"')) as one:
        before = one.board.agents[0]
        tasks = [await good_call(one.board, JSON) for _ in range(4)]
        assert await one.write(table(first, "a", replicas + 'path = "/"\nstrict = true'))
        assert one.board.agents[0] is not before
        counts = len(first.arrived) + len(second.arrived)
        for task in tasks:
            answer = await send(one.board, wire(JSON, GET_TASK, GetTaskRequest(id=task.id)))
            assert reply(JSON, GET_TASK, answer).id == task.id
        assert len(first.arrived) + len(second.arrived) == counts + 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[upstream]\n", ":1: "),
        ('[[upstream]]\nurl = "http://a.test"\nfase = "x"\n', ":3: upstream[0].fase: unknown key"),
        ("", ": upstream is missing"),
    ],
    ids=["no TOML", "unknown key", "empty"],
)
async def test_a_broken_file_is_told_with_its_lines_and_what_there_was_stays(
    two: list[Upstream], file: Path, text: str, told: str
) -> None:
    async with scene(file, table(two[0], "a")) as one:
        agents = one.board.agents
        assert not await one.write(text)
        assert told in one.said[-1] and "the one before stays" in one.said[-1]
        assert one.board.agents == agents and worked(await at(one.board, ""))
        assert await one.write(table(two[0], "a"))
        assert one.board.agents == agents


async def test_what_needs_a_restart_is_named(two: list[Upstream], file: Path) -> None:
    async with scene(file, table(two[0], "a")) as one:
        await one.write('[server]\nport = 9999\n[store]\nurl = "memory"\n' + table(two[0], "a"))
        assert one.said[-1] == "Reloaded the configuration; server.port, store: only after a restart"


async def test_the_public_url_is_taken_over_by_all_and_connections_stay(two: list[Upstream], file: Path) -> None:
    async with scene(file, table(two[0], "a")) as one:
        agent, client = one.agent("a"), one.agent("a").client
        await one.write('[server]\npublic_url = "https://gw.example"\n' + table(two[0], "a"))
        assert one.agent("a") is agent and agent.client is client
        card = json.loads((await request(one.board, "GET", WELL_KNOWN)).body)
        assert card["supportedInterfaces"][0]["url"].startswith("https://gw.example")


async def test_who_may_call_is_taken_over(two: list[Upstream], file: Path, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("first-key")
    auth = '[[auth.key]]\nname = "ada"\nsecret = { file = "key" }\n'
    async with scene(file, table(two[0], "a")) as one:

        async def status(key: str) -> int:
            call = wire(JSON, SEND_MESSAGE, sending("x"), headers={"x-api-key": key})
            return (await send(one.board, call)).status

        assert await status("none") == 200
        await one.write(auth + table(two[0], "a"))
        assert (await status("none"), await status("first-key")) == (401, 200)
        secret.write_text("another")
        assert await one.reloader.reload()
        assert (await status("first-key"), await status("another")) == (401, 200)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ('[[auth.key]]\nname = "bob"\nsecret = { file = "bob" }\n', b"not valid any more"),
        ('{both}[[auth.caller]]\nname = "ada"\nupstreams = []\n', b"may not call a"),
        ('{both}[[auth.caller]]\nname = "ada"\noperations = ["GetTask"]\n', b"may not call SendStreamingMessage"),
    ],
    ids=["gone", "another agent", "another operation"],
)
@pytest.mark.parametrize("face", [JSON, Face("GRPC", "0.3")], ids=str)
async def test_a_stream_ends_with_the_right_to_it_and_those_of_others_go_on(
    two: list[Upstream], file: Path, tmp_path: Path, after: str, told: bytes, face: Face
) -> None:
    both = ""
    for name in ("ada", "bob"):
        (tmp_path / name).write_text(f"{name}-key")
        both += f'[[auth.key]]\nname = "{name}"\nsecret = {{ file = "{name}" }}\n'
    async with scene(file, both + table(two[0], "a")) as one:
        exchanges = [
            begin(one.board, wire(face, SEND_STREAMING_MESSAGE, sending("hold"), headers={"x-api-key": f"{name}-key"}))
            for name in ("ada", "bob")
        ]
        adas, bobs = [asyncio.create_task(exchange.run()) for exchange in exchanges]
        for exchange in exchanges:
            await exchange.until(lambda answer: b"holding" in answer.body)
        await one.write(both + table(two[0], "a"))
        assert not adas.done()
        await one.write(after.replace("{both}", both) + table(two[0], "a"))
        answer = await adas
        said = answer.body if answer.trailers is None else answer.trailers["grpc-message"].encode()
        assert told in said.replace(b"%20", b" ") and answer.complete
        assert not bobs.done()
        two[0].behind.stage.go.set()
        assert b"OMPLETED" in (await bobs).body or face.binding == "GRPC"
        assert not one.board.common.admission or not one.board.common.admission.accounts.streams


async def test_a_file_that_lost_its_auth_opens_the_gateway_only_if_somebody_asks(
    two: list[Upstream], file: Path
) -> None:
    """It may be half written."""
    auth = 'allow_clear_secrets = true\n[[auth.key]]\nname = "ada"\nsecret = "her-key"\n'
    async with scene(file, auth + table(two[0], "a")) as one:
        assert not await one.write(table(two[0], "a"), asked=False)
        assert any("[auth] is gone" in text for text in one.said)
        assert (await send(one.board, wire(JSON, SEND_MESSAGE, sending("x")))).status == 401
        assert await one.reloader.reload()
        assert (await send(one.board, wire(JSON, SEND_MESSAGE, sending("x")))).status == 200


# -- without anybody noticing


async def test_open_streams_of_upstreams_that_changed_or_went_run_to_their_end(two: list[Upstream], file: Path) -> None:
    first, second = two
    async with scene(file, table(first, "a") + table(second, "b")) as one:
        streams = []
        for path in ("/a", "/b"):
            exchange = begin(one.board, wire(JSON, SEND_STREAMING_MESSAGE, sending("hold"))._replace(path=f"{path}/"))
            streams.append(asyncio.create_task(exchange.run()))
            await exchange.until(lambda answer: b"holding" in answer.body)
        a, b = one.board.agents
        assert await one.write(table(first, "a", "strict = true"))
        assert worked(await at(one.board, ""))
        assert a.client is not None and b.client is not None
        for behind in two:
            behind.behind.stage.go.set()
        for answer in await asyncio.gather(*streams):
            assert b"COMPLETED" in answer.body
        await until(lambda: a.client is None and b.client is None)


async def test_streams_that_go_on_for_too_long_are_ended_with_an_error(two: list[Upstream], file: Path) -> None:
    async with scene(file, table(two[0], "a") + table(two[1], "b"), options={"drain": 0.05}) as one:
        exchange = begin(one.board, wire(JSON, SEND_STREAMING_MESSAGE, sending("hold"))._replace(path="/a/"))
        running = asyncio.create_task(exchange.run())
        await exchange.until(lambda answer: b"holding" in answer.body)
        await one.write(table(two[1], "b"))
        answer = await running
        assert b'"error"' in answer.body and answer.complete


async def test_no_stream_is_dropped_and_no_call_refused_by_twenty_reloads_under_load(
    two: list[Upstream], file: Path
) -> None:
    texts = [
        table(two[0], "a") + table(two[1], "b"),
        table(two[0], "a", "strict = true") + table(two[1], "b"),
        '[server]\npublic_url = "https://gw.example"\n' + table(two[0], "a") + table(two[1], "b", "index = false"),
    ]
    async with scene(file, texts[0]) as one:
        stop, answers = asyncio.Event(), list[Answer]()

        async def load(path: str) -> None:
            while not stop.is_set():
                answers.append(await at(one.board, path))

        async def stream(path: str) -> Answer:
            return await at(one.board, path, "hold", SEND_STREAMING_MESSAGE)

        streams = [asyncio.create_task(stream(("/a", "/b")[number % 2])) for number in range(50)]
        await until(lambda: sum(agent.state.streams for agent in one.board.agents) == 50)
        loads = [asyncio.create_task(load(("/a", "/b")[number % 2])) for number in range(8)]
        for number in range(20):
            assert await one.write(texts[(number + 1) % 3])
            await asyncio.sleep(0)
        stop.set()
        await asyncio.gather(*loads)
        for behind in two:
            behind.behind.stage.go.set()
        assert all(b"COMPLETED" in answer.body for answer in await asyncio.gather(*streams))
        assert len(answers) > 20 and all(map(worked, answers))


async def test_a_new_upstream_is_there_from_the_first_request_on(two: list[Upstream], file: Path) -> None:
    async with scene(file, table(two[0], "a")) as one:
        await one.write(table(two[0], "a", 'path = "/"') + table(two[1], "b"))
        assert worked(await at(one.board, "/b"))


# -- by itself


async def test_a_change_of_the_file_or_of_a_secret_is_noticed(two: list[Upstream], file: Path, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("one")
    text = table(two[0], "a", 'bearer = { file = "token" }')
    asked = asyncio.Event()
    async with scene(file, text, asked=asked) as one:
        running = asyncio.create_task(one.reloader.run())
        try:
            secret.write_text("other")
            await until(lambda: one.said)
            await at(one.board, "")
            assert two[0].arrived[-1].headers["authorization"] == "Bearer other"
            replacement = tmp_path / "new"
            replacement.write_text(text + table(two[1], "b"))
            replacement.replace(file)
            await until(lambda: len(one.board.agents) == 2)
            one.said.clear()
            asked.set()
            await until(lambda: one.said)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_change_is_noticed_that_came_while_the_gateway_started(two: list[Upstream], file: Path) -> None:
    text = table(two[0], "a")
    async with scene(file, text, meanwhile=text + table(two[1], "b")) as one, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(one.reloader.run())
        await until(lambda: len(one.board.agents) == 2)
        running.cancel()


async def test_ports_of_their_own_come_and_go_with_their_upstreams(two: list[Upstream], file: Path) -> None:
    told: list[set[int]] = []

    async def ports(beside: Any) -> None:
        told.append(set(beside))

    async with scene(file, table(two[0], "a", "port = 9001"), ports=ports) as one:
        app = one.board.beside[9001]
        running = asyncio.create_task(one.reloader.run())
        try:
            one.file.write_text(table(two[0], "a", "port = 9002"))
            await until(lambda: {9002} in told)
            assert worked(await at(one.board.beside[9002], ""))
            assert (await at(app, "")).status == 404
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_a_port_goes_on_to_serve_whoever_has_it_now(two: list[Upstream], file: Path) -> None:
    async with scene(file, table(two[0], "a", "port = 9001")) as one:
        app = one.board.beside[9001]
        assert worked(await at(app, ""))
        await one.write(table(two[0], "a") + table(two[1], "b", "port = 9001"))
        assert worked(await at(app, ""))
        assert len(two[1].arrived) == 1
