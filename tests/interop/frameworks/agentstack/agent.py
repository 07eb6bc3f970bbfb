"""An agent on agentstack-sdk's own server: JSON-RPC, and HTTP+JSON beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from a2a.types import Message
from agentstack_sdk.a2a.types import AgentMessage
from agentstack_sdk.server.agent import agent
from agentstack_sdk.server.app import create_app
from kit import hosting, parrot


async def main() -> None:
    places = hosting.places()

    @agent(name=parrot.NAME, description=parrot.DESCRIPTION, url=f"http://{places.public_http}")
    async def factory(input: Message) -> AsyncIterator[AgentMessage]:
        told = "".join(part.root.text for part in input.parts if part.root.kind == "text")
        yield AgentMessage(text=parrot.reply(told))

    await hosting.serve(places, create_app(factory(lambda dependencies: None)))


asyncio.run(main())
