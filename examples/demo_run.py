"""``make demo``: a 0.3-only and a 1.0-only agent, a gateway in front of each, and a client on every one of six faces.

Prints what was asked, which faces it crossed and what came back; then stays up and says what to try next.
``--once`` exits after the table, non-zero if a cell failed.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.cli.output import print_table, say
from dragoman.client.client import Client
from dragoman.client.connect import connect
from dragoman.errors import DragomanError
from dragoman.faces import ALL_FACES, Face
from dragoman.model import TaskState

AGENT = f"{Path(__file__).parent / 'demo.py'}:agent"
START_LIMIT = 60.0  # seconds until a server must have said where it is
CALL_LIMIT = 30.0  # seconds for one cell


class Cell(NamedTuple):
    """One thing asked through one pair of faces."""

    asked: str
    came_back: str
    ok: bool


@asynccontextmanager
async def server(*arguments: str) -> AsyncIterator[dict[str, Any]]:
    """A ``dragoman`` command in a process of its own; gives the JSON line that it prints when it is ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dragoman", *arguments, "--port", "0", "--json", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_LIMIT)
        if not line:
            raise SystemExit(f"dragoman {' '.join(arguments)} did not start")
        yield json.loads(line)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def send(client: Client) -> Cell:
    """One message, answered by a task with an artifact."""
    reply = await client.send_text("echo bonjour")
    artifact = reply.task.artifacts[0].parts[0].text if reply.task and reply.task.artifacts else None
    return Cell("echo bonjour", f"task with artifact {artifact!r}", artifact == "bonjour")


async def stream(client: Client) -> Cell:
    """One message, answered by a stream."""
    events = await client.stream_text("chunks 5")
    kinds, last = 0, None
    async for event in events:
        kinds += 1
        last = event.status_update.status.state if event.status_update else last
    return Cell("chunks 5", f"{kinds} events, then {last.name if last else 'nothing'}", last is TaskState.COMPLETED)


async def failure(client: Client) -> Cell:
    """A task that is not there: the error keeps its type."""
    try:
        await client.get_task("no-such-task")
    except DragomanError as error:
        name = type(error).__name__
        return Cell("get no-such-task", name, name == "TaskNotFoundError")
    return Cell("get no-such-task", "a task?", False)


async def cell(client: Client, ask: Any) -> Cell:
    """``ask``, with whatever went wrong as its answer."""
    try:
        async with asyncio.timeout(CALL_LIMIT):
            answer: Cell = await ask(client)
            return answer
    except (DragomanError, TimeoutError) as error:
        return Cell(ask.__name__, f"{type(error).__name__}: {error}", False)


async def crossings(gateway: dict[str, Any], face: Face) -> list[tuple[str, ...]]:
    """The rows of one gateway called over one face."""
    client = await connect(gateway["url"], version=face.version, binding=face.binding)
    async with client:
        path = f"{face} -> {gateway['upstream']['face']}"
        cells = [await cell(client, ask) for ask in (send, stream, failure)]
    return [(one.asked, path, one.came_back, "ok" if one.ok else "FAILED") for one in cells]


async def main(once: bool) -> int:
    """Run the demo; the exit code."""
    async with AsyncExitStack() as stack:
        say("Starting two agents and a gateway in front of each ...", style="dim")
        gateways = []
        for version in ("0.3", "1.0"):
            agent = await stack.enter_async_context(server("serve", AGENT, "--versions", version))
            gateways.append(await stack.enter_async_context(server("gateway", agent["url"])))
        rows: list[tuple[str, ...]] = []
        for gateway in gateways:
            for face in ALL_FACES:
                rows += await crossings(gateway, face)
        print_table(
            "Every face to every version, through the gateway",
            ("asked", "client face -> agent face", "came back", ""),
            rows,
        )
        failed = sum(row[-1] != "ok" for row in rows)
        say(f"{len(rows) - failed} of {len(rows)} cells ok", style="green" if not failed else "red")
        if not once:
            explain(gateways)
            await asyncio.Event().wait()
        return 1 if failed else 0


def explain(gateways: list[dict[str, Any]]) -> None:
    """What to try while the demo is up."""
    old, new = (gateway["url"] for gateway in gateways)
    command = shlex.join([sys.executable, "-m", "dragoman"])
    say(f"\nStill running. Try, in another terminal, with dragoman standing for {command}:")
    say(f"  dragoman call {old} 'slow 20' --version 1.0 --stream     a 0.3 agent, called in 1.0")
    say(f"  dragoman call {new} 'file' --version 0.3 --binding GRPC  a 1.0 agent, called in 0.3")
    say(f"  dragoman card {old}                                      the card that the gateway publishes")
    say("Stop with Ctrl-C.")


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main("--once" in sys.argv[1:])))
    except KeyboardInterrupt:
        sys.exit(0)
