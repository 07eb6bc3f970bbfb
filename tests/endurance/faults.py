"""Every way in which an upstream can fail, beside healthy ones under load that must not notice.

Rules of this module:

- Each faulty call must end with a typed error of the caller's face, within the limit that the configuration gives
  the upstream. An answer would be as wrong as a hang. Streams end with an error, never cleanly.
- The healthy load runs over few connections, with one stream on them that nobody reads.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.client.client import Client
from dragoman.client.connect import connect
from dragoman.client.options import Resume, Timeouts
from dragoman.errors import A2AError, DragomanError
from dragoman.faces import Face

from .load import Tally, follow, keep_calling
from .misbehaving import Faulty, misbehaving
from .rig import Behind, Rig, rig

BEHIND = (Behind("grpc", "1.0/GRPC"), Behind("json", "1.0/JSONRPC"), Behind("older", "0.3/JSONRPC"))
LIMIT = 2.0  # seconds that the gateway gives a faulty upstream
PATIENCE = 30.0  # seconds after which a faulty call counts as hung
EACH = 4  # calls and as many streams per fault and caller's face
CALLERS = tuple(map(Face.parse, ("1.0/JSONRPC", "0.3/JSONRPC", "1.0/HTTP+JSON")))
TICKS = 100_000


@dataclass(slots=True)
class Fault:
    """One way to fail: what callers were told, by error and number. ``slowest``: seconds until the last knew."""

    mode: str
    face: str
    tried: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    slowest: float = 0.0


@dataclass(slots=True)
class Faults:
    """What happened."""

    tally: Tally
    calling: int
    following: int
    connections: int = 0
    unread: int = 0
    faults: list[Fault] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether the healthy noticed nothing, and every fault was told as what it is."""
        return not self.tally.unexplained and not any(one.wrong for one in self.faults)


async def faults(folder: Path, calls: int, streams: int) -> Faults:
    """Run it."""
    found = Faults(Tally(), calls, streams)
    until = asyncio.Event()
    async with misbehaving() as faulty, rig(folder, BEHIND, _upstreams(faulty)) as made, AsyncExitStack() as stack:
        found.memory["idle"] = made.gateway.memory
        async with asyncio.TaskGroup() as group:
            clients = [made.clients[one.name, Face("GRPC", "1.0")] for one in BEHIND]
            clients.append(made.clients["json", Face("JSONRPC", "1.0")])
            for place in range(streams):
                client = clients[place % 10 // 3]  # one in ten over JSON-RPC, each on a connection of its own
                group.create_task(follow(client, "stream", found.tally, until, TICKS))
            for place in range(calls):
                client = clients[place % 10 // 3]
                group.create_task(keep_calling(client, "call", found.tally, until, 0.05))
            flood = await clients[0].stream_text("flood 2000")
            stack.push_async_callback(flood.aclose)
            found.unread = 1
            await asyncio.sleep(5)
            found.memory["under load"] = made.gateway.memory
            found.connections = made.gateway.connections(made.port, *made.own_ports.values())
            for one in faulty:
                found.faults.append(await _fail(made, one))
            await asyncio.sleep(5)
            found.memory["after the faults"] = made.gateway.memory
            until.set()
    return found


def _upstreams(faulty: list[Faulty]) -> str:
    limits = f"timeouts = {{ connect = {LIMIT}, reply = {LIMIT}, silence = {LIMIT} }}"
    return "\n".join(
        f'[[upstream]]\nname = "{_name(one)}"\nurl = "{one.url}"\nface = "{one.face}"\n{limits}' for one in faulty
    )


def _name(one: Faulty) -> str:
    return "bad-" + "".join(letter if letter.isalnum() else "-" for letter in f"{one.face}-{one.mode}")


async def _fail(made: Rig, one: Faulty) -> Fault:
    """Call a faulty upstream from several faces at once."""
    fault = Fault(one.mode, one.face)
    async with AsyncExitStack() as stack:
        patient = Timeouts(reply=PATIENCE, silence=PATIENCE)
        url = made.url(_name(one))
        several = [
            await stack.enter_async_context(
                connect(url, version=face.version, binding=face.binding, timeouts=patient, resume=Resume(tries=0))
            )
            for face in CALLERS
        ]
        tries = [_tried(fault, how, client) for client in several for how in (_call, _stream) for _ in range(EACH)]
        await asyncio.gather(*tries)
    return fault


async def _call(client: Client) -> None:
    await client.send_text("echo x")


async def _stream(client: Client) -> None:
    stream = await client.stream_text("ticks 3")
    try:
        async for _ in stream:
            pass
    finally:
        await stream.aclose()


async def _tried(fault: Fault, how: Callable[[Client], Awaitable[None]], client: Client) -> None:
    began = time.monotonic()
    fault.tried += 1
    try:
        async with asyncio.timeout(PATIENCE):
            await how(client)
        fault.wrong += 1
        fault.errors["an answer!"] += 1
    except A2AError as error:
        fault.errors[type(error).__name__] += 1
    except (DragomanError, TimeoutError) as error:  # the gateway itself broke off, or hung
        fault.wrong += 1
        fault.errors[f"{type(error).__name__}: {str(error)[:80]}!"] += 1
    fault.slowest = max(fault.slowest, time.monotonic() - began)
