"""Our own client as a driver of the bench."""

from __future__ import annotations

import asyncio
import base64
import importlib
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from msgspec import UNSET

from dragoman import errors, model

from .kit import report
from .kit.model import (
    Artifact,
    ArtifactUpdate,
    Event,
    Message,
    Outgoing,
    Page,
    Part,
    PushConfig,
    StatusUpdate,
    Task,
    TypedError,
)
from .kit.options import Options, options


def part_out(part: Part) -> model.Part:
    more: dict[str, Any] = {
        "metadata": part.get("metadata"),
        "filename": part.get("filename", ""),
        "media_type": part.get("mediaType", ""),
    }
    if "raw" in part:
        return model.Part(raw=base64.b64decode(part["raw"]), **more)
    content = next(name for name in ("text", "url", "data") if name in part)
    return model.Part(**{content: part[content]}, **more)


def part_in(part: model.Part) -> Part:
    seen: Part = {}
    if part.raw is not UNSET:
        seen["raw"] = base64.b64encode(part.raw).decode()
    for name, value in (("text", part.text), ("url", part.url), ("data", part.data)):
        if value is not UNSET:
            seen[name] = value
    about = {"mediaType": part.media_type, "filename": part.filename, "metadata": part.metadata}
    return seen | {name: value for name, value in about.items() if value}


def state_in(state: model.TaskState) -> str:
    return state.value.removeprefix("TASK_STATE_").replace("_", "-").lower()


def text_of(message: model.Message | None) -> str:
    return "".join(part.text for part in message.parts if part.text is not UNSET) if message else ""


def artifact_in(artifact: model.Artifact) -> Artifact:
    return Artifact(artifact.artifact_id, [part_in(part) for part in artifact.parts], artifact.name)


def task_in(task: model.Task) -> Task:
    artifacts = [artifact_in(artifact) for artifact in task.artifacts]
    said = "".join(text_of(message) for message in task.history if message.role is model.Role.AGENT)
    return Task(task.id, task.context_id, state_in(task.status.state), artifacts, text_of(task.status.message), said)


def message_in(message: model.Message) -> Message:
    return Message([part_in(part) for part in message.parts])


def event_in(event: model.StreamResponse) -> Event:
    if event.task:
        return task_in(event.task)
    if event.message:
        return message_in(event.message)
    if status := event.status_update:
        return StatusUpdate(status.task_id, state_in(status.status.state), text_of(status.status.message))
    if chunk := event.artifact_update:
        return ArtifactUpdate(chunk.task_id, artifact_in(chunk.artifact), chunk.append, chunk.last_chunk)
    raise ValueError(f"an event with no content: {event!r}")


def push_out(config: PushConfig, task_id: str = "") -> model.TaskPushNotificationConfig:
    return model.TaskPushNotificationConfig(id=config.id, task_id=task_id, url=config.url, token=config.token)


def push_in(config: model.TaskPushNotificationConfig) -> PushConfig:
    return PushConfig(config.id, config.url, config.token)


class Ours:
    def __init__(self, client: Any, given: Options) -> None:
        self._client, self.version, self.binding = client, given.version, given.binding

    def _request(self, outgoing: Outgoing) -> model.SendMessageRequest:
        message = model.Message(
            message_id=str(uuid4()),
            role=model.Role.USER,
            parts=tuple(part_out(part) for part in outgoing.parts),
            task_id=outgoing.task_id or "",
            context_id=outgoing.context_id or "",
        )
        configuration = model.SendMessageConfiguration(
            return_immediately=not outgoing.wait,
            task_push_notification_config=push_out(outgoing.push) if outgoing.push else None,
        )
        return model.SendMessageRequest(message=message, configuration=configuration)

    async def send(self, outgoing: Outgoing) -> Task | Message:
        reply = await self._client.send_message(self._request(outgoing))
        return task_in(reply.task) if reply.task else message_in(reply.message)

    async def stream(self, outgoing: Outgoing) -> AsyncIterator[Event]:
        async with aclosing(await self._client.send_streaming_message(self._request(outgoing))) as events:
            async for event in events:
                yield event_in(event)

    async def get(self, task_id: str) -> Task:
        return task_in(await self._client.get_task(model.GetTaskRequest(id=task_id)))

    async def cancel(self, task_id: str) -> Task:
        return task_in(await self._client.cancel_task(model.CancelTaskRequest(id=task_id)))

    async def subscribe(self, task_id: str) -> AsyncIterator[Event]:
        async with aclosing(await self._client.subscribe_to_task(model.SubscribeToTaskRequest(id=task_id))) as events:
            async for event in events:
                yield event_in(event)

    async def list(self, context_id: str, page_size: int, page_token: str) -> Page:
        request = model.ListTasksRequest(context_id=context_id, page_size=page_size, page_token=page_token)
        reply = await self._client.list_tasks(request)
        return Page([task_in(task) for task in reply.tasks], reply.next_page_token)

    async def push_create(self, task_id: str, config: PushConfig) -> PushConfig:
        return push_in(await self._client.create_task_push_notification_config(push_out(config, task_id)))

    async def push_get(self, task_id: str, config_id: str) -> PushConfig:
        request = model.GetTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        return push_in(await self._client.get_task_push_notification_config(request))

    async def push_list(self, task_id: str) -> Sequence[PushConfig]:
        request = model.ListTaskPushNotificationConfigsRequest(task_id=task_id)
        reply = await self._client.list_task_push_notification_configs(request)
        return [push_in(config) for config in reply.configs]

    async def push_delete(self, task_id: str, config_id: str) -> None:
        request = model.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id=config_id)
        await self._client.delete_task_push_notification_config(request)

    async def extended_card_skills(self) -> Sequence[str]:
        card = await self._client.get_extended_agent_card(model.GetExtendedAgentCardRequest())
        return [skill.id for skill in card.skills]

    def typed(self, error: BaseException) -> TypedError:
        name = type(error).__name__
        known = isinstance(error, errors.A2AError) and not isinstance(error, errors.OpaqueError)
        return TypedError(name.removesuffix("Error") if known else "untyped", f"{name}: {error}")


async def main() -> int:
    given = options()
    connect: Any = importlib.import_module("dragoman").connect
    try:
        async with connect(
            given.url, version=given.version, binding=given.binding, base64_files=given.base64_files
        ) as client:
            return await report.run(Ours(client, given), given)
    except Exception as error:
        report.broken(f"{type(error).__name__}: {error}")
    return 1


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
