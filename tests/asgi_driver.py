"""Drives an ASGI app in-process: one request in, everything that it sends out, with the disconnect in our hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from dragoman.server.asgi import Message

App = Callable[..., Any]
LIMIT = 10.0  # seconds that any one exchange may take before the test fails


class Answer:
    """What an app sent for one request, joined as a client would see it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.chunks: list[bytes] = []
        self.trailers: dict[str, str] | None = None
        self.complete = False

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def take(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        elif kind == "http.response.body":
            self.chunks.append(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        elif kind == "http.response.trailers":
            self.trailers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}


def scope(method: str, path: str, headers: dict[str, str], **more: Any) -> dict[str, Any]:
    """An ASGI scope as a server makes it; ``path`` may hold a query and percent escapes."""
    from urllib.parse import unquote

    raw, _, query = path.partition("?")
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
        "server": ("127.0.0.1", 8000),
        "client": ("192.0.2.7", 50000),
        **more,
    }


class Exchange:
    """A request under way: ``answer`` fills as the app sends; ``disconnect()`` is the caller going away."""

    def __init__(self, app: App, scope: dict[str, Any], body: Iterable[bytes]) -> None:
        self.answer = Answer()
        self.sent = asyncio.Condition()
        self._app = app
        self._scope = scope
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        chunks = list(body) or [b""]
        for place, chunk in enumerate(chunks):
            more = place < len(chunks) - 1
            self._incoming.put_nowait({"type": "http.request", "body": chunk, "more_body": more})

    def disconnect(self) -> None:
        self._incoming.put_nowait({"type": "http.disconnect"})

    async def run(self) -> Answer:
        async with asyncio.timeout(LIMIT):
            await self._app(self._scope, self._incoming.get, self._send)
        return self.answer

    async def until(self, seen: Callable[[Answer], bool]) -> None:
        """Wait until ``seen`` holds for what was sent so far."""
        async with asyncio.timeout(LIMIT), self.sent:
            await self.sent.wait_for(lambda: seen(self.answer))

    async def _send(self, message: Message) -> None:
        async with self.sent:
            self.answer.take(message)
            self.sent.notify_all()


async def request(
    app: App, method: str, path: str, *, headers: dict[str, str] | None = None, body: bytes = b"", **more: Any
) -> Answer:
    """Send one request and wait for its whole answer."""
    fields = {"host": "agent.test", **(headers or {})}
    return await Exchange(app, scope(method, path, fields, **more), [body]).run()
