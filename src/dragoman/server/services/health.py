"""grpc.health.v1: whether this server, and each A2A service of it, takes calls.

A service that is not served is NOT_FOUND to Check and SERVICE_UNKNOWN to Watch, which stays open as the protocol
wants it. Everything is NOT_SERVING once the app closes: watchers are told that before their stream ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping

from ...protocol.fields import table
from ...protocol.proto_files import HEALTH_SERVICE
from ...protocol.wire import WireFormat
from .calls import Method, Requests, ShutDownError, StatusError


class Health:
    """The health service. ``services``: full names of those that are served; the empty name is the whole server."""

    def __init__(self, services: Iterable[str], closing: asyncio.Event) -> None:
        wire = WireFormat(table("grpc.health.v1"))
        self._read = wire.decoder("HealthCheckRequest")
        self._write = wire.encoder("HealthCheckResponse")
        self._write_list = wire.encoder("HealthListResponse")
        self._services = ("", *services)
        self._closing = closing

    @property
    def methods(self) -> Mapping[str, Method]:
        """Methods by path."""
        known = {"Check": self._check, "List": self._list, "Watch": self._watch}
        return {f"/{HEALTH_SERVICE}/{name}": method for name, method in known.items()}

    def _status(self) -> str:
        return "NOT_SERVING" if self._closing.is_set() else "SERVING"

    async def _name(self, requests: Requests) -> str:
        name: str = self._read(await requests.only()).get("service", "")
        return name

    async def _check(self, requests: Requests) -> AsyncGenerator[bytes, None]:
        name = await self._name(requests)
        if name not in self._services:
            raise StatusError("NOT_FOUND", f"There is no service {name[:200]!r} here")
        yield self._write({"status": self._status()})

    async def _list(self, requests: Requests) -> AsyncGenerator[bytes, None]:
        await requests.only()
        yield self._write_list({"statuses": {name: {"status": self._status()} for name in self._services}})

    async def _watch(self, requests: Requests) -> AsyncGenerator[bytes, None]:
        name = await self._name(requests)
        if name not in self._services:
            yield self._write({"status": "SERVICE_UNKNOWN"})
            await requests.until_closing()
        else:
            yield self._write({"status": self._status()})
            await requests.until_closing()
            yield self._write({"status": self._status()})
        raise ShutDownError
