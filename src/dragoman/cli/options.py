"""What several commands take from the command line, and how they run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from ..errors import ConfigError
from ..faces import ALL_FACES, Face, read_binding, read_version
from ..protocol.operations import BINDINGS, VERSIONS

T = TypeVar("T")
Known = TypeVar("Known", bound=str)


def credentials(headers: Iterable[str], bearer: str) -> dict[str, str]:
    """``NAME: VALUE`` texts and a bearer token as header fields. Raises ``ConfigError`` for a text without a colon."""
    fields: dict[str, str] = {}
    for text in headers:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise ConfigError(f"{text!r} is no header: write 'NAME: VALUE'")
        fields[name.strip().lower()] = value.strip()
    if bearer:
        fields["authorization"] = f"Bearer {bearer}"
    return fields


def chosen_faces(versions: tuple[str, ...], bindings: tuple[str, ...]) -> tuple[Face, ...]:
    """The faces that the command line leaves; none given means all. Raises ``ConfigError`` for an unknown name."""
    kept_versions = {known(read_version(text), text, VERSIONS) for text in versions} or set(VERSIONS)
    kept_bindings = {known(read_binding(text), text, BINDINGS) for text in bindings} or set(BINDINGS)
    return tuple(face for face in ALL_FACES if face.version in kept_versions and face.binding in kept_bindings)


def known(name: Known | None, text: str, names: tuple[Known, ...]) -> Known:
    """``name``, or ``ConfigError`` that says which names there are."""
    if name is None:
        raise ConfigError(f"{text!r} is not one of {', '.join(names)}")
    return name


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run the command's coroutine, on uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)
