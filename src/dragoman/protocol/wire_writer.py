"""The source of the function that writes one message, written from its rows.

A function makes one list of chunks, tags and lengths of one byte ready-made, and joins it once per message.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent

import msgspec
from msgspec import UNSET

from .fields import Field
from .protobuf import head, heads
from .wire_shape import Shape, indented, tag_of

_WRITER = """
def write_{message}(m, depth):
    out = []
    try:
{fields}
    except UNWRITABLE as error:
        raise WireError(f"{message}: {{error}}") from error
    return b"".join(out)
"""

_WRITE_SPAN = """
size = len(content)
out.append(HEADS_{tag}[size] if size < 128 else head({tag}, size))
out.append(content)
"""


class WriterSource:
    """Writes writers of the messages of one shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def write(self, message: str, rows: list[Field]) -> str:
        """The source of ``write_<message>(m, depth)``."""
        lines = [] if self.shape.classes is not None else ["get = m.get"]
        for row in rows:
            lines += self._write_map(row) if row.cardinality == "map" else self._field(message, row)
        return _WRITER.format(message=message, fields=indented(2, lines))

    def _field(self, message: str, row: Field) -> Iterator[str]:
        absent = self._absent(message, row)
        if row.cardinality == "repeated":
            yield f"for v in {self._get(row)} or ():"
        else:
            yield f"v = {self._get(row, absent)}"
            implicit = row.cardinality == "singular" and not self.shape.is_message(row)
            yield "if v:" if implicit else f"if v is not {absent}:"
        if self.shape.is_number(row):
            yield f"    out.append({self._number_bytes(row)})"
            return
        yield f"    content = {self._content(row.type, 'v')}"
        yield from self._write_span(row)

    def _write_map(self, row: Field) -> Iterator[str]:
        yield f"for key, v in ({self._get(row)} or {{}}).items():"
        yield f"    content = write_entry(key, {self._content(row.type, 'v', nesting=2)})"
        yield from self._write_span(row)

    def _write_span(self, row: Field) -> Iterator[str]:
        tag = tag_of(row, 2)
        self.shape.names[f"HEADS_{tag}"] = heads(tag)
        yield from indent(_WRITE_SPAN.format(tag=tag), "    ").splitlines()

    def _content(self, type_: str, value: str, nesting: int = 1) -> str:
        if type_ == "bytes":
            return value
        return f"{value}.encode()" if type_ == "string" else f"write_{type_}({value}, depth - {nesting})"

    def _number_bytes(self, row: Field) -> str:
        tag = tag_of(row, 0)
        self.shape.names[f"HEADS_{tag}"] = heads(tag)
        if row.type == "bool":
            return f"HEADS_{tag}[v]"
        if row.type == "int32":
            return f"HEADS_{tag}[v] if 0 <= v < 128 else write_int32({tag}, v)"
        name = f"{row.type}_{tag}"
        self.shape.names[name] = {
            value: head(tag, number) if number else b"" for value, number in self.shape.table.enums[row.type].items()
        }
        return f"{name}[v]" if self.shape.classes is None else f"{name}[v._value_]"  # .value is five times as slow

    def _get(self, row: Field, absent: str = "None") -> str:
        if self.shape.classes is not None:
            return f"m.{row.name}"
        return f"get('{row.json}')" if absent == "None" else f"get('{row.json}', {absent})"

    def _absent(self, message: str, row: Field) -> str:
        if self.shape.classes is None:
            return "UNSET" if row.type == "Value" else "None"
        defaults = {known.name: known.default for known in msgspec.structs.fields(self.shape.classes[message])}
        return "UNSET" if defaults[row.name] is UNSET else "None"
