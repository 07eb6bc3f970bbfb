"""Streams on every face: framing, signs of life, and how they end when something breaks."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dragoman.errors import PeerError, TaskNotFoundError, TransportError
from dragoman.faces import FACES, Face
from dragoman.model import (
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    GetTaskRequest,
    SendMessageConfiguration,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
    TaskStatus,
)
from dragoman.protocol.grpc import read_frames
from dragoman.server.app import A2AApp, AppLimits
from dragoman.service import Context, Stream
from tests.asgi_driver import LIMIT, Answer, Exchange
from tests.server.callers import (
    CARD,
    EACH_FACE,
    ERRORS,
    Bench,
    Wire,
    begin,
    bench,
    check_failure,
    good_call,
    json_failure,
    reply,
    reply_task,
    send,
    sending,
    wire,
)

WEB_FACES = [face for face in EACH_FACE if face.binding != "GRPC"]
GRPC_FACES = [face for face in EACH_FACE if face.binding == "GRPC"]
SOON = AppLimits(keep_alive=0.01, watch=0.01)


def frames(face: Face, answer: Answer) -> list[bytes]:
    """The data of each event so far, framing off."""
    if face.binding == "GRPC":
        return list(read_frames(answer.body))
    blocks = [block for block in answer.body.split(b"\n\n") if block and not block.startswith(b":")]
    return [block.partition(b"data: ")[2] for block in blocks]


def events(face: Face, answer: Answer) -> list[StreamResponse]:
    """The canonical events of a stream that has no error in it."""
    load = FACES[face].dialect.load_reply
    found = frames(face, answer)
    if face.binding == "JSONRPC":
        found = [json.dumps(json.loads(one)["result"]).encode() for one in found]
    return [load(SEND_STREAMING_MESSAGE, one) for one in found]


def clean(face: Face, answer: Answer) -> bool:
    """Whether a stream ended as one that is whole."""
    if face.binding == "GRPC":
        return answer.trailers is not None and answer.trailers["grpc-status"] == "0"
    return answer.complete and b'"error"' not in answer.body


def check_broken(face: Face, answer: Answer, error: str) -> None:
    """Assert that the stream ended, and with that error."""
    row = ERRORS[error]
    if face.binding == "GRPC":
        assert answer.trailers is not None and answer.complete
        only = Answer()
        only.status, only.headers, only.trailers, only.complete = 200, answer.headers, answer.trailers, True
        check_failure(face, only, error)
        return
    assert answer.complete
    found = (
        json_failure(face, answer.status, json.loads(frames(face, answer)[-1])) if face.binding == "JSONRPC" else None
    )
    if found is not None:
        assert found.told == (row.code03 if face.version == "0.3" else row.code)
        return
    value = json.loads(frames(face, answer)[-1])
    told = value["code"] if face.version == "0.3" else value["error"]["status"]
    assert told == (row.code03 if face.version == "0.3" else row.grpc)


def seen(face: Face, count: int) -> Callable[[Answer], bool]:
    return lambda answer: len(frames(face, answer)) >= count


async def opened(
    server: Bench, face: Face, text: str = "hold", count: int = 1
) -> tuple[Exchange, asyncio.Task[Answer]]:
    """A stream under way whose first events are there."""
    exchange = begin(server.app, wire(face, SEND_STREAMING_MESSAGE, sending(text)))
    running = asyncio.create_task(exchange.run())
    await exchange.until(seen(face, count))
    return exchange, running


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_stream_begins_with_the_task_and_ends_cleanly_with_it(face: Face) -> None:
    answer = await send(bench().app, wire(face, SEND_STREAMING_MESSAGE, sending("hello")))
    found = events(face, answer)
    assert found[0].task is not None
    assert found[-1].status_update is not None and found[-1].status_update.status.state is TaskState.COMPLETED
    assert clean(face, answer)
    kind = "application/grpc" if face.binding == "GRPC" else "text/event-stream"
    assert answer.headers["content-type"].startswith(kind)
    if face.binding != "GRPC":
        assert "no-cache" in answer.headers["cache-control"]
        assert answer.headers["x-accel-buffering"] == "no"
        assert b"\r" not in answer.body


@pytest.mark.parametrize("face", [face for face in EACH_FACE if face.binding == "JSONRPC"], ids=str)
async def test_every_event_is_a_response_under_the_id_of_the_request(face: Face) -> None:
    request = wire(face, SEND_STREAMING_MESSAGE, sending("hello"))
    answer = await send(bench().app, request._replace(body=request.body.replace(b'"id":1', b'"id":"s-1"')))
    assert {json.loads(one)["id"] for one in frames(face, answer)} == {"s-1"}


@pytest.mark.parametrize("face", WEB_FACES, ids=str)
async def test_a_quiet_stream_gets_comments(face: Face) -> None:
    server = bench(limits=SOON)
    exchange, running = await opened(server, face)
    await exchange.until(lambda answer: answer.body.count(b"\n:") + answer.body.startswith(b":") >= 3)
    server.stage.go.set()
    answer = await running
    assert clean(face, answer) and events(face, answer)[-1].status_update is not None


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_quiet_grpc_stream_gets_nothing_but_messages(face: Face) -> None:
    server = bench(limits=SOON)
    exchange, running = await opened(server, face)
    before = len(frames(face, exchange.answer))
    web = Face("JSONRPC", "1.0")
    other, other_running = await opened(server, web)  # its comments tell that the time has passed
    await other.until(lambda answer: answer.body.count(b"\n:") >= 3)
    assert len(frames(face, exchange.answer)) == before
    server.stage.go.set()
    assert clean(face, await running) and clean(web, await other_running)


@pytest.mark.parametrize("verb", ["GET", "POST"])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_subscribing_works_by_get_and_by_post(version: Any, verb: str) -> None:
    server, face = bench(), Face("HTTP+JSON", version)
    exchange, running = await opened(server, face)
    task = events(face, exchange.answer)[0].task
    assert task is not None
    request = wire(face, SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id=task.id))._replace(method=verb)
    second = begin(server.app, request)
    following = asyncio.create_task(second.run())
    await second.until(seen(face, 1))
    server.stage.go.set()
    first, other = await running, await following
    assert events(face, other)[0].task is not None
    assert clean(face, first) and clean(face, other)
    last = events(face, other)[-1].status_update
    assert last is not None and last.status.state is TaskState.COMPLETED


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_stream_that_cannot_begin_is_refused_as_the_binding_does(face: Face) -> None:
    answer = await send(bench().app, wire(face, SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id="ghost")))
    check_failure(face, answer, "task not found")
    web = face == Face("JSONRPC", "0.3")  # whose clients look at nothing but an event stream
    assert answer.headers["content-type"].startswith("text/event-stream") == web


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_an_agent_that_does_not_stream_says_so(face: Face) -> None:
    from msgspec.structs import replace

    server = bench(replace(CARD, capabilities=replace(CARD.capabilities, streaming=False)))
    check_failure(face, await send(server.app, wire(face, SEND_STREAMING_MESSAGE, sending("x"))), "unsupported")


# -- the end of the server


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_closing_the_server_ends_streams_with_an_error(face: Face) -> None:
    server = bench()
    _, running = await opened(server, face)
    async with asyncio.timeout(LIMIT):
        await server.app.aclose()
    answer = await running
    check_broken(face, answer, "unavailable")
    assert not server.app.desk.streams


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_closing_the_engine_ends_streams_and_waits(face: Face) -> None:
    server = bench()
    _, running = await opened(server, face)
    waiting = asyncio.create_task(send(server.app, wire(face, SEND_MESSAGE, sending("hold"))))
    await asyncio.sleep(0)
    async with asyncio.timeout(LIMIT):
        await server.engine.aclose()
        await asyncio.wait([running, waiting])
    last = events(face, running.result())[-1].status_update
    assert last is not None and last.status.state is TaskState.FAILED


# -- callers that leave


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
async def test_a_caller_that_leaves_ends_the_wait_and_not_the_work(face: Face, op: Any) -> None:
    server = bench(limits=SOON)
    exchange = begin(server.app, wire(face, op, sending("hold")))
    running = asyncio.create_task(exchange.run())
    await server.stage.begun.wait()
    exchange.disconnect()
    async with asyncio.timeout(LIMIT):
        await running
    assert not server.app.desk.streams
    server.stage.go.set()
    async with asyncio.timeout(LIMIT):
        await server.stage.done.wait()
    await good_call(server.app, face)


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_host_that_cancels_the_request_cancels_no_work(face: Face) -> None:
    server = bench()
    for op in (SEND_MESSAGE, SEND_STREAMING_MESSAGE):
        server.stage.begun.clear()
        running = asyncio.create_task(send(server.app, wire(face, op, sending("hold"))))
        await server.stage.begun.wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
    assert not server.app.desk.streams
    server.stage.go.set()
    async with asyncio.timeout(LIMIT):
        await server.stage.done.wait()


class Gone(OSError):
    """What a host raises from ``send`` when nobody is there."""


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_send_that_fails_ends_the_request_and_leaves_nothing_behind(face: Face) -> None:
    server = bench()
    exchange = begin(server.app, wire(face, SEND_STREAMING_MESSAGE, sending("hello")))

    async def fail(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise Gone

    exchange._send = fail  # type: ignore[method-assign]  # a host whose caller is gone
    try:
        await exchange.run()
    except Gone:
        pass
    assert not server.app.desk.streams
    await good_call(server.app, face)


# -- a slow reader


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_reader_that_takes_nothing_holds_up_no_other(face: Face) -> None:
    server = bench()
    exchange = begin(server.app, wire(face, SEND_STREAMING_MESSAGE, sending("hold")))
    gate, take = asyncio.Event(), exchange._send

    async def slow(message: Any) -> None:
        await gate.wait()
        await take(message)

    exchange._send = slow  # type: ignore[method-assign]  # a host whose caller reads nothing
    running = asyncio.create_task(exchange.run())
    await server.stage.begun.wait()
    _, other_running = await opened(server, face)
    await good_call(server.app, face)
    server.stage.go.set()
    assert clean(face, await other_running)
    gate.set()
    answer = await running
    assert clean(face, answer)
    assert [event.artifact_update is not None for event in events(face, answer)].count(True) == 1


# -- streams that break in the middle


class Broken(Stream[StreamResponse]):
    """One event, then the error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.batches: list[Sequence[StreamResponse]] = [
            (StreamResponse(task=Task(id="t", context_id="c", status=TaskStatus(state=TaskState.WORKING))),)
        ]
        self.closed = 0

    async def batch(self) -> Sequence[StreamResponse]:
        if self.batches:
            return self.batches.pop(0)
        raise self.error

    async def aclose(self) -> None:
        self.closed += 1


