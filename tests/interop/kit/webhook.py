"""A receiver for push notifications: accepts every POST and keeps it."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any


class Webhook:
    def __init__(self) -> None:
        self.bodies: asyncio.Queue[Any] = asyncio.Queue()
        self.tokens: list[str] = []
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/hook"

    async def __aenter__(self) -> Webhook:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            self.tokens.append(headers.get("x-a2a-notification-token") or headers.get("a2a-notification-token") or "")
            self.bodies.put_nowait(json.loads(body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
