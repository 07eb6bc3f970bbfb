"""``python -m bench.relay``: how fast webhooks are told through a gateway, and what ``kill -9`` costs.

An agent that only registers callbacks, webhooks that only count, and ``dragoman gateway`` in a process of its own
between them, over SQLite or a PostgreSQL database of choice. Two figures:

- *throughput*: notifications per second from the agent's post to the webhook's receipt, all of them durable.
- *kill*: a gateway is killed with so many deliveries pending and started again: how many are lost, how many come twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import uvloop

from dragoman.client.client import connect, user_message
from dragoman.dialects import v1
from dragoman.faces import ALL_FACES
from dragoman.model import (
    SEND_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCapabilities,
    AgentCard,
    Artifact,
    Part,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.runtime.post import HttpPost
from dragoman.security.guard import Guard
from dragoman.server.app import A2AApp
from dragoman.server.asgi import Receive, Scope, Send, read_body
from dragoman.server.host import serve

ROOT = Path(__file__).resolve().parent.parent
EVENTS = 4  # notifications of one task
AT_ONCE = 64
PATIENCE = 120.0

CARD = AgentCard(
    name="registrar",
    description="keeps callbacks",
    version="1",
    supported_interfaces=(),
    capabilities=AgentCapabilities(streaming=False, push_notifications=True),
    default_input_modes=("text/plain",),
    default_output_modes=("text/plain",),
    skills=(),
)


class Registrar:
    """An agent that takes a message for a task and keeps the callback that came with it."""

    def __init__(self) -> None:
        self.callbacks: dict[str, TaskPushNotificationConfig] = {}

    async def call(self, op: Any, request: Any, ctx: Any) -> Any:
        if op is not SEND_MESSAGE:
            return None
        send = cast(SendMessageRequest, request)
        assert send.configuration is not None and send.configuration.task_push_notification_config is not None
        task_id = f"task-{len(self.callbacks)}"
        self.callbacks[task_id] = send.configuration.task_push_notification_config
        status = TaskStatus(state=TaskState.SUBMITTED)
        return SendMessageResponse(task=Task(id=task_id, context_id="c", status=status))

    async def stream(self, op: Any, request: Any, ctx: Any) -> NoReturn:
        raise NotImplementedError


class Webhooks:
    """Receives notifications and counts them by what they say. ``open``: cleared, nobody gets an answer."""

    def __init__(self) -> None:
        self.got: Counter[tuple[str, bytes]] = Counter()
        self.order: dict[str, list[str]] = {}
        self.open = asyncio.Event()
        self.open.set()
        self._waiting: list[tuple[Callable[[], bool], asyncio.Event]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _lifespan(receive, send)
            return
        body = await read_body(receive, 1 << 20)
        await self.open.wait()
        self.got[scope["path"], body] += 1
        for enough, event in self._waiting:
            if enough():
                event.set()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    @property
    def told(self) -> int:
        """Different notifications."""
        return len(self.got)

    @property
    def twice(self) -> int:
        """Notifications beyond the first of their kind."""
        return sum(self.got.values()) - len(self.got)

    async def until(self, number: int) -> None:
        """Wait for so many different ones."""
        event = asyncio.Event()
        self._waiting.append((lambda: self.told >= number, event))
        if self.told >= number:
            return
        async with asyncio.timeout(PATIENCE):
            await event.wait()


async def _lifespan(receive: Receive, send: Send) -> None:
    for word in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{word}.complete"})


class Gateway:
    """``dragoman gateway`` in a process of its own, on one port for all its lives. ``relay``: more of its settings."""

    def __init__(self, agent: str, store: str, folder: Path, relay: str = "", name: str = "registrar") -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._config = folder / "gateway.toml"
        self._config.write_text(
            f'[server]\nport = {self.port}\n[store]\nurl = "{store}"\n[relay]\nallow_private = true\n{relay}\n'
            f'[[upstream]]\nname = "{name}"\nurl = "{agent}"\nindex = false\n'
        )
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        command = (sys.executable, "-m", "dragoman", "gateway", "--config", str(self._config), "--json")
        self._process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the gateway did not start, exit code {await self._process.wait()}")

    async def end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            await process.wait()


class Rig(NamedTuple):
    """Everything there is to a run."""

    registrar: Registrar
    webhooks: Webhooks
    gateway: Gateway
    hook: str


@asynccontextmanager
async def rig(store: str, folder: Path) -> AsyncIterator[Rig]:
    """An agent, webhooks and a gateway that runs. ``store``: its address, empty for a SQLite file in ``folder``."""
    registrar, webhooks = Registrar(), Webhooks()
    app = A2AApp(registrar, CARD, faces=[face for face in ALL_FACES if face.version == "1.0"])
    async with serve(app) as agent, serve(webhooks) as hooks:
        gateway = Gateway(agent.url, store or f"sqlite:{folder / 'gateway.db'}", folder)
        await gateway.start()
        try:
            yield Rig(registrar, webhooks, gateway, hooks.url)
        finally:
            webhooks.open.set()
            await gateway.end(signal.SIGTERM)


async def register(one: Rig, tasks: int) -> None:
    """Have so many tasks begun, each with a webhook of its own."""
    places = iter(range(tasks))

    async def some() -> None:
        for place in places:
            config = TaskPushNotificationConfig(url=f"{one.hook}/hook/{place}", token="t")
            configuration = SendMessageConfiguration(return_immediately=True, task_push_notification_config=config)
            await client.send_message(SendMessageRequest(message=user_message("go"), configuration=configuration))

    async with connect(one.gateway.url, version="1.0", binding="JSONRPC") as client:
        await asyncio.gather(*(some() for _ in range(16)))


async def notify(one: Rig) -> float:
    """Post the notifications of all tasks, in order for each, as an agent would; the seconds that took."""
    post = HttpPost(Guard(private=True))
    tasks = iter(one.registrar.callbacks.items())
    started = time.perf_counter()

    async def some() -> None:
        for task_id, callback in tasks:
            headers = {"content-type": "application/a2a+json", "x-a2a-notification-token": callback.token}
            for event in _events(task_id):
                body = v1.JSON.dump_reply(SUBSCRIBE_TO_TASK, event)
                status = await post.post(callback.url, headers, body)
                if status != 200:
                    raise RuntimeError(f"a notification was answered with {status}")

    try:
        await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    finally:
        await post.aclose()
    return time.perf_counter() - started


def _events(task_id: str) -> Iterator[StreamResponse]:
    def status(state: TaskState, second: int) -> StreamResponse:
        told = TaskStatus(state=state, timestamp=f"2026-01-01T00:00:0{second}.000Z")
        return StreamResponse(status_update=TaskStatusUpdateEvent(task_id=task_id, context_id="c", status=told))

    yield status(TaskState.WORKING, 1)
    for number in range(EVENTS - 2):
        artifact = Artifact(artifact_id=f"a{number}", parts=(Part(text="result " * 20),))
        yield StreamResponse(
            artifact_update=TaskArtifactUpdateEvent(task_id=task_id, context_id="c", artifact=artifact)
        )
    yield status(TaskState.COMPLETED, 2)


class Throughput(NamedTuple):
    """``accepted``: notifications taken per second. ``delivered``: of those, told per second, end to end."""

    notifications: int
    accepted: float
    delivered: float


async def throughput(store: str, folder: Path, tasks: int) -> Throughput:
    """Tell so many tasks' webhooks as fast as can be."""
    async with rig(store, folder) as one:
        await register(one, tasks)
        started = time.perf_counter()
        posting = await notify(one)
        await one.webhooks.until(tasks * EVENTS)
        total = time.perf_counter() - started
        number = tasks * EVENTS
        return Throughput(number, number / posting, number / total)


