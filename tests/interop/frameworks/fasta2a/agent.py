"""An agent on fasta2a, with a worker that is a parrot."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.storage import InMemoryStorage
from kit import hosting, parrot


class Parrot(Worker):
    async def run_task(self, params: Any) -> None:
        told = "".join(part.get("text", "") for part in params["message"]["parts"])
        await self.storage.update_task(params["id"], state="working")
        artifact = {"artifact_id": str(uuid4()), "name": "said", "parts": [{"text": parrot.reply(told)}]}
        await self.publish_artifact(params["id"], params["context_id"], artifact)
        await self.storage.update_task(params["id"], state="completed", new_artifacts=[artifact])

    async def cancel_task(self, params: Any) -> None:
        await self.storage.update_task(params["id"], state="canceled")

    def build_message_history(self, history: Any) -> list[Any]:
        return list(history)

    def build_artifacts(self, result: Any) -> list[Any]:
        return []


async def main() -> None:
    places = hosting.places()
    storage, broker = InMemoryStorage(), InMemoryBroker()
    worker = Parrot(broker=broker, storage=storage)

    @asynccontextmanager
    async def lifespan(app: FastA2A) -> Any:
        async with app.task_manager, worker.run():
            yield

    url = f"http://{places.public_http}"
    app = FastA2A(storage=storage, broker=broker, name=parrot.NAME, url=url, lifespan=lifespan)
    await hosting.serve(places, app)


asyncio.run(main())
