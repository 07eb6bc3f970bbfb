"""What the replies of the two HTTP bindings have in common: fields that an error sets, and what a status says.

Rules of this module:

- A reply goes out whole, so it names its length. What an error wants said in a header is read off the error.
- A status that means the same everywhere (401, 403, 429, 503, 504) is an A2A error even when the body is a page that
  some proxy wrote.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from email.utils import parsedate_to_datetime

from ..errors import A2AError, PeerError, UnauthenticatedError
from .jsontext import excerpt, media_type
from .messages import Header, Headers, HttpResponse
from .operations import Version
from .refusals import VerbNotAllowedError
from .verdict import PLAIN_HTTP, Evidence, evidence_of

JSON = b"application/json"


def write_json(status: int, body: bytes, more: Iterable[Header] = (), media: bytes = JSON) -> HttpResponse:
    """A finished reply."""
    headers = [(b"content-type", media), (b"content-length", b"%d" % len(body)), *more]
    return HttpResponse(status, headers, body)


def error_headers(error: A2AError) -> list[Header]:
    """WWW-Authenticate, Allow and Retry-After, where ``error`` has them."""
    out: list[Header] = []
    if isinstance(error, UnauthenticatedError):
        out.append((b"www-authenticate", field_value(error.challenge)))
    if isinstance(error, VerbNotAllowedError):
        out.append((b"allow", ", ".join(error.allow).encode()))
    if error.retry_after is not None:
        out.append((b"retry-after", b"%d" % max(0, math.ceil(error.retry_after))))
    return out


def field_value(text: str) -> bytes:
    """``text`` as a header value: one line of latin-1 (RFC 9110 §5.5)."""
    return " ".join(text.split()).encode("latin-1", "replace")


def evidence_of_reply(response: HttpResponse, value: object, version: Version, op: str) -> Evidence | None:
    """What a reply says about its error: its body ``value``, its status and its headers."""
    found = evidence_of(value, version)
    if found is not None:
        headers = Headers(response.headers)
        found.op, found.http = op, response.status
        found.challenge = headers.text("www-authenticate")
        found.retry_after = retry_after(headers)
    return found


#: Seconds; who says more means never, or nothing.
LONGEST_WAIT = 86_400.0


def retry_after(headers: Headers) -> float | None:
    """Retry-After in seconds, of a date those since the reply's own Date; None if it is absent or unreadable (RFC 9110
    §10.2.3)."""
    text = headers.text("retry-after").strip()
    if not text or (text.isascii() and text.isdigit()):
        return min(float(text[:20]), LONGEST_WAIT) if text else None
    try:
        left = parsedate_to_datetime(text) - parsedate_to_datetime(headers.text("date"))
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(left.total_seconds(), 0.0), LONGEST_WAIT)


def plain_status(response: HttpResponse, version: Version, message: str = "") -> A2AError | None:
    """The error that the status alone names, None where it needs a body to be understood."""
    if response.status not in PLAIN_HTTP:
        return None
    found = evidence_of_reply(response, message, version, "")
    return found.error() if found else None


def unreadable(response: HttpResponse, expected: str) -> PeerError:
    """The error for a reply that is not what belongs there: says its status and media type, shows its start."""
    kind = media_type(Headers(response.headers).get(b"content-type")).decode("latin-1") or "no media type"
    return PeerError(
        f"HTTP {response.status} with {kind} where {expected} belongs",
        excerpt=excerpt(response.body),
        status=response.status,
    )
