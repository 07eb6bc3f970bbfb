"""The kinds of values that stand in a configuration.

A secret comes from the environment or from a file. In the configuration itself it may stand only if
``allow_clear_secrets`` says so, and it is never shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

#: Where something stands in a configuration: keys, and places in arrays.
Place: TypeAlias = tuple[str | int, ...]
#: Complaints: where, relative to whoever is asked, and what is wrong there.
Said: TypeAlias = Iterator[tuple[Place, str]]

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
NoSeconds = Annotated[float, Meta(ge=0, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Size = Annotated[int, Meta(ge=1024, le=2**31 - 1)]
Port = Annotated[int, Meta(ge=0, le=65_535)]
OwnPort = Annotated[int, Meta(ge=1, le=65_535)]


class Secret(Struct, frozen=True):
    """A text that is not shown. ``clear``: it stands in the configuration itself."""

    value: str
    clear: bool = False

    def __repr__(self) -> str:
        return "Secret(...)"


class FilePath(Struct, frozen=True):
    """A file, its path made absolute or relative to where the process runs."""

    path: str


def meant(name: str, names: Iterable[str]) -> str:
    """What to put behind a complaint of an unknown name: the one that was meant, or all there are."""
    names = list(names)
    near = get_close_matches(name.lower(), [one.lower() for one in names], n=1, cutoff=0.5)
    if near:
        return f"; did you mean {next(one for one in names if one.lower() == near[0])}?"
    return f"; there are {', '.join(names)}" if names else ""
