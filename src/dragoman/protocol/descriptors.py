"""The descriptors of our protobuf files, as FileDescriptorProto bytes made from the field tables.

Rules of this module:

- Symbols are full names without a leading dot: services, methods, messages, fields, oneofs, enums and their values,
  which stand beside their enum and not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from .fields import Field, Table, table
from .proto_files import Method, ProtoFile, files
from .wire import WireFormat

Tree = dict[str, Any]


@cache
def descriptor(name: str) -> bytes:
    """The file called ``name``, as a serialized FileDescriptorProto. Raises ``KeyError``."""
    write = WireFormat(table("google.protobuf.descriptor")).encoder("FileDescriptorProto")
    return write(_Descriptors(files()[name]).file(name))


@cache
def symbols() -> Mapping[str, str]:
    """Full name of every symbol -> name of the file that declares it."""
    return {symbol: name for name, file in files().items() for symbol in _symbols(file)}


def _symbols(file: ProtoFile) -> Iterator[str]:
    package, rows = file.package, table(file.schema)
    for service, methods in file.services.items():
        yield f"{package}.{service}"
        yield from (f"{package}.{service}.{method.name}" for method in methods)
    for message, fields in rows.messages.items():
        yield f"{package}.{message}"
        for field in fields:
            yield from (f"{package}.{message}.{name}" for name in (field.name, field.oneof) if name)
            if field.cardinality == "map":
                yield f"{package}.{message}.{_entry_name(field)}"
    for enum, values in rows.enums.items():
        scope = f"{package}.{file.nested[enum]}" if enum in file.nested else package
        yield f"{scope}.{enum}"
        yield from (f"{scope}.{value}" for value in values)


def _entry_name(field: Field) -> str:
    """The name of the message that protobuf makes of one pair of a map."""
    return "".join(word.capitalize() for word in field.name.split("_")) + "Entry"


_TYPES = {"double": 1, "int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
_MESSAGE, _ENUM = 11, 14
_OPTIONAL, _REPEATED = 1, 3


class _Descriptors:
    """Writes the descriptors of one file, as trees."""

    def __init__(self, file: ProtoFile) -> None:
        self._file = file
        self._rows: Table = table(file.schema)

    def file(self, name: str) -> Tree:
        return {
            "name": name,
            "package": self._file.package,
            "dependency": self._file.needs,
            "messageType": [self._message(message) for message in self._rows.messages],
            "enumType": [_enum(enum, values) for enum, values in self._enums("")],
            "service": [self._service(service, methods) for service, methods in self._file.services.items()],
            "syntax": "proto3",
        }

    def _enums(self, owner: str) -> Iterator[tuple[str, Mapping[str, int]]]:
        return ((enum, values) for enum, values in self._rows.enums.items() if self._file.nested.get(enum, "") == owner)

    def _message(self, name: str) -> Tree:
        fields = self._rows.messages[name]
        groups = list(dict.fromkeys(field.oneof for field in fields if field.oneof))
        # a field with explicit presence is a oneof of its own, and those stand behind the real ones
        groups += [f"_{field.name}" for field in fields if field.cardinality == "optional"]
        return {
            "name": name,
            "field": [self._field(name, field, groups) for field in fields],
            "nestedType": [self._entry(field) for field in fields if field.cardinality == "map"],
            "enumType": [_enum(enum, values) for enum, values in self._enums(name)],
            "oneofDecl": [{"name": group} for group in groups],
        }

    def _field(self, message: str, field: Field, groups: list[str]) -> Tree:
        tree = {"name": field.name, "number": field.number, "jsonName": field.json}
        if field.cardinality == "map":
            kind: Tree = {"type": _MESSAGE, "typeName": f".{self._file.package}.{message}.{_entry_name(field)}"}
        else:
            kind = self._type(field.type)
        tree |= kind | {"label": _REPEATED if field.cardinality in ("repeated", "map") else _OPTIONAL}
        if field.cardinality == "optional":
            tree |= {"proto3Optional": True, "oneofIndex": groups.index(f"_{field.name}")}
        elif field.oneof:
            tree["oneofIndex"] = groups.index(field.oneof)
        return tree

    def _entry(self, field: Field) -> Tree:
        key = {"name": "key", "number": 1, "label": _OPTIONAL, "type": _TYPES["string"], "jsonName": "key"}
        value = {"name": "value", "number": 2, "label": _OPTIONAL, "jsonName": "value", **self._type(field.type)}
        return {"name": _entry_name(field), "field": [key, value], "options": {"mapEntry": True}}

    def _type(self, name: str) -> Tree:
        if name in _TYPES:
            return {"type": _TYPES[name]}
        return {"type": _ENUM if name in self._rows.enums else _MESSAGE, "typeName": self._full(name)}

    def _full(self, name: str) -> str:
        """The name of a type with its scope, and the dot in front that says so."""
        if name in self._file.nested:
            return f".{self._file.package}.{self._file.nested[name]}.{name}"
        if name in self._rows.messages or name in self._rows.enums:
            return f".{self._file.package}.{name}"
        return f".{name}" if "." in name else f".google.protobuf.{name}"

    def _service(self, name: str, methods: tuple[Method, ...]) -> Tree:
        return {"name": name, "method": [self._method(method) for method in methods]}

    def _method(self, method: Method) -> Tree:
        return {
            "name": method.name,
            "inputType": self._full(method.request),
            "outputType": self._full(method.reply),
            "clientStreaming": method.client_streaming,
            "serverStreaming": method.server_streaming,
        }


def _enum(name: str, values: Mapping[str, int]) -> Tree:
    return {"name": name, "value": [{"name": value, "number": number} for value, number in values.items()]}
