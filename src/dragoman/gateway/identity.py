"""Whose a task is: what the gateway keeps for one caller no other gets to see.

Rules of this module:

- A verified caller is its name.
- A caller whom nobody verified here is what it shows to the agent: a digest over the fields of its credentials that go
  on. The agent tells its callers apart by them, so the gateway must not mix up what the agent would not.
- A further field that the operator lets through counts as a credential, unless it is known to change with each
  request: to know too little of one's own tasks is a nuisance, to know of another's a breach.
- Who shows nothing is nobody in particular, and shares what is nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from ..model import AgentCard
from ..service import Context
from .forwarding import forwarded_names

#: Fields that say something of a request and nothing of who sends it.
_OF_REQUESTS = frozenset(
    b"""
    traceparent tracestate baggage b3 x-b3-traceid x-b3-spanid x-b3-parentspanid x-b3-sampled x-b3-flags
    request-id x-request-id correlation-id x-correlation-id x-cloud-trace-context x-amzn-trace-id uber-trace-id
    user-agent accept-language origin referer forwarded x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip
    idempotency-key date
    """.split()
)


def credential_names(card: AgentCard, more: Iterable[str] = ()) -> tuple[bytes, ...]:
    """Lower-case names of the fields that tell callers of an agent apart, in order: of all that are forwarded
    (``more`` as in :func:`~dragoman.gateway.forwarding.forwarded_names`) those that are not about the request."""
    return tuple(sorted(forwarded_names(card, more) - _OF_REQUESTS))


def owner_of(ctx: Context, names: Iterable[bytes]) -> str:
    """Who is asking: the verified caller's name, else a digest of the fields ``names`` of the request, else empty.

    ``names``: lower case, always in one order (:func:`credential_names`). A digest is ``sha256:`` and 64 hex digits.
    """
    name = ctx.caller.name
    if name:
        return name
    fields = ctx.headers.fields()
    shown = [(name, fields[name]) for name in names if name in fields]
    return f"sha256:{sha256(repr(shown).encode()).hexdigest()}" if shown else ""


def is_digest(owner: str) -> bool:
    """Whether an owner is nobody that was verified, known by what it shows alone."""
    return owner.startswith("sha256:") and len(owner) == 71
