"""The bench's words <-> the protobuf types of a2a-sdk 1."""

import base64
from typing import Any

from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Struct, Value
from kit.model import Artifact, ArtifactUpdate, Event, Message, PushConfig, StatusUpdate, Task


def part_out(part: dict[str, Any]) -> a2a.Part:
    about = {"media_type": part.get("mediaType"), "filename": part.get("filename")}
    about = {name: value for name, value in about.items() if value}
    if "metadata" in part:
        about["metadata"] = ParseDict(part["metadata"], Struct())
    if "text" in part:
        return a2a.Part(text=part["text"], **about)
    if "raw" in part:
        return a2a.Part(raw=base64.b64decode(part["raw"]), **about)
    if "url" in part:
        return a2a.Part(url=part["url"], **about)
    return a2a.Part(data=ParseDict(part["data"], Value()), **about)


def part_in(part: a2a.Part) -> dict[str, Any]:
    match part.WhichOneof("content"):
        case "text":
            seen: dict[str, Any] = {"text": part.text}
        case "raw":
            seen = {"raw": base64.b64encode(part.raw).decode()}
        case "url":
            seen = {"url": part.url}
        case "data":
            seen = {"data": MessageToDict(part.data)}
        case _:
            seen = {}
    seen |= {"mediaType": part.media_type} if part.media_type else {}
    seen |= {"filename": part.filename} if part.filename else {}
    return seen | ({"metadata": MessageToDict(part.metadata)} if part.metadata.fields else {})


def state_out(state: str) -> int:
    return a2a.TaskState.Value(f"TASK_STATE_{state.replace('-', '_').upper()}")


def state_in(state: int) -> str:
    return a2a.TaskState.Name(state).removeprefix("TASK_STATE_").replace("_", "-").lower()


def text_of(message: a2a.Message) -> str:
    return "".join(part.text for part in message.parts)


def command(message: a2a.Message) -> str:
    """What an agent is told: the first part that is text."""
    return next((part.text for part in message.parts if part.HasField("text")), "")


def artifact_in(artifact: a2a.Artifact) -> Artifact:
    return Artifact(artifact.artifact_id, [part_in(part) for part in artifact.parts], artifact.name)


def task_in(task: a2a.Task) -> Task:
    return Task(
        task.id,
        task.context_id,
        state_in(task.status.state),
        [artifact_in(artifact) for artifact in task.artifacts],
        text_of(task.status.message),
        "".join(text_of(message) for message in task.history if message.role == a2a.ROLE_AGENT),
    )


def event_in(event: a2a.StreamResponse) -> Event:
    match event.WhichOneof("payload"):
        case "task":
            return task_in(event.task)
        case "message":
            return Message([part_in(part) for part in event.message.parts])
        case "status_update":
            update = event.status_update
            return StatusUpdate(update.task_id, state_in(update.status.state), text_of(update.status.message))
        case "artifact_update":
            update = event.artifact_update
            return ArtifactUpdate(update.task_id, artifact_in(update.artifact), update.append, update.last_chunk)
    raise ValueError(f"an event with no content: {event!r}")


def push_out(config: PushConfig, task_id: str = "") -> a2a.TaskPushNotificationConfig:
    return a2a.TaskPushNotificationConfig(id=config.id, task_id=task_id, url=config.url, token=config.token)


def push_in(config: a2a.TaskPushNotificationConfig) -> PushConfig:
    return PushConfig(config.id, config.url, config.token)
