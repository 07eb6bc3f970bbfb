"""What all agents of one gateway share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .config import Config, Server

Tell = Callable[[str], None]


def quiet(said: str) -> None:
    """Nobody listens."""


@dataclass(slots=True, kw_only=True)
class Common:
    """The gateway's own parts, None where the configuration wants none.

    ``tell`` hears, in words, what was decided for the operator.
    """

    server: Server = field(default_factory=Server)
    tell: Tell = quiet


def common_of(config: Config, tell: Tell = quiet) -> Common:
    """What a configuration asks for, without IO."""
    return Common(server=config.server, tell=tell)
