"""The files that we describe are what protobuf's own implementation takes them for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pool, empty_pb2, struct_pb2, timestamp_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from dragoman.protocol.descriptors import descriptor, symbols
from dragoman.protocol.operations import GRPC_SERVICE, VERSIONS, Version
from dragoman.protocol.proto_files import HEALTH_SERVICE, REFLECTION_SERVICES, files, needed
from tests import oracle


@pytest.fixture(scope="module")
def pool() -> descriptor_pool.DescriptorPool:
    """Our files in a pool of their own, each after those that it needs."""
    made = descriptor_pool.DescriptorPool()
    for name in files():
        made.AddSerializedFile(descriptor(name))
    return made


def facts(message: Descriptor) -> Iterator[tuple[Any, ...]]:
    """All that a message type says, its nested types included."""
    for field in message.fields:
        kind = field.message_type or field.enum_type
        oneof = field.containing_oneof
        yield (
            message.full_name,
            field.name,
            field.number,
            field.json_name,
            field.type,
            field.is_repeated,
            field.has_presence,
            kind and kind.full_name,
            oneof and (oneof.name, oneof.index),
        )
    yield message.full_name, message.GetOptions().map_entry
    for nested in message.nested_types:
        yield from facts(nested)
    for enum in message.enum_types:
        yield from values(enum)


def values(enum: EnumDescriptor) -> Iterator[tuple[Any, ...]]:
    yield from ((enum.full_name, value.name, value.number) for value in enum.values)


def of_file(file: Any) -> list[tuple[Any, ...]]:
    messages = [fact for message in file.message_types_by_name.values() for fact in facts(message)]
    return messages + [fact for enum in file.enum_types_by_name.values() for fact in values(enum)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a2a_files_say_what_the_specification_says(pool: descriptor_pool.DescriptorPool, version: Version) -> None:
    ours = pool.FindFileContainingSymbol(GRPC_SERVICE[version])
    theirs = oracle.messages(version)["Task"].DESCRIPTOR.file
    assert sorted(map(repr, of_file(ours))) == sorted(map(repr, of_file(theirs)))
    assert len(ours.message_types_by_name) > 30


@pytest.mark.parametrize("version", VERSIONS)
def test_the_methods_are_those_of_the_specification(pool: descriptor_pool.DescriptorPool, version: Version) -> None:
    package = GRPC_SERVICE[version].rpartition(".")[0]
    found = {}
    for method in pool.FindServiceByName(GRPC_SERVICE[version]).methods:
        assert not method.client_streaming
        stream = "stream " if method.server_streaming else ""
        taken, given = (one.full_name.removeprefix(package + ".") for one in (method.input_type, method.output_type))
        found[method.name] = f"{taken} -> {stream}{given}"
    assert found == {row.field: row.type for row in oracle.rows(version) if row.kind == "rpc"}


@pytest.mark.parametrize("module", [struct_pb2, timestamp_pb2, empty_pb2], ids=lambda one: one.DESCRIPTOR.name)
def test_files_of_protobuf_are_its_own(pool: descriptor_pool.DescriptorPool, module: Any) -> None:
    assert of_file(pool.FindFileByName(module.DESCRIPTOR.name)) == of_file(module.DESCRIPTOR)


def test_health_and_reflection_have_their_streams(pool: descriptor_pool.DescriptorPool) -> None:
    health = {one.name: one for one in pool.FindServiceByName(HEALTH_SERVICE).methods}
    assert sorted(health) == ["Check", "List", "Watch"]
    assert [one.name for one in health.values() if one.server_streaming] == ["Watch"]
    status = pool.FindEnumTypeByName("grpc.health.v1.HealthCheckResponse.ServingStatus")
    assert status.values_by_name["SERVING"].number == 1
    for service in REFLECTION_SERVICES:
        (info,) = pool.FindServiceByName(service).methods
        assert info.client_streaming and info.server_streaming


def test_a_map_is_a_message_of_pairs(pool: descriptor_pool.DescriptorPool) -> None:
    field = pool.FindMessageTypeByName("lf.a2a.v1.AgentCard").fields_by_name["security_schemes"]
    assert field.message_type is not None
    assert field.message_type.full_name == "lf.a2a.v1.AgentCard.SecuritySchemesEntry"
    assert field.message_type.GetOptions().map_entry
    assert field.type == FieldDescriptor.TYPE_MESSAGE


def test_every_symbol_leads_to_the_file_that_declares_it(pool: descriptor_pool.DescriptorPool) -> None:
    for symbol, name in symbols().items():
        owner = symbol.rpartition(".")[0] if symbol.rpartition(".")[0] in symbols() else symbol
        assert pool.FindFileContainingSymbol(owner).name == name, symbol
    assert {"lf.a2a.v1.A2AService.GetTask", "a2a.v1.Task.id", "lf.a2a.v1.Part.content", "a2a.v1.ROLE_USER"} <= set(
        symbols()
    )


def test_a_file_comes_with_all_that_it_needs() -> None:
    for name in files():
        alone = descriptor_pool.DescriptorPool()
        for one in reversed(needed(name)):
            alone.AddSerializedFile(descriptor(one))
        assert alone.FindFileByName(name).name == name
