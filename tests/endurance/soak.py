"""Mixed load for long, with reloads and restarts of agents in between.

Rules of this module:

- A call or stream that fails is explained only if its agent was killed just then; whatever else fails is a fault.
- Every webhook that was registered must have been told of the end of its task when the run is over.
- Memory is that of the gateway, read from the system; its slope is a least-squares line over the later part.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.client.client import user_message
from dragoman.errors import DragomanError
from dragoman.faces import Face
from dragoman.model import SendMessageConfiguration, SendMessageRequest, TaskPushNotificationConfig

from .load import Tally, keep_calling, keep_following
from .rig import Behind, Receiver, Rig, receiver, rig

BEHIND = (
    Behind("pair", "1.0/JSONRPC", replicas=2),
    Behind("grpc", "1.0/GRPC"),
    Behind("older", "0.3/JSONRPC"),
    Behind("rest", "0.3/HTTP+JSON"),
)
SPARE = '[[upstream]]\nname = "spare"\nurl = "{url}"\nheaders = {{ "X-Turn" = "{turn}" }}\n'
RELOAD_EVERY = 45.0  # seconds
RESTART_EVERY = 75.0
DOWN = 2.0
AFTER = 8.0  # seconds after its start in which an agent's killing still explains an error
PAUSE = 0.25  # between two calls of one worker
WARM_UP = 0.25  # part of the run that the slope of memory leaves out


@dataclass(slots=True)
class Soak:
    """What happened."""

    tally: Tally
    reloads: int = 0
    restarts: int = 0
    webhooks: dict[str, str] = field(default_factory=dict)  # by token, where it was registered
    memory: list[tuple[float, int]] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    notifications: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    exit_code: int | None = None

    @property
    def slope(self) -> float:
        """MiB per hour, after the warm-up."""
        end = self.memory[-1][0] if self.memory else 0.0
        later = [(at / 3600, size / 2**20) for at, size in self.memory if at >= end * WARM_UP]
        if len(later) < 3:
            return 0.0
        mean_x = sum(x for x, _ in later) / len(later)
        mean_y = sum(y for _, y in later) / len(later)
        return sum((x - mean_x) * (y - mean_y) for x, y in later) / sum((x - mean_x) ** 2 for x, _ in later)


class Outages:
    """When which agent was down, for the errors that this explains."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def down(self, name: str) -> None:
        self._until[name] = float("inf")

    def up(self, name: str) -> None:
        self._until[name] = time.monotonic() + AFTER

    def explain(self, where: str, error: Exception) -> str:
        name = where.partition(" ")[0]
        return "its agent was killed" if self._until.get(name, 0.0) > time.monotonic() else ""


async def soak(folder: Path, minutes: float, workers: int, streams: int) -> Soak:
    """Run it."""
    outages = Outages()
    found = Soak(Tally(outages.explain))
    until = asyncio.Event()
    began = time.monotonic()
    async with receiver() as hook, rig(folder, BEHIND) as made:
        seats = itertools.cycle(made.clients.items())
        async with asyncio.TaskGroup() as group:
            for (name, face), client in itertools.islice(seats, workers):
                group.create_task(keep_calling(client, f"{name} {face}", found.tally, until, PAUSE))
            for (name, face), client in itertools.islice(seats, streams):
                ticks = random.randint(5, 60)
                group.create_task(keep_following(client, f"{name} {face} stream", found.tally, until, ticks))
            group.create_task(_register(made, hook, found, until))
            group.create_task(_reload(made, found, until))
            group.create_task(_restart(made, found, outages, until))
            group.create_task(_measure(made, found, until, began))
            await asyncio.sleep(minutes * 60)
            until.set()
        found.seconds = time.monotonic() - began
        await _told(hook, found)
        found.cpu = made.gateway.seconds
        await made.gateway.stop()
        found.exit_code = made.gateway.exit_code
    return found


async def _sleep(until: asyncio.Event, seconds: float) -> bool:
    """Whether the run goes on after that time."""
    try:
        async with asyncio.timeout(seconds):
            await until.wait()
    except TimeoutError:
        return True
    return False


async def _register(made: Rig, hook: Receiver, found: Soak, until: asyncio.Event) -> None:
    """A task with a webhook of its own, on one face after the other."""
    seats: itertools.cycle[tuple[str, Face]] = itertools.cycle(made.clients)
    while await _sleep(until, 0.5):
        name, face = next(seats)
        token = uuid.uuid4().hex
        config = TaskPushNotificationConfig(url=hook.url, token=token)
        request = SendMessageRequest(
            message=user_message("echo told"),
            configuration=SendMessageConfiguration(task_push_notification_config=config),
        )
        try:
            await made.clients[name, face].send_message(request)
            found.webhooks[token] = f"{name} {face}"
        except DragomanError as error:
            found.tally.failed(f"{name} {face} webhook", error)


async def _told(hook: Receiver, found: Soak) -> None:
    """Wait for what is on its way, and book what did not come."""
    for _ in range(100):
        found.untold = [where for token, where in found.webhooks.items() if not _ended(hook.bodies.get(token, []))]
        if not found.untold:
            break
        await asyncio.sleep(0.2)
    found.notifications = sum(len(hook.bodies.get(token, [])) for token in found.webhooks)


def _ended(bodies: list[bytes]) -> bool:
    return any(b'"completed"' in body or b"TASK_STATE_COMPLETED" in body for body in bodies)


async def _reload(made: Rig, found: Soak, until: asyncio.Event) -> None:
    """A further agent comes, changes and goes."""
    spare = made.urls["grpc", 0]
    while await _sleep(until, RELOAD_EVERY):
        found.reloads += 1
        made.configure(SPARE.format(url=spare, turn=found.reloads) if found.reloads % 3 else "")
        made.gateway.hang_up()


async def _restart(made: Rig, found: Soak, outages: Outages, until: asyncio.Event) -> None:
    """One agent after the other is killed and comes back at the same place."""
    several = itertools.cycle(made.agents.items())
    while await _sleep(until, RESTART_EVERY):
        (name, _), party = next(several)
        found.restarts += 1
        outages.down(name)
        await party.kill()
        await _sleep(until, DOWN)
        try:
            await party.start()
        except (RuntimeError, TimeoutError) as error:
            found.tally.failed(f"restart of {name}", error)  # which no outage explains
            return
        outages.up(name)


async def _measure(made: Rig, found: Soak, until: asyncio.Event, began: float) -> None:
    while await _sleep(until, 5.0):
        found.memory.append((time.monotonic() - began, made.gateway.memory))
        found.files.append(made.gateway.files)
