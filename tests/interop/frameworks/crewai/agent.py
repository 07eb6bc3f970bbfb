"""A crewai agent behind its A2A card and task execution, on a2a-sdk, over a model that is a parrot."""

from __future__ import annotations

import asyncio
import os
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from crewai import Agent
from crewai.a2a import A2AServerConfig
from crewai.a2a.utils import task as crew_task
from crewai.llms.base_llm import BaseLLM
from kit import hosting, parrot


class Parrot(BaseLLM):
    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        asked = messages if isinstance(messages, str) else messages[-1]["content"]
        told = asked.partition("Current Task: ")[2].partition("\n")[0] or asked
        return f"Thought: I now can give a great answer\nFinal Answer: {parrot.reply(told)}"

    async def acall(self, *args: Any, **kwargs: Any) -> str:
        return self.call(*args, **kwargs)

    def supports_function_calling(self) -> bool:
        return False


class Executor(AgentExecutor):
    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await crew_task.execute(self._agent, context, event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await crew_task.cancel(context, event_queue)


async def main() -> None:
    places = hosting.places()
    agent = Agent(
        role=parrot.NAME,
        goal=parrot.DESCRIPTION,
        backstory=parrot.DESCRIPTION,
        llm=Parrot(model=parrot.NAME),
        a2a=A2AServerConfig(),
    )
    card = agent.to_agent_card(f"http://{places.public_http}/")
    handler = DefaultRequestHandler(Executor(agent), InMemoryTaskStore())
    await hosting.serve(places, A2AStarletteApplication(card, handler).build())


asyncio.run(main())
