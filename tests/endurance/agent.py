"""The agent behind the gateway under test.

===========  =======================================================================
echo X       a task with the text X as its result
ticks N      one result in N chunks, two a second, each with its number
flood N      one result in N chunks of 64 KiB, as fast as they are taken
===========  =======================================================================
"""

from __future__ import annotations

from asyncio import sleep as pause

from dragoman.model import AgentCapabilities, AgentCard, AgentSkill
from dragoman.runtime.agent import Agent, Turn

TICK = 0.5  # seconds
_BLOCK = "x" * 65_536


async def handler(turn: Turn) -> None:
    word, _, rest = turn.text.partition(" ")
    if word == "ticks":
        await _ticks(turn, int(rest))
    elif word == "flood":
        for n in range(int(rest)):
            await turn.artifact(f"{n} {_BLOCK}", artifact_id="flood", append=n > 0)
    else:
        await turn.artifact(rest, name="echo")


async def _ticks(turn: Turn, count: int) -> None:
    await turn.working()
    for n in range(count):
        await turn.artifact(f"{n} ", artifact_id="ticks", append=n > 0, last_chunk=n == count - 1)
        await pause(TICK)


agent = Agent(
    AgentCard(
        name="Endurance",
        description="Answers, ticks and floods.",
        supported_interfaces=(),
        version="1.0.0",
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        default_input_modes=("text/plain",),
        default_output_modes=("text/plain",),
        skills=(AgentSkill(id="all", name="All", description="Echo, ticks, flood.", tags=("test",)),),
    ),
    handler,
)
