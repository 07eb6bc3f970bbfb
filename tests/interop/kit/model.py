"""The bench's own words for what a client sees: small enough that any SDK can be translated into them.

States are written as in 0.3 (`input-required`), parts as 1.0 JSON objects with `raw` in base64.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Part = dict[str, Any]

TERMINAL = frozenset({"completed", "canceled", "failed", "rejected"})
INTERRUPTED = frozenset({"input-required", "auth-required"})


def text_part(text: str, **more: Any) -> Part:
    return {"text": text, **more}


def raw_part(data: bytes, **more: Any) -> Part:
    return {"raw": base64.b64encode(data).decode(), **more}


@dataclass(frozen=True)
class Artifact:
    id: str
    parts: list[Part]
    name: str = ""

    @property
    def text(self) -> str:
        return "".join(part.get("text", "") for part in self.parts)


@dataclass(frozen=True)
class Task:
    id: str
    context_id: str
    state: str
    artifacts: list[Artifact]
    status_text: str = ""
    history_text: str = ""  # what the agent said in it


@dataclass(frozen=True)
class Message:
    parts: list[Part]

    @property
    def text(self) -> str:
        return "".join(part.get("text", "") for part in self.parts)


@dataclass(frozen=True)
class StatusUpdate:
    task_id: str
    state: str
    text: str = ""


@dataclass(frozen=True)
class ArtifactUpdate:
    task_id: str
    artifact: Artifact
    append: bool = False
    last: bool = False


Event = Task | Message | StatusUpdate | ArtifactUpdate


@dataclass(frozen=True)
class PushConfig:
    id: str
    url: str
    token: str = ""


@dataclass(frozen=True)
class Page:
    tasks: list[Task]
    next_token: str


@dataclass(frozen=True)
class Outgoing:
    """One message to send; `wait` asks the server to answer only when the task rests."""

    parts: Sequence[Part]
    task_id: str | None = None
    context_id: str | None = None
    wait: bool = True
    push: PushConfig | None = None


@dataclass(frozen=True)
class TypedError:
    """What the client made of an error: the protocol's name for it, or `untyped`."""

    name: str
    seen: str


class Unavailable(Exception):
    """The client under test has no such call."""


class Driver(Protocol):
    """One client of one face, translated into the bench's words."""

    version: str
    binding: str

    async def send(self, outgoing: Outgoing) -> Task | Message: ...

    def stream(self, outgoing: Outgoing) -> AsyncIterator[Event]: ...

    async def get(self, task_id: str) -> Task: ...

    async def cancel(self, task_id: str) -> Task: ...

    def subscribe(self, task_id: str) -> AsyncIterator[Event]: ...

    async def list(self, context_id: str, page_size: int, page_token: str) -> Page: ...

    async def push_create(self, task_id: str, config: PushConfig) -> PushConfig: ...

    async def push_get(self, task_id: str, config_id: str) -> PushConfig: ...

    async def push_list(self, task_id: str) -> Sequence[PushConfig]: ...

    async def push_delete(self, task_id: str, config_id: str) -> None: ...

    async def extended_card_skills(self) -> Sequence[str]: ...

    def typed(self, error: BaseException) -> TypedError: ...
