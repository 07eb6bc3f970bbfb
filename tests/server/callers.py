"""A caller of each face that writes and reads its wire by itself, and the agent that it talks to.

Errors are read with nothing of ours: the JSON module, protobuf's own google.rpc classes, and the numbers of the error
table written out again.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote

import grpc
import msgspec
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # has no stubs

from dragoman.faces import ALL_FACES, FACES, Face
from dragoman.model import (
    SEND_MESSAGE,
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentSkill,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    Task,
)
from dragoman.runtime.agent import Agent, Turn
from dragoman.runtime.engine import Engine
from dragoman.server.app import A2AApp, AppLimits
from dragoman.service import AnyOperation
from tests.asgi_driver import Answer, App, Exchange, scope

EXTENSION = AgentExtension(uri="urn:ext:a")
CARD = AgentCard(
    name="Tester",
    description="An agent for tests",
    supported_interfaces=(),
    version="1",
    capabilities=AgentCapabilities(
        streaming=True, push_notifications=True, extended_agent_card=True, extensions=(EXTENSION,)
    ),
    default_input_modes=("text/plain", "application/json", "image/png"),
    default_output_modes=("text/plain",),
    skills=(AgentSkill(id="s", name="s", description="all it does", tags=("test",)),),
)


class Stage:
    """What the agent is told by the test: ``go`` lets it on after it has begun to work; ``begun`` says it has."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        self.done = asyncio.Event()

    async def handle(self, turn: Turn) -> None:
        word, _, rest = turn.text.partition(" ")
        if word == "hold":
            await turn.working("holding")
            self.begun.set()
            await self.go.wait()
            await turn.artifact("held")
            await turn.complete()
            self.done.set()
        elif word == "mute":  # tells nothing before it is let on
            self.begun.set()
            await self.go.wait()
            await turn.complete()
            self.done.set()
        elif word == "ask":
            await turn.ask("your name?")
        elif word == "back":
            await turn.artifact(turn.message.parts)
        elif word == "say":
            await turn.say(rest)
        elif word == "extensions":
            await turn.artifact(",".join(turn.extensions) or "none")
        elif word == "tenant":
            await turn.artifact(turn.tenant or "none")
        elif word == "crash":
            raise RuntimeError("secret of the agent")
        else:
            await turn.artifact(turn.text or "nothing")


@dataclass
class Bench:
    """An app, its engine and the stage of its agent."""

    app: A2AApp
    engine: Engine
    stage: Stage


def bench(card: AgentCard = CARD, *, limits: AppLimits | None = None, **options: Any) -> Bench:
    """An app over an agent that does as it is told."""
    stage = Stage()
    extended = msgspec.structs.replace(card, description="for those we know")
    engine = Engine(Agent(card, stage.handle, extended), check_input_modes=options.pop("check_input_modes", True))
    return Bench(A2AApp(engine, card, limits=limits or AppLimits(), **options), engine, stage)


def sending(
    text: str, *, tenant: str = "", task: str = "", configuration: SendMessageConfiguration | None = None
) -> SendMessageRequest:
    message = Message(message_id="m-1", role=Role.USER, parts=(Part(text=text),), task_id=task)
    return SendMessageRequest(tenant=tenant, message=message, configuration=configuration)


