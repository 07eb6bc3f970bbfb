"""What the sources of readers and writers have in common: the rows, and the names that the code will refer to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any

from .fields import Field, Table

_WELL_KNOWN = frozenset({"Struct", "Timestamp", "Value"})
_DEFAULTS = {"string": "''", "bytes": "b''", "bool": "False", "int32": "0"}


@dataclass(frozen=True, slots=True)
class Shape:
    """A table and what its messages are in Python; see :class:`~dragoman.protocol.wire.WireFormat`.

    ``names``: globals of the generated functions, filled while their source is written.
    """

    table: Table
    classes: Mapping[str, type] | None
    lenient: bool
    names: dict[str, Any] = field(default_factory=dict)

    def groups(self, rows: Iterable[Field]) -> dict[str, list[Field]]:
        """The members of every oneof."""
        groups: dict[str, list[Field]] = {}
        for row in rows:
            if row.oneof:
                groups.setdefault(row.oneof, []).append(row)
        return groups

    def is_number(self, row: Field) -> bool:
        """Whether the field is a varint."""
        return row.type in ("bool", "int32") or row.type in self.table.enums

    def is_message(self, row: Field) -> bool:
        """Whether the field (or each value of a map) is a message."""
        return row.type in _WELL_KNOWN or row.type in self.table.messages

    def default(self, row: Field) -> str:
        """The expression for a scalar that is absent."""
        if row.type not in self.table.enums:
            return _DEFAULTS[row.type]
        first = next(value for value, number in self.table.enums[row.type].items() if number == 0)
        self.names[f"{row.type}_0"] = self.enum_value(row.type, first)
        return f"{row.type}_0"

    def enum_value(self, enum: str, value: str) -> Any:
        """What stands for an enum's value in Python."""
        return value if self.classes is None else self.classes[enum](value)


def tag_of(row: Field, wire_type: int) -> int:
    """The field's number together with a wire type, as it stands on the wire."""
    return row.number << 3 | wire_type


def indented(levels: int, lines: Iterable[str]) -> str:
    """Lines as one text, ``levels`` deep."""
    return indent("\n".join(lines), "    " * levels)
