"""The bench's words <-> the pydantic types of a2a-sdk 0.3."""

import base64
from typing import Any

from a2a import types as a2a
from kit.model import Artifact, ArtifactUpdate, Event, Message, PushConfig, StatusUpdate, Task


def part_out(part: dict[str, Any]) -> a2a.Part:
    metadata = part.get("metadata")
    about = {"mime_type": part.get("mediaType"), "name": part.get("filename")}
    if "text" in part:
        return a2a.Part(root=a2a.TextPart(text=part["text"], metadata=metadata))
    if "raw" in part:
        return a2a.Part(root=a2a.FilePart(file=a2a.FileWithBytes(bytes=part["raw"], **about), metadata=metadata))
    if "url" in part:
        return a2a.Part(root=a2a.FilePart(file=a2a.FileWithUri(uri=part["url"], **about), metadata=metadata))
    return a2a.Part(root=a2a.DataPart(data=part["data"], metadata=metadata))


def part_in(part: a2a.Part) -> dict[str, Any]:
    root = part.root
    match root:
        case a2a.TextPart():
            seen: dict[str, Any] = {"text": root.text}
        case a2a.DataPart():
            seen = {"data": root.data}
        case a2a.FilePart(file=a2a.FileWithBytes() as file):
            seen = {"raw": _canonical(file.bytes)}
        case a2a.FilePart(file=file):
            seen = {"url": file.uri}
    if isinstance(root, a2a.FilePart):
        seen |= {"mediaType": root.file.mime_type} if root.file.mime_type else {}
        seen |= {"filename": root.file.name} if root.file.name else {}
    return seen | ({"metadata": root.metadata} if root.metadata else {})


def _canonical(text: str) -> str:
    """Base64 in its standard alphabet and padded; what is not base64 stays as it is."""
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode()
    except ValueError:
        return text


def text_of(message: a2a.Message | None) -> str:
    return "".join(part_in(part).get("text", "") for part in message.parts) if message else ""


def command(message: a2a.Message) -> str:
    """What an agent is told: the first part that is text."""
    return next((part.root.text for part in message.parts if isinstance(part.root, a2a.TextPart)), "")


def artifact_in(artifact: a2a.Artifact) -> Artifact:
    return Artifact(artifact.artifact_id, [part_in(part) for part in artifact.parts], artifact.name or "")


def task_in(task: a2a.Task) -> Task:
    return Task(
        task.id,
        task.context_id,
        task.status.state.value,
        [artifact_in(artifact) for artifact in task.artifacts or []],
        text_of(task.status.message),
        "".join(text_of(message) for message in task.history or [] if message.role is a2a.Role.agent),
    )


def event_in(event: Any) -> Event:
    match event:
        case a2a.Task():
            return task_in(event)
        case a2a.Message():
            return Message([part_in(part) for part in event.parts])
        case a2a.TaskStatusUpdateEvent():
            return StatusUpdate(event.task_id, event.status.state.value, text_of(event.status.message))
        case a2a.TaskArtifactUpdateEvent():
            return ArtifactUpdate(
                event.task_id, artifact_in(event.artifact), bool(event.append), bool(event.last_chunk)
            )
    raise TypeError(f"not an event: {event!r}")


def push_out(task_id: str, config: PushConfig) -> a2a.TaskPushNotificationConfig:
    return a2a.TaskPushNotificationConfig(task_id=task_id, push_notification_config=push_config(config))


def push_config(config: PushConfig) -> a2a.PushNotificationConfig:
    return a2a.PushNotificationConfig(id=config.id, url=config.url, token=config.token)


def push_in(config: a2a.TaskPushNotificationConfig) -> PushConfig:
    inner = config.push_notification_config
    return PushConfig(inner.id or "", inner.url, inner.token or "")
