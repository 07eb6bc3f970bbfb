"""What a user writes: an agent is a card and a handler.

::

    async def handler(turn: Turn) -> None:
        await turn.working("Thinking")
        await turn.artifact(f"You said: {turn.text}")

    agent = Agent(card, handler)

The handler runs once for each message. When it returns, its task is completed, unless it left the task in another
final or waiting state; when it raises, the task fails, and the traceback goes to the log and never to the caller. An
``A2AError`` that is raised before the task exists is what the caller gets instead of a task.

A task comes into being with the first thing that the handler tells about it. A caller who does not want to wait, and
one who streams, hear nothing before that: a handler that takes its time begins with ``await turn.working()``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..model import AgentCard, Artifact, JsonObject, Message, Part, SendMessageRequest, Task, TaskState
from ..service import Caller, Context

if TYPE_CHECKING:
    from .run import Run

#: What a message or an artifact holds: text, one part, or several parts.
Content: TypeAlias = str | Part | Sequence[Part]
Handler: TypeAlias = "Callable[[Turn], Awaitable[None]]"

_WORKING = TaskState.WORKING
_COMPLETED = TaskState.COMPLETED


def text(value: str, *, media_type: str = "") -> Part:
    """A part of text; ``media_type`` unset means text/plain."""
    return Part(text=value, media_type=media_type)


def data(value: Any, *, media_type: str = "") -> Part:
    """A part that holds a JSON value of any type, null included."""
    return Part(data=value, media_type=media_type)


def file_bytes(raw: bytes, *, media_type: str = "", filename: str = "") -> Part:
    """A file that travels inside the message."""
    return Part(raw=raw, media_type=media_type, filename=filename)


def file_url(url: str, *, media_type: str = "", filename: str = "") -> Part:
    """A file that the reader fetches."""
    return Part(url=url, media_type=media_type, filename=filename)


def as_parts(content: Content) -> tuple[Part, ...]:
    """Content as parts."""
    if isinstance(content, str):
        return (Part(text=content),)
    return (content,) if isinstance(content, Part) else tuple(content)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent: its card and what it does with a message.

    ``card``: its capabilities decide which operations are served; its interfaces may stay empty, a server fills them
    in. ``extended_card``: what authenticated callers get, if the card declares ``extended_agent_card``.
    ``on_cancel``: asked before a task is canceled; False refuses. Without it every running task can be canceled,
    and its handler gets ``asyncio.CancelledError``.
    """

    card: AgentCard
    handler: Handler
    extended_card: AgentCard | None = None
    on_cancel: Callable[[Task], Awaitable[bool]] | None = None


class Turn(msgspec.Struct, eq=False):
    """One message to an agent, and everything the agent may do about it.

    ``message``: as it came. ``task``: the task as it was before this message, None for a new one. Contents are text,
    a part or parts; ``metadata`` goes with the message that the content becomes. Every method raises
    ``LifecycleError`` if the task is final or another message took over.
    """

    _run: Run
    _request: SendMessageRequest
    _ctx: Context
    message: Message
    task: Task | None = None

    @property
    def text(self) -> str:
        """The text parts of the message, joined by line feeds."""
        parts = self.message.parts
        if len(parts) == 1 and isinstance(parts[0].text, str):  # as most messages are
            return parts[0].text
        return "\n".join([part.text for part in parts if isinstance(part.text, str)])

    @property
    def task_id(self) -> str:
        """Id of the task; of a new one, the id that it will have."""
        return self._run.id

    @property
    def context_id(self) -> str:
        """Id of the conversation, made by the server if the caller named none."""
        return self._run.context_id

    @property
    def tenant(self) -> str:
        """Tenant that the request is for; empty if none."""
        return self._run.owner[0]

    @property
    def caller(self) -> Caller:
        """Who sent the message."""
        return self._ctx.caller

    @property
    def extensions(self) -> tuple[str, ...]:
        """URIs of the extensions that the caller activated and the card declares."""
        return self._ctx.activated

    @property
    def metadata(self) -> JsonObject:
        """Metadata of the request (that of the message is on the message)."""
        return self._request.metadata or {}

    @property
    def accepted_output_modes(self) -> tuple[str, ...]:
        """Media types that the caller would like the output in; empty means any (1.0 §3.2.2)."""
        configuration = self._request.configuration
        return () if configuration is None else configuration.accepted_output_modes

    async def say(self, content: Content, *, metadata: JsonObject | None = None) -> None:
        """Answer with a message instead of a task, and end the turn. Only while there is no task."""
        self._run.check(self)
        self._run.say(as_parts(content), metadata)

    async def working(self, content: Content = (), *, metadata: JsonObject | None = None) -> None:
        """Tell that work goes on, perhaps with a word about it."""
        await self._run.change(self, _WORKING, content, metadata)

    async def artifact(
        self,
        content: Content,
        *,
        name: str = "",
        description: str = "",
        artifact_id: str = "",
        append: bool = False,
        last_chunk: bool = False,
        metadata: JsonObject | None = None,
        extensions: tuple[str, ...] = (),
    ) -> str:
        """Hand out a result; returns its id, made up if none is given.

        ``append``: the parts go behind those already sent under ``artifact_id``, else they replace them.
        ``last_chunk``: nothing more follows for this artifact. ``metadata`` is the artifact's. Raises ``ValueError``
        if there are no parts.
        """
        if append and not artifact_id:
            raise ValueError("append needs the artifact_id of what to append to")
        parts = as_parts(content)
        if not parts:
            raise ValueError("an artifact has at least one part")
        run = self._run
        run.check(self)
        draft = run.draft or await run.create(self)
        artifact = Artifact(
            artifact_id=artifact_id or draft.free_artifact_id(),
            name=name,
            description=description,
            parts=parts,
            metadata=metadata,
            extensions=extensions,
        )
        run.put(draft, artifact, append, last_chunk)
        if run.feed is not None and run.feed.full:
            await run.feed.room()
        return artifact.artifact_id

    async def ask(self, content: Content, *, metadata: JsonObject | None = None) -> None:
        """Wait for input from the caller: the next message to the task runs the handler again."""
        await self._run.change(self, TaskState.INPUT_REQUIRED, content, metadata)

    async def auth(self, content: Content, *, metadata: JsonObject | None = None) -> None:
        """Wait for an authorization; ``content`` says which (1.0 §7.6).

        The handler may return, and a message to the task runs it again; or it may wait for a credential that comes
        another way and then go on by itself. A message that comes meanwhile ends that wait by cancellation.
        """
        await self._run.change(self, TaskState.AUTH_REQUIRED, content, metadata)

    async def complete(self, content: Content = (), *, metadata: JsonObject | None = None) -> None:
        """Finish the task. Results belong in artifacts, not in this message (1.0 §3.7)."""
        await self._run.change(self, _COMPLETED, content, metadata)

    async def fail(self, content: Content = (), *, metadata: JsonObject | None = None) -> None:
        """Finish the task as failed."""
        await self._run.change(self, TaskState.FAILED, content, metadata)

    async def reject(self, content: Content = (), *, metadata: JsonObject | None = None) -> None:
        """Finish the task as one that this agent will not do."""
        await self._run.change(self, TaskState.REJECTED, content, metadata)
