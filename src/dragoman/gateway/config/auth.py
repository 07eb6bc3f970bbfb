"""What an operator writes about who may call."""

from __future__ import annotations

from msgspec import Struct


class Auth(Struct, frozen=True, kw_only=True):
    """How callers are verified, and what each may do."""

    anonymous: bool = False


class Cors(Struct, frozen=True, kw_only=True):
    """Which pages of other origins may call from a browser."""

    origins: tuple[str, ...]
