"""A virtual environment of its own for each peer, made once and again when its requirements change."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
from pathlib import Path

from .parties import CACHE, Party


class EnvError(Exception):
    """An environment could not be made."""


async def ensure(peer: Party) -> Path:
    """The peer's interpreter, in an environment that holds what its requirements ask for."""
    wanted = hashlib.sha256((peer.home / "requirements.txt").read_bytes()).hexdigest()
    home = CACHE / peer.name
    python, stamp = home / "bin" / "python", home / "requirements.sha256"
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    CACHE.mkdir(exist_ok=True)
    for command in _commands(home, python, peer.home / "requirements.txt"):
        await _run(*command)
    stamp.write_text(wanted)
    return python


def _commands(home: Path, python: Path, requirements: Path) -> list[list[str]]:
    if uv := _uv():
        return [
            [uv, "venv", "-q", "--clear", "-p", sys.executable, str(home)],
            [uv, "pip", "install", "-q", "-p", str(python), "-r", str(requirements)],
        ]
    return [
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "-q", "-r", str(requirements)],
    ]


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise EnvError(f"{' '.join(command)}\n{output.decode(errors='replace')}")
