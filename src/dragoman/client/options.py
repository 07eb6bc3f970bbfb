"""What a caller may set on a client: times, sizes, TLS, and how a broken stream is taken up again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. ``connect``: until a connection stands. ``reply``: for a whole unary call, and for the first event of
    a stream. ``silence``: the longest gap within a stream; keep-alive comments count as activity."""

    connect: float = 5.0
    reply: float = 60.0
    silence: float = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes. ``body``: one reply. ``event``: one event of a stream. ``card``: an agent card.

    ``streams_per_connection``: calls and streams on one gRPC connection before there is another; a peer may allow no
    more, and gRPC would let the next one wait without a word."""

    body: int = 64 * 1024 * 1024
    event: int = 16 * 1024 * 1024
    card: int = 1024 * 1024
    streams_per_connection: int = 100


@dataclass(frozen=True, slots=True)
class Tls:
    """``ca``: PEM of further roots to trust. ``cert`` and ``key``: PEM of our own certificate, for mutual TLS. Each a
    path or the bytes. ``verify=False`` takes any certificate (HTTP only) and is for tests."""

    ca: str | Path | bytes | None = None
    cert: str | Path | bytes | None = None
    key: str | Path | bytes | None = None
    verify: bool = True

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ConfigError("A client certificate needs its key: give both cert and key")

    def without_identity(self) -> Tls:
        """The same trust, without our own certificate."""
        return self if self.cert is None else Tls(ca=self.ca, verify=self.verify)


def pem(source: str | Path | bytes) -> bytes:
    """The PEM text that a :class:`Tls` field means. Raises ``ConfigError`` if its file cannot be read."""
    if isinstance(source, bytes):
        return source
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read the certificate file {str(source)!r}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class Resume:
    """How a stream that broke is taken up again by SubscribeToTask.

    ``tries``: attempts without a new event in between, 0 = never. ``wait``: seconds before the first one, doubled
    each time up to ``most``. All of them together take no longer than ``Timeouts.reply``.
    """

    tries: int = 5
    wait: float = 0.2
    most: float = 5.0

    def delay(self, attempt: int) -> float:
        """Seconds to wait before attempt number ``attempt``, counted from 0."""
        return float(min(self.wait * 2**attempt, self.most))
