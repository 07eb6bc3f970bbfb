"""Which emulations an agent gets: those that are switched on, less what the agent does itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, cast

from ...dialects.base import Dialect
from ...model import GET_EXTENDED_AGENT_CARD, AgentCard, Req, Res, Unary
from ...service import A2AService, AnyOperation, Context
from ...store.base import Store
from ..background import Background
from ..config import Upstream
from ..layer import Layer
from .aliases import Records
from .announcing import announced
from .blocking import Blocking
from .detached import Detached
from .leading import Leading
from .polling import Pace, Questions
from .streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What emulations need. ``store``: where ids of our own are kept. ``caller_of``: see ``identity.owner_of``."""

    store: Store
    background: Background
    caller_of: Callable[[Context], str]


def lacking(wanted: Collection[str], card: AgentCard) -> tuple[str, ...]:
    """What is made up for of what is switched on: all but what the card says the agent has."""
    streams = bool(card.capabilities.streaming)
    return tuple(one for one in wanted if one not in ("streaming", "subscribe") or not streams)


def emulated(inner: A2AService, config: Upstream, card: AgentCard, means: Means) -> A2AService:
    """The service with everything that it lacks and the configuration wants; ``inner`` itself if that is nothing."""
    wanted, streams = config.emulate, bool(card.capabilities.streaming)
    pace = Pace(first=config.polling.first, most=config.polling.most)
    questions = Questions(inner, pace, config.polling.at_once)
    service = inner
    if "return-at-once" in wanted and streams:
        service = Leading(service, means.background)
    elif "return-at-once" in wanted:
        records = Records(means.store, config.name)
        service = Detached(service, records, means.background, questions, means.caller_of)
    if "blocking" in wanted:
        service = Blocking(service, questions.over(service), config.timeouts.reply)
    sends = "streaming" in wanted and not streams
    if sends or "subscribe" in wanted:
        service = Streams(
            service,
            questions.over(service),
            means.background,
            sends=sends,
            subscribes=not streams,
            unsure=streams,
        )
    return service


class Announcing(Layer):
    """Says in the extended card what the published one says."""

    def __init__(self, inner: A2AService, names: tuple[str, ...]) -> None:
        super().__init__(inner)
        self._names = names

    def call(self, op: Unary[Req, Res], request: Req, ctx: Context) -> Coroutine[Any, Any, Res]:
        """As ``A2AService.call``."""
        call = self.inner.call(op, request, ctx)
        if op is GET_EXTENDED_AGENT_CARD:
            return cast("Coroutine[Any, Any, Res]", self._card(cast("Coroutine[Any, Any, AgentCard]", call)))
        return call

    def passes(self, dialect: Dialect, op: AnyOperation) -> bool:
        """As ``PassThrough.passes``: no for the card."""
        return op is not GET_EXTENDED_AGENT_CARD and super().passes(dialect, op)

    async def _card(self, call: Coroutine[Any, Any, AgentCard]) -> AgentCard:
        return announced(await call, self._names)
