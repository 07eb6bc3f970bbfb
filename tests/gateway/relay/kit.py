"""Real receivers, real agents and a gateway with a relay between them, all on sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from dragoman.client.client import Client, Connecting, connect
from dragoman.client.options import Timeouts
from dragoman.faces import ALL_FACES
from dragoman.gateway.agents import Backoff
from dragoman.gateway.config import Config, Server, Upstream, completed
from dragoman.gateway.config import Relay as Settings
from dragoman.gateway.config import Store as Kept
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import (
    AuthenticationInfo,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
)
from dragoman.protocol.operations import Binding, Version
from dragoman.runtime.agent import Agent, Turn
from dragoman.runtime.engine import Engine
from dragoman.runtime.post import HttpPost
from dragoman.runtime.push import Courier, PushLimits
from dragoman.security.guard import Guard
from dragoman.server.app import A2AApp
from dragoman.server.asgi import Receive, Scope, Send, read_body
from dragoman.server.host import serve
from tests.server.callers import CARD, sending

PATIENCE = 20.0
VERSIONS: tuple[Version, ...] = ("0.3", "1.0")
HERE = Server()
#: Quick, and still with waits in between.
QUICK = Settings(allow_private=True, tries=4, first=0.05, most=0.2)


@dataclass
class Posted:
    """One notification as a receiver got it."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """A webhook on a socket. ``answers``: statuses of the next notifications, then 200; one may be a pair with header
    fields. ``open``: cleared, it keeps everybody waiting."""

    def __init__(self, *answers: int | tuple[int, dict[str, str]]) -> None:
        self.answers = list(answers)
        self.posts: list[Posted] = []
        self.times: list[float] = []
        self.open = asyncio.Event()
        self.open.set()
        self.at_once: dict[str, int] = {}
        self.most_at_once = 0
        self.port = 0
        self._more = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = await read_body(receive, 1 << 24)
        path = scope["path"]
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.posts.append(Posted(path, headers, body))
        self.times.append(asyncio.get_running_loop().time())
        self._more.set()
        self.at_once[path] = self.at_once.get(path, 0) + 1
        self.most_at_once = max(self.most_at_once, self.at_once[path])
        try:
            await self.open.wait()
        finally:
            self.at_once[path] -= 1
        answer = self.answers.pop(0) if self.answers else 200
        status, fields = answer if isinstance(answer, tuple) else (answer, {})
        raw = [(b"content-length", b"0"), *((name.encode(), value.encode()) for name, value in fields.items())]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": b""})

    async def until(self, number: int) -> list[Posted]:
        """Wait for so many notifications in all."""
        async with asyncio.timeout(PATIENCE):
            while len(self.posts) < number:
                self._more.clear()
                await self._more.wait()
        return self.posts

    async def until_state(self, state: str) -> list[Posted]:
        """Wait for a notification of a task in a state; both versions' names of it fit."""
        async with asyncio.timeout(PATIENCE):
            while not any(state_of(post).endswith(state) for post in self.posts):
                self._more.clear()
                await self._more.wait()
        return self.posts


async def eventually(check: Callable[[], Awaitable[object]]) -> None:
    """Wait until something that tells nobody when it changes is true."""
    async with asyncio.timeout(PATIENCE):
        while not await check():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


def state_of(post: Posted) -> str:
    """The state that a notification tells, in lower case, empty if none."""
    told = post.json
    told = told.get("task") or told.get("statusUpdate") or told
    return str(told.get("status", {}).get("state", "")).lower().removeprefix("task_state_")


@asynccontextmanager
async def receiver(*answers: int | tuple[int, dict[str, str]]) -> AsyncIterator[Receiver]:
    one = Receiver(*answers)
    async with serve(one) as server:
        one.port = server.port
        yield one


class Steps:
    """An agent that goes on when it is told to: works, makes an artifact, completes. ``word`` of the message: ``ask``
    asks for input, ``say`` answers with a message, ``refuse`` is refused."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Event()

    async def handle(self, turn: Turn) -> None:
        if turn.text == "say":
            await turn.say("no task")
            return
        await turn.working("begun")
        self.begun.set()
        await self.go.wait()
        await turn.artifact("made")
        if turn.text == "ask":
            await turn.ask("which?")


@dataclass
class Standing:
    """An agent on a socket."""

    steps: Steps
    engine: Engine
    port: int = 0
    asked: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def agent(version: Version, steps: Steps | None = None, *, guarded: bool = False) -> AsyncIterator[Standing]:
    """Our own runtime, which speaks one version, and keeps what it was asked. ``guarded``: it calls nobody here. At the
    end it gives up what nobody takes."""
    steps = steps or Steps()
    guard = Guard(private=not guarded)
    courier = Courier(HttpPost(guard), guard, limits=PushLimits(drain=0.1))
    engine = Engine(Agent(CARD, steps.handle, CARD), pusher=courier)
    app = A2AApp(engine, CARD, faces=[face for face in ALL_FACES if face.version == version])
    one = Standing(steps, engine)

    async def recording(scope: Scope, receive: Receive, send: Send) -> None:
        async def received() -> Any:
            message = await receive()
            if message.get("body"):
                one.asked.append((scope["path"], message["body"]))
            return message

        await app(scope, received, send)

    async with serve(recording) as server:
        one.port = server.port
        try:
            yield one
        finally:
            steps.go.set()
    await engine.aclose()
    await courier.aclose()


@asynccontextmanager
async def gateway(
    *agents: Standing, relay: Settings = QUICK, store: str = "memory", server: Server = HERE, **more: Any
) -> AsyncIterator[tuple[Switchboard, str]]:
    """A gateway in front of agents, and its url."""
    several = tuple(Upstream(url=one.url, name=f"agent{number}", **more) for number, one in enumerate(agents))
    config = completed(Config(upstream=several, relay=relay, store=Kept(url=store), server=server))
    async with AsyncExitStack() as stack:
        board = await stack.enter_async_context(Switchboard(config, backoff=Backoff(first=0.01, most=0.01)))
        listening = await stack.enter_async_context(serve(board))
        assert board.common.relay is not None
        board.common.relay.listens(listening.url)
        yield board, listening.url


def client(url: str, version: Version, binding: Binding = "JSONRPC", **more: Any) -> Connecting:
    return connect(url, version=version, binding=binding, timeouts=Timeouts(2, 10, 10), **more)


def hook(url: str, **more: Any) -> TaskPushNotificationConfig:
    """A webhook with secrets."""
    given = AuthenticationInfo(scheme="Bearer", credentials="hook-credentials")
    return TaskPushNotificationConfig(**{"url": url, "token": "hook-token", "authentication": given, **more})


def sent(text: str, config: TaskPushNotificationConfig | None, *, wait: bool = False, task: str = "") -> Any:
    """A send with a webhook inside."""
    configuration = SendMessageConfiguration(return_immediately=not wait, task_push_notification_config=config)
    request: SendMessageRequest = sending(text, configuration=configuration, task=task)
    return request


async def begun(caller: Client, text: str = "go", config: TaskPushNotificationConfig | None = None) -> Task:
    """A task that has begun."""
    task = (await caller.send_message(sent(text, config))).task
    assert task is not None
    return task
