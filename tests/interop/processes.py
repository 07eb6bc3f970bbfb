"""Servers and clients of the bench are processes of their own, spoken to in JSON lines."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .kit.report import Outcome
from .parties import HERE, ROOT

READY_LIMIT = 90.0
STOP_LIMIT = 5.0


class NotReady(Exception):
    """A server ended, or said nothing, before it was ready."""


def _environment() -> dict[str, str]:
    """Peers find the kit by PYTHONPATH; nobody may reach loopback through a proxy."""
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "NO_PROXY": "*", "no_proxy": "*"}


@asynccontextmanager
async def server(command: Sequence[str], log: Path) -> AsyncIterator[dict[str, Any]]:
    """Run a server; its first line is a JSON object that says where it is."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=errors, cwd=ROOT, env=_environment()
        )
    assert process.stdout is not None
    try:
        try:
            line = await asyncio.wait_for(process.stdout.readline(), READY_LIMIT)
            ready: dict[str, Any] = json.loads(line)
        except (TimeoutError, ValueError):
            raise NotReady(f"{' '.join(command)}: not ready: {_tail(log)}") from None
        draining = asyncio.create_task(_drain(process.stdout))
        try:
            yield ready
        finally:
            draining.cancel()
    finally:
        await _stop(process)


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_LIMIT)
    except TimeoutError:
        process.kill()
        await process.wait()


def _tail(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").splitlines()[-4:]) or "it said nothing"


async def client(command: Sequence[str], log: Path, limit: float) -> list[Outcome]:
    """Run a client to its end; one that does not come to an end is killed, and that is its last outcome."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=errors, cwd=ROOT, env=_environment()
        )
    assert process.stdout is not None
    outcomes: list[Outcome] = []
    try:
        async with asyncio.timeout(limit):
            while line := await process.stdout.readline():
                outcomes.append(Outcome(**json.loads(line)))
            await process.wait()
    except TimeoutError:
        outcomes.append(Outcome("end", False, f"the client did not end within {limit:g} s"))
    except ValueError as error:
        outcomes.append(Outcome("end", False, f"the client printed something else: {error}"))
    finally:
        await _stop(process)
    if not outcomes:
        outcomes.append(Outcome("start", False, f"the client ended before its first step: {_tail(log)}"))
    return outcomes
