"""Of which layers the service of one agent is made, from the caller inwards.

Each is put in only where the configuration, or what the agent lacks, calls for it: a gateway that has nothing to add
is a client behind a server.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..faces import Face
from ..model import AgentCard
from ..service import A2AService
from .common import Common
from .config import Upstream
from .emulation.announcing import announced
from .emulation.stack import Announcing, Means, emulated, lacking
from .gateway import Connected, Gateway
from .identity import credential_names, owner_of
from .index import Indexed
from .owned import Owned
from .relay.stack import relayed
from .tenants import Nameless


def isolates(config: Upstream, common: Common) -> bool:
    """Whether callers of an agent are kept apart here."""
    return common.admission is not None and config.isolate and not config.forward_credentials


def lists(config: Upstream, common: Common, face: Face) -> bool:
    """Whether ListTasks of an agent that is called over ``face`` is answered from what was seen."""
    lacks = face.version == "0.3" or isolates(config, common)
    return config.index and common.index is not None and lacks


def layered(
    config: Upstream, client: Connected, common: Common, note: Callable[[str], None]
) -> tuple[A2AService, AgentCard]:
    """The service of an agent that was reached, and the card to publish for it; ``note`` hears what is found out."""
    gateway = Gateway(client, forwarded=config.forward, credentials=config.forward_credentials, tell=note)
    card = gateway.card
    caller_of = partial(owner_of, names=credential_names(card, config.forward))
    means = Means(store=common.tasks, background=common.background, caller_of=caller_of)
    service = common.telemetry.toward_agent(config.name, gateway, client)
    service = emulated(service, config, card, means)
    service, card = relayed(service, config, client, card, common.relay, caller_of)
    made_up = lacking(config.emulate, card)
    alone = isolates(config, common)
    listed = config.index and common.index is not None
    if config.index and common.index is not None:
        unlisted = lists(config, common, client.face)
        service = Indexed(service, common.index, config.name, caller_of, lacks=unlisted)
        made_up += ("list-tasks",) if unlisted else ()
    if made_up:
        service = Announcing(service, made_up)
    card = announced(card, made_up)
    common.owners.isolated.discard(config.name)
    if alone:
        service = Owned(service, common.owners, config.name, lists=listed)
    if common.admission is not None:
        service, card = common.admission.admitted(config.name, service), common.admission.announced(card)
    if config.tenant:
        service = Nameless(service, config.tenant)
    return common.telemetry.toward_callers(config.name, service), card
