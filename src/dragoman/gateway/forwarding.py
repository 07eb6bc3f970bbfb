"""Which header fields of a caller go on to the upstream.

It is a list of what may pass, not of what may not: Authorization, the fields that the card's security schemes name,
trace context (W3C Trace Context, Baggage), and what the operator adds. Hop-by-hop fields (RFC 9110 §7.6.1) and those
that the codecs write themselves are never on it. What verified a caller here was meant for the gateway and stays here.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ConfigError
from ..model import AgentCard
from ..protocol.messages import NO_HEADERS, Headers

ALWAYS = frozenset({b"authorization", b"traceparent", b"tracestate", b"baggage"})
_EACH_CONNECTION = """
    connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade
    accept accept-encoding content-encoding content-length content-type expect grpc-timeout host
    a2a-version a2a-extensions x-a2a-extensions
"""
NEVER = frozenset(_EACH_CONNECTION.encode().split())


def forwarded_names(card: AgentCard, more: Iterable[str] = ()) -> frozenset[bytes]:
    """Lower-case names that pass. Raises ``ConfigError`` if ``more`` names one that never may."""
    added = {name.strip().lower().encode("latin-1") for name in more}
    forbidden = added & NEVER
    if forbidden:
        raise ConfigError(f"{b', '.join(sorted(forbidden)).decode()} belongs to each connection and is not forwarded")
    return (ALWAYS | added | _named_by(card)) - NEVER


def _named_by(card: AgentCard) -> set[bytes]:
    names = set()
    for scheme in card.security_schemes.values():
        key = scheme.api_key_security_scheme
        if key is not None and key.location in ("header", "cookie"):
            names.add(b"cookie" if key.location == "cookie" else key.name.lower().encode("latin-1", "ignore"))
    return names


class Passing:
    """The fields that pass: ``names``, less those that verified a caller unless ``credentials`` lets them on."""

    def __init__(self, names: frozenset[bytes], *, credentials: bool = False) -> None:
        self._names = names
        self._credentials = credentials
        self._without: dict[frozenset[bytes], frozenset[bytes]] = {}  # as many as there are kinds of credentials

    def forward(self, headers: Headers, consumed: frozenset[bytes] = frozenset()) -> Headers:
        """The fields of ``headers`` that pass; ``consumed`` verified their caller."""
        names = self._names if not consumed or self._credentials else self._less(consumed)
        passing = [field for field in headers.raw if field[0] in names]
        return Headers(passing) if passing else NO_HEADERS

    def _less(self, consumed: frozenset[bytes]) -> frozenset[bytes]:
        found = self._without.get(consumed)
        if found is None:
            found = self._without[consumed] = self._names - consumed
        return found