class Killed(NamedTuple):
    """What became of ``pending`` deliveries; ``before``: how many had arrived when the gateway was killed. ``seconds``:
    from its second start to the last one."""

    pending: int
    before: int
    lost: int
    twice: int
    seconds: float


async def killed(store: str, folder: Path, tasks: int, share: float = 0.5) -> Killed:
    """Kill a gateway when ``share`` of what it has to tell was told, and start it again."""
    async with rig(store, folder) as one:
        await register(one, tasks)
        one.webhooks.open.clear()
        await notify(one)
        pending = tasks * EVENTS
        one.webhooks.open.set()
        await one.webhooks.until(int(pending * share))
        await one.gateway.end(signal.SIGKILL)
        before, started = one.webhooks.told, time.perf_counter()
        await one.gateway.start()
        try:
            await one.webhooks.until(pending)
        except TimeoutError:
            pass  # that is what is measured
        taken = time.perf_counter() - started
        return Killed(pending, before, pending - one.webhooks.told, one.webhooks.twice, taken)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


async def measure(store: str, tasks: int) -> dict[str, Any]:
    """Both figures. ``store``: of the gateways, which should be empty; default SQLite files."""
    async with AsyncExitStack() as stack:
        first, second = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        fast = await throughput(store, first, tasks)
        after = await killed(store, second, tasks)
        return {"throughput": fast._asdict(), "kill": after._asdict()}


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.relay")
    parser.add_argument("--tasks", type=int, default=250, help=f"tasks, {EVENTS} notifications each")
    parser.add_argument("--store", default="", help="address of the gateway's store; default a SQLite file")
    parser.add_argument("--json", action="store_true", help="one JSON line")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(measure(options.store, options.tasks))
    if options.json:
        print(json.dumps(found))
    else:
        fast, kill = found["throughput"], found["kill"]
        print(
            f"{fast['notifications']} notifications: {fast['accepted']:.0f}/s accepted, {fast['delivered']:.0f}/s told"
        )
        print(
            f"kill -9 with {kill['pending']} pending, {kill['before']} told by then: {kill['lost']} lost, "
            f"{kill['twice']} told twice, all told {kill['seconds']:.1f} s after the second start"
        )
    return 1 if found["kill"]["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
