"""An agent on a2akit: JSON-RPC, and HTTP+JSON beside it."""

from __future__ import annotations

import asyncio

from a2akit import A2AServer, AgentCardConfig, CapabilitiesConfig, TaskContext, Worker
from kit import hosting, parrot


class Parrot(Worker):
    async def handle(self, ctx: TaskContext) -> None:
        for number, word in enumerate(words := parrot.words(ctx.user_text), 1):
            await ctx.emit_text_artifact(word, artifact_id="said", append=number > 1, last_chunk=number == len(words))
        await ctx.complete()


async def main() -> None:
    places = hosting.places()
    card = AgentCardConfig(
        name=parrot.NAME,
        description=parrot.DESCRIPTION,
        version="1",
        protocol="jsonrpc",
        capabilities=CapabilitiesConfig(streaming=True),
    )
    server = A2AServer(worker=Parrot(), agent_card=card, additional_protocols=["http"])
    await hosting.serve(places, server.as_fastapi_app())


asyncio.run(main())
