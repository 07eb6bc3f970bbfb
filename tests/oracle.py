"""Protobuf's own implementation of the A2A messages, in private pools built from the fact tables.

No generated code, no protoc and no default pool: two versions of one package live side by side.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2, message_factory, struct_pb2, timestamp_pb2
from google.protobuf.message import Message

from dragoman.protocol.operations import Version

_SPEC = Path(__file__).parent / "spec"
_FILES: dict[Version, str] = {"1.0": "model-v1.tsv", "0.3": "model-v0.3.tsv"}
_PACKAGES: dict[Version, str] = {"1.0": "lf.a2a.v1", "0.3": "a2a.v1"}
_WELL_KNOWN = (struct_pb2, timestamp_pb2, empty_pb2)
_IN_GOOGLE = {"Struct", "Value", "Timestamp", "Empty"}

_F = descriptor_pb2.FieldDescriptorProto
_SCALARS = {"string": _F.TYPE_STRING, "bytes": _F.TYPE_BYTES, "bool": _F.TYPE_BOOL, "int32": _F.TYPE_INT32}


class Row(NamedTuple):
    """One line of a fact table, as text. ``kind``: field, field+SDK (added after the tag), enumvalue, rpc."""

    kind: str
    message: str
    field: str
    json_name: str
    number: str
    type: str
    cardinality: str
    required: str


@cache
def rows(version: Version) -> tuple[Row, ...]:
    """The fact table of a version."""
    with (_SPEC / _FILES[version]).open(newline="") as file:
        _, *lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    return tuple(Row(*line) for line in lines)


def rpc_types(version: Version) -> set[str]:
    """Names of the messages of this package that the service's methods take and give."""
    words = {word for row in rows(version) if row.kind == "rpc" for word in row.type.split()}
    return {word for word in words if word not in ("->", "stream") and "." not in word}


@cache
def messages(version: Version) -> Mapping[str, type[Message]]:
    """Every message class of a version by its name."""
    pool = descriptor_pool.DescriptorPool()
    for module in _WELL_KNOWN:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    file = _file(version)
    pool.AddSerializedFile(file.SerializeToString())
    return {
        known.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{known.name}"))
        for known in file.message_type
    }


def _file(version: Version) -> descriptor_pb2.FileDescriptorProto:
    dependencies = [module.DESCRIPTOR.name for module in _WELL_KNOWN]
    package = _PACKAGES[version]
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3", dependency=dependencies
    )
    enums: dict[str, descriptor_pb2.EnumDescriptorProto] = {}
    for row in rows(version):
        if row.kind == "enumvalue":
            enum = enums.get(row.message) or enums.setdefault(row.message, file.enum_type.add(name=row.message))
            enum.value.add(name=row.field, number=int(row.number))
    known: dict[str, descriptor_pb2.DescriptorProto] = {}
    for row in rows(version):
        if row.kind.startswith("field"):
            message = known.get(row.message) or known.setdefault(row.message, file.message_type.add(name=row.message))
            _add(message, row, package, set(enums))
    for name in sorted(rpc_types(version) - set(known)):
        file.message_type.add(name=name)
    for message in known.values():
        _number_optionals(message)
    return file


def _add(message: descriptor_pb2.DescriptorProto, row: Row, package: str, enums: set[str]) -> None:
    field = message.field.add(name=row.field, number=int(row.number), json_name=row.json_name)
    repeated = row.cardinality in ("repeated", "map")
    field.label = _F.LABEL_REPEATED if repeated else _F.LABEL_OPTIONAL
    if row.cardinality == "map":
        _add_entry(message, field, row, package)
    else:
        _set_type(field, row.type, package, enums)
    if row.cardinality.startswith("oneof:"):
        group = row.cardinality.removeprefix("oneof:")
        names = [oneof.name for oneof in message.oneof_decl]
        if group not in names:
            message.oneof_decl.add(name=group)
            names.append(group)
        field.oneof_index = names.index(group)
    field.proto3_optional = row.cardinality == "optional"


def _add_entry(message: descriptor_pb2.DescriptorProto, field: _F, row: Row, package: str) -> None:
    entry = message.nested_type.add(name="".join(map(str.capitalize, row.field.split("_"))) + "Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_F.TYPE_STRING, label=_F.LABEL_OPTIONAL)
    value = entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL)
    _set_type(value, row.type.removeprefix("map<string,").removesuffix(">"), package, set())
    field.type, field.type_name = _F.TYPE_MESSAGE, f".{package}.{row.message}.{entry.name}"


def _set_type(field: _F, type_: str, package: str, enums: set[str]) -> None:
    if type_ in _SCALARS:
        field.type = _SCALARS[type_]
        return
    field.type = _F.TYPE_ENUM if type_ in enums else _F.TYPE_MESSAGE
    field.type_name = f".google.protobuf.{type_}" if type_ in _IN_GOOGLE else f".{package}.{type_}"


def _number_optionals(message: descriptor_pb2.DescriptorProto) -> None:
    """Explicit presence is a oneof of one, and those stand behind the real ones."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")
