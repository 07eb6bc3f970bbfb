"""The files that a configuration names, and whether one of them is another than it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, structs

from .values import FilePath

#: What tells two states of a file apart: time of change in nanoseconds, size, and which file it is.
Stamp: TypeAlias = tuple[int, int, int] | None


def stamps(paths: Iterable[str]) -> dict[str, Stamp]:
    """The state of each file; None for one that is not there."""
    return {path: _stamp(path) for path in paths}


def files_of(value: object) -> Iterator[str]:
    """Every file that a part of a configuration names."""
    if isinstance(value, FilePath):
        yield value.path
    elif isinstance(value, Struct):
        for field in structs.fields(value):
            yield from files_of(getattr(value, field.name))
    elif isinstance(value, tuple):
        for one in value:
            yield from files_of(one)


def _stamp(path: str) -> Stamp:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
