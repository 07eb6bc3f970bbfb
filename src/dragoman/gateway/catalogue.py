"""The list of agents at the gateway's root: JSON for programs, a small page for people.

Rules of this module:

- HTML goes to who prefers ``text/html`` in Accept, JSON to everybody else.
- What an upstream says of itself is text, never markup; links lead to the gateway only.
- Where an upstream is and why it cannot be reached is the operator's, and not in here.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import msgspec

from ..protocol.messages import Headers, HttpResponse
from .agents import Agent
from .plan import PlannedInterface, served

CARD = "/.well-known/agent-card.json"
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Agents</title>
<meta name="viewport" content="width=device-width">
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
code { overflow-wrap: anywhere } dt { margin-top: .5rem } .away { color: #a00 }
</style></head><body><h1>Agents</h1>
"""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One agent of the catalogue. ``title``, ``description`` and ``version`` are its card's."""

    name: str
    title: str
    description: str
    version: str
    path: str
    card: str
    available: bool
    interfaces: tuple[PlannedInterface, ...]


class Catalogue(msgspec.Struct, frozen=True):
    """All agents, in the order of the configuration."""

    agents: tuple[Listed, ...]


def catalogue(agents: Iterable[Agent], base: str) -> Catalogue:
    """The catalogue for a caller who reaches the gateway at ``base``, a URL without trailing slash."""
    return Catalogue(tuple(_listed(agent, base) for agent in agents))


def card_url(agent: Agent, base: str) -> str:
    """Where its card is for that caller."""
    path = "" if agent.config.path == "/" else agent.config.path
    return (agent.app.public_url or base + path).rstrip("/") + CARD


def _listed(agent: Agent, base: str) -> Listed:
    card = agent.app.published.card
    return Listed(
        name=agent.config.name,
        title=card.name,
        description=card.description,
        version=card.version,
        path=agent.config.path,
        card=card_url(agent, base),
        available=agent.reachable,
        interfaces=served(agent, base),
    )


def respond(found: Catalogue, method: str, headers: Headers) -> HttpResponse:
    """The answer to GET or HEAD of the root."""
    html = prefers_html(headers.text("accept"))
    body = page(found).encode() if html else msgspec.json.encode(found)
    fields = [
        (b"content-type", b"text/html; charset=utf-8" if html else b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-cache"),
        (b"vary", b"Accept"),
    ]
    if html:
        fields.append((b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"))
    return HttpResponse(200, fields, b"" if method == "HEAD" else body)


def prefers_html(accept: str) -> bool:
    """Whether an Accept field ranks ``text/html`` above JSON (RFC 9110 §12.5.1)."""
    ranks = {media: _quality(more) for media, _, more in (one.partition(";") for one in _parts(accept))}
    html = ranks.get("text/html", 0.0)
    return html > ranks.get("application/json", 0.0) and html > 0


def _parts(accept: str) -> list[str]:
    return [one.replace(" ", "").lower() for one in accept.split(",")]


def _quality(parameters: str) -> float:
    value = next((one[2:] for one in parameters.split(";") if one.startswith("q=")), "1")
    try:
        return float(value)
    except ValueError:
        return 0.0


def page(found: Catalogue) -> str:
    """The catalogue for people."""
    return _HEAD + "".join(map(_section, found.agents)) + "</body></html>\n"


def _section(one: Listed) -> str:
    away = "" if one.available else '<p class="away">It cannot be reached at the moment.</p>'
    rows = "".join(
        f"<dt>{escape(face.protocol_version)} {escape(face.protocol_binding)}</dt>"
        f"<dd><code>{escape(face.url)}</code></dd>"
        for face in one.interfaces
    )
    return (
        f"<section><h2>{escape(one.title)}</h2>{away}<p>{escape(one.description)}</p>"
        f'<p><a href="{escape(one.card)}">Agent card</a></p><dl>{rows}</dl></section>\n'
    )
