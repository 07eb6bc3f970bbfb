"""Upstreams of our own that lack something, behind sockets, and a gateway in front of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from dragoman.client.client import Client, connect
from dragoman.errors import MethodNotFoundError
from dragoman.faces import Face
from dragoman.gateway.config import Auth, Config, Polling, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.switchboard import Switchboard
from dragoman.model import (
    SEND_MESSAGE,
    AgentCard,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
)
from dragoman.runtime.agent import Agent, Turn, text
from dragoman.runtime.engine import Engine
from dragoman.runtime.lifecycle import fold
from dragoman.server.app import A2AApp
from dragoman.server.host import serve
from dragoman.service import AnyOperation, Context, EventStream
from tests.server.callers import CARD

QUICK = Polling(first=0.01, most=0.02)
SILENT = replace(CARD, capabilities=replace(CARD.capabilities, streaming=False))
Hook = Callable[[Any], None]


class Stage:
    """An agent that goes one step further each time it is told to."""

    def __init__(self) -> None:
        self.steps = asyncio.Semaphore(0)
        self.begun = asyncio.Event()
        self.done = asyncio.Event()

    def go(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.steps.release()

    async def handle(self, turn: Turn) -> None:
        word, _, rest = turn.text.partition(" ")
        self.begun.set()
        if word == "say":
            await turn.say(rest)
        elif word == "mute":  # tells nothing before it is let on
            await self.steps.acquire()
            await turn.artifact("told at last")
        elif word == "hush":  # the same, with a direct answer
            await self.steps.acquire()
            await turn.say(rest)
        elif word == "crash":
            await self.steps.acquire()
            raise RuntimeError("secret of the agent")
        elif word == "ask":
            await turn.working("thinking")
            await self.steps.acquire()
            await turn.ask("your name?")
        elif word == "steps":
            await self._play(turn)
        else:
            await turn.artifact(turn.text or "nothing")
        self.done.set()

    async def _play(self, turn: Turn) -> None:
        await turn.working("one")
        await self.steps.acquire()
        await turn.working("two")
        await turn.artifact("a", artifact_id="x")
        await self.steps.acquire()
        await turn.artifact(text("b"), artifact_id="x", append=True)
        await turn.artifact("other", artifact_id="y")
        await self.steps.acquire()
        await turn.artifact("new", artifact_id="y")
        await turn.complete("done")


class Restricted:
    """An engine that lacks something. ``refuses``: operations that it does not know. ``waits``: whether every send
    waits (True) or none does (False). ``hook``: hears of every request, and may raise."""

    def __init__(
        self, engine: Engine, refuses: tuple[AnyOperation, ...], waits: bool | None, hook: Hook | None
    ) -> None:
        self.engine = engine
        self.calls: Counter[str] = Counter()
        self.requests: list[Any] = []
        self.hook = hook
        self._refuses = refuses
        self._waits = waits

    async def call(self, op: Any, request: Any, ctx: Context) -> Any:
        return await self.engine.call(op, self._taken(op, request), ctx)

    async def stream(self, op: Any, request: Any, ctx: Context) -> EventStream:
        return await self.engine.stream(op, self._taken(op, request), ctx)

    def _taken(self, op: AnyOperation, request: Any) -> Any:
        self.calls[op.name] += 1
        self.requests.append(request)
        if self.hook is not None:
            self.hook(request)
        if op in self._refuses:
            raise MethodNotFoundError(f"what is {op.name}?")
        if op is SEND_MESSAGE and self._waits is not None:
            configuration = request.configuration or SendMessageConfiguration()
            return replace(request, configuration=replace(configuration, return_immediately=not self._waits))
        return request


@dataclass
class Rig:
    """A gateway in front of a restricted upstream."""

    board: Switchboard
    service: Restricted
    stage: Stage
    port: int
    upstream: str
    clients: list[Client] = field(default_factory=list)

    async def client(self, face: Face, token: str = "", **more: Any) -> Client:
        """A caller of the gateway over one face."""
        client = await connect(
            f"http://127.0.0.1:{self.port}",
            version=face.version,
            binding=face.binding,
            bearer=token or None,
            check_card=False,
            **more,
        )
        self.clients.append(client)
        return client

    async def direct(self) -> Client:
        """A caller of the upstream itself."""
        client = await connect(self.upstream, version="1.0", binding="JSONRPC")
        self.clients.append(client)
        return client


@asynccontextmanager
async def rig(
    card: AgentCard = SILENT,
    *,
    refuses: tuple[AnyOperation, ...] = (),
    waits: bool | None = None,
    hook: Hook | None = None,
    before: Callable[[Switchboard], None] | None = None,
    auth: Auth | None = None,
    **configured: Any,
) -> AsyncIterator[Rig]:
    """A gateway over real sockets; ``configured``: of the upstream."""
    stage = Stage()
    engine = Engine(Agent(card, stage.handle, card), check_input_modes=False)
    service = Restricted(engine, refuses, waits, hook)
    more = {"polling": QUICK, "name": "agent", **configured}
    async with serve(A2AApp(service, card)) as behind:
        url = f"http://127.0.0.1:{behind.port}"
        board = Switchboard(completed(Config(upstream=(Configured(url=url, path="/", **more),), auth=auth)))
        if before is not None:
            before(board)
        async with board, serve(board) as front:
            one = Rig(board, service, stage, front.port, url)
            try:
                yield one
            finally:
                stage.go(100)
                for client in one.clients:
                    await client.aclose()
    await engine.aclose()


def message(words: str, *, task: str = "", context: str = "") -> Message:
    return Message(message_id=f"m-{words}", role=Role.USER, parts=(Part(text=words),), task_id=task, context_id=context)


def sending(words: str, *, at_once: bool = False, history: int | None = None, **more: str) -> SendMessageRequest:
    configuration = SendMessageConfiguration(return_immediately=at_once, history_length=history)
    return SendMessageRequest(message=message(words, **more), configuration=configuration)


async def events_of(stream: EventStream) -> list[StreamResponse]:
    """All events of a stream, which is closed."""
    async with asyncio.timeout(10):
        try:
            return [event async for event in stream]
        finally:
            await stream.aclose()


async def next_of(stream: EventStream) -> StreamResponse:
    async with asyncio.timeout(10):
        return await anext(stream)


def folded(events: list[StreamResponse]) -> Task:
    """The task that a reader of a whole stream knows at its end."""
    first = events[0].task
    assert first is not None
    return fold(first, events[1:])


def only_text(task: Task) -> dict[str, str]:
    """The texts of the artifacts by their ids."""
    return {one.artifact_id: "".join(str(part.text) for part in one.parts) for one in task.artifacts}


async def soon(check: Callable[[], bool]) -> None:
    """Wait until something holds that nobody tells of."""
    async with asyncio.timeout(10):
        while not check():  # noqa: ASYNC110 - nobody sets an event
            await asyncio.sleep(0.01)
