"""``dragoman call``: a message to any agent, over any face."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from msgspec import UNSET

from ..client.client import Client
from ..client.connect import connect
from ..faces import read_binding, read_version
from ..model import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskStatus,
)
from ..protocol.operations import BINDINGS, VERSIONS
from .options import Calling, known, run_async
from .output import print_json, say, stdout


def call(
    url: str,
    text: str,
    *,
    binding: str = "",
    version: str = "",
    stream: bool = False,
    task: str = "",
    context: str = "",
    tenant: str = "",
    no_wait: bool = False,
    calling: Calling = Calling(),  # noqa: B008 - immutable
    json: bool = False,
) -> None:
    """Send a text to an agent and show its answer.

    Example: `dragoman call https://agent.example 'echo hello' --version 0.3 --binding GRPC --stream`

    Parameters
    ----------
    url
        The agent's base URL, or the URL of its card.
    text
        What to say.
    binding
        Use this binding (JSONRPC, GRPC, HTTP+JSON) and no other.
    version
        Use this protocol version (0.3, 1.0) and no other.
    stream
        Show events as they come.
    task
        Id of the task to go on with.
    context
        Id of the conversation to go on with.
    tenant
        Tenant to ask for, if the card names none.
    no_wait
        Return as soon as the task exists.
    json
        Print each reply or event, in the 1.0 shape, as one JSON line.
    """
    request = SendMessageRequest(
        tenant=tenant,
        message=Message(
            message_id=os.urandom(16).hex(),
            role=Role.USER,
            parts=(Part(text=text),),
            task_id=task,
            context_id=context,
        ),
        configuration=SendMessageConfiguration(return_immediately=True) if no_wait else None,
    )

    async def main() -> None:
        async with await connect(
            url,
            version=known(read_version(version), version, VERSIONS) if version else None,
            binding=known(read_binding(binding), binding, BINDINGS) if binding else None,
            headers=calling.headers,
            tls=calling.tls,
            on_note=lambda note: say(f"note: {note}", style="yellow"),
        ) as client:
            say(f"{client.face} at {client.interface.url}", style="dim")
            await (_stream if stream else _send)(client, request, json)

    run_async(main())


async def _send(client: Client, request: SendMessageRequest, as_json: bool) -> None:
    reply = await client.send_message(request)
    show_event(StreamResponse(task=reply.task, message=reply.message), as_json)


async def _stream(client: Client, request: SendMessageRequest, as_json: bool) -> None:
    events = await client.send_streaming_message(request)
    try:
        async for event in events:
            show_event(event, as_json)
    finally:
        await events.aclose()


def show_event(event: StreamResponse, as_json: bool) -> None:
    """One reply or event, for a person or a program."""
    if as_json:
        print_json(event)
    elif event.message is not None:
        stdout.print(show_parts(event.message.parts), markup=False)
    elif event.task is not None:
        show_task(event.task)
    elif event.status_update is not None:
        show_status(event.status_update.task_id, event.status_update.status)
    elif event.artifact_update is not None:
        stdout.print(show_parts(event.artifact_update.artifact.parts), markup=False)


def show_task(task: Task) -> None:
    """A task: its state, then what it produced."""
    show_status(task.id, task.status)
    for artifact in task.artifacts:
        stdout.print(show_parts(artifact.parts), markup=False)


def show_status(task_id: str, status: TaskStatus) -> None:
    """A status on one line, with its message."""
    state = status.state.name.lower().replace("_", "-")
    text = show_parts(status.message.parts) if status.message else ""
    stdout.print(f"task {task_id}: {state}" + (f": {text}" if text else ""), markup=False)


def show_parts(parts: tuple[Part, ...]) -> str:
    """Parts as text; what is no text is named with its size or value."""
    return "\n".join(map(_show_part, parts))


def _show_part(part: Part) -> str:
    name: Any = part.filename or part.media_type or "file"
    if part.text is not UNSET:
        return str(part.text)
    if part.raw is not UNSET:
        return f"[{name}: {len(part.raw or b'')} bytes]"
    if part.url is not UNSET:
        return f"[{name}: {part.url}]"
    return msgspec.json.encode(part.data).decode()
