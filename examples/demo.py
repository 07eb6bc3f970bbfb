"""An agent that obeys the first word of what it is told; anything else it echoes.

=============  =======================================================================
echo X         a task with the text X as its result
say X          a direct message X, no task
chunks N       one result in N chunks
slow N         works for N tenths of a second, tells so each time; can be canceled
ask            asks a question; the answer becomes the result
auth           asks for an authorization; the next message becomes the result
file           a small PNG inside the reply, and one to fetch
data X         a data part that holds the JSON value X
back           every part that it was sent, untouched
fail, reject   a task that ends that way
=============  =======================================================================
"""

from __future__ import annotations

import base64
import json
from asyncio import sleep as pause
from collections.abc import Awaitable, Callable

from dragoman.model import AgentCapabilities, AgentCard, AgentSkill, TaskState
from dragoman.runtime.agent import Agent, Turn, data, file_bytes, file_url

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


async def echo(turn: Turn, words: str) -> None:
    await turn.artifact(words or "(nothing)", name="echo")


async def say(turn: Turn, words: str) -> None:
    await turn.say(words or "(nothing)")


async def chunks(turn: Turn, words: str) -> None:
    count = number(words)
    await turn.working()
    for n in range(1, count + 1):
        await turn.artifact(f"chunk {n} ", artifact_id="chunks", name="chunks", append=n > 1, last_chunk=n == count)


async def slow(turn: Turn, words: str) -> None:
    count = number(words)
    for n in range(1, count + 1):
        await turn.working(f"step {n} of {count}")
        await pause(0.1)
    await turn.complete("done")


async def ask(turn: Turn, words: str) -> None:
    await turn.ask(words or "What is your name?")


async def auth(turn: Turn, words: str) -> None:
    await turn.auth(words or "Please allow me to read your calendar, then write to me again.")


async def file(turn: Turn, words: str) -> None:
    await turn.artifact(
        [
            file_bytes(PNG, media_type="image/png", filename="dot.png"),
            file_url("https://example.com/dot.png", media_type="image/png", filename="dot.png"),
        ],
        name="files",
    )


async def json_value(turn: Turn, words: str) -> None:
    try:
        value = json.loads(words)
    except ValueError:
        await turn.reject("What follows the word data must be JSON.")
    else:
        await turn.artifact(data(value), name="data")


async def back(turn: Turn, words: str) -> None:
    await turn.artifact(turn.message.parts, name="back")


async def fail(turn: Turn, words: str) -> None:
    await turn.fail(words or "I was told to fail.")


async def reject(turn: Turn, words: str) -> None:
    await turn.reject(words or "I was told to reject this.")


COMMANDS: dict[str, Callable[[Turn, str], Awaitable[None]]] = {
    "echo": echo,
    "say": say,
    "chunks": chunks,
    "slow": slow,
    "ask": ask,
    "auth": auth,
    "file": file,
    "data": json_value,
    "back": back,
    "fail": fail,
    "reject": reject,
}


async def handler(turn: Turn) -> None:
    """Answer a question that we asked; else obey a command; else echo."""
    if turn.task is not None and turn.task.status.state is not TaskState.WORKING:
        await echo(turn, turn.text)
        return
    word, rest = (*turn.text.split(maxsplit=1), "", "")[:2]
    command = COMMANDS.get(word)
    await (command(turn, rest) if command else echo(turn, turn.text))


def number(words: str) -> int:
    """The number that a command was given, 3 if none, at most 100,000."""
    return min(int(words), 100_000) if words.isdecimal() and len(words) < 10 else 3


def skill(id: str, description: str, *tags: str, examples: tuple[str, ...]) -> AgentSkill:
    return AgentSkill(id=id, name=id.capitalize(), description=description, tags=tags, examples=examples)


CARD = AgentCard(
    name="Demo",
    description="Obeys the first word of what it is told. Made for trying out clients, gateways and tests.",
    version="1.0.0",
    supported_interfaces=(),  # the server fills them in
    capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
    default_input_modes=("text/plain", "application/json", "*/*"),
    default_output_modes=("text/plain", "application/json", "image/png"),
    skills=(
        skill("echo", "Repeats a text as a result or as a message.", "text", examples=("echo hello", "say hello")),
        skill("stream", "Works for a while and tells so.", "streaming", examples=("chunks 5", "slow 10")),
        skill("ask", "Asks back for input or authorization.", "dialogue", examples=("ask", "auth")),
        skill("parts", "Sends files and data, or what it got.", "files", examples=("file", 'data {"a": 1}', "back")),
        skill("end", "Ends a task the way you say.", "errors", examples=("fail", "reject")),
    ),
)
EXTENDED_CARD = AgentCard(
    name=CARD.name,
    description=CARD.description + " This is its extended card.",
    version=CARD.version,
    supported_interfaces=(),
    capabilities=CARD.capabilities,
    default_input_modes=CARD.default_input_modes,
    default_output_modes=CARD.default_output_modes,
    skills=(
        *CARD.skills,
        skill("secret", "Only authenticated callers see this skill.", "extended", examples=("echo",)),
    ),
)

agent = Agent(CARD, handler, extended_card=EXTENDED_CARD)
