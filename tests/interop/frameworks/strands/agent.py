"""strands-agents' own A2A server over a model that is a parrot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from kit import hosting, parrot
from strands import Agent
from strands.models.model import Model
from strands.multiagent.a2a import A2AServer


class Parrot(Model):
    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: list[Any], *args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        told = "".join(block.get("text", "") for block in messages[-1]["content"])
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        for word in parrot.words(told):
            yield {"contentBlockDelta": {"delta": {"text": word}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def agent(context_id: str) -> Agent:
    return Agent(model=Parrot(), name=parrot.NAME, description=parrot.DESCRIPTION, callback_handler=None)


async def main() -> None:
    places = hosting.places()
    server = A2AServer(agent_factory=agent, http_url=f"http://{places.public_http}", skills=[])
    await hosting.serve(places, server.to_starlette_app())


asyncio.run(main())
