"""An agent of Microsoft's agent-framework behind its A2A executor, on a2a-sdk, as its documentation shows."""

from __future__ import annotations

import asyncio
from typing import Any

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface
from agent_framework import BaseChatClient, ChatResponse, ChatResponseUpdate, Content, Message, ResponseStream
from agent_framework.a2a import A2AExecutor
from kit import hosting, parrot
from starlette.applications import Starlette


class Parrot(BaseChatClient):
    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        told = messages[-1].text
        return self._streamed(told) if stream else self._whole(told)

    async def _whole(self, told: str) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [Content.from_text(parrot.reply(told))])])

    def _streamed(self, told: str) -> ResponseStream:
        async def updates() -> Any:
            for word in parrot.words(told):
                yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(word)])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)


async def main() -> None:
    places = hosting.places()
    card = AgentCard(
        name=parrot.NAME,
        description=parrot.DESCRIPTION,
        version="1.0.0",
        default_input_modes=["text"],
        default_output_modes=["text"],
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[AgentInterface(url=f"http://{places.public_http}/", protocol_binding="JSONRPC")],
        skills=[],
    )
    agent = Parrot().as_agent(name=parrot.NAME, instructions=parrot.DESCRIPTION)
    handler = DefaultRequestHandler(
        agent_executor=A2AExecutor(agent, stream=True), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    await hosting.serve(places, Starlette(routes=routes))


asyncio.run(main())
