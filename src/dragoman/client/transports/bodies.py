"""The bodies in which the events of a stream come: event streams, JSON lines, or one JSON text.

Only the first is what A2A says (1.0 §9.4.2, §11.7). The others are read because peers send them: newline-delimited
JSON, one JSON array (what a gRPC transcoder makes of a stream), and one reply to a streaming call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from ...errors import PeerError, TransportError
from ...protocol import sse
from ...protocol.codec import Codec
from ...protocol.messages import HttpResponse
from .refusals import excerpt, is_page


class StreamBody(Protocol):
    """Cuts a body into the data of its events. ``ready``: messages that are there from the start."""

    @property
    def ready(self) -> Sequence[bytes]: ...

    @property
    def amid(self) -> bool:
        """Whether a line has begun that has not ended."""
        ...

    def feed(self, chunk: bytes | None) -> Iterable[bytes]:
        """Data of the events that ``chunk`` completes; None is the end, where ``TransportError`` means a cut."""
        ...


class EventBody:
    """An event stream."""

    ready: Sequence[bytes] = ()

    def __init__(self, limit: int) -> None:
        self._decoder = sse.Decoder(limit)
        self._begun = False

    @property
    def amid(self) -> bool:
        return self._decoder.amid

    def feed(self, chunk: bytes | None) -> Iterable[bytes]:
        if chunk is None:
            if not self._decoder.end():
                raise TransportError("The stream was cut off in the middle of an event")
            return ()
        if not self._begun:
            self._begun = bool(chunk.strip())
            if is_page(chunk):
                raise PeerError("An HTML page came as event stream: a login page?", excerpt=excerpt(chunk))
        return [event.data for event in self._decoder.feed(chunk)]


class LineBody:
    """One JSON text per line."""

    ready: Sequence[bytes] = ()

    def __init__(self, limit: int) -> None:
        self._rest: list[bytes] = []  # pieces of the line that has not ended
        self._size = 0
        self._limit = limit

    @property
    def amid(self) -> bool:
        return self._size > 0

    def feed(self, chunk: bytes | None) -> Iterable[bytes]:
        *lines, rest = (b"\n" if chunk is None else chunk).split(b"\n")
        if lines:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest, self._size = [], 0
        self._rest.append(rest)
        self._size += len(rest)
        if self._size > self._limit:
            raise PeerError(f"An event of the stream is larger than {self._limit} bytes")
        return [line for line in lines if line.strip()]


class WholeBody:
    """A stream that came as one JSON text: an array of events, or the one reply. Raises what the codec reads it as."""

    amid = False

    def __init__(self, codec: Codec, op: str, response: HttpResponse) -> None:
        self.ready: Sequence[bytes] = _whole(codec, op, response)

    def feed(self, chunk: bytes | None) -> Iterable[bytes]:
        return ()


def _whole(codec: Codec, op: str, response: HttpResponse) -> list[bytes]:
    if response.body.lstrip()[:1] != b"[":
        return [codec.read_result(op, response)]
    try:
        events = msgspec.json.decode(response.body, type=list[msgspec.Raw])
    except msgspec.DecodeError as error:
        raise PeerError(f"A stream came as a JSON array that cannot be read: {error}") from error
    return [codec.read_event(op, bytes(event)) for event in events]