class Service:
    """A service whose every stream breaks and whose every call fails."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.given = Broken(error)

    async def call(self, op: Any, request: Any, ctx: Context) -> Any:
        raise self.error

    async def stream(self, op: Any, request: Any, ctx: Context) -> Stream[StreamResponse]:
        return self.given


BREAKS: list[tuple[BaseException, str]] = [
    (TaskNotFoundError(), "task not found"),
    (PeerError("the agent said something odd"), "bad reply"),
    (TransportError("the agent is gone"), "unavailable"),
    (TimeoutError(), "deadline"),
    (RuntimeError("secret of ours"), "internal"),
    (RecursionError("secret of ours"), "internal"),
    (ExceptionGroup("secret of ours", [ValueError("secret of ours")]), "internal"),
]


@pytest.mark.parametrize(("error", "told"), BREAKS, ids=[type(error).__name__ for error, _ in BREAKS])
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_stream_that_breaks_says_why_and_is_closed(face: Face, error: BaseException, told: str) -> None:
    service = Service(error)
    app = A2AApp(service, CARD)
    answer = await send(app, wire(face, SEND_STREAMING_MESSAGE, sending("x")))
    check_broken(face, answer, told)
    assert not clean(face, answer)
    assert b"secret" not in answer.body + repr(answer.trailers).encode()
    assert service.given.closed == 1


@pytest.mark.parametrize(("error", "told"), BREAKS, ids=[type(error).__name__ for error, _ in BREAKS])
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_call_that_fails_says_why(face: Face, error: BaseException, told: str) -> None:
    app = A2AApp(Service(error), CARD)
    answer = await send(app, wire(face, GET_TASK, GetTaskRequest(id="t")))
    check_failure(face, answer, told)
    assert b"secret" not in answer.body + repr((answer.headers, answer.trailers)).encode()


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_an_agent_that_crashes_fails_its_task_and_keeps_its_secret(face: Face) -> None:
    answer = await send(bench().app, wire(face, SEND_MESSAGE, sending("crash")))
    assert reply_task(face, answer).status.state is TaskState.FAILED
    assert b"secret" not in answer.body


# -- deadlines


@pytest.mark.parametrize("word", ["hold", "mute"])
@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_grpc_deadline_ends_the_call_and_not_the_task(face: Face, op: Any, word: str) -> None:
    server = bench()
    answer = await send(server.app, wire(face, op, sending(word), headers={"grpc-timeout": "30m"}))
    check_broken(face, answer, "deadline") if answer.trailers else check_failure(face, answer, "deadline")
    server.stage.go.set()
    async with asyncio.timeout(LIMIT):
        await server.stage.done.wait()


@pytest.mark.parametrize("value", ["10S", "99999999H", "x", "", "5", "-1S", "123456789S"])
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_generous_or_unreadable_deadline_stops_nothing(face: Face, value: str) -> None:
    answer = await send(bench().app, wire(face, SEND_MESSAGE, sending("x"), headers={"grpc-timeout": value}))
    assert reply_task(face, answer).id


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_deadline_that_has_passed_already_is_exceeded(face: Face) -> None:
    answer = await send(bench().app, wire(face, SEND_MESSAGE, sending("hold"), headers={"grpc-timeout": "0n"}))
    check_failure(face, answer, "deadline")


# -- waiting or not


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_caller_that_does_not_wait_gets_the_task_at_work(face: Face) -> None:
    server = bench()
    configuration = SendMessageConfiguration(return_immediately=True)
    answer = await send(server.app, wire(face, SEND_MESSAGE, sending("hold", configuration=configuration)))
    task = reply_task(face, answer)
    assert task.status.state is TaskState.WORKING
    found = reply(face, GET_TASK, await send(server.app, wire(face, GET_TASK, GetTaskRequest(id=task.id))))
    assert found.id == task.id
    server.stage.go.set()


def request_of_03(binding: str, configuration: str) -> Wire:
    if binding == "JSONRPC":
        message = '{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hold"}]}'
        body = f'{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{message}{configuration}}}}}'
        return Wire("POST", "/", {"content-type": "application/json"}, body.encode())
    message = '{"messageId":"m","role":"ROLE_USER","content":[{"text":"hold"}]}'
    body = f'{{"message":{message}{configuration}}}'
    return Wire("POST", "/v1/message:send", {"content-type": "application/json"}, body.encode())


@pytest.mark.parametrize(
    ("binding", "configuration", "waits"),
    [
        ("JSONRPC", "", True),
        ("JSONRPC", ',"configuration":{"acceptedOutputModes":["text/plain"]}', True),
        ("JSONRPC", ',"configuration":{"blocking":true}', True),
        ("JSONRPC", ',"configuration":{"blocking":false}', False),
        ("HTTP+JSON", "", False),
        ("HTTP+JSON", ',"configuration":{}', False),
        ("HTTP+JSON", ',"configuration":{"blocking":true}', True),
    ],
)
async def test_absent_blocking_of_0_3_means_what_its_binding_means(
    binding: Any, configuration: str, waits: bool
) -> None:
    """Case 25."""
    server, face = bench(), Face(binding, "0.3")
    running = asyncio.create_task(send(server.app, request_of_03(binding, configuration)))
    await server.stage.begun.wait()
    if waits:
        server.stage.go.set()
    task = reply_task(face, await running)
    assert task.status.state is (TaskState.COMPLETED if waits else TaskState.WORKING)
    assert bool(task.artifacts) == waits
    server.stage.go.set()


class Hoard:
    """Something big that a frame holds."""


class Failing:
    """A service whose errors and frames hold each other. ``kept``: what the last frame held, if it still exists."""

    kept: weakref.ref[Hoard] | None = None

    async def call(self, op: Any, request: Any, ctx: Context) -> Any:
        hoard = Hoard()
        self.kept = weakref.ref(hoard)
        error = PeerError("too much")
        raise error

    stream = call


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
async def test_what_a_failed_call_had_read_is_let_go_at_once(op: Any) -> None:
    """Not when the garbage collector comes by, which may be never: errors and their frames hold each other."""
    service = Failing()
    app = A2AApp(service, CARD)
    gc.disable()
    try:
        await send(app, wire(Face("HTTP+JSON", "1.0"), op, sending("x")))
        assert service.kept is not None and service.kept() is None
    finally:
        gc.enable()
