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
from collections.abc import Callable, Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any

import msgspec
from msgspec import UNSET

from .fields import Field, Table
from .protobuf import (
    UNREADABLE,
    UNWRITABLE,
    Malformed,
    MissingField,
    Single,
    WireError,
    entry,
    head,
    heads,
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
_WELL_KNOWN = frozenset({"Struct", "Timestamp", "Value"})
_DEFAULTS = {"string": "''", "bytes": "b''", "bool": "False", "int32": "0"}

_READER = """
def read_{message}(buf, pos, end, depth):
    tag = 0
{initial}
    try:
        while pos < end:
            {start}
            tag = buf[pos]
            size = buf[pos + 1]
            pos += 2
            {wide}
{fields}
        if pos != end:
            raise IndexError
{children}
    except UNREADABLE as error:
        raise unreadable(error, "{message}", NAMES_{message}.get(tag >> 3, f"field {{tag >> 3}}")) from error
"""

_LONG = "if size > 127: size, pos = varint(buf, pos - 1)"
_SPAN = (_LONG, "stop = pos + size")

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
        self._table = table
        self._classes = classes
        self._lenient = lenient
        self._depth = depth
        self._names = dict(_RUNTIME)

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
        rows = sorted(self._table.messages[message])
        text = self._reader(message, rows) if verb == "read" else self._writer(message, rows)
        return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"

    def _function(self, verb: str, message: str) -> Callable[..., Any]:
        name = f"{verb}_{message}"
        if name not in self._names:
            text = self.source(verb, message)
            origin = f"<{name} of {id(self):x}>"
            linecache.cache[origin] = (len(text), None, text.splitlines(True), origin)  # for tracebacks
            exec(compile(text, origin, "exec"), self._names)
            for field in self._table.messages[message]:
                if field.type in self._table.messages:
                    self._function(verb, field.type)
        function: Callable[..., Any] = self._names[name]
        return function

    # Reading

    def _reader(self, message: str, rows: list[Field]) -> str:
        self._names[f"NAMES_{message}"] = {row.number: row.json for row in rows}
        self._names[f"NUMBERS_{message}"] = frozenset({0, *(row.number for row in rows)})
        if self._classes is not None:
            self._names[message] = self._classes[message]
        singles = self._singles(rows)
        self._names[f"SINGLES_{message}"] = singles
        children = [*self._children(message, rows), *self._result(message, rows)]
        if any(single.merge for single in singles.values()):
            again = f"return read_{message}(*merged(buf, begin, end, SINGLES_{message}), depth)"
            children = ["if twice:", "    " + again, *children]
        wide = max((row.number for row in rows), default=0) > 15  # fields whose tags take two bytes
        otherwise = f"pos = unknown(buf, {'start' if wide else 'pos - 2'}, NUMBERS_{message})"
        return _READER.format(
            message=message,
            initial=_indented(1, self._initial(rows, bool(singles))),
            start="start = pos" if wide else "",
            wide="if tag > 127: tag, size, pos = wide_tag(buf, start)" if wide else "",
            fields=_indented(3, _chain([*self._spans(rows), *self._numbers(rows)], otherwise)),
            children=_indented(2, children),
        )

    def _singles(self, rows: list[Field]) -> dict[int, Single]:
        """The fields by tag that a repetition must be sorted out for."""
        groups: dict[str, list[int]] = {}
        for row in rows:
            if row.oneof:
                groups.setdefault(row.oneof, []).append(_tag(row, 2))
        return {
            _tag(row, 2): Single(self._is_message(row), tuple({*groups.get(row.oneof, ())} - {_tag(row, 2)}))
            for row in rows
            if row.oneof or (self._is_message(row) and row.cardinality == "singular")
        }

    def _initial(self, rows: list[Field], singles: bool) -> Iterator[str]:
        if singles:
            yield "begin, twice = pos, False"
        for group in dict.fromkeys(row.oneof for row in rows if row.oneof):
            yield f"which_{group} = at_{group} = to_{group} = 0"
        for row in rows:
            if row.oneof:
                continue
            if row.cardinality == "map":
                yield f"v_{row.name} = {{}}"
            elif row.cardinality == "repeated":
                yield f"v_{row.name} = ()"
            elif self._is_message(row):
                yield f"at_{row.name} = to_{row.name} = 0"
            else:
                yield f"v_{row.name} = {'None' if row.cardinality == 'optional' else self._default(row)}"

    def _spans(self, rows: list[Field]) -> Iterator[tuple[str, list[str]]]:
        """Condition and body per field that has a length."""
        for group, members in self._groups(rows).items():
            tags = ", ".join(str(_tag(row, 2)) for row in members)
            body = [f"if tag == which_{group}:", "    twice = True", *_span_kept(group), f"which_{group} = tag"]
            yield f"tag in ({tags},)", [*_SPAN, *body, "pos = stop"]
        for row in rows:
            if not row.oneof and not self._is_number(row):
                yield f"tag == {_tag(row, 2)}", [*_SPAN, *self._span(row), "pos = stop"]

    def _span(self, row: Field) -> list[str]:
        name = row.name
        if row.cardinality == "map":
            merge = row.type in self._table.messages
            value = self._read(row.type, "content", "0", "len(content)", nesting=2) if merge else "content.decode()"
            return [f"key, content = entry(buf, pos, stop, {merge})", f"v_{name}[key] = {value}"]
        value = self._read(row.type, "buf", "pos", "stop")
        if row.cardinality == "repeated":
            return [f"if v_{name}:", f"    v_{name}.append({value})", "else:", f"    v_{name} = [{value}]"]
        if self._is_message(row):
            return [f"if at_{name}:", "    twice = True", *_span_kept(name)]
        return [f"v_{name} = {value}"]

    def _numbers(self, rows: list[Field]) -> Iterator[tuple[str, list[str]]]:
        """Condition and body per field that is a varint."""
        for row in rows:
            if self._is_number(row):
                if row.oneof or row.cardinality == "repeated":
                    raise NotImplementedError(f"{row.name}: numbers in a oneof or list")
                yield f"tag == {_tag(row, 0)}", [_LONG, f"v_{row.name} = {self._number(row)}"]

    def _number(self, row: Field) -> str:
        if row.type == "bool":
            return "size != 0"
        if row.type == "int32":
            return "size if size < 128 else int32(size)"
        self._names[f"{row.type}_by_number"] = {
            number: self._enum_value(row.type, value) for value, number in self._table.enums[row.type].items()
        }
        return f"{row.type}_by_number.get(size, {self._default(row)})"

    def _children(self, message: str, rows: list[Field]) -> Iterator[str]:
        """Read the sub-messages whose places are known now."""
        for row in rows:
            if row.oneof or row.cardinality != "singular" or not self._is_message(row):
                continue
            name = row.name
            yield f"if at_{name}:"
            yield f"    tag = {_tag(row, 2)}"
            yield f"    v_{name} = {self._read(row.type, 'buf', f'at_{name}', f'to_{name}')}"
            yield "else:"
            if not row.required or self._classes is None:
                yield f"    v_{name} = None"
            elif self._lenient:
                yield f"    v_{name} = read_{row.type}(b'', 0, 0, depth)"
            else:
                yield f"    raise MissingField('{message}', '{row.json}')"

    def _result(self, message: str, rows: list[Field]) -> Iterator[str]:
        if self._classes is None:
            yield from self._result_dict(rows)
            return
        plain = [f"{row.name}={self._value(row)}" for row in rows if not row.oneof]
        for group, members in self._groups(rows).items():
            for row in members:
                yield f"if which_{group} == {_tag(row, 2)}:"
                yield f"    tag = {_tag(row, 2)}"
                yield f"    return {message}({', '.join([f'{row.name}={self._member(row)}', *plain])})"
        yield f"return {message}({', '.join(plain)})"

    def _result_dict(self, rows: list[Field]) -> Iterator[str]:
        yield "o = {}"
        for row in rows:
            if row.oneof:
                yield f"if which_{row.oneof} == {_tag(row, 2)}:"
                yield f"    tag = {_tag(row, 2)}"
                yield f"    o['{row.json}'] = {self._member(row)}"
            else:
                absent = row.cardinality == "optional" or (row.cardinality == "singular" and self._is_message(row))
                yield f"if v_{row.name} is not None:" if absent else f"if {self._given(row)}:"
                yield f"    o['{row.json}'] = v_{row.name}"
        yield "return o"

    def _given(self, row: Field) -> str:
        return f"v_{row.name} != {self._default(row)}" if row.type in self._table.enums else f"v_{row.name}"

    def _value(self, row: Field) -> str:
        return f"v_{row.name} and tuple(v_{row.name})" if row.cardinality == "repeated" else f"v_{row.name}"

    def _member(self, row: Field) -> str:
        return self._read(row.type, "buf", f"at_{row.oneof}", f"to_{row.oneof}")

    def _read(self, type_: str, buf: str, start: str, stop: str, nesting: int = 1) -> str:
        """The expression for what stands between two offsets."""
        if type_ in ("string", "bytes"):
            return f"{buf}[{start}:{stop}]" + (".decode()" if type_ == "string" else "")
        return f"read_{type_}({buf}, {start}, {stop}, depth - {nesting})"

    # Writing

    def _writer(self, message: str, rows: list[Field]) -> str:
        lines = [] if self._classes is not None else ["get = m.get"]
        for row in rows:
            lines += self._write_map(row) if row.cardinality == "map" else self._write(message, row)
        return _WRITER.format(message=message, fields=_indented(2, lines))

    def _write(self, message: str, row: Field) -> Iterator[str]:
        absent = self._absent(message, row)
        if row.cardinality == "repeated":
            yield f"for v in {self._get(row)} or ():"
        else:
            yield f"v = {self._get(row, absent)}"
            implicit = row.cardinality == "singular" and not self._is_message(row)
            yield "if v:" if implicit else f"if v is not {absent}:"
        if self._is_number(row):
            yield f"    out.append({self._number_bytes(row)})"
            return
        yield f"    content = {self._content(row.type, 'v')}"
        yield from self._write_span(row)

    def _write_map(self, row: Field) -> Iterator[str]:
        yield f"for key, v in ({self._get(row)} or {{}}).items():"
        yield f"    content = write_entry(key, {self._content(row.type, 'v', nesting=2)})"
        yield from self._write_span(row)

    def _write_span(self, row: Field) -> Iterator[str]:
        tag = _tag(row, 2)
        self._names[f"HEADS_{tag}"] = heads(tag)
        yield from indent(_WRITE_SPAN.format(tag=tag), "    ").splitlines()

    def _content(self, type_: str, value: str, nesting: int = 1) -> str:
        if type_ == "bytes":
            return value
        return f"{value}.encode()" if type_ == "string" else f"write_{type_}({value}, depth - {nesting})"

    def _number_bytes(self, row: Field) -> str:
        tag = _tag(row, 0)
        self._names[f"HEADS_{tag}"] = heads(tag)
        if row.type == "bool":
            return f"HEADS_{tag}[v]"
        if row.type == "int32":
            return f"HEADS_{tag}[v] if 0 <= v < 128 else write_int32({tag}, v)"
        name = f"{row.type}_{tag}"
        self._names[name] = {
            value: head(tag, number) if number else b"" for value, number in self._table.enums[row.type].items()
        }
        return f"{name}[v]" if self._classes is None else f"{name}[v._value_]"  # .value is five times as slow

    def _get(self, row: Field, absent: str = "None") -> str:
        if self._classes is not None:
            return f"m.{row.name}"
        return f"get('{row.json}')" if absent == "None" else f"get('{row.json}', {absent})"

    def _absent(self, message: str, row: Field) -> str:
        if self._classes is None:
            return "UNSET" if row.type == "Value" else "None"
        defaults = {known.name: known.default for known in msgspec.structs.fields(self._classes[message])}
        return "UNSET" if defaults[row.name] is UNSET else "None"

    # Rows

    def _groups(self, rows: Iterable[Field]) -> dict[str, list[Field]]:
        groups: dict[str, list[Field]] = {}
        for row in rows:
            if row.oneof:
                groups.setdefault(row.oneof, []).append(row)
        return groups

    def _is_number(self, row: Field) -> bool:
        return row.type in ("bool", "int32") or row.type in self._table.enums

    def _is_message(self, row: Field) -> bool:
        return row.type in _WELL_KNOWN or row.type in self._table.messages

    def _default(self, row: Field) -> str:
        if row.type not in self._table.enums:
            return _DEFAULTS[row.type]
        first = next(value for value, number in self._table.enums[row.type].items() if number == 0)
        self._names[f"{row.type}_0"] = self._enum_value(row.type, first)
        return f"{row.type}_0"

    def _enum_value(self, enum: str, value: str) -> Any:
        return value if self._classes is None else self._classes[enum](value)


def _tag(row: Field, wire_type: int) -> int:
    return row.number << 3 | wire_type


def _span_kept(name: str) -> list[str]:
    return [f"at_{name} = pos", f"to_{name} = stop"]


def _chain(branches: Iterable[tuple[str, list[str]]], otherwise: str) -> Iterator[str]:
    """An if/elif chain over conditions and bodies."""
    word = "if"
    for condition, body in branches:
        yield f"{word} {condition}:"
        yield from ("    " + line for line in body)
        word = "elif"
    yield "else:" if word == "elif" else "if True:"
    yield "    " + otherwise


def _indented(levels: int, lines: Iterable[str]) -> str:
    return indent("\n".join(lines), "    " * levels)
