"""A peer that plays literal bytes, and what clients need to talk to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from dragoman.faces import Face
from dragoman.model import AgentCapabilities, AgentCard, AgentInterface, AgentSkill


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    """What the peer plays: bytes as they are. Then ``hold`` waits for the client to hang up, ``keep`` for its next
    request; else the peer hangs up."""

    raw: bytes
    hold: bool = False
    keep: bool = False


def reply(body: bytes | str, kind: str = "application/json", status: int = 200, **more: str) -> Reply:
    """A whole response with a length."""
    data = body.encode() if isinstance(body, str) else body
    fields = {"content-type": kind, "content-length": str(len(data))} | {
        k.replace("_", "-"): v for k, v in more.items()
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return Reply(f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + data, keep=True)


def events(body: bytes | str, kind: str = "text/event-stream", hold: bool = False) -> Reply:
    """A response that ends with its connection."""
    data = body.encode() if isinstance(body, str) else body
    head = f"content-type: {kind}\r\n" if kind else ""
    return Reply(f"HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n".encode() + data, hold)


Answer = Reply | Callable[[Asked], Reply]


@dataclass
class Peer:
    """Answers requests with what was queued, then with ``otherwise``; keeps what it was asked."""

    port: int = 0
    queue: list[Answer] = field(default_factory=list)
    otherwise: Answer = field(default_factory=lambda: reply("nothing here", "text/plain", 404))
    asked: list[Asked] = field(default_factory=list)
    on_hang_up: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def plays(self, *answers: Answer) -> None:
        self.queue.extend(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client hung up, or the test is over
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(method, path, headers, body)
        self.asked.append(asked)
        answer = self.queue.pop(0) if self.queue else self.otherwise
        played = answer(asked) if callable(answer) else answer
        writer.write(played.raw)
        await writer.drain()
        if played.hold:
            await reader.read()  # until the client hangs up
            self.on_hang_up()
        return played.keep


def card(
    *interfaces: AgentInterface, streaming: bool = True, push: bool = True, extended: bool = True, name: str = "Peer"
) -> AgentCard:
    return AgentCard(
        name=name,
        description="",
        supported_interfaces=interfaces,
        version="1",
        capabilities=AgentCapabilities(streaming=streaming, push_notifications=push, extended_agent_card=extended),
        default_input_modes=("text/plain",),
        default_output_modes=("text/plain",),
        skills=(AgentSkill(id="s", name="s", description="", tags=()),),
    )


def interface(url: str, face: str, tenant: str = "") -> AgentInterface:
    known = Face.parse(face)
    return AgentInterface(url=url, protocol_binding=known.binding, protocol_version=known.version, tenant=tenant)


def rpc(result: str) -> str:
    return f'{{"jsonrpc":"2.0","id":1,"result":{result}}}'


def card_json(value: AgentCard) -> bytes:
    return msgspec.json.encode(value)


TASK = '{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"}}'
DONE = '{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}'
WORKING_UPDATE = '{"statusUpdate":{"taskId":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING"}}}'
DONE_UPDATE = '{"statusUpdate":{"taskId":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}}'
