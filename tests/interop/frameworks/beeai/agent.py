"""beeai-framework's own A2A server over a model that is a parrot; it serves one binding at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

from beeai_framework.adapters.a2a.serve import server as adapter
from beeai_framework.agents.requirement import RequirementAgent
from beeai_framework.backend import AssistantMessage, ChatModel, ChatModelOutput, UserMessage
from beeai_framework.backend.message import MessageToolCallContent
from beeai_framework.memory import UnconstrainedMemory
from beeai_framework.serve.utils import LRUMemoryManager
from kit import hosting, parrot


class Parrot(ChatModel):
    model_id = parrot.NAME
    provider_id = "ollama"

    async def _create(self, input: Any, run: Any) -> ChatModelOutput:
        """This kind of agent says what it has to say by calling a tool."""
        told = [message.text for message in input.messages if isinstance(message, UserMessage)][-1]
        said = json.dumps({"response": parrot.reply(told)})
        call = MessageToolCallContent(id=str(uuid4()), tool_name="final_answer", args=said)
        return ChatModelOutput(output=[AssistantMessage(call)], finish_reason="tool_calls")

    async def _create_stream(self, input: Any, run: Any) -> AsyncGenerator[ChatModelOutput]:
        yield await self._create(input, run)


async def main() -> None:
    places = hosting.places()
    agent = RequirementAgent(
        llm=Parrot(),
        memory=UnconstrainedMemory(),
        name=parrot.NAME,
        description=parrot.DESCRIPTION,
    )
    server = adapter.A2AServer(memory_manager=LRUMemoryManager(maxsize=100))
    server.register(agent, url=f"http://{places.public_http}/", send_trajectory=False)
    apps: list[Any] = []
    adapter.uvicorn.run = lambda app, **_: apps.append(app)  # the bench has a socket for it already
    server.serve()
    await hosting.serve(places, apps[0])


asyncio.run(main())
