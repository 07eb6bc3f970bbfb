"""The event stream format, both directions (WHATWG HTML §9.2; 1.0 §9.4.2 and §11.7).

Rules of this module:

- Written: one event is one ``data:`` line; a keep-alive is a comment.
- Read: everything that the format allows, cut anywhere. A line ends with CR, LF or CRLF, also when the two halves of
  CRLF come in different chunks; a CR ends its line at once.
- Limits and UTF-8 are checked while reading, so that a peer cannot make the reader grow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..errors import PeerError
from .messages import Header

KEEP_ALIVE = b": keep-alive\n\n"
CONTENT_TYPE = b"text/event-stream"
#: Fields of a streamed response: not to be cached, not to be held back by a proxy.
HEAD: tuple[Header, ...] = (
    (b"content-type", CONTENT_TYPE),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event. ``data``: UTF-8, lines joined with LF. ``name``: its ``event`` field, empty for the default."""

    data: bytes
    name: str = ""


def one_line(data: bytes) -> bytes:
    """JSON text without line breaks, which it only ever has as blanks between tokens."""
    if b"\n" in data or b"\r" in data:
        return data.replace(b"\r", b" ").replace(b"\n", b" ")
    return data


def frame(data: bytes, name: bytes = b"") -> bytes:
    """The event that carries the JSON text ``data``."""
    head = b"event: " + name + b"\ndata: " if name else b"data: "
    return b"".join((head, one_line(data), b"\n\n"))


class Decoder:
    """Cuts a stream into events.

    ``max_event``: bytes that the data of one event, and any single line, may have. ``id`` and ``retry`` hold the
    last values of these fields (``retry`` in milliseconds).
    """

    def __init__(self, max_event: int = 16 * 1024 * 1024) -> None:
        self.id = ""
        self.retry: int | None = None
        self._max = max_event
        self._start: bytes | None = b""  # bytes that may yet turn out to be a BOM; None once that is known
        self._after_cr = False
        self._rest: list[bytes] = []  # pieces of the line that has not ended
        self._rest_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._name = ""
        self._broken: PeerError | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that ``chunk`` completes. Raises ``PeerError`` for what is too long or no UTF-8, after the
        events before it were given."""
        if self._broken is not None:
            raise self._broken
        if self._start is not None:
            chunk = self._without_bom(chunk)
        events: list[Event] = []
        try:
            self._read_lines(self._lines(chunk), events)
        except PeerError as error:
            self._broken = error
            self._rest.clear()
            self._data.clear()
            if not events:
                raise
        return events

    @property
    def amid(self) -> bool:
        """Whether a line has begun that has not ended."""
        return bool(self._rest)

    def end(self) -> bool:
        """Whether the stream was whole: False if it was cut inside an event. Raises what :meth:`feed` owes."""
        if self._broken is not None:
            raise self._broken
        rest = b"".join(self._rest)
        return not (self._data or self._name or (rest and not rest.startswith(b":")))

    def _without_bom(self, chunk: bytes) -> bytes:
        chunk = (self._start or b"") + chunk
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._start = chunk
            return b""
        self._start = None
        return chunk.removeprefix(_BOM)

    def _lines(self, chunk: bytes) -> Iterable[bytes]:
        """The lines that end in ``chunk``; what is left over waits for more."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        if lines and self._rest:
            lines[0] = b"".join((*self._rest, lines[0]))
            self._rest.clear()
            self._rest_size = 0
        if rest:
            self._rest.append(rest)
            self._rest_size += len(rest)
        return lines

    def _read_lines(self, lines: Iterable[bytes], events: list[Event]) -> None:
        data = self._data
        for line in lines:
            if not line:
                if data:
                    events.append(self._event())
                self._name = ""
            elif line.startswith(b"data: "):
                self._add(line[6:])
            elif not line.startswith(b":"):
                self._field(*_split(line))
        if self._rest_size > self._max + 8:
            raise PeerError(f"a line of the event stream is longer than {self._max} bytes")

    def _field(self, name: bytes, value: bytes) -> None:
        if name == b"data":
            self._add(value)
        elif name == b"event":
            self._name = _utf8(value)
        elif name == b"id" and b"\0" not in value:
            self.id = _utf8(value)
        elif name == b"retry" and value.isdigit():
            self.retry = int(value[:18])

    def _add(self, line: bytes) -> None:
        self._data.append(line)
        self._data_size += len(line) + 1
        if self._data_size > self._max + 1:
            raise PeerError(f"an event of the stream is longer than {self._max} bytes")

    def _event(self) -> Event:
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        self._data_size = 0
        if not data.isascii():
            _utf8(data)
        return Event(data, self._name)


def _split(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")


def _utf8(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as e:
        raise PeerError("the event stream is not UTF-8", excerpt=text[:200].decode("utf-8", "replace")) from e
