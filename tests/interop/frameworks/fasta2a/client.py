"""The client of fasta2a as a driver of the bench. It can send, stream and ask for a task, and that in its own words."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
from fasta2a.client import A2AClient
from kit import report
from kit.model import Artifact, ArtifactUpdate, Event, Message, Outgoing, StatusUpdate, Task, TypedError, Unavailable
from kit.options import Options, options

NAMES = {-32001: "TaskNotFound"}
TIMEOUT = 20.0


class Refused(Exception):
    """A reply that holds an error."""


def text_of(message: dict[str, Any] | None) -> str:
    return "".join(part.get("text", "") for part in message["parts"]) if message else ""


def task_in(task: dict[str, Any]) -> Task:
    artifacts = [Artifact(one["artifact_id"], one["parts"]) for one in task.get("artifacts", ())]
    said = "".join(text_of(message) for message in task.get("history", ()) if message["role"] == "agent")
    status = task["status"]
    return Task(task["id"], task["context_id"], status["state"], artifacts, text_of(status.get("message")), said)


def event_in(event: dict[str, Any]) -> Event:
    if task := event.get("task"):
        return task_in(task)
    if message := event.get("message"):
        return Message(message["parts"])
    if status := event.get("status_update"):
        return StatusUpdate(status["task_id"], status["status"]["state"], text_of(status["status"].get("message")))
    chunk = event["artifact_update"]
    return ArtifactUpdate(chunk["task_id"], Artifact(chunk["artifact"]["artifact_id"], chunk["artifact"]["parts"]))


def result(reply: dict[str, Any]) -> Any:
    if "error" in reply:
        raise Refused(reply["error"])
    return reply["result"]


class FastA2A:
    binding = "JSONRPC"

    def __init__(self, client: A2AClient, version: str) -> None:
        self._client, self.version = client, version

    def _message(self, outgoing: Outgoing) -> Any:
        parts = [{"text": part["text"]} for part in outgoing.parts]
        message = {"role": "user", "parts": parts, "message_id": str(uuid4())}
        return message | ({"context_id": outgoing.context_id} if outgoing.context_id else {})

    async def send(self, outgoing: Outgoing) -> Task | Message:
        reply = event_in(result(await self._client.send_message(self._message(outgoing))))
        assert isinstance(reply, Task | Message)
        return reply

    async def stream(self, outgoing: Outgoing) -> AsyncIterator[Event]:
        async for reply in self._client.stream_message(self._message(outgoing)):
            yield event_in(result(reply))

    async def get(self, task_id: str) -> Task:
        return task_in(result(await self._client.get_task(task_id)))

    def __getattr__(self, name: str) -> Any:
        raise Unavailable(f"the client of fasta2a has no {name}")

    def typed(self, error: BaseException) -> TypedError:
        code = error.args[0].get("code") if isinstance(error, Refused) else None
        return TypedError(NAMES.get(code, "untyped"), f"{type(error).__name__}: {error}")


async def connect(given: Options) -> FastA2A:
    """The client is told where the agent is; reading its card is an option of it, and off."""
    return FastA2A(A2AClient(given.routed(given.url), httpx.AsyncClient(timeout=TIMEOUT)), given.version)


async def main() -> int:
    given = options()
    try:
        driver = await connect(given)
    except Exception as error:
        report.broken(f"{type(error).__name__}: {error}")
    return await report.run(driver, given)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
