"""Protobuf messages on the wire, read into and written from whatever objects are handed in.

Rules of this module:

- :class:`WireFormat` writes one Python function per message and direction from the rows of a field table, on first
  use, and compiles it: straight code over local variables is what makes it quick. It knows no class but those given.
- Fields come in any order. Of a singular scalar the last one counts, sub-messages merge, the last member of a oneof
  unsets the others, an entry replaces an older one of its key; unknown fields are passed over; an unknown enum number
  reads as the value of number 0 (proto3 enums are open). A known number in another wire type is an error.
- A sub-message is read after all fields of its owner were seen, so repeating one costs no second reading.
- Absent is absent: default values of fields without presence are not written.
- Only :class:`WireError` is raised, whatever the bytes or values are.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from .fields import Table
from .protobuf import (
    UNREADABLE,
    UNWRITABLE,
    Malformed,
    MissingField,
    WireError,
    entry,
    head,
    int32,
    merged,
    unknown,
    unreadable,
    varint,
    wide_tag,
    write_entry,
    write_int32,
)
from .wellknown import read_struct, read_timestamp, read_value, write_struct, write_timestamp, write_value
from .wire_reader import ReaderSource
from .wire_shape import Shape
from .wire_writer import WriterSource

__all__ = ["MissingField", "WireError", "WireFormat"]

_RUNTIME: dict[str, Any] = {
    "UNREADABLE": UNREADABLE,
    "UNSET": UNSET,
    "UNWRITABLE": UNWRITABLE,
    "Malformed": Malformed,
    "MissingField": MissingField,
    "WireError": WireError,
    "entry": entry,
    "head": head,
    "int32": int32,
    "merged": merged,
    "read_Struct": read_struct,
    "read_Timestamp": read_timestamp,
    "read_Value": read_value,
    "unknown": unknown,
    "unreadable": unreadable,
    "varint": varint,
    "wide_tag": wide_tag,
    "write_Struct": write_struct,
    "write_Timestamp": write_timestamp,
    "write_Value": write_value,
    "write_entry": write_entry,
    "write_int32": write_int32,
}


class WireFormat:
    """Encoders and decoders of the messages of one table.

    ``classes``: message name -> class made by keyword from the fields' names, whose attributes are read back, and enum
    name -> enum class whose values are the full names. Absent are ``None``, empty text, ``()``, ``{}`` and so on; of
    oneof members that default to it, ``UNSET``. Without ``classes`` messages are dicts in ProtoJSON's shape and names,
    absent fields left out; but bytes stay bytes, and enums are full names.

    ``lenient``: an absent REQUIRED sub-message reads as an empty one instead of raising :class:`MissingField`
    (scalars and lists always do: on the wire they cannot be told from absent ones). Only for ``classes``; a dict simply
    lacks the key. ``depth``: how many messages may nest (protobuf's own limit is 100).
    """

    def __init__(
        self, table: Table, classes: Mapping[str, type] | None = None, *, lenient: bool = False, depth: int = 100
    ) -> None:
        self._shape = Shape(table, classes, lenient, dict(_RUNTIME))
        self._depth = depth

    def decoder(self, message: str) -> Callable[[bytes], Any]:
        """A function from wire bytes to an object. It raises :class:`WireError` or :class:`MissingField`."""
        read, depth = self._function("read", message), self._depth

        def decode(body: bytes) -> Any:
            return read(body, 0, len(body), depth)

        return decode

    def encoder(self, message: str) -> Callable[[Any], bytes]:
        """A function from an object to wire bytes. It raises :class:`WireError` for a value that does not fit."""
        write, depth = self._function("write", message), self._depth

        def encode(value: Any) -> bytes:
            body: bytes = write(value, depth)
            return body

        return encode

    def source(self, verb: str, message: str) -> str:
        """The Python text of the function that reads (``read``) or writes (``write``) a message."""
        source = ReaderSource(self._shape) if verb == "read" else WriterSource(self._shape)
        text = source.write(message, sorted(self._shape.table.messages[message]))
        return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"

    def _function(self, verb: str, message: str) -> Callable[..., Any]:
        name = f"{verb}_{message}"
        if name not in self._shape.names:
            text = self.source(verb, message)
            origin = f"<{name} of {id(self):x}>"
            linecache.cache[origin] = (len(text), None, text.splitlines(True), origin)  # for tracebacks
            exec(compile(text, origin, "exec"), self._shape.names)
            for field in self._shape.table.messages[message]:
                if field.type in self._shape.table.messages:
                    self._function(verb, field.type)
        function: Callable[..., Any] = self._shape.names[name]
        return function
