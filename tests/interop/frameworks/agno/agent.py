"""An agent of agno behind the A2A interface of its AgentOS, over a model that is a parrot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.os import AgentOS
from kit import hosting, parrot


class Parrot(Model):
    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise NotImplementedError

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def ainvoke(self, *args: Any, messages: list[Any], **kwargs: Any) -> ModelResponse:
        return ModelResponse(role="assistant", content=parrot.reply(_told(messages)))

    async def ainvoke_stream(self, *args: Any, messages: list[Any], **kwargs: Any) -> AsyncIterator[ModelResponse]:
        for word in parrot.words(_told(messages)):
            yield ModelResponse(role="assistant", content=word)

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response


def _told(messages: list[Any]) -> str:
    return next(message.content for message in reversed(messages) if message.role == "user")


async def main() -> None:
    places = hosting.places()
    agent = Agent(
        id=parrot.NAME, name=parrot.NAME, description=parrot.DESCRIPTION, model=Parrot(id=parrot.NAME), db=InMemoryDb()
    )
    app = AgentOS(agents=[agent], a2a_interface=True, telemetry=False).get_app()
    await hosting.serve(places, app, path=f"/a2a/agents/{parrot.NAME}")


asyncio.run(main())
