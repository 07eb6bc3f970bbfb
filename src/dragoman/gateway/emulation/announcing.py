"""What a republished card says of what the gateway makes up for.

Rules of this module:

- A capability that callers can use is declared, whoever provides it: ``streaming`` becomes true where it is made of
  GetTask.
- An extension entry, never required, says which operations and modes are the gateway's work and not the agent's, so
  that nobody takes polled events for live ones. It says nothing that is switched off or that the agent has itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ...model import AgentCard, AgentExtension

#: Identifies the entry; its ``params`` are ``{"emulated": [names]}``.
URI = "urn:dragoman:emulation:1"
_WORDS = {
    "streaming": "streams are made of repeated GetTask calls",
    "subscribe": "SubscribeToTask is made of repeated GetTask calls",
    "blocking": "a send that waits is made of repeated GetTask calls where the agent returns at once",
    "return-at-once": "a send that does not wait is answered for an agent that always waits",
    "list-tasks": "ListTasks is answered from the tasks that passed through this gateway",
}


def announced(card: AgentCard, emulated: Sequence[str]) -> AgentCard:
    """The card with what is made up for: names of capabilities, and ``list-tasks``. What a gateway behind this one
    makes up for stays told."""
    if not emulated:
        return card
    capabilities = card.capabilities
    names = tuple(dict.fromkeys((*_told(capabilities.extensions), *emulated)))
    extension = AgentExtension(
        uri=URI,
        description="Provided by a gateway in front of the agent: " + "; ".join(_WORDS.get(one, one) for one in names),
        params={"emulated": list(names)},
    )
    others = tuple(one for one in capabilities.extensions if one.uri != URI)
    streams = True if "streaming" in emulated else capabilities.streaming
    return replace(
        card, capabilities=replace(capabilities, streaming=streams, extensions=(*others, extension)), signatures=()
    )


def _told(extensions: Iterable[AgentExtension]) -> Iterator[str]:
    for extension in extensions:
        names = (extension.params or {}).get("emulated") if extension.uri == URI else None
        if isinstance(names, list):
            yield from (name for name in names if isinstance(name, str))
