"""From the url that a caller has to the card of the agent behind it.

Rules of this module:

- Looked at in order: the well-known path under the url, the same at its origin, the name of 0.2 in both places, the
  url itself. A url that ends in ``.json`` or is well-known already is the card's own and the only one looked at.
- Redirects are followed within one origin. Credentials go to the origin that the caller gave and nowhere else.
- What was found instead of a card is told per url, with what to do next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

from ..dialects.base import Notes
from ..dialects.cards import load_card
from ..errors import ConfigError, DragomanError, PeerError, PermissionDeniedError, TransportError, UnauthenticatedError
from ..model import AgentCard
from ..protocol.messages import NO_HEADERS, Headers, HttpResponse
from .options import Limits, Timeouts, Tls
from .rebase import origin

if TYPE_CHECKING:
    from .transports.connection import Fetch

WELL_KNOWN = "/.well-known/agent-card.json"
WELL_KNOWN_02 = "/.well-known/agent.json"
_REDIRECTS = 5
_AWAY = frozenset({429, 502, 503, 504})
_ASK = {"accept": "application/json, application/a2a+json", "a2a-version": "1.0"}


class Found(NamedTuple):
    """A card, where it was, what had to be forgiven to read it, in words, and the header fields that came with it."""

    card: AgentCard
    url: str
    notes: tuple[str, ...] = ()
    fields: Headers = NO_HEADERS


def card_urls(url: str) -> tuple[str, ...]:
    """Where the card of an agent at ``url`` may be, best first. Raises ``ConfigError`` if it is no HTTP url."""
    parts = urlsplit(url.strip())
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is not the url of an agent: it must begin with http:// or https://")
    if parts.path.endswith(".json") or "/.well-known/" in parts.path:
        return (url.strip(),)
    root = f"{parts.scheme}://{parts.netloc}"
    base = root + parts.path.rstrip("/")
    places = [base + WELL_KNOWN, root + WELL_KNOWN, base + WELL_KNOWN_02, root + WELL_KNOWN_02]
    if parts.path.strip("/"):
        places.append(url.strip())
    return tuple(dict.fromkeys(places))


async def resolve(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - immutable
    tls: Tls = Tls(),  # noqa: B008 - immutable
    limits: Limits = Limits(),  # noqa: B008 - immutable
    proxy: str | None = None,
    known: Found | None = None,
) -> Found:
    """Fetch and read the card of the agent at ``url``.

    ``headers`` go along, credentials included. ``known``: what was found before; if that has not changed, it is given
    back, with its fields made new (RFC 9110 §13.1, RFC 9111 §4.3.4). Raises ``UnauthenticatedError`` or
    ``PermissionDeniedError`` if the card is protected, ``TransportError`` if nobody answers, ``PeerError`` if there is
    no card.
    """
    from .transports.connection import Fetch, build_client  # loads the HTTP client

    places = card_urls(url) if known is None else tuple(dict.fromkeys((known.url, *card_urls(url))))
    client = await asyncio.to_thread(build_client, timeouts, tls, proxy)  # it reads the roots of the system
    fetch = Fetch(client, timeouts, limits.card)
    missed: list[str] = []
    try:
        for place in places:
            validators = _validators(known) if known is not None and place == known.url else {}
            response, answered = await _get(fetch, place, {**_ASK, **(headers or {}), **validators})
            if response.status == 304 and known is not None and validators:
                return known._replace(fields=_renewed(known.fields, response))
            found = _read(response, answered)
            if isinstance(found, Found):
                return found
            missed.append(f"{answered}: {found}")
    finally:
        await client.close()
    raise PeerError(_nowhere(url, missed))


def _validators(known: Found) -> dict[str, str]:
    named = (("etag", "if-none-match"), ("last-modified", "if-modified-since"))
    return {ask: value for name, ask in named if (value := known.fields.text(name))}


def _renewed(fields: Headers, response: HttpResponse) -> Headers:
    """The stored fields, less those that the reply gives anew."""
    new = {name for name, _ in response.headers}
    return Headers([*(field for field in fields.raw if field[0] not in new), *response.headers])


def _read(response: HttpResponse, url: str) -> Found | str:
    """The card of a reply, or what is wrong with it. Raises for a card that wants other credentials."""
    if response.status == 401:
        raise UnauthenticatedError(f"The card at {url} wants credentials (401): pass bearer= or headers=")
    if response.status == 403:
        raise PermissionDeniedError(f"The card at {url} is refused to these credentials (403)")
    if response.status in _AWAY:  # the agent is behind this place: another place would be another agent
        raise TransportError(f"The agent at {url} is not available now (HTTP {response.status}): try again later")
    if response.status != 200:
        return _status(response)
    body = response.body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if body[:1] == b"<":
        return "an HTML page, not a card (a web site or a login page answers here)"
    if body.replace(b" ", b"").strip() in (b"{}", b"null", b""):
        return "an empty document, not a card"
    notes = Notes()
    try:
        card = load_card(body, notes)
    except DragomanError as error:
        return f"not a card: {error}"
    return Found(card, url, tuple(notes.forgiven), Headers(response.headers))


def _status(response: HttpResponse) -> str:
    if 300 <= response.status < 400:
        target = dict(response.headers).get(b"location", b"").decode("latin-1")
        return f"HTTP {response.status}, a redirect to {target or 'nowhere'}: if you trust it, give that url"
    return f"HTTP {response.status}"


async def _get(fetch: Fetch, url: str, headers: Mapping[str, str]) -> tuple[HttpResponse, str]:
    """Fetch, following redirects within the origin; also gives the url that answered."""
    for _ in range(_REDIRECTS):
        response = await fetch.get(url, headers)
        target = dict(response.headers).get(b"location")
        if not 300 <= response.status < 400 or target is None:
            break
        there = urljoin(url, target.decode("latin-1"))
        if origin(there) != origin(url):
            break
        url = there
    return response, url


def _nowhere(url: str, missed: Iterable[str]) -> str:
    tried = "\n  ".join(missed)
    return (
        f"No agent card for {url}. Tried:\n  {tried}\n"
        "Give the url under which the agent's /.well-known/agent-card.json is found, or the url of the card itself."
    )
