"""A small bench for engines: a clock that ticks when it is read, callers with names, and short ways to call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from dragoman.errors import UnsupportedOperationError
from dragoman.model import (
    CANCEL_TASK,
    GET_TASK,
    LIST_TASKS,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentCapabilities,
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from dragoman.runtime.agent import Agent, Handler
from dragoman.runtime.engine import Engine
from dragoman.service import Context, EventStream

Names = list[str]


class Ticks:
    """A clock that goes on by a millisecond whenever it is read."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> str:
        self.now += 1
        return f"2026-01-01T00:00:{self.now // 1000:02d}.{self.now % 1000:03d}Z"


class Named:
    """A caller with a name."""

    consumed: frozenset[bytes] = frozenset()

    def __init__(self, name: str) -> None:
        self.name = name


def card(**capabilities: Any) -> AgentCard:
    return AgentCard(
        name="test",
        description="",
        version="1",
        supported_interfaces=(),
        capabilities=AgentCapabilities(**{"streaming": True, "push_notifications": True, **capabilities}),
        default_input_modes=("text/plain",),
        default_output_modes=("text/plain",),
        skills=(),
    )


def message(text: str = "hello", *, task: str = "", context: str = "", id: str = "m1") -> Message:
    return Message(message_id=id, role=Role.USER, parts=(Part(text=text),), task_id=task, context_id=context)


class Bench:
    """One engine and its caller."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.ctx = Context()

    async def send(self, text: str = "hello", *, task: str = "", context: str = "", **configuration: Any) -> Task:
        reply = await self.reply(text, task=task, context=context, **configuration)
        assert reply.task is not None
        return reply.task

    async def reply(
        self, text: str = "hello", *, task: str = "", context: str = "", **configuration: Any
    ) -> SendMessageResponse:
        return await self.engine.call(SEND_MESSAGE, request(text, task, context, configuration), self.ctx)

    async def stream(
        self, text: str = "hello", *, task: str = "", context: str = "", **configuration: Any
    ) -> EventStream:
        return await self.engine.stream(SEND_STREAMING_MESSAGE, request(text, task, context, configuration), self.ctx)

    async def subscribe(self, task: str) -> EventStream:
        return await self.engine.stream(SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task), self.ctx)

    async def get(self, task: str, **more: Any) -> Task:
        return await self.engine.call(GET_TASK, GetTaskRequest(id=task, **more), self.ctx)

    async def list(self, **filters: Any) -> ListTasksResponse:
        return await self.engine.call(LIST_TASKS, ListTasksRequest(**filters), self.ctx)

    async def cancel(self, task: str) -> Task:
        return await self.engine.call(CANCEL_TASK, CancelTaskRequest(id=task), self.ctx)

    async def outcome(self, task: str) -> TaskState:
        """The state in which a task settles, however soon."""
        try:
            await drain(await self.subscribe(task))
        except UnsupportedOperationError:
            pass  # it was final already
        return (await self.get(task)).status.state

    def as_caller(self, name: str = "", *, tenant: str = "", **more: Any) -> Bench:
        """The same engine for somebody else."""
        other = Bench(self.engine)
        other.ctx = Context(caller=Named(name), tenant=tenant, **more)
        return other


def request(text: str, task: str, context: str, configuration: dict[str, Any]) -> SendMessageRequest:
    settings = SendMessageConfiguration(**configuration) if configuration else None
    return SendMessageRequest(message=message(text, task=task, context=context), configuration=settings)


def kinds(events: list[StreamResponse]) -> Names:
    """One word per event: task, message, artifact, or the state of a status."""
    return [_kind(event) for event in events]


def _kind(event: StreamResponse) -> str:
    if event.status_update is not None:
        return event.status_update.status.state.name
    if event.artifact_update is not None:
        return "artifact"
    return "task" if event.task is not None else "message"


async def drain(stream: EventStream) -> list[StreamResponse]:
    return [event async for event in stream]


class Open(Protocol):
    """Makes a bench for a handler; the rest are options of the engine and capabilities of its card."""

    def __call__(
        self, handler: Handler, *, on_cancel: Callable[[Task], Awaitable[bool]] | None = None, **more: Any
    ) -> Bench: ...


def open_bench(handler: Handler, *, on_cancel: Callable[[Task], Awaitable[bool]] | None = None, **more: Any) -> Bench:
    options = {name: more.pop(name) for name in ("store", "limits", "check_input_modes", "pusher") if name in more}
    extended = more.pop("extended_card", None)
    agent = Agent(more.pop("card", None) or card(**more), handler, extended_card=extended, on_cancel=on_cancel)
    return Bench(Engine(agent, clock=Ticks(), **options))
