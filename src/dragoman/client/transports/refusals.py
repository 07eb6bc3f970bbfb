"""What an HTTP reply means when it is not a message: pages of proxies, login forms, missing routes.

Rules of this module:

- The codec decides first. What it can read as an A2A error is that error, unless the status is 401 or 403: those
  are about credentials whatever the body says.
- A body that is no JSON was not written by an agent. The status then names the error, and the text says who may
  have written it and what to look at next.
- An error of A2A's own may go on to somebody who must not know where the agent is: its url is in a note, not the text.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import (
    A2AError,
    DragomanError,
    InvalidRequestError,
    PeerError,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
)
from ...protocol.messages import Headers, HttpResponse
from ...protocol.replies import retry_after

#: Statuses that say that no route took the request, unless the body holds A2A's own error.
NO_ROUTE = frozenset({404, 405, 501})

#: What a status means when the body is no help.
_BY_STATUS: dict[int, tuple[type[A2AError], str]] = {
    413: (InvalidRequestError, "The request is larger than the peer, or a proxy before it, takes"),
    429: (RateLimitedError, "The peer, or a proxy before it, limits the rate of requests"),
    502: (UnavailableError, "A proxy could not reach the agent"),
    503: (UnavailableError, "The agent, or a proxy before it, is not available"),
    504: (UnavailableError, "A proxy got no answer from the agent in time"),
}
_HINTS: dict[int, str] = {
    404: "nothing is served at this url: look at the url in the card (0.3 HTTP+JSON adds /v1 to it)",
    405: "this url does not take the verb: the card may name the wrong binding for it",
    415: "the peer does not take this content type",
}


def no_route(response: HttpResponse) -> bool:
    """Whether the peer has no such route, as opposed to an A2A error of the same status."""
    return response.status in NO_ROUTE and b"a2a-protocol.org" not in response.body


def content_type(response: HttpResponse) -> bytes:
    """The media type without its parameters, lower case."""
    return Headers(response.headers).get(b"content-type").partition(b";")[0].strip().lower()


def is_page(body: bytes) -> bool:
    """Whether a body is markup for people."""
    return body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"<"


def refusal(response: HttpResponse, read: Callable[[HttpResponse], bytes], url: str) -> DragomanError:
    """The error that an unsuccessful reply is. ``read`` is the codec's reading of it."""
    found: DragomanError | None = None
    try:
        read(response)
    except (A2AError, PeerError) as error:
        found = error
    by_agent = response.body.lstrip()[:1] in (b"{", b"[")
    written = found if isinstance(found, A2AError) and by_agent else None
    meant = _credentials(response, written) or written or _page(response, url)
    if isinstance(meant, A2AError) and meant.retry_after is None:
        meant.retry_after = retry_after(Headers(response.headers))
    if isinstance(meant, A2AError) and meant is not written:
        meant.add_note(f"HTTP {response.status} from {url}")
    return meant


def _credentials(response: HttpResponse, written: A2AError | None) -> A2AError | None:
    said = f": {written.message}" if written else ""
    if response.status == 401:
        challenge = Headers(response.headers).text("www-authenticate", "Bearer")
        message = f"The agent wants credentials (401, {challenge}){said}"
        return UnauthenticatedError(message, challenge=challenge)
    if response.status == 403:
        return PermissionDeniedError(f"The agent refuses these credentials (403){said}")
    return None


def _page(response: HttpResponse, url: str) -> DragomanError:
    known = _BY_STATUS.get(response.status)
    if known is not None:
        kind, text = known
        return kind(f"{text} (HTTP {response.status})")
    if 300 <= response.status < 400:
        target = Headers(response.headers).text("location", "nowhere")
        return PeerError(
            f"{url} redirects to {target}; requests are not redirected: the card should name that url",
            status=response.status,
        )
    hint = _HINTS.get(response.status, "this is not an answer of an A2A agent: a proxy or another service wrote it")
    shown = excerpt(response.body)
    said = f" ({shown!r})" if shown and not is_page(response.body) else ""
    text = f"{url} answered HTTP {response.status} with {describe(response)}{said}; {hint}"
    return PeerError(text, excerpt=shown, status=response.status)


def unexpected(response: HttpResponse, url: str, wanted: str) -> PeerError:
    """A successful reply of the wrong kind."""
    hint = ""
    if is_page(response.body):
        hint = ": a login page or the front page of a web site? Look at the url and at the credentials"
    return PeerError(
        f"{url} answered HTTP {response.status} with {describe(response)} where {wanted} belongs{hint}",
        excerpt=excerpt(response.body),
        status=response.status,
    )


def describe(response: HttpResponse) -> str:
    """What a body is, for people."""
    if not response.body:
        return "an empty body"
    if is_page(response.body):
        return "an HTML page"
    return content_type(response).decode("latin-1") or "a body without content type"


def excerpt(body: bytes) -> str:
    """The start of a body, safe to show."""
    return body[:200].decode("utf-8", "replace")
