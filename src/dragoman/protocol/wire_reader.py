"""The source of the function that reads one message, written from its rows.

A function goes once over the bytes with offsets only. It keeps scalars in local variables, and of sub-messages and
oneof members where they stand, to be read when all was seen; if one came twice, it starts again on merged bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .fields import Field
from .protobuf import Single
from .wire_shape import Shape, indented, tag_of

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


class ReaderSource:
    """Writes readers of the messages of one shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def write(self, message: str, rows: list[Field]) -> str:
        """The source of ``read_<message>(buf, pos, end, depth)``."""
        self.shape.names[f"NAMES_{message}"] = {row.number: row.json for row in rows}
        self.shape.names[f"NUMBERS_{message}"] = frozenset({0, *(row.number for row in rows)})
        if self.shape.classes is not None:
            self.shape.names[message] = self.shape.classes[message]
        singles = self._singles(rows)
        self.shape.names[f"SINGLES_{message}"] = singles
        children = [*self._children(message, rows), *self._result(message, rows)]
        if any(single.merge for single in singles.values()):
            again = f"return read_{message}(*merged(buf, begin, end, SINGLES_{message}), depth)"
            children = ["if twice:", "    " + again, *children]
        wide = max((row.number for row in rows), default=0) > 15  # fields whose tags take two bytes
        otherwise = f"pos = unknown(buf, {'start' if wide else 'pos - 2'}, NUMBERS_{message})"
        return _READER.format(
            message=message,
            initial=indented(1, self._initial(rows, bool(singles))),
            start="start = pos" if wide else "",
            wide="if tag > 127: tag, size, pos = wide_tag(buf, start)" if wide else "",
            fields=indented(3, _chain([*self._spans(rows), *self._numbers(rows)], otherwise)),
            children=indented(2, children),
        )

    def _singles(self, rows: list[Field]) -> dict[int, Single]:
        """The fields by tag that a repetition must be sorted out for."""
        groups: dict[str, list[int]] = {}
        for row in rows:
            if row.oneof:
                groups.setdefault(row.oneof, []).append(tag_of(row, 2))
        return {
            tag_of(row, 2): Single(self.shape.is_message(row), tuple({*groups.get(row.oneof, ())} - {tag_of(row, 2)}))
            for row in rows
            if row.oneof or (self.shape.is_message(row) and row.cardinality == "singular")
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
            elif self.shape.is_message(row):
                yield f"at_{row.name} = to_{row.name} = 0"
            else:
                yield f"v_{row.name} = {'None' if row.cardinality == 'optional' else self.shape.default(row)}"

    def _spans(self, rows: list[Field]) -> Iterator[tuple[str, list[str]]]:
        """Condition and body per field that has a length."""
        for group, members in self.shape.groups(rows).items():
            tags = ", ".join(str(tag_of(row, 2)) for row in members)
            body = [f"if tag == which_{group}:", "    twice = True", *_span_kept(group), f"which_{group} = tag"]
            yield f"tag in ({tags},)", [*_SPAN, *body, "pos = stop"]
        for row in rows:
            if not row.oneof and not self.shape.is_number(row):
                yield f"tag == {tag_of(row, 2)}", [*_SPAN, *self._span(row), "pos = stop"]

    def _span(self, row: Field) -> list[str]:
        name = row.name
        if row.cardinality == "map":
            merge = row.type in self.shape.table.messages
            value = self._read(row.type, "content", "0", "len(content)", nesting=2) if merge else "content.decode()"
            return [f"key, content = entry(buf, pos, stop, {merge})", f"v_{name}[key] = {value}"]
        value = self._read(row.type, "buf", "pos", "stop")
        if row.cardinality == "repeated":
            return [f"if v_{name}:", f"    v_{name}.append({value})", "else:", f"    v_{name} = [{value}]"]
        if self.shape.is_message(row):
            return [f"if at_{name}:", "    twice = True", *_span_kept(name)]
        return [f"v_{name} = {value}"]

    def _numbers(self, rows: list[Field]) -> Iterator[tuple[str, list[str]]]:
        """Condition and body per field that is a varint."""
        for row in rows:
            if self.shape.is_number(row):
                if row.oneof or row.cardinality == "repeated":
                    raise NotImplementedError(f"{row.name}: numbers in a oneof or list")
                yield f"tag == {tag_of(row, 0)}", [_LONG, f"v_{row.name} = {self._number(row)}"]

    def _number(self, row: Field) -> str:
        if row.type == "bool":
            return "size != 0"
        if row.type == "int32":
            return "size if size < 128 else int32(size)"
        self.shape.names[f"{row.type}_by_number"] = {
            number: self.shape.enum_value(row.type, value) for value, number in self.shape.table.enums[row.type].items()
        }
        return f"{row.type}_by_number.get(size, {self.shape.default(row)})"

    def _children(self, message: str, rows: list[Field]) -> Iterator[str]:
        """Read the sub-messages whose places are known now."""
        for row in rows:
            if row.oneof or row.cardinality != "singular" or not self.shape.is_message(row):
                continue
            name = row.name
            yield f"if at_{name}:"
            yield f"    tag = {tag_of(row, 2)}"
            yield f"    v_{name} = {self._read(row.type, 'buf', f'at_{name}', f'to_{name}')}"
            yield "else:"
            if not row.required or self.shape.classes is None:
                yield f"    v_{name} = None"
            elif self.shape.lenient:
                yield f"    v_{name} = read_{row.type}(b'', 0, 0, depth)"
            else:
                yield f"    raise MissingField('{message}', '{row.json}')"

    def _result(self, message: str, rows: list[Field]) -> Iterator[str]:
        if self.shape.classes is None:
            yield from self._result_dict(rows)
            return
        plain = [f"{row.name}={self._value(row)}" for row in rows if not row.oneof]
        for group, members in self.shape.groups(rows).items():
            for row in members:
                yield f"if which_{group} == {tag_of(row, 2)}:"
                yield f"    tag = {tag_of(row, 2)}"
                yield f"    return {message}({', '.join([f'{row.name}={self._member(row)}', *plain])})"
        yield f"return {message}({', '.join(plain)})"

    def _result_dict(self, rows: list[Field]) -> Iterator[str]:
        yield "o = {}"
        for row in rows:
            if row.oneof:
                yield f"if which_{row.oneof} == {tag_of(row, 2)}:"
                yield f"    tag = {tag_of(row, 2)}"
                yield f"    o['{row.json}'] = {self._member(row)}"
            else:
                absent = row.cardinality == "optional" or (row.cardinality == "singular" and self.shape.is_message(row))
                yield f"if v_{row.name} is not None:" if absent else f"if {self._given(row)}:"
                yield f"    o['{row.json}'] = v_{row.name}"
        yield "return o"

    def _given(self, row: Field) -> str:
        return f"v_{row.name} != {self.shape.default(row)}" if row.type in self.shape.table.enums else f"v_{row.name}"

    def _value(self, row: Field) -> str:
        return f"v_{row.name} and tuple(v_{row.name})" if row.cardinality == "repeated" else f"v_{row.name}"

    def _member(self, row: Field) -> str:
        return self._read(row.type, "buf", f"at_{row.oneof}", f"to_{row.oneof}")

    def _read(self, type_: str, buf: str, start: str, stop: str, nesting: int = 1) -> str:
        """The expression for what stands between two offsets."""
        if type_ in ("string", "bytes"):
            return f"{buf}[{start}:{stop}]" + (".decode()" if type_ == "string" else "")
        return f"read_{type_}({buf}, {start}, {stop}, depth - {nesting})"


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
