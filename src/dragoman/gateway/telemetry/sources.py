"""What others know by themselves, as readings: how agents and their replicas fare, and what became of webhooks.

A replica is told by its place, ``0`` for the agent's ``url`` and then its ``replicas`` in their order: addresses are
not for whoever may read metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from ..config import Upstream
from ..relay.relay import Relay
from ..replicas import Replica
from ..turns import Turns
from .tallies import Counted, Reading


class Pooled(Protocol):
    """The replicas of an agent, and who waits for them."""

    @property
    def replicas(self) -> Sequence[Replica]: ...

    @property
    def calls(self) -> Turns: ...

    @property
    def streams(self) -> Turns: ...


class Faring(Protocol):
    """An agent of the gateway."""

    @property
    def config(self) -> Upstream: ...

    @property
    def reachable(self) -> bool: ...

    @property
    def pool(self) -> Pooled: ...


def of_agents(agents: Callable[[], Sequence[Faring]]) -> Iterator[Reading]:
    """How each agent fares."""
    for agent in agents():
        name, pool = agent.config.name, agent.pool
        yield Counted("dragoman_upstream_up", (name,), agent.reachable)
        yield Counted("dragoman_upstream_waiting", (name,), pool.calls.waiting + pool.streams.waiting)
        for place, replica in enumerate(pool.replicas):
            yield from _of_replica((name, str(place)), replica)


def _of_replica(labels: tuple[str, ...], replica: Replica) -> Iterator[Reading]:
    yield Counted("dragoman_replica_up", labels, replica.reachable)
    yield Counted("dragoman_replica_busy", labels, replica.busy)
    yield Counted("dragoman_replica_connects_total", labels, replica.connects)
    yield Counted("dragoman_replica_failures_total", labels, replica.failures)
    yield Counted("dragoman_replica_left_alone_total", labels, replica.breaker.opened)


def of_relay(relay: Relay) -> Iterator[Reading]:
    """What became of webhooks."""
    counts, stock = relay.counts, relay.counts.stock
    for outcome in ("delivered", "coalesced", "retried", "dead", "gone"):
        yield Counted("dragoman_deliveries_total", (outcome,), getattr(counts, outcome))
    for outcome in ("accepted", "repeated", "refused"):
        yield Counted("dragoman_notifications_total", (outcome,), getattr(counts, outcome))
    yield Counted("dragoman_webhooks", (), stock.registrations)
    yield Counted("dragoman_deliveries_pending", (), stock.pending)
    yield Counted("dragoman_deliveries_dead", (), stock.dead)
