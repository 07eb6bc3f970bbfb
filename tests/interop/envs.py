"""An environment of its own for each peer, made once and again when its requirements change."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from .parties import CACHE, HERE, ROOT, Party

JS_KIT = HERE / "kit" / "js"


class EnvError(Exception):
    """An environment could not be made."""


async def ensure(peer: Party) -> list[str]:
    """What runs the peer's scripts, in an environment that holds what its requirements ask for.

    Its scripts are in the environment too if they are JavaScript, which looks for packages from there.
    """
    wanted = hashlib.sha256(peer.requirements.read_bytes()).hexdigest()
    home = CACHE / peer.name
    stamp = home / "requirements.sha256"
    made = stamp.exists() and stamp.read_text() == wanted
    if not made:
        CACHE.mkdir(exist_ok=True)
        for command in _node(home, peer) if peer.node else _python(home, peer):
            await _run(*command)
        stamp.write_text(wanted)
    if not peer.node:
        return [str(home / "bin" / "python")]
    for script in (*peer.home.glob("*.mjs"), *JS_KIT.glob("*.mjs")):
        shutil.copy(script, home)
    return ["node"]


def script(peer: Party, name: str) -> str:
    return str(CACHE / peer.name / f"{name}.mjs" if peer.node else peer.home / f"{name}.py")


def _python(home: Path, peer: Party) -> list[list[str]]:
    python, requirements = str(home / "bin" / "python"), str(peer.requirements)
    if uv := _uv():
        return [
            [uv, "venv", "-q", "--clear", "-p", sys.executable, str(home)],
            [uv, "pip", "install", "-q", "--compile-bytecode", "-p", python, "-r", requirements],
        ]
    return [
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [python, "-m", "pip", "install", "-q", "-r", requirements],
    ]


def _node(home: Path, peer: Party) -> list[list[str]]:
    if not shutil.which("npm"):
        raise EnvError(f"{peer.label} needs Node.js and npm")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    shutil.copy(peer.requirements, home)
    return [["npm", "install", "--prefix", str(home), "--no-audit", "--no-fund", "--loglevel=error"]]


def _uv() -> str | None:
    """uv is many times faster than pip; the one of the project's own, or one on the path."""
    places = [Path(sys.executable).with_name("uv"), ROOT / ".uv" / "bin" / "uv"]
    return next((str(place) for place in places if place.exists()), None) or shutil.which("uv")


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        raise EnvError(f"{' '.join(command)}\n{output.decode(errors='replace')}")


async def ensure_all(peers: Sequence[Party], limit: float) -> tuple[dict[str, list[str]], dict[str, str]]:
    """What runs each peer, by name; for those whose environment could not be made, why."""
    made: dict[str, list[str]] = {}
    failed: dict[str, str] = {}
    try:
        async with asyncio.timeout(limit):
            for peer in peers:
                try:
                    made[peer.name] = await ensure(peer)
                except (EnvError, OSError) as error:
                    failed[peer.name] = " ".join(str(error).split())[-600:]
    except TimeoutError:
        late = {peer.name: f"not made within {limit:g} s" for peer in peers if peer.name not in made}
        failed = late | failed
    return made, failed
