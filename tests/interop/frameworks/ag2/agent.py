"""ag2's own A2A server over a model that is a parrot: JSON-RPC and HTTP+JSON in one app, gRPC beside it."""

from __future__ import annotations

import asyncio
from typing import Any

from ag2 import Agent
from ag2.a2a import A2AServer, build_card
from ag2.config import LLMClient, ModelConfig
from ag2.events import ModelMessage, ModelMessageChunk, ModelRequest, ModelResponse, TextInput
from kit import hosting, parrot


class ParrotClient(LLMClient):
    async def __call__(self, messages: Any, context: Any, **more: Any) -> ModelResponse:
        asked = [message for message in messages if isinstance(message, ModelRequest)][-1]
        told = "".join(part.content for part in asked.parts if isinstance(part, TextInput))
        for word in parrot.words(told):
            await context.send(ModelMessageChunk(word))
        said = ModelMessage(parrot.reply(told))
        await context.send(said)
        return ModelResponse(said)


class Parrot(ModelConfig):
    def copy(self) -> Parrot:
        return self

    def create(self) -> ParrotClient:
        return ParrotClient()

    @property
    def provider(self) -> Any:
        raise NotImplementedError

    @property
    def model(self) -> str:
        return parrot.NAME

    def create_files_client(self) -> Any:
        raise NotImplementedError


async def main() -> None:
    places = hosting.places()
    url = f"http://{places.public_http}"
    agent = Agent(parrot.NAME, config=Parrot())
    server = A2AServer(agent)
    card = build_card(agent, url=url, transports=("jsonrpc", "rest", "grpc"), grpc_url=places.public_grpc)
    app = server.build_jsonrpc(url=url, card=card)
    known = {route.path for route in app.routes}
    app.routes.extend(route for route in server.build_rest(url=url, card=card).routes if route.path not in known)
    grpc_server = server.build_grpc(bind=f"127.0.0.1:{places.grpc_port}", grpc_url=places.public_grpc, card=card)
    await hosting.serve(places, app, grpc_server, bound=True)


asyncio.run(main())
