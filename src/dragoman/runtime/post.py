"""Posting to a URL that a stranger chose, over pyreqwest.

Rules of this module:

- Every request goes to an address that the guard has just judged: the host is pinned to it, so that nothing resolves
  it again. A client belongs to one host and one address, and is shared as long as the host keeps that address.
- No redirect is followed, no proxy used, no body of a reply read.
- pyreqwest must read the same host in the URL as the guard did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from ..errors import ConfigError, TransportError
from ..heeding import Heeding
from ..security.guard import Address, Checked, Guard, TargetRefused
from .webhooks import Answer

try:
    from pyreqwest.client import Client, ClientBuilder
    from pyreqwest.exceptions import PyreqwestError
    from pyreqwest.http import Url
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ConfigError("Webhooks need the package pyreqwest: pip install dragoman[client]") from error


class HttpPost:
    """Posts bodies through a guard. ``connect``: seconds for a connection. ``kept``: clients that stay open."""

    def __init__(self, guard: Guard, *, connect: float = 5.0, kept: int = 64) -> None:
        self._guard = guard
        self._connect = timedelta(seconds=connect)
        self._kept = kept
        self._clients: dict[tuple[str, str, int, Address], Client] = {}
        self._turn = 0

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the reply. Raises as :meth:`ask`."""
        return (await self.ask(url, headers, body)).status

    async def ask(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The head of the reply. Raises ``TargetRefused``, ``TransportError``, ``OSError`` (cannot be resolved)."""
        checked = await self._guard.check(url)
        try:
            target = Url(url)
            if (target.host_str or "").strip("[]") != _host(checked):
                raise TargetRefused("has a host that can be read in two ways")
            client = await self._client(checked)
            request = client.post(target).headers(headers).body_bytes(body).streamed_read_buffer_limit(0)
            with Heeding():
                async with request.build_streamed() as reply:
                    return Answer(reply.status, reply.headers.get("retry-after") or "")
        except PyreqwestError as error:
            self._turn += 1
            raise TransportError(f"No reply from {checked.target.host}: {type(error).__name__}") from error
        except ValueError as error:
            raise TransportError(f"A request to {checked.target.host} cannot be built: {error}", sent=False) from error

    async def aclose(self) -> None:
        """Close every connection."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def _client(self, checked: Checked) -> Client:
        """A client for one of the addresses: another one after a failure, in case it was the address's."""
        address = checked.addresses[self._turn % len(checked.addresses)]
        key = (checked.target.scheme, checked.target.host, checked.target.port, address)
        client = self._clients.pop(key, None)
        if client is None:
            client = await asyncio.to_thread(self._build, checked, address)  # it reads the certificates of the system
        self._clients[key] = client
        if len(self._clients) > self._kept:
            self._clients.pop(next(iter(self._clients)))  # closes once its requests are done
        return client

    def _build(self, checked: Checked, address: Address) -> Client:
        builder = (
            ClientBuilder()
            .no_proxy()
            .follow_redirects(False)
            .referer(False)
            .gzip(False)
            .brotli(False)
            .zstd(False)
            .deflate(False)
            .user_agent("dragoman")
            .connect_timeout(self._connect)
            .pool_idle_timeout(timedelta(seconds=30))
        )
        if checked.target.address is None:
            builder.resolve(checked.target.host, str(address), checked.target.port)
        return builder.build()


def _host(checked: Checked) -> str:
    address = checked.target.address
    return checked.target.host if address is None else str(address)
