"""An agent that works for a long time and says so once in a while, for streams that are many rather than fast."""

from __future__ import annotations

import random
from asyncio import sleep as pause

from dragoman.model import AgentCapabilities, AgentCard
from dragoman.runtime.agent import Agent, Turn

#: Seconds between two events of a task.
EVERY = 0.5


async def _work(turn: Turn) -> None:
    await turn.working("begun")
    await pause(random.random() * EVERY)  # tasks that begin together do not speak together
    while True:
        await turn.working("the quick brown fox jumps over the lazy dog, again")
        await pause(EVERY)


CARD = AgentCard(
    name="Pacing",
    description="Says something now and then, until it is stopped.",
    version="1.0.0",
    supported_interfaces=(),  # the server fills them in
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=("text/plain",),
    default_output_modes=("text/plain",),
    skills=(),
)

agent = Agent(CARD, _work)
