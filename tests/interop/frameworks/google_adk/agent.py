"""google-adk's own A2A server over a model that is a parrot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types
from kit import hosting, parrot


class Parrot(BaseLlm):
    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        told = "".join(part.text or "" for part in llm_request.contents[-1].parts)
        if stream:
            for word in parrot.words(told):
                yield LlmResponse(content=_said(word), partial=True)
        yield LlmResponse(content=_said(parrot.reply(told)), partial=False)


def _said(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


async def main() -> None:
    places = hosting.places()
    host, _, port = places.public_http.partition(":")
    agent = Agent(model=Parrot(model=parrot.NAME), name=parrot.NAME, description=parrot.DESCRIPTION)
    await hosting.serve(places, to_a2a(agent, host=host, port=int(port)))


asyncio.run(main())
