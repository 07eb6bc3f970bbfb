"""A client in another language: a process that is told what to do in JSON lines, as a driver of the bench."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import asdict
from itertools import count
from typing import Any

from .model import (
    Artifact,
    ArtifactUpdate,
    Event,
    Message,
    Outgoing,
    Page,
    PushConfig,
    StatusUpdate,
    Task,
    TypedError,
    Unavailable,
)

LINE_LIMIT = 64 * 1024 * 1024


class RemoteError(Exception):
    """What the client raised, by the name that it has in the protocol."""

    def __init__(self, name: str, seen: str) -> None:
        super().__init__(seen)
        self.name = name


class NotConnected(Exception):
    """The client could not be set up."""


def artifact_in(row: dict[str, Any]) -> Artifact:
    return Artifact(row["id"], row["parts"], row["name"])


def task_in(row: dict[str, Any]) -> Task:
    artifacts = [artifact_in(artifact) for artifact in row["artifacts"]]
    return Task(row["id"], row["context_id"], row["state"], artifacts, row["status_text"], row["history_text"])


def event_in(row: dict[str, Any]) -> Event:
    match row["kind"]:
        case "task":
            return task_in(row)
        case "message":
            return Message(row["parts"])
        case "status":
            return StatusUpdate(row["task_id"], row["state"], row["text"])
    return ArtifactUpdate(row["task_id"], artifact_in(row["artifact"]), row["append"], row["last"])


class Remote:
    """`start` it before use; `close` ends the process."""

    def __init__(self, version: str, binding: str) -> None:
        self.version, self.binding = version, binding
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Queue[dict[str, Any]]] = {}

    async def start(self, command: Sequence[str]) -> None:
        """Raises `NotConnected`."""
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LINE_LIMIT
        )
        line = await self._read()
        if not line or "broken" in line:
            raise NotConnected((line or {}).get("broken", "the client ended before it was ready"))
        self._reading = asyncio.create_task(self._dispatch())

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _read(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            with contextlib.suppress(ValueError):
                if isinstance(row := json.loads(line), dict):
                    return row
        return None

    async def _dispatch(self) -> None:
        while row := await self._read():
            if queue := self._waiting.get(row["id"]):
                queue.put_nowait(row)
        for queue in self._waiting.values():
            queue.put_nowait({"error": {"name": "untyped", "seen": "the client's process ended"}})

    async def _write(self, row: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(row).encode() + b"\n")
        await self._process.stdin.drain()

    async def _items(self, call: str, *args: Any) -> AsyncGenerator[Any]:
        """The items of a stream, or the one value."""
        number = next(self._numbers)
        replies = self._waiting[number] = asyncio.Queue()
        done = False
        try:
            await self._write({"id": number, "call": call, "args": args})
            while not done:
                row = await replies.get()
                done = "item" not in row
                if "error" in row:
                    raise RemoteError(**row["error"])
                if "unavailable" in row:
                    raise Unavailable(row["unavailable"])
                if "end" not in row:
                    yield row["item"] if "item" in row else row["value"]
        finally:
            del self._waiting[number]
            if not done:
                await self._write({"cancel": number})

    async def _call(self, call: str, *args: Any) -> Any:
        async with contextlib.aclosing(self._items(call, *args)) as values:
            return await anext(values)

    async def send(self, outgoing: Outgoing) -> Task | Message:
        reply = event_in(await self._call("send", asdict(outgoing)))
        assert isinstance(reply, Task | Message)
        return reply

    async def stream(self, outgoing: Outgoing) -> AsyncIterator[Event]:
        async with contextlib.aclosing(self._items("stream", asdict(outgoing))) as items:
            async for item in items:
                yield event_in(item)

    async def get(self, task_id: str) -> Task:
        return task_in(await self._call("get", task_id))

    async def cancel(self, task_id: str) -> Task:
        return task_in(await self._call("cancel", task_id))

    async def subscribe(self, task_id: str) -> AsyncIterator[Event]:
        async with contextlib.aclosing(self._items("subscribe", task_id)) as items:
            async for item in items:
                yield event_in(item)

    async def list(self, context_id: str, page_size: int, page_token: str) -> Page:
        page = await self._call("list", context_id, page_size, page_token)
        return Page([task_in(task) for task in page["tasks"]], page["next_token"])

    async def push_create(self, task_id: str, config: PushConfig) -> PushConfig:
        return PushConfig(**await self._call("push_create", task_id, asdict(config)))

    async def push_get(self, task_id: str, config_id: str) -> PushConfig:
        return PushConfig(**await self._call("push_get", task_id, config_id))

    async def push_list(self, task_id: str) -> Sequence[PushConfig]:
        return [PushConfig(**config) for config in await self._call("push_list", task_id)]

    async def push_delete(self, task_id: str, config_id: str) -> None:
        await self._call("push_delete", task_id, config_id)

    async def extended_card_skills(self) -> Sequence[str]:
        skills: Sequence[str] = await self._call("extended_card_skills")
        return skills

    def typed(self, error: BaseException) -> TypedError:
        name = error.name if isinstance(error, RemoteError) else "untyped"
        return TypedError(name, str(error))
