"""The field tables say what the specification says, row by row."""

from __future__ import annotations

from importlib import import_module

import pytest
from google.protobuf import any_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from dragoman.protocol.fields import Field, camel, table
from dragoman.protocol.operations import VERSIONS, Version
from tests.oracle import Row, rows, rpc_types


def as_row(message: str, field: Field) -> Row:
    repeated_type = f"map<string,{field.type}>" if field.cardinality == "map" else field.type
    return Row(
        "field+SDK" if field.added else "field",
        message,
        field.name,
        field.json,
        str(field.number),
        repeated_type,
        f"oneof:{field.oneof}" if field.oneof else field.cardinality,
        "REQUIRED" if field.required else "",
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_equal_the_specification_row_by_row(version: Version) -> None:
    ours = [as_row(message, field) for message, fields in table(version).messages.items() for field in fields]
    assert ours == [row for row in rows(version) if row.kind.startswith("field")]


@pytest.mark.parametrize("version", VERSIONS)
def test_enums_equal_the_specification_row_by_row(version: Version) -> None:
    ours = [(enum, name, str(n)) for enum, values in table(version).enums.items() for name, n in values.items()]
    assert ours == [(row.message, row.field, row.number) for row in rows(version) if row.kind == "enumvalue"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_message_of_an_rpc_has_a_line_even_without_fields(version: Version) -> None:
    assert rpc_types(version) <= set(table(version).messages)


status_pb2 = import_module("google.rpc.status_pb2")  # has no types
error_details_pb2 = import_module("google.rpc.error_details_pb2")

_TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_INT32: "int32",
}


def in_google(descriptor: Descriptor) -> list[Field]:
    found = []
    for field in descriptor.fields:
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            value = _TYPES[message.fields_by_name["value"].type]
            found.append(Field(field.number, field.name, field.json_name, value, "map"))
        else:
            type_ = message.name if message is not None else _TYPES[field.type]
            many = field.is_repeated
            found.append(Field(field.number, field.name, field.json_name, type_, "repeated" if many else "singular"))
    return found


@pytest.mark.parametrize(
    "descriptor",
    [
        status_pb2.Status.DESCRIPTOR,
        any_pb2.Any.DESCRIPTOR,
        error_details_pb2.ErrorInfo.DESCRIPTOR,
        error_details_pb2.BadRequest.DESCRIPTOR,
        error_details_pb2.BadRequest.FieldViolation.DESCRIPTOR,
        error_details_pb2.LocalizedMessage.DESCRIPTOR,
    ],
    ids=lambda descriptor: str(descriptor.full_name),
)
def test_status_details_equal_googles_own(descriptor: Descriptor) -> None:
    assert list(table("google.rpc").messages[descriptor.name]) == in_google(descriptor)


def test_json_names_are_camel_case() -> None:
    assert camel("open_id_connect_url") == "openIdConnectUrl"
    assert camel("oauth2_metadata_url") == "oauth2MetadataUrl"
    assert camel("id") == "id"
