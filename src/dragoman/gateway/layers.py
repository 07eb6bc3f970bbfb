"""Of which layers the service of one agent is made, from the caller inwards.

Each is put in only where the configuration, or what the agent lacks, calls for it: a gateway that has nothing to add
is a client behind a server.
"""

from __future__ import annotations

from ..client.client import Client
from ..model import AgentCard
from ..service import A2AService
from .common import Common
from .config import Upstream
from .gateway import Gateway


def layered(config: Upstream, client: Client, common: Common) -> tuple[A2AService, AgentCard]:
    """The service of an agent that was reached, and the card to publish for it."""
    gateway = Gateway(client, forwarded=config.forward)
    return gateway, gateway.card
