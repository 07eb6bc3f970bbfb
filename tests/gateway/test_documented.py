"""Every key of the configuration is told in the pages for operators, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

from dragoman.gateway.config.whole import Config

DOCS = Path(__file__).parents[2] / "docs"
PAGES = "".join((DOCS / name).read_text() for name in ("gateway.md", "operations.md"))
TOLD = set(re.findall(r"`([a-z_0-9]+)(?: = [^`]*)?`", PAGES))


def structs(kind: Any) -> set[type[Struct]]:
    """The structs in a type, and those in their fields."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        inner = [structs(field.type) for field in msgspec.structs.fields(kind)]
        return {kind}.union(*inner)
    return set().union(*map(structs, get_args(kind)))


KEYS = [
    (kind.__name__, field.name)
    for kind in sorted(structs(Config), key=lambda one: one.__name__)
    if kind.__name__ not in ("Secret", "FilePath")
    for field in msgspec.structs.fields(kind)
    if not structs(field.type) - {one for one in structs(field.type) if one.__name__ in ("Secret", "FilePath")}
]


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_a_key_is_told(section: str, key: str) -> None:
    assert key in TOLD, f"{section}.{key}"
