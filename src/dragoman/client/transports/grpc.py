"""The gRPC transport: raw messages over grpcio, no stubs and no protobuf package.

Rules of this module:

- A url's scheme says whether there is TLS: ``https`` and ``grpcs`` have it, ``http`` and ``grpc`` have not. A path is
  left out, gRPC has none.
- Metadata keys are lower case (1.0 §10.2). Extensions that were activated are read from initial and from trailing
  metadata.
- One connection has only so many calls at a time; further ones get another connection. gRPC itself would let them wait
  for the peer's own limit without a word.
- A quiet stream is watched by HTTP/2 pings, not by a timeout: keep-alives are invisible above HTTP/2.
- Only a failure to connect counts as not sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from ...errors import ConfigError, DragomanError, PeerError, TransportError, UnavailableError
from ...protocol.grpc import Grpc
from ...protocol.messages import Header
from ...protocol.operations import GRPC_SERVICE, WIRE
from ...service import ByteStream, Context
from ..options import Limits, Tls, pem
from .base import activated

try:
    import grpc
    from grpc import aio
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ConfigError("gRPC needs the package grpcio: pip install dragoman[grpc]") from error

if TYPE_CHECKING:
    UnaryCall: TypeAlias = aio.UnaryUnaryMultiCallable[bytes, bytes]
    StreamCall: TypeAlias = aio.UnaryStreamMultiCallable[bytes, bytes]

_SECURE = {"https": True, "grpcs": True, "http": False, "grpc": False}
_EXTENSIONS = ("a2a-extensions", "x-a2a-extensions")
#: How grpcio begins the text of a failure that happened before anything was sent.
_NOT_CONNECTED = (
    "failed to connect to all addresses",
    "connections to all backends failing",
    "DNS resolution failed",
    "Domain name not found",
    "Name resolution failure",
    "empty address list",
)
#: Statuses of HTTP that say that somebody else may answer later (gRPC's mapping, less what it puts beside them).
_AWAY = frozenset({"429", "502", "503", "504"})
_NOT_GRPC = "Received http2 header with status:"
_TOO_LARGE = "Received message larger than max"
_PING_EVERY = 300_000  # milliseconds; servers count more frequent pings as abuse
_PING_ANSWER = 20_000
_IDLE = 300_000


def address(url: str) -> tuple[str, bool]:
    """``host:port`` and whether there is TLS. Raises ``ConfigError`` for a url that gRPC cannot use."""
    parts = urlsplit(url if "://" in url else f"grpcs://{url}")
    secure = _SECURE.get(parts.scheme.lower())
    try:
        port = parts.port
    except ValueError:
        port, secure = None, None
    if secure is None or not parts.hostname:
        raise ConfigError(f"{url!r} is not a gRPC url: use https://host:port, grpcs://host:port or grpc://host:port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port or (443 if secure else 80)}", secure


class Line:
    """One connection, and how many calls it has. ``unary`` and ``streaming``: its methods by path."""

    def __init__(self, channel: aio.Channel) -> None:
        self.channel = channel
        self.calls = 0
        self.unary: dict[str, UnaryCall] = {}
        self.streaming: dict[str, StreamCall] = {}

    def leave(self) -> None:
        """A call is over."""
        self.calls -= 1


class Lines:
    """The connections to one peer: as many as calls need at ``most`` calls each. ``dial`` makes one, which connects
    on its first call and, when it has had none for a time, lets go of its socket."""

    def __init__(self, dial: Callable[[], aio.Channel], most: int) -> None:
        self._dial = dial
        self._most = most
        self._lines = [Line(dial())]

    def __len__(self) -> int:
        return len(self._lines)

    def enter(self) -> Line:
        """A connection for one more call, to be left after it. The oldest that has room, so that the others empty."""
        line = next((one for one in self._lines if one.calls < self._most), None)
        if line is None:
            line = Line(self._dial())
            self._lines.append(line)
        line.calls += 1
        return line

    async def aclose(self) -> None:
        """Close all of them."""
        for line in self._lines:
            await line.channel.close()


def build_lines(url: str, tls: Tls, limits: Limits, *, proxy: str | None = None) -> Lines:
    """Connections with our policy. Raises ``ConfigError`` for a url or certificates that cannot be used."""
    return Lines(lambda: build_channel(url, tls, limits, proxy=proxy), limits.streams_per_connection)


def build_channel(url: str, tls: Tls, limits: Limits, *, proxy: str | None = None) -> aio.Channel:
    """A channel with our policy; it connects on the first call."""
    target, secure = address(url)
    options: list[tuple[str, Any]] = [
        ("grpc.primary_user_agent", "dragoman"),
        ("grpc.max_receive_message_length", limits.body),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", _PING_EVERY),
        ("grpc.keepalive_timeout_ms", _PING_ANSWER),
        ("grpc.client_idle_timeout_ms", _IDLE),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
    ]
    if proxy is not None:
        options[-1] = ("grpc.http_proxy", proxy)
    if not secure:
        return aio.insecure_channel(target, options=options)
    if not tls.verify:
        raise ConfigError("gRPC cannot leave out certificate checks: give the peer's root as Tls(ca=...)")
    credentials = grpc.ssl_channel_credentials(
        pem(tls.ca) if tls.ca is not None else None,
        pem(tls.key) if tls.key is not None else None,
        pem(tls.cert) if tls.cert is not None else None,
    )
    return aio.secure_channel(target, credentials, options=options)


class GrpcTransport:
    """One interface of a peer over gRPC. ``headers``: metadata of every call."""

    def __init__(
        self,
        url: str,
        codec: Grpc,
        lines: Lines,
        *,
        headers: Iterable[Header] = (),
    ) -> None:
        self._url = url
        self._lines = lines
        self._metadata = _metadata(headers)
        self._codec = codec
        self._service = GRPC_SERVICE[codec.version]
        self._names = WIRE[codec.version]

    async def unary(self, op: str, body: bytes, headers: Sequence[Header], timeout: float, ctx: Context) -> bytes:
        line = self._lines.enter()
        try:
            method = line.unary.get(op)
            if method is None:
                method = line.unary[op] = line.channel.unary_unary(self._path(op))
            call = method(body, timeout=timeout, metadata=self._fields(headers))
            reply = await call
            if headers:
                await _facts(call, ctx)
        except aio.AioRpcError as error:
            raise self.failure(op, error) from error
        finally:
            line.leave()
        if reply is None:
            raise PeerError(f"{self._url} answered {op} with OK and no message")
        return reply

    async def stream(self, op: str, body: bytes, headers: Sequence[Header], timeout: float, ctx: Context) -> ByteStream:
        line = self._lines.enter()
        try:
            method = line.streaming.get(op)
            if method is None:
                method = line.streaming[op] = line.channel.unary_stream(self._path(op))
            stream = GrpcStream(self, op, method(body, metadata=self._fields(headers)), line)
        except BaseException:
            line.leave()
            raise
        try:
            async with asyncio.timeout(timeout):
                await stream.open()
                if headers:
                    await _facts(stream.call, ctx, trailing=False)
        except TimeoutError as error:
            await stream.aclose()
            raise TransportError(
                f"{self._url} did not open the stream within {timeout:g} seconds", timed_out=True
            ) from error
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def aclose(self) -> None:
        await self._lines.aclose()

    def _path(self, op: str) -> str:
        return f"/{self._service}/{self._names[op].grpc}"

    def _fields(self, headers: Sequence[Header]) -> tuple[tuple[str, str | bytes], ...]:
        if not headers:
            return self._metadata
        own = _metadata(headers)
        names = {name for name, _ in own}
        return tuple(field for field in self._metadata if field[0] not in names) + own

    def failure(self, op: str, error: aio.AioRpcError) -> DragomanError:
        number: int = error.code().value[0]
        details = error.details() or ""
        if error.code() is grpc.StatusCode.UNAVAILABLE and details.startswith(_NOT_CONNECTED):
            return TransportError(f"Cannot connect to {self._url}: {details}", sent=False)
        trailers = _trailers(error)
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and not trailers:
            return TransportError(f"No complete reply from {self._url} in time", timed_out=True)
        if details.startswith(_NOT_GRPC):
            if details[len(_NOT_GRPC) :].strip() in _AWAY:
                return UnavailableError(f"The agent, or a proxy before it, is not available ({details})")
            return PeerError(f"{self._url} does not answer in gRPC: {details}")
        if _TOO_LARGE in details:
            return PeerError(f"{self._url} sent more than a message may have: {details}")
        if error.code() is grpc.StatusCode.UNAVAILABLE and not trailers:
            return TransportError(f"The connection to {self._url} was lost: {details}")
        return self._codec.read_status(number, details, trailers, op)


class GrpcStream(ByteStream):
    """The messages of one streamed reply."""

    def __init__(self, transport: GrpcTransport, op: str, call: aio.UnaryStreamCall[bytes, bytes], line: Line) -> None:
        self._transport = transport
        self._op = op
        self._line: Line | None = line
        self.call = call
        self._first: bytes | None = None
        self._ended = False

    async def open(self) -> None:
        """Wait for the first message, or for the error in its place."""
        self._first = await self._read()

    async def batch(self) -> Sequence[bytes]:
        message, self._first = self._first, None
        if message is None and not self._ended:
            message = await self._read()
        return () if message is None else (message,)

    async def _read(self) -> bytes | None:
        try:
            message: bytes | Any = await self.call.read()
        except aio.AioRpcError as error:
            self._ended = True
            raise self._transport.failure(self._op, error) from error
        if message is aio.EOF:
            self._ended = True
            return None
        assert isinstance(message, bytes)
        return message

    async def aclose(self) -> None:
        self._ended = True
        self.call.cancel()
        line, self._line = self._line, None
        if line is not None:
            line.leave()


def _metadata(headers: Iterable[Header]) -> tuple[tuple[str, str | bytes], ...]:
    fields: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        key = name.decode("latin-1").lower()
        fields.append((key, value if key.endswith("-bin") else value.decode("latin-1")))
    return tuple(fields)


def _trailers(error: aio.AioRpcError) -> dict[str, bytes | str]:
    return dict(error.trailing_metadata() or ())


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")


async def _facts(call: Any, ctx: Context, *, trailing: bool = True) -> None:
    fields = list(await call.initial_metadata() or ())
    if trailing:
        fields += await call.trailing_metadata() or ()
    found = [_bytes(value).decode("latin-1") for key, value in fields if key in _EXTENSIONS]
    if found:
        ctx.activated = activated(",".join(found))
