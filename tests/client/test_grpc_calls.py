"""The gRPC faces against grpcio's own server, fed with literal messages."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import trustme
from grpc import aio

from dragoman import errors
from dragoman.client.client import Client, Resume, Timeouts, Tls, connect
from dragoman.client.transports.grpc import address
from dragoman.faces import FACES, Face
from dragoman.model import (
    GET_TASK,
    SEND_STREAMING_MESSAGE,
    GetTaskRequest,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from dragoman.protocol.operations import GRPC_SERVICE
from dragoman.service import Context
from tests.client.peers import card, interface

FACE = Face("GRPC", "1.0")
TASK = Task(id="t-1", context_id="c-1", status=TaskStatus(state=TaskState.WORKING))
DONE = TaskStatusUpdateEvent(task_id="t-1", context_id="c-1", status=TaskStatus(state=TaskState.COMPLETED))


class Handlers(grpc.GenericRpcHandler):
    """Any method, by its name; keeps what was asked."""

    def __init__(self) -> None:
        self.unary: dict[str, Any] = {}
        self.streaming: dict[str, Any] = {}
        self.metadata: list[dict[str, str | bytes]] = []
        self.asked: list[str] = []

    def service(self, handler_call_details: Any) -> Any:
        method: str = handler_call_details.method
        self.asked.append(method)
        self.metadata.append(dict(handler_call_details.invocation_metadata))
        name = method.rpartition("/")[2]
        if name in self.unary:
            return grpc.unary_unary_rpc_method_handler(self.unary[name])
        if name in self.streaming:
            return grpc.unary_stream_rpc_method_handler(self.streaming[name])
        return None


@pytest.fixture
def handlers() -> Handlers:
    return Handlers()


@pytest.fixture
async def port(handlers: Handlers) -> AsyncIterator[int]:
    server = aio.server(handlers=(handlers,))
    number = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield number
    await server.stop(None)


async def client(port: int, face: str = "1.0/GRPC", tenant: str = "", **more: Any) -> Client:
    url = f"grpc://127.0.0.1:{port}"
    return await connect(card(interface(url, face, tenant)), **{"resume": Resume(tries=0), **more})


def answer(face: Face, reply: Any, op: Any = GET_TASK) -> bytes:
    return FACES[face].dialect.dump_reply(op, reply)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_task_is_fetched_over_both_versions(port: int, handlers: Handlers, version: Any) -> None:
    face = Face("GRPC", version)

    async def get(request: bytes, ctx: Any) -> bytes:
        assert FACES[face].dialect.load_request(GET_TASK, request).id == "t-1"
        return answer(face, TASK)

    handlers.unary["GetTask"] = get
    async with await client(port, str(face), bearer="secret", headers={"X-Key": "k"}) as agent:
        assert await agent.get_task("t-1") == TASK
    assert handlers.asked == [f"/{GRPC_SERVICE[face.version]}/GetTask"]
    sent = handlers.metadata[0]
    assert (sent["a2a-version"], sent["authorization"], sent["x-key"]) == (version, "Bearer secret", "k")


async def test_metadata_keys_are_lower_case_and_activated_extensions_come_back(port: int, handlers: Handlers) -> None:
    async def get(request: bytes, ctx: Any) -> bytes:
        ctx.set_trailing_metadata((("a2a-extensions", "urn:a, urn:b"),))
        return answer(FACE, TASK)

    handlers.unary["GetTask"] = get
    async with await client(port, headers={"X-A2A-Extensions": "urn:no", "X-Upper": "1"}) as agent:
        ctx = Context(extensions=("urn:a", "urn:b", "urn:c"))
        await agent.call(GET_TASK, GetTaskRequest(id="t-1"), ctx)
    assert handlers.metadata[0]["a2a-extensions"] == "urn:a, urn:b, urn:c"
    assert handlers.metadata[0]["x-upper"] == "1"
    assert "x-a2a-extensions" not in handlers.metadata[0]
    assert ctx.activated == ("urn:a", "urn:b")


async def test_the_tenant_travels_in_the_message(port: int, handlers: Handlers) -> None:
    seen: list[str] = []

    async def get(request: bytes, ctx: Any) -> bytes:
        seen.append(FACES[FACE].dialect.load_request(GET_TASK, request).tenant)
        return answer(FACE, TASK)

    handlers.unary["GetTask"] = get
    async with await client(port, tenant="acme") as agent:
        await agent.get_task("t-1")
    assert seen == ["acme"]


async def events(request: bytes, ctx: Any) -> AsyncIterator[bytes]:
    yield answer(FACE, StreamResponse(task=TASK), SEND_STREAMING_MESSAGE)
    yield answer(FACE, StreamResponse(status_update=DONE), SEND_STREAMING_MESSAGE)


async def test_a_stream_comes_event_by_event(port: int, handlers: Handlers) -> None:
    handlers.streaming["SendStreamingMessage"] = events
    async with await client(port) as agent:
        stream = await agent.stream_text("hello")
        assert [event async for event in stream] == [StreamResponse(task=TASK), StreamResponse(status_update=DONE)]
        await stream.aclose()


async def test_a_stream_that_ends_too_early_is_a_break(port: int, handlers: Handlers) -> None:
    async def cut(request: bytes, ctx: Any) -> AsyncIterator[bytes]:
        yield answer(FACE, StreamResponse(task=TASK), SEND_STREAMING_MESSAGE)

    handlers.streaming["SendStreamingMessage"] = cut
    async with await client(port) as agent:
        stream = await agent.stream_text("hello")
        with pytest.raises(errors.TransportError):
            [event async for event in stream]
        await stream.aclose()


async def test_closing_a_stream_cancels_the_call_at_the_peer(port: int, handlers: Handlers) -> None:
    cancelled = asyncio.Event()

    async def endless(request: bytes, ctx: Any) -> AsyncIterator[bytes]:
        try:
            yield answer(FACE, StreamResponse(task=TASK), SEND_STREAMING_MESSAGE)
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    handlers.streaming["SendStreamingMessage"] = endless
    async with await client(port) as agent:
        stream = await agent.stream_text("hello")
        await stream.aclose()
        async with asyncio.timeout(5):
            await cancelled.wait()


def failing(error: errors.A2AError, version: Any = "1.0") -> Any:
    """A handler that answers with the trailers of ``error``."""
    fields = {name.decode(): value for name, value in FACES[Face("GRPC", version)].codec.trailers(error) or ()}

    async def fail(request: bytes, ctx: Any) -> bytes:
        packed = fields.get("grpc-status-details-bin")
        if packed:
            raw = base64.b64decode(packed + b"=" * (-len(packed) % 4))
            ctx.set_trailing_metadata((("grpc-status-details-bin", raw),))
        code = next(one for one in grpc.StatusCode if one.value[0] == int(fields["grpc-status"]))
        await ctx.abort(code, error.message)
        raise AssertionError

    return fail


ERRORS = [
    errors.TaskNotFoundError("gone", metadata={"taskId": "t-1"}),
    errors.TaskNotCancelableError("done"),
    errors.VersionNotSupportedError("no", metadata={"supportedVersions": "1.0"}),
    errors.InvalidParamsError("bad", violations=(("id", "empty"),)),
    errors.UnauthenticatedError("who"),
    errors.UnavailableError("later"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_errors_come_back_as_what_they_are(port: int, handlers: Handlers, error: errors.A2AError) -> None:
    handlers.unary["GetTask"] = failing(error)
    async with await client(port) as agent:
        with pytest.raises(errors.DragomanError) as caught:
            await agent.get_task("t-1")
    found = caught.value
    assert type(found) is type(error)
    assert isinstance(found, errors.A2AError)
    assert (found.message, found.metadata, found.violations) == (error.message, error.metadata, error.violations)


async def test_an_error_before_the_first_event_is_raised_by_opening(port: int, handlers: Handlers) -> None:
    async def refuse(request: bytes, ctx: Any) -> AsyncIterator[bytes]:
        await failing(errors.UnsupportedOperationError("none"))(request, ctx)
        yield b""

    handlers.streaming["SendStreamingMessage"] = refuse
    async with await client(port) as agent:
        with pytest.raises(errors.UnsupportedOperationError, match="none"):
            await agent.stream_text("hello")


async def test_a_method_that_the_peer_lacks_is_method_not_found(port: int) -> None:
    async with await client(port) as agent:
        with pytest.raises(errors.MethodNotFoundError):
            await agent.get_task("t-1")


async def test_a_reply_that_does_not_come_in_time_is_a_transport_error(port: int, handlers: Handlers) -> None:
    async def never(request: bytes, ctx: Any) -> bytes:
        await asyncio.Event().wait()
        return b""

    handlers.unary["GetTask"] = never
    async with await client(port, timeouts=Timeouts(reply=0.1)) as agent:
        with pytest.raises(errors.TransportError, match="in time") as caught:
            await agent.get_task("t-1")
    assert caught.value.sent


async def test_nobody_there_is_a_transport_error_that_was_not_sent() -> None:
    async with await client(1) as agent:
        with pytest.raises(errors.TransportError, match="Cannot connect") as caught:
            await agent.get_task("t-1")
    assert not caught.value.sent


@pytest.mark.parametrize("trusted", [True, False])
async def test_tls_is_checked_against_the_given_root(handlers: Handlers, trusted: bool) -> None:
    async def get(request: bytes, ctx: Any) -> bytes:
        return answer(FACE, TASK)

    handlers.unary["GetTask"] = get
    ca, other = trustme.CA(), trustme.CA()
    own = ca.issue_cert("localhost")
    server = aio.server(handlers=(handlers,))
    chain = b"".join(part.bytes() for part in own.cert_chain_pems)
    number = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(own.private_key_pem.bytes(), chain)]))
    await server.start()
    root = (ca if trusted else other).cert_pem.bytes()
    try:
        async with connect(
            card(interface(f"https://localhost:{number}/ignored", "1.0/GRPC")), tls=Tls(ca=root)
        ) as agent:
            if trusted:
                assert await agent.get_task("t-1") == TASK
            else:
                with pytest.raises(errors.TransportError) as caught:
                    await agent.get_task("t-1")
                assert not caught.value.sent
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://a.example", ("a.example:443", True)),
        ("https://a.example:8443/path", ("a.example:8443", True)),
        ("grpcs://a.example:1", ("a.example:1", True)),
        ("grpc://a.example:1", ("a.example:1", False)),
        ("http://a.example", ("a.example:80", False)),
        ("a.example:50051", ("a.example:50051", True)),
        ("grpc://[::1]:5", ("[::1]:5", False)),
    ],
)
def test_the_scheme_of_a_url_says_whether_there_is_tls(url: str, found: tuple[str, bool]) -> None:
    assert address(url) == found


@pytest.mark.parametrize("url", ["ws://a:1", "grpc://a:port", "grpc://", ""])
def test_a_url_that_grpc_cannot_use_is_refused(url: str) -> None:
    with pytest.raises(errors.ConfigError, match="gRPC url"):
        address(url)