class Wire(NamedTuple):
    """One request as a server gets it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def wire(face: Face, op: AnyOperation, request: Any, *, tenant: str = "", headers: Mapping[str, str] = {}) -> Wire:
    """A good request of a face; ``headers`` on top."""
    codec, dialect = FACES[face]
    made = codec.write_call(op.name, dialect.dump_request(op, request), tenant=tenant)
    fields = {name.decode(): value.decode() for name, value in made.headers.raw}
    path = (made.path or "/") + ("?" + made.query if made.query else "")
    return Wire(made.method, path, {"host": "agent.test", **fields, "a2a-version": face.version, **headers}, made.body)


def begin(app: App, request: Wire, **more: Any) -> Exchange:
    """Put a request before an app; nothing runs yet."""
    return Exchange(app, scope(request.method, request.path, request.headers, **more), [request.body])


async def send(app: App, request: Wire, **more: Any) -> Answer:
    """Put a request before an app and wait for all of its answer."""
    return await begin(app, request, **more).run()


async def good_call(app: App, face: Face, text: str = "hello") -> Task:
    """A call that succeeds on that face, its task."""
    return reply_task(face, await send(app, wire(face, SEND_MESSAGE, sending(text))))


def reply_task(face: Face, answer: Answer) -> Task:
    """The task of an answer to SendMessage."""
    found: SendMessageResponse = reply(face, SEND_MESSAGE, answer)
    assert found.task is not None
    return found.task


def reply(face: Face, op: AnyOperation, answer: Answer) -> Any:
    """The canonical reply of a successful answer."""
    return FACES[face].dialect.load_reply(op, message_of(face, op, answer))


def message_of(face: Face, op: AnyOperation, answer: Answer) -> bytes:
    """The message bytes of a successful answer; fails with what it says instead."""
    assert answer.status == 200, (answer.status, answer.body)
    if face.binding == "GRPC":
        assert answer.trailers is not None and answer.trailers["grpc-status"] == "0", (answer.headers, answer.trailers)
        return answer.body[5:]
    if face.binding == "JSONRPC":
        envelope = json.loads(answer.body)
        assert "error" not in envelope, envelope
        return json.dumps(envelope["result"]).encode()
    return answer.body


# Errors


class Row(NamedTuple):
    """One error on the wires, as the fact sheet has it."""

    code: int
    grpc: str
    http: int
    reason: str
    grpc03: str
    http03: int
    code03: int


ERRORS = {
    "task not found": Row(-32001, "NOT_FOUND", 404, "TASK_NOT_FOUND", "NOT_FOUND", 404, -32001),
    "not cancelable": Row(
        -32002, "FAILED_PRECONDITION", 400, "TASK_NOT_CANCELABLE", "FAILED_PRECONDITION", 409, -32002
    ),
    "no push": Row(-32003, "FAILED_PRECONDITION", 400, "PUSH_NOTIFICATION_NOT_SUPPORTED", "UNIMPLEMENTED", 501, -32003),
    "unsupported": Row(-32004, "FAILED_PRECONDITION", 400, "UNSUPPORTED_OPERATION", "UNIMPLEMENTED", 501, -32004),
    "media type": Row(-32005, "INVALID_ARGUMENT", 400, "CONTENT_TYPE_NOT_SUPPORTED", "UNIMPLEMENTED", 415, -32005),
    "bad reply": Row(-32006, "INTERNAL", 500, "INVALID_AGENT_RESPONSE", "INTERNAL", 502, -32006),
    "extension": Row(-32008, "FAILED_PRECONDITION", 400, "EXTENSION_SUPPORT_REQUIRED", "INVALID_ARGUMENT", 400, -32600),
    "version": Row(-32009, "FAILED_PRECONDITION", 400, "VERSION_NOT_SUPPORTED", "INVALID_ARGUMENT", 400, -32600),
    "parse": Row(-32700, "INVALID_ARGUMENT", 400, "", "INTERNAL", 400, -32700),
    "request": Row(-32600, "INVALID_ARGUMENT", 400, "", "INVALID_ARGUMENT", 400, -32600),
    "too large": Row(-32600, "RESOURCE_EXHAUSTED", 413, "", "RESOURCE_EXHAUSTED", 413, -32600),
    "no method": Row(-32601, "UNIMPLEMENTED", 404, "", "UNIMPLEMENTED", 404, -32601),
    "wrong verb": Row(-32601, "UNIMPLEMENTED", 405, "", "UNIMPLEMENTED", 405, -32601),
    "params": Row(-32602, "INVALID_ARGUMENT", 400, "", "INVALID_ARGUMENT", 422, -32602),
    "internal": Row(-32603, "INTERNAL", 500, "", "INTERNAL", 500, -32603),
    "unavailable": Row(-32603, "UNAVAILABLE", 503, "UNAVAILABLE", "UNAVAILABLE", 503, -32603),
    "deadline": Row(-32603, "DEADLINE_EXCEEDED", 504, "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", 504, -32603),
}


class Failure(NamedTuple):
    """What an error answer says. ``told``: code on JSON-RPC and 0.3 HTTP+JSON, status name on the others."""

    http: int
    told: int | str
    reason: str
    message: str
    fields: tuple[str, ...]
    metadata: dict[str, str]


def expected(face: Face, name: str) -> tuple[int, int | str, str]:
    """HTTP status, code or status name, and reason of an error on a face."""
    row = ERRORS[name]
    old = face.version == "0.3"
    if face.binding == "JSONRPC":
        return 200, (row.code03 if old else row.code), ("" if old else row.reason)
    if face.binding == "GRPC":
        return 200, (row.grpc03 if old else row.grpc), ("" if old else row.reason)
    return (row.http03, row.code03, "") if old else (row.http, row.grpc, row.reason)


def check_failure(face: Face, answer: Answer, name: str, *, generic: bool = False) -> Failure:
    """Assert that an answer is exactly this error of this face, complete and without a trace of our code.

    ``generic``: it is one without a reason of A2A, which may come with the one that is made of its name.
    """
    found = failure(face, answer)
    http, told, reason = expected(face, name)
    assert (found.http, found.told) == (http, told), found
    assert found.reason == reason or (generic and not reason), found
    whole = answer.body + repr((answer.headers, answer.trailers)).encode()
    for trace in (b"Traceback", b".py", b"msgspec", b"object at 0x"):
        assert trace not in whole, whole
    return found


def failure(face: Face, answer: Answer) -> Failure:
    """Read an error answer of a face."""
    if face.binding == "GRPC":
        return _grpc_failure(face, answer)
    assert answer.complete
    assert answer.headers["content-type"].partition(";")[0] in ("application/json", "text/event-stream"), answer.headers
    body = answer.body
    if answer.headers["content-type"].startswith("text/event-stream"):
        body = body.removeprefix(b"data: ")
    else:
        assert answer.headers["content-length"] == str(len(body))
    return json_failure(face, answer.status, json.loads(body))


def json_failure(face: Face, http: int, value: Any) -> Failure:
    """Read the JSON of an error."""
    if face.binding == "JSONRPC":
        assert value["jsonrpc"] == "2.0" and "result" not in value and "id" in value
        error = value["error"]
        data = error.get("data", [])
        if face.version == "0.3":
            assert not isinstance(data, list) or not data
            told = dict(data)
            fields = [one["field"] for one in told.get("fieldViolations", [])]
            return Failure(http, error["code"], "", error["message"], tuple(fields), told)
        return Failure(http, error["code"], *_typed(error["message"], data))
    if face.version == "0.3":
        data = value.get("data", {})
        assert value["error"].startswith("io.a2a.spec.") and value["message"]
        fields = [one["field"] for one in data.get("fieldViolations", [])]
        return Failure(http, value["code"], "", value["message"], tuple(fields), dict(data))
    error = value["error"]
    assert error["code"] == http
    return Failure(http, error["status"], *_typed(error["message"], error.get("details", [])))


def _typed(message: str, details: list[dict[str, Any]]) -> tuple[str, str, tuple[str, ...], dict[str, str]]:
    reason, metadata, fields = "", {}, []
    for one in details:
        kind = one["@type"].removeprefix("type.googleapis.com/google.rpc.")
        if kind == "ErrorInfo":
            assert one["domain"] == "a2a-protocol.org"
            reason, metadata = one["reason"], one.get("metadata", {})
            assert all(isinstance(value, str) for value in metadata.values())
        elif kind == "BadRequest":
            fields = [violation["field"] for violation in one["fieldViolations"]]
    return reason, message, tuple(fields), metadata


def _grpc_failure(face: Face, answer: Answer) -> Failure:
    assert answer.complete and answer.headers["content-type"] == "application/grpc"
    told = answer.headers if answer.trailers is None else answer.trailers
    number = int(told["grpc-status"])
    name = next(code.name for code in grpc.StatusCode if code.value[0] == number)
    message = unquote(told.get("grpc-message", ""))
    packed = told.get("grpc-status-details-bin")
    if packed is None:
        return Failure(answer.status, name, "", message, (), {})
    assert face.version == "1.0"
    status = status_pb2.Status.FromString(base64.b64decode(packed + "=" * (-len(packed) % 4)))
    assert (status.code, status.message) == (number, message)
    reason, metadata, fields = "", {}, []
    for one in status.details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if one.Unpack(info):
            assert info.domain == "a2a-protocol.org"
            reason, metadata = info.reason, dict(info.metadata)
        elif one.Unpack(bad):
            fields = [violation.field for violation in bad.field_violations]
    return Failure(answer.status, name, reason, message, tuple(fields), metadata)


EACH_FACE = [*ALL_FACES]
