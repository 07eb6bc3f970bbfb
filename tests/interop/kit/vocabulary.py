"""What the bench's agents do, by the first word they are told: the script of examples/demo.py."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from .model import Part, raw_part, text_part

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
FILE_PARTS: list[Part] = [
    raw_part(PIXEL, mediaType="image/png", filename="dot.png"),
    {"url": "https://example.com/dot.png", "mediaType": "image/png", "filename": "dot.png"},
]
TICK = 0.1
EXTENDED_SKILL = "secret"


@dataclass(frozen=True)
class Say:
    """Answer with a message and no task."""

    text: str


@dataclass(frozen=True)
class Become:
    """Move the task to a state."""

    state: str
    text: str = ""


@dataclass(frozen=True)
class Give:
    """Publish an artifact, or a chunk of one."""

    name: str
    parts: list[Part] = field(default_factory=list)
    append: bool = False
    last: bool = True


@dataclass(frozen=True)
class GiveBack:
    """Publish the parts that were received, as they were received."""


Action = Say | Become | Give | GiveBack


async def perform(text: str, *, resumed: bool) -> AsyncIterator[Action]:
    """The actions for one message; `resumed` when it answers a question that the task had asked."""
    word, _, rest = text.strip().partition(" ")
    if word == "say" and not resumed:
        yield Say(rest)
        return
    yield Become("working")
    if resumed:
        yield Give("answer", [text_part(text)])
        yield Become("completed")
        return
    match word:
        case "chunks":
            for number in range(1, int(rest) + 1):
                yield Give("chunks", [text_part(f"chunk {number} ")], append=number > 1, last=number == int(rest))
        case "slow":
            for number in range(1, int(rest) + 1):
                await asyncio.sleep(TICK)  # before, so that the last word and the end come together
                yield Become("working", f"step {number} of {rest}")
        case "ask":
            yield Become("input-required", rest)
            return
        case "auth":
            yield Become("auth-required", rest)
            return
        case "fail":
            yield Become("failed", rest)
            return
        case "reject":
            yield Become("rejected", rest)
            return
        case "file":
            yield Give("file", FILE_PARTS)
        case "data":
            yield Give("data", [{"data": json.loads(rest)}])
        case "back":
            yield GiveBack()
        case _:
            yield Give("echo", [text_part(rest if word == "echo" else text)])
    yield Become("completed")
