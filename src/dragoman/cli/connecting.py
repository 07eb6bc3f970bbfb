"""What every command that calls an agent takes from the command line."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ConfigError


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
