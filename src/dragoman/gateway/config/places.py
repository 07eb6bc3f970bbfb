"""On which line of a TOML text a key stands; ``tomllib`` reads values and forgets where they were.

Rules of this module:

- The text is sound TOML already. Only headers and the keys that begin a line have a place; a key inside an inline
  table or an array stands where the key stands that holds it.
- A place is a path as in the value that ``tomllib`` gives: text for a key, a number for an element of ``[[array]]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .values import Place

_ROOT: Place = ()

_PART = r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_PARTS = re.compile(_PART)
#: What may open, close or hide a bracket, longest first.
_TOKENS = re.compile(r"""\"\"\"|'''|"(?:\\.|[^"\\])*"|'[^']*'|\#.*|[\[\]{}]""")
_TRIPLE = {'"""': re.compile(r'(?:\\.|[^\\])*?"""+'), "'''": re.compile(r".*?'''+")}


def line_of(lines: dict[Place, int], path: Place) -> int:
    """The line of a path, or of the nearest that holds it; 0 for the whole text."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


def key_lines(text: str) -> dict[Place, int]:
    """Every path that has a place, and its line, counted from 1."""
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    value = _Value()
    for number, line in enumerate(text.splitlines(), 1):
        if value.is_open:
            value.feed(line)
        elif header := _HEADER.match(line):
            table = _table(_names(header[2]), header[1] == "[[", counts)
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            path = table
            for name in _names(key[1]):
                path = (*path, name)
                found.setdefault(path, number)
            value.feed(line[key.end() :])
    return found


def _names(dotted: str) -> Iterator[str]:
    return (part.strip("\"'") for part in _PARTS.findall(dotted))


def _table(names: Iterator[str], array: bool, counts: dict[Place, int]) -> Place:
    """The path of a header: each array of tables on the way stands for its newest element."""
    parts, path = list(names), _ROOT
    for place, name in enumerate(parts):
        path = (*path, name)
        if array and place == len(parts) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


class _Value:
    """Whether a value goes on in the next line: inside brackets, or inside a text of three quotes."""

    def __init__(self) -> None:
        self._depth = 0
        self._quotes = ""

    @property
    def is_open(self) -> bool:
        return bool(self._depth or self._quotes)

    def feed(self, line: str) -> None:
        at = 0
        while True:
            if self._quotes:
                end = _TRIPLE[self._quotes].match(line, at)
                if end is None:
                    return
                at, self._quotes = end.end(), ""
            token = _TOKENS.search(line, at)
            if token is None:
                return
            at = token.end()
            self._take(token[0])

    def _take(self, token: str) -> None:
        if token in _TRIPLE:
            self._quotes = token
        elif token in ("[", "{"):
            self._depth += 1
        elif token in ("]", "}"):
            self._depth -= 1
