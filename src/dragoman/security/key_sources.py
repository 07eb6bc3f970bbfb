"""Where the key set of a token issuer comes from: a file, a URL, or the issuer's own metadata.

A source is asked again whenever the keys are to be renewed; what it says of freshness is only reported here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..errors import PeerError
from ..protocol.messages import Headers, HttpResponse


class Document(NamedTuple):
    """A key set as it came; ``max_age``: seconds that it says it is fresh, None if it does not say."""

    body: bytes
    max_age: float | None = None


#: Gets the document anew. Raises ``DragomanError`` or ``OSError``.
Source: TypeAlias = Callable[[], Awaitable[Document]]
#: GET of a URL that the operator named, bounded in size and time. Raises ``DragomanError``.
Fetch: TypeAlias = Callable[[str], Awaitable[HttpResponse]]


def of_file(path: str) -> Source:
    """A key set in a file."""

    async def read() -> Document:
        return Document(await asyncio.to_thread(Path(path).read_bytes))

    return read


def of_url(fetch: Fetch, url: str) -> Source:
    """A key set at a URL."""

    async def get() -> Document:
        response = await _fetched(fetch, url)
        return Document(response.body, max_age(Headers(response.headers)))

    return get


def of_issuer(fetch: Fetch, issuer: str) -> Source:
    """The key set that an issuer's metadata names (OpenID Connect Discovery §4); the metadata must be its own, and a
    key set of an https issuer is fetched over https."""
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    schemes = ("https://",) if issuer.startswith("https://") else ("https://", "http://")

    async def discover() -> Document:
        told = json_object((await _fetched(fetch, url)).body, url)
        keys = told.get("jwks_uri")
        if told.get("issuer") != issuer:
            raise PeerError(f"{url} is the metadata of another issuer")
        if not isinstance(keys, str) or not keys.startswith(schemes):
            raise PeerError(f"{url} names no jwks_uri that can be used")
        return await of_url(fetch, keys)()

    return discover


async def _fetched(fetch: Fetch, url: str) -> HttpResponse:
    response = await fetch(url)
    if response.status != 200:
        raise PeerError(f"{url} answers with status {response.status}", status=response.status)
    return response


def max_age(headers: Headers) -> float | None:
    """What Cache-Control says of freshness (RFC 9111 §5.2.2), less Age; None if nothing."""
    directives = dict(_directive(one) for one in headers.text("cache-control").lower().split(","))
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    told, age = directives.get("max-age", ""), headers.text("age").strip()
    if not (told.isascii() and told.isdigit()):
        return None
    return max(0.0, float(told) - (float(age) if age.isascii() and age.isdigit() else 0.0))


def _directive(text: str) -> tuple[str, str]:
    name, _, value = text.strip().partition("=")
    return name.strip(), value.strip().strip('"')


def json_object(body: bytes, what: str) -> dict[str, Any]:
    """A JSON object. Raises ``PeerError``."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise PeerError(f"{what} is no JSON object")
    return found
