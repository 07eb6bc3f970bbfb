"""The HTTP client itself: its policy, its failures in our words, and a bounded GET.

Rules of this module:

- No redirect is followed, no proxy used unless asked for, no compressed body asked for.
- HTTP/1.1 alone: a call or stream has a connection of its own. HTTP/2 would put all on one, of which a peer may allow a
  hundred, and the client lets the next one wait without a word.
- An idle connection is given up before common servers do that (5 seconds): a request that meets their closing is lost,
  and may not be sent again.
- Only a failure to connect counts as not sent. pyreqwest also calls a connection that was lost after the request a
  ``ConnectError``; the innermost causes tell them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ...errors import ConfigError, DragomanError, PeerError, TransportError
from ...heeding import Heeding
from ...protocol.messages import HttpResponse
from ..options import Timeouts, Tls, pem

try:
    from pyreqwest.client import Client, ClientBuilder
    from pyreqwest.exceptions import BodyDecodeError, DecodeError, PyreqwestError, RequestTimeoutError
    from pyreqwest.http import HeaderMap, Url
    from pyreqwest.proxy import ProxyBuilder
    from pyreqwest.request import StreamRequest
    from pyreqwest.response import Response
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ConfigError("HTTP needs the package pyreqwest: pip install dragoman[client]") from error

_IDLE = timedelta(seconds=4)

__all__ = [
    "Fetch",
    "HeaderMap",
    "PyreqwestError",
    "build_client",
    "parse_url",
    "read_body",
    "transport_error",
]


def build_client(timeouts: Timeouts, tls: Tls, proxy: str | None = None) -> Client:
    """A pool of connections with our policy. Raises ``ConfigError`` for certificates or a proxy that cannot be used."""
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
        .http1_only()
        .pool_idle_timeout(_IDLE)
        .connect_timeout(timedelta(seconds=timeouts.connect))
        .danger_accept_invalid_certs(not tls.verify)
    )
    try:
        if tls.ca is not None:
            builder.add_root_certificate_pem(pem(tls.ca))
        if tls.cert is not None and tls.key is not None:
            builder.identity_pem(pem(tls.cert) + b"\n" + pem(tls.key))
        if proxy is not None:
            builder.proxy(ProxyBuilder.all(proxy))
        return builder.build()
    except (PyreqwestError, ValueError) as error:
        raise ConfigError(f"The TLS or proxy settings cannot be used: {error}") from error


def parse_url(url: str) -> Url:
    """A url ready for use. Raises ``ConfigError``."""
    try:
        return Url(url)
    except ValueError as error:
        raise ConfigError(f"{url!r} is not a url: {error}") from error


async def read_body(reply: Response, limit: int, url: str) -> bytes:
    """The whole body of a reply. Raises ``PeerError`` beyond ``limit`` bytes.

    One whose length is stated cannot grow beyond that, so it is read at once; any other is counted as it comes.
    """
    size = reply.get_header("content-length")
    if size is not None and size.isdecimal() and int(size) <= limit and not reply.get_header("transfer-encoding"):
        return bytes(await reply.body_reader.bytes())
    reader, left = reply.body_reader, limit
    chunks: list[bytes] = []
    try:
        while (chunk := await reader.read_chunk()) is not None:
            left -= len(chunk)
            if left < 0:
                raise PeerError(f"{url} sent more than the {limit} bytes that a reply may have", status=reply.status)
            chunks.append(bytes(chunk))
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    finally:
        chunks.clear()  # a traceback holds this frame, perhaps for long


class Fetch:
    """Bounded GET requests: ``timeouts.reply`` seconds and ``limit`` bytes each."""

    def __init__(self, client: Client, timeouts: Timeouts, limit: int) -> None:
        self._client = client
        self._time = timedelta(seconds=timeouts.reply)
        self._limit = limit

    async def get(self, url: str, headers: Mapping[str, str]) -> HttpResponse:
        """One GET, whatever its status. Raises ``TransportError``, ``PeerError``, ``ConfigError``."""
        target = parse_url(url)
        try:
            request = self._client.get(target).headers(headers).timeout(self._time).build_streamed()
            with Heeding():
                return await self._get(request, url)
        except PyreqwestError as error:
            raise transport_error(error, url) from error
        except ValueError as error:
            raise ConfigError(f"A request to {url} cannot be built: {error}") from error

    async def _get(self, request: StreamRequest, url: str) -> HttpResponse:
        async with request as reply:
            fields = [(name.encode(), value.encode("utf-8", "replace")) for name, value in reply.headers.items()]
            return HttpResponse(reply.status, fields, await read_body(reply, self._limit, url))


def transport_error(error: PyreqwestError, url: str) -> DragomanError:
    """What a failure of the HTTP client means."""
    causes = _causes(error)
    reason = causes[-1] if causes else str(error)
    if any("(Connect)" in cause for cause in causes):
        return TransportError(f"Cannot connect to {url}: {reason}", sent=False)
    if isinstance(error, RequestTimeoutError):
        return TransportError(f"No complete reply from {url} in time", timed_out=True)
    if isinstance(error, BodyDecodeError):
        return TransportError(f"The reply of {url} was cut off: {reason}")
    if isinstance(error, DecodeError):
        return PeerError(f"{url} does not answer in HTTP: {reason}")
    return TransportError(f"The connection to {url} was lost: {reason}")


def _causes(error: PyreqwestError) -> list[str]:
    details = getattr(error, "details", None)
    found = details.get("causes") if isinstance(details, dict) else None
    return [cause["message"] for cause in found or ()]
