"""The same libraries without this project: plain ASGI apps that answer a constant, or pass a body on.

``python -m bench.bare constant`` answers each JSON-RPC method with a constant; ``python -m bench.bare forward URL``
posts every body to URL and returns the reply. Both print a line of JSON once they are ready.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import uvloop
from pyreqwest.client import Client, ClientBuilder

from dragoman.server.host import serve

from .payloads import task_reply

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


def constant() -> App:
    """Reads the body and answers the reply to the method that the body names."""
    replies = {method.encode(): task_reply(method) for method in ("SendMessage", "GetTask")}

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        body = await _body(receive)
        await _answer(send, replies[b"SendMessage" if b'"SendMessage"' in body else b"GetTask"])

    return app


def forward(client: Client, url: str) -> App:
    """Posts the body to ``url`` with the version that the caller sent, and answers what comes back."""

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        version = next(value for name, value in scope["headers"] if name == b"a2a-version").decode()
        request = client.post(url).headers({"content-type": "application/json", "a2a-version": version})
        response = await request.body_bytes(await _body(receive)).build().send()
        await _answer(send, bytes(await response.bytes()), response.status)

    return app


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


async def _answer(send: Send, body: bytes, status: int = 200) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _serve(app: App) -> None:
    async with serve(_living(app), host="127.0.0.1", port=0) as server:
        print(json.dumps({"url": server.url}), flush=True)
        await asyncio.Event().wait()


def _living(app: App) -> App:
    """The app with the lifespan protocol, which a server may insist on."""

    async def living(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            return await app(scope, receive, send)
        while True:
            event = (await receive())["type"]
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return None

    return living


async def main(what: str, url: str = "") -> None:
    """Run one of the two until the process is ended."""
    if what == "constant":
        await _serve(constant())
    else:
        async with ClientBuilder().no_proxy().follow_redirects(False).build() as client:
            await _serve(forward(client, url))


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
