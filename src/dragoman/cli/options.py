"""What several commands take from the command line, and how they run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from ..client.options import Tls
from ..errors import ConfigError
from ..faces import ALL_FACES, Face, read_binding, read_version
from ..protocol.operations import BINDINGS, VERSIONS

T = TypeVar("T")
Known = TypeVar("Known", bound=str)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """What a command shows to the agent that it calls, and whom it trusts.

    Parameters
    ----------
    header
        NAME: VALUE to send with every call to the agent; may be repeated.
    bearer
        Bearer token for the agent; a gateway without one hands on each caller's own Authorization.
    ca
        Trust these roots too, a PEM file.
    cert
        Certificate to show to the agent, a PEM file.
    key
        Private key of that certificate, a PEM file.
    """

    header: Annotated[tuple[str, ...], Parameter(name=["--header", "-H"])] = ()
    bearer: str = ""
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The header fields. Raises ``ConfigError`` for a text without a colon."""
        return credentials(self.header, self.bearer)

    @property
    def tls(self) -> Tls:
        """Roots and certificate. Raises ``ConfigError`` if only one of certificate and key is there."""
        if (self.cert is None) != (self.key is None):
            raise ConfigError("A certificate needs its key: give both --cert and --key")
        return Tls(ca=self.ca, cert=self.cert, key=self.key)


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
