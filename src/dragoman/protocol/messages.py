"""What crosses the seam between the codecs and whatever moves the bytes.

The records are msgspec structs, though nothing encodes them: every request makes several, and no other record is made
as fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ..errors import A2AError

Header = tuple[bytes, bytes]
_SEQUENCES = (list, tuple)


class Headers:
    """Header fields of one message, joined with ``, `` when repeated (RFC 9110 §5.3).

    Names are lower case already, as ASGI, HTTP/2 and our transports have them. Built from raw pairs without work; the
    index is made on the first look-up.
    """

    __slots__ = ("_index", "raw")

    def __init__(self, raw: Iterable[Header] = ()) -> None:
        self.raw = raw if isinstance(raw, _SEQUENCES) else list(raw)
        self._index: dict[bytes, bytes] | None = None

    def get(self, name: bytes, default: bytes = b"") -> bytes:
        """Value of the field called ``name`` (lower case), or ``default``."""
        index = self._index
        if index is None:
            index = self._index = self._build()
        return index.get(name, default)

    def fields(self) -> Mapping[bytes, bytes]:
        """All fields by name, for who looks for several."""
        index = self._index
        if index is None:
            index = self._index = self._build()
        return index

    def repeats(self, name: bytes) -> bool:
        """Whether the field called ``name`` came more than once."""
        return len(self.fields()) != len(self.raw) and sum(name == one for one, _ in self.raw) > 1

    def text(self, name: str, default: str = "") -> str:
        """As :meth:`get`, as text (latin-1, RFC 9110 §5.5)."""
        value = self.get(name.encode("latin-1"), b"\0")
        return default if value == b"\0" else value.decode("latin-1")

    def _build(self) -> dict[bytes, bytes]:
        index = dict(self.raw)
        if len(index) != len(self.raw):
            index.clear()
            for name, value in self.raw:
                index[name] = index[name] + b", " + value if name in index else value
        return index

    def __repr__(self) -> str:
        return f"Headers({[name for name, _ in self.raw]!r})"  # names only: values may be secrets


NO_HEADERS = Headers()


class HttpRequest(msgspec.Struct):
    """One HTTP request, its body complete. ``path`` is still percent-encoded and below the mount point."""

    method: str
    path: str
    query: str = ""
    headers: Headers = NO_HEADERS
    body: bytes = b""


class HttpResponse(msgspec.Struct):
    """One HTTP response, its body complete. ``trailers`` only exist on gRPC."""

    status: int
    headers: list[Header] = []
    body: bytes = b""
    trailers: list[Header] = []


class Call(msgspec.Struct, frozen=True):
    """A request with the framing taken off.

    ``op``: the operation's 1.0 name. ``body``: its message, still in the wire's dialect. ``id``: the JSON-RPC id as
    the JSON text that came, empty for a notification and on the other bindings. ``tenant``: from a route.
    ``media``: the media type that the caller wants its reply in (HTTP+JSON).
    """

    op: str
    body: bytes
    id: bytes = b""
    tenant: str = ""
    media: bytes = b"application/json"


class Rejected(Exception):
    """Raised when a request cannot be read: the error to answer, and the JSON-RPC id to answer it under."""

    def __init__(self, error: A2AError, id: bytes = b"null") -> None:
        super().__init__(str(error))
        self.error = error
        self.id = id
