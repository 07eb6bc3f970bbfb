"""How the webhooks of one agent are served, as its configuration and its card say."""

from __future__ import annotations

from collections.abc import Callable

from ...model import AgentCard
from ...service import A2AService, Context
from ..config import Upstream
from ..gateway import Connected
from .relay import Relay
from .relaying import Relaying
from .without import Direct, Off, silent


def relayed(
    inner: A2AService,
    config: Upstream,
    client: Connected,
    card: AgentCard,
    relay: Relay | None,
    caller_of: Callable[[Context], str],
) -> tuple[A2AService, AgentCard]:
    """The service with its webhooks served, passed on or refused, and the card that says so."""
    if config.push == "off":
        return Off(inner), silent(card)
    if config.push == "relay" and relay is not None and card.capabilities.push_notifications:
        removes = bool(config.bearer or config.headers) or not card.security_requirements
        return Relaying(inner, relay, config.name, caller_of, removes=removes), card
    return Direct(inner, lambda: client.face.version), card
