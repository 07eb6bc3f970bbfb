"""Browser clients of other origins: the CORS protocol of the Fetch standard (§3.2) around any ASGI app.

Rules of this module:

- A preflight is answered here, before anybody asks who is calling: it carries no credentials.
- An origin is compared exactly with those that may; ``*`` allows all, and then no credentials.
- Every reply to an origin that may gets the fields, errors and event streams too: a script can read nothing else.
- What depends on the origin says so in Vary, also where the request names none, so that no cache mixes them up.
- A request of an origin that may not is served without the fields, and its browser keeps the reply from the page.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..protocol.messages import Header, HttpResponse
from .asgi import App, Message, Receive, Scope, Send, send_response

#: Methods that the bindings use.
METHODS = b"GET, HEAD, POST, DELETE"
#: Request fields that A2A and its clients use, beyond those that need no permission.
HEADERS = (
    *("authorization", "content-type", "accept", "last-event-id", "if-none-match"),
    *("a2a-version", "a2a-extensions", "x-a2a-extensions", "traceparent", "tracestate", "baggage"),
)
#: Reply fields that a script has to see.
EXPOSED = ("A2A-Extensions", "X-A2A-Extensions", "A2A-Version", "Retry-After", "WWW-Authenticate", "ETag")

_ORIGIN = b"origin"
_ASKED_METHOD = b"access-control-request-method"
_ASKED_HEADERS = b"access-control-request-headers"
_VARY = (b"vary", b"Origin")
_VARY_PREFLIGHT = (b"vary", b"Origin, Access-Control-Request-Method, Access-Control-Request-Headers")


class Cors:
    """``app`` for pages of other origins.

    ``origins``: such as ``https://app.example``, or ``*`` for all. ``headers`` and ``expose``: further request and
    reply fields; a ``*`` in ``headers`` allows whatever is asked for. ``max_age``: seconds that a browser remembers
    the answer. ``credentials``: cookies and client certificates go along, which needs named origins.
    """

    def __init__(
        self,
        app: App,
        origins: Iterable[str],
        *,
        headers: Iterable[str] = (),
        expose: Iterable[str] = (),
        max_age: int = 600,
        credentials: bool = False,
    ) -> None:
        self._app = app
        named = tuple(headers)
        self._origins = frozenset(origin.encode() for origin in origins)
        self._any = b"*" in self._origins
        self._whatever = "*" in named
        self._allowed = ", ".join(dict.fromkeys((*HEADERS, *(name.lower() for name in named if name != "*")))).encode()
        self._age = b"%d" % max_age
        self._credentials: tuple[Header, ...] = ()
        if credentials and not self._any:
            self._credentials = ((b"access-control-allow-credentials", b"true"),)
        exposed = ", ".join(dict.fromkeys((*EXPOSED, *expose))).encode()
        self._common: tuple[Header, ...] = (*self._credentials, (b"access-control-expose-headers", exposed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        origin = _field(scope, _ORIGIN)
        if origin and scope["method"] == "OPTIONS" and _field(scope, _ASKED_METHOD):
            return await send_response(send, self._preflight(origin, _field(scope, _ASKED_HEADERS)))
        more = self._fields(origin)
        if not more:
            return await self._app(scope, receive, send)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        return await self._app(scope, receive, sending)

    def _allows(self, origin: bytes) -> bool:
        return self._any or origin in self._origins

    def _origin(self, origin: bytes) -> Header:
        return (b"access-control-allow-origin", b"*" if self._any else origin)

    def _fields(self, origin: bytes) -> tuple[Header, ...]:
        """What goes on a reply."""
        vary = () if self._any else (_VARY,)
        return (self._origin(origin), *self._common, *vary) if origin and self._allows(origin) else vary

    def _preflight(self, origin: bytes, headers: bytes) -> HttpResponse:
        """The answer to a browser that asks whether it may ask."""
        if not self._allows(origin):
            return HttpResponse(403, [_VARY_PREFLIGHT, (b"content-length", b"0")])
        return HttpResponse(
            204,
            [
                self._origin(origin),
                *self._credentials,
                (b"access-control-allow-methods", METHODS),
                (b"access-control-allow-headers", headers if self._whatever and headers else self._allowed),
                (b"access-control-max-age", self._age),
                _VARY_PREFLIGHT,
            ],
        )


def _field(scope: Scope, name: bytes) -> bytes:
    for field, value in scope["headers"]:
        if field == name:
            found: bytes = value
            return found
    return b""
