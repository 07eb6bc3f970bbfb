"""``/healthz``, ``/readyz`` and ``/metrics``, in front of the gateway's app or on a port of their own.

Rules of this module:

- ``/healthz`` says that the process lives, nothing else: whoever asks may restart it if not.
- ``/readyz`` says whether callers should be sent here. On the shared port it tells names, not addresses or reasons.
- They win over an agent at the root: no operation has such a path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ...protocol.messages import Header, Headers, HttpResponse
from ...server.asgi import App, Receive, Scope, Send, send_response
from .readiness import Readiness
from .tallies import Reading

#: Writes the metrics for an Accept header: content type and body.
Metrics = Callable[[str], Awaitable[tuple[str, bytes]]]
_JSON: Header = (b"content-type", b"application/json")
_FRESH: Header = (b"cache-control", b"no-store")
_READ = ("GET", "HEAD")


class Pages:
    """An ASGI app of these pages alone. ``metrics``: None if they are not served here. ``private``: only the operator
    can come here."""

    def __init__(self, readiness: Readiness, metrics: Metrics | None, *, private: bool) -> None:
        self._readiness = readiness
        self._metrics = metrics
        self._private = private
        self.paths = frozenset({"/healthz", "/readyz"} | ({"/metrics"} if metrics else set()))

    def before(self, app: App) -> App:
        """These pages, and ``app`` behind them."""
        paths = self.paths

        def entry(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
            if scope["type"] == "http" and scope["path"] in paths:
                return self(scope, receive, send)
            return app(scope, receive, send)

        return entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            response = await self._respond(scope["method"], scope["path"], Headers(scope["headers"]))
            if scope["method"] == "HEAD":
                response.body = b""
            await send_response(send, response)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _respond(self, method: str, path: str, headers: Headers) -> HttpResponse:
        if path not in self.paths:
            return HttpResponse(404, [_JSON], b'{"error":"there are ' + ", ".join(sorted(self.paths)).encode() + b'"}')
        if method not in _READ:
            return HttpResponse(405, [(b"allow", b"GET, HEAD")])
        if path == "/healthz":
            return HttpResponse(200, [_JSON, _FRESH], b'{"alive":true}')
        if path == "/readyz":
            state = await self._readiness.state(private=self._private)
            return HttpResponse(200 if state.ready else 503, [_JSON, _FRESH], msgspec.json.encode(state))
        assert self._metrics is not None  # or there were no such path
        kind, body = await self._metrics(headers.text("accept"))
        return HttpResponse(200, [(b"content-type", kind.encode()), _FRESH], body)


async def _lifespan(receive: Receive, send: Send) -> None:
    for kind in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{kind}.complete"})


def in_thread(read: Callable[[], list[Reading]], write: Callable[[list[Reading], str], tuple[str, bytes]]) -> Metrics:
    """Readings are taken in the loop, whose they are, and written out of its way."""
    return lambda accept: asyncio.to_thread(write, read(), accept)
