"""The reflection service, called by gRPC's own client and read by protobuf."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool

from dragoman.faces import Face
from dragoman.protocol.operations import GRPC_SERVICE, VERSIONS, Version
from dragoman.protocol.proto_files import REFLECTION_SERVICES
from dragoman.server.host import serve
from tests import oracle
from tests.server.callers import bench
from tests.server.services.conftest import END, Caller

Messages = dict[str, Any]
HEALTH = "grpc.health.v1.Health"


class Dialog:
    """One open stream: each :meth:`ask` is answered before the next is sent."""

    def __init__(self, caller: Caller, messages: Messages, service: str = REFLECTION_SERVICES[0]) -> None:
        package = service.rpartition(".")[0]
        self._request = messages[f"{package}.ServerReflectionRequest"]
        self._reply = messages[f"{package}.ServerReflectionResponse"]
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._caller = caller
        self.call = caller.talk(f"/{service}/ServerReflectionInfo", iter(self._outgoing.get, None))

    async def ask(self, **fields: Any) -> Any:
        self.request = self._request(**fields)
        self._outgoing.put(self.request.SerializeToString())
        reply = await self._caller.next(self.call)
        assert reply is not END
        return self._reply.FromString(reply)

    async def end(self) -> bytes:
        self._outgoing.put(None)
        return await self._caller.next(self.call)


@pytest.fixture(params=REFLECTION_SERVICES)
def dialog(caller: Caller, messages: Messages, request: pytest.FixtureRequest) -> Iterator[Dialog]:
    one = Dialog(caller, messages, request.param)
    yield one
    one.call.cancel()


async def test_each_question_is_answered_as_it_comes_and_the_stream_ends_cleanly(dialog: Dialog) -> None:
    for _ in range(3):
        reply = await dialog.ask(host="here", list_services="")
        assert reply.valid_host == "here"
        assert reply.original_request == dialog.request
    assert await dialog.end() == END


async def test_all_services_are_listed(dialog: Dialog) -> None:
    reply = await dialog.ask(list_services="*")
    names = [one.name for one in reply.list_services_response.service]
    assert names == sorted([*GRPC_SERVICE.values(), HEALTH, *REFLECTION_SERVICES])


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_files_of_a_service_make_its_messages(dialog: Dialog, version: Version) -> None:
    reply = await dialog.ask(file_containing_symbol=GRPC_SERVICE[version])
    pool = descriptor_pool.DescriptorPool()
    first, *needed = reply.file_descriptor_response.file_descriptor_proto
    for file in (*needed, first):
        pool.AddSerializedFile(file)
    methods = {row.field for row in oracle.rows(version) if row.kind == "rpc"}
    assert {one.name for one in pool.FindServiceByName(GRPC_SERVICE[version]).methods} == methods
    for name, theirs in oracle.messages(version).items():
        ours = pool.FindMessageTypeByName(theirs.DESCRIPTOR.full_name)
        assert {(f.name, f.number) for f in ours.fields} == {(f.name, f.number) for f in theirs.DESCRIPTOR.fields}, name


@pytest.mark.parametrize(
    ("symbol", "file"),
    [
        ("lf.a2a.v1.Task", "lf/a2a/v1/a2a.proto"),
        (".lf.a2a.v1.Task", "lf/a2a/v1/a2a.proto"),
        ("lf.a2a.v1.A2AService.GetTask", "lf/a2a/v1/a2a.proto"),
        ("a2a.v1.Part.part", "a2a/v1/a2a.proto"),
        ("google.protobuf.Value", "google/protobuf/struct.proto"),
        ("grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"),
    ],
)
async def test_a_symbol_and_the_name_of_its_file_get_the_same(dialog: Dialog, symbol: str, file: str) -> None:
    by_symbol = await dialog.ask(file_containing_symbol=symbol)
    by_name = await dialog.ask(file_by_filename=file)
    assert by_symbol.file_descriptor_response.file_descriptor_proto
    assert by_symbol.file_descriptor_response == by_name.file_descriptor_response


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ({"file_by_filename": "nothing.proto"}, grpc.StatusCode.NOT_FOUND),
        ({"file_by_filename": ""}, grpc.StatusCode.NOT_FOUND),
        ({"file_containing_symbol": "lf.a2a.v1.Nothing"}, grpc.StatusCode.NOT_FOUND),
        ({"file_containing_symbol": "lf.a2a.v1"}, grpc.StatusCode.NOT_FOUND),
        (
            {"file_containing_extension": {"containing_type": "a2a.v1.Task", "extension_number": 7}},
            grpc.StatusCode.UNIMPLEMENTED,
        ),
        ({"all_extension_numbers_of_type": "a2a.v1.Task"}, grpc.StatusCode.UNIMPLEMENTED),
        ({"host": "here"}, grpc.StatusCode.INVALID_ARGUMENT),
    ],
    ids=["no such file", "no file name", "no such symbol", "a package", "extension", "extensions of", "nothing asked"],
)
async def test_what_cannot_be_told_is_an_error_in_the_reply_and_the_stream_goes_on(
    dialog: Dialog, question: dict[str, Any], code: grpc.StatusCode
) -> None:
    reply = await dialog.ask(**question)
    assert reply.error_response.error_code == code.value[0]
    assert reply.error_response.error_message
    assert reply.original_request == dialog.request
    assert (await dialog.ask(list_services="")).list_services_response.service


async def test_an_open_stream_is_ended_with_unavailable_when_the_server_closes(caller: Caller, dialog: Dialog) -> None:
    await dialog.ask(list_services="")
    await caller.app.aclose()
    with pytest.raises(grpc.RpcError) as caught:
        await caller.next(dialog.call)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_bytes_that_are_no_question_end_the_stream(caller: Caller) -> None:
    call = caller.talk(f"/{REFLECTION_SERVICES[0]}/ServerReflectionInfo", iter([b"\xff"]))
    with pytest.raises(grpc.RpcError) as caught:
        await caller.next(call)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_only_what_is_served_is_listed(messages: Messages) -> None:
    behind = bench(reflection=True, faces=(Face("GRPC", "0.3"),))
    async with serve(behind.app) as server:
        caller = Caller(behind.app, server.port)
        reply = await Dialog(caller, messages).ask(list_services="")
        listed = {one.name for one in reply.list_services_response.service}
        assert listed == {GRPC_SERVICE["0.3"], *REFLECTION_SERVICES}
        await asyncio.to_thread(caller.channel.close)
    await behind.engine.aclose()
