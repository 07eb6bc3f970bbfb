"""The tenant of a request, found and taken out of the bytes as they came."""

from __future__ import annotations

import gzip
import json

import pytest
from msgspec import structs

from dragoman.dialects import v1
from dragoman.gateway.tenants import of_grpc, of_json_rpc, split_json, split_protobuf
from dragoman.model import OPERATIONS, SEND_MESSAGE, Message, Part, Role, SendMessageRequest
from dragoman.protocol.grpc import frame
from dragoman.protocol.operations import GRPC_SERVICE
from dragoman.service import AnyOperation

SEND = f"/{GRPC_SERVICE['1.0']}/SendMessage"
HELLO = Message(message_id="m", role=Role.USER, parts=(Part(text="héllo"),))


def message(tenant: str) -> bytes:
    return v1.PROTOBUF.dump_request(SEND_MESSAGE, SendMessageRequest(tenant=tenant, message=HELLO))


@pytest.mark.parametrize("tenant", ["billing", "b" * 300, "ü"])
def test_the_tenant_of_a_message_is_taken_out(tenant: str) -> None:
    assert split_protobuf("SendMessage", message(tenant)) == (tenant, message(""))
    assert of_grpc(SEND, frame(message(tenant)), b"") == tenant


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=lambda op: op.name)
def test_every_operation_has_a_tenant(op: AnyOperation) -> None:
    needed = {name: HELLO if name == "message" else "x" for name in op.request.__struct_fields__ if name != "tenant"}
    required = {field.name: needed[field.name] for field in structs.fields(op.request) if field.required}
    named, bare = (v1.PROTOBUF.dump_request(op, op.request(tenant=name, **required)) for name in ("billing", ""))
    assert split_protobuf(op.name, named) == ("billing", bare)
    named, bare = (v1.JSON.dump_request(op, op.request(tenant=name, **required)) for name in ("billing", ""))
    tenant, rest = split_json(named)
    assert (tenant, json.loads(rest)) == ("billing", json.loads(bare))


def test_the_last_of_two_counts_and_unknown_fields_stay() -> None:
    unknown = b"\xfa\x01\x03abc"  # field 31
    tail = message("")
    body = message("one")[:5] + unknown + b"\x0a\x03two" + tail
    assert split_protobuf("SendMessage", body) == ("two", unknown + tail)


def test_a_compressed_message_is_read() -> None:
    packed = gzip.compress(message("billing"))
    body = b"\1" + len(packed).to_bytes(4, "big") + packed
    assert of_grpc(SEND, body, b"gzip") == "billing"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\0\0\0\x05ab",
        frame(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        frame(b"\x0a\x09ab"),
        frame(b"\x0a\x02\xff\xfe"),
        frame(message("a")) + frame(message("b")),
        frame(message("")),
    ],
    ids=["nothing", "cut off", "no varint", "short", "no UTF-8", "two", "none"],
)
def test_what_cannot_be_read_has_none_and_stays_as_it_is(body: bytes) -> None:
    assert of_grpc(SEND, body, b"") == ""
    assert split_protobuf("SendMessage", body[5:]) == ("", body[5:]) or body.count(b"m") > 1


def test_a_method_that_nobody_knows_has_none() -> None:
    assert of_grpc("/lf.a2a.v1.A2AService/Other", frame(message("a")), b"") == ""


def test_the_tenant_of_json_rpc_params_is_found() -> None:
    call = {"jsonrpc": "2.0", "id": "x", "method": "GetTask", "params": {"tenant": "billing", "id": "t"}}
    assert of_json_rpc(json.dumps(call).encode()) == "billing"


def test_numbers_of_a_message_stay_as_they_were_written() -> None:
    assert split_json(b'{"tenant": "a", "n": 1.50, "big": 12345678901234567890123}') == (
        "a",
        b'{"n":1.50,"big":12345678901234567890123}',
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"params":{"id":"tenant"}}',
        b'{"params":{"tenant":1}}',
        b'{"params":{"tenant":""}}',
        b'{"params":["tenant"]}',
        b'["tenant"]',
        b'{"tenant":"a"}',
        b'{"params":{"tenant":"a"}',
    ],
    ids=bytes.decode,
)
def test_json_without_one_stays_as_it_is(body: bytes) -> None:
    assert of_json_rpc(body) == ""
