"""Agents that follow neither document exactly, as a table: how each is recognised, and what is done about it.

Rules of this module:

- Recognised is what a card shows beyond doubt. The others have to be declared; without that, their first replies tell
  that something is odd, and nothing is lost but speed.
- ``wire``: the version that is spoken, whatever the card says of an interface.
- ``stream_query``: what a call that opens a stream has to say over HTTP+JSON, or the events come all at once.
- ``paths``: JSON-RPC calls go to a URL per operation, put in place of ``ending`` of the card's URL.
- ``mends``: replies are read leniently and written anew for callers of their own face too, from the first one on.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import urlsplit

from ..errors import ConfigError
from ..model import AgentCard, AgentInterface
from ..protocol.operations import Version

_NONE: Mapping[str, str] = MappingProxyType({})


class Hybrid(NamedTuple):
    """One row. ``text``: what it does differently, for people. It is known by the ``ending`` of its card's URL, or by
    that of the ``host`` in it."""

    name: str
    text: str
    ending: str = ""
    host: str = ""
    wire: Version | None = None
    stream_query: str = ""
    paths: Mapping[str, str] = _NONE
    mends: bool = True


_AGNO = MappingProxyType(
    {
        "SendMessage": "/v1/message:send",
        "SendStreamingMessage": "/v1/message:stream",
        "GetTask": "/v1/tasks:get",
        "CancelTask": "/v1/tasks:cancel",
    }
)
_ROWS = (
    Hybrid("agno", "0.3 JSON-RPC envelopes to a URL for each operation", "/v1/message:stream", paths=_AGNO),
    Hybrid("fasta2a", "1.0 shapes with times that have no zone, and 0.3 states"),
    Hybrid("langgraph", "1.0 shapes that keep kind of 0.3"),
    Hybrid(
        "vertex",
        "0.3 HTTP+JSON whose streams are one JSON array unless they are asked for as events",
        host="aiplatform.googleapis.com",
        stream_query="alt=sse",
        mends=False,
    ),
    Hybrid("wire-0.3", "0.3, whatever version its card names", wire="0.3"),
    Hybrid("wire-1.0", "1.0, whatever version its card names", wire="1.0"),
)

#: Every row by its name.
HYBRIDS: dict[str, Hybrid] = {row.name: row for row in _ROWS}


def hybrid_of(card: AgentCard, declared: str = "") -> tuple[Hybrid, str] | None:
    """The hybrid that an agent is, and how that is known. Raises ``ConfigError`` for a name that is none."""
    if declared:
        if declared not in HYBRIDS:
            raise ConfigError(f"{declared!r} is no hybrid that is known: {', '.join(HYBRIDS)}")
        return HYBRIDS[declared], "declared"
    for row in _ROWS:
        if row.ending and any(_path(one).endswith(row.ending) for one in card.supported_interfaces):
            return row, f"its card's url ends in {row.ending}"
        if row.host and any((urlsplit(one.url).hostname or "").endswith(row.host) for one in card.supported_interfaces):
            return row, f"its card's url is at {row.host}"
    return None


def _path(interface: AgentInterface) -> str:
    return interface.url.partition("?")[0]


def base_of(hybrid: Hybrid | None, url: str) -> str:
    """The URL that the hybrid's paths start from."""
    return url.removesuffix(hybrid.ending) if hybrid is not None and hybrid.ending else url
