"""What a codec is: the framing of one binding in one version, both directions.

A codec slices and never decodes: between it and the dialect travel message bytes. Server half and client half stand
in one class and read one table, so they cannot disagree.
"""

from __future__ import annotations

from typing import Protocol

from ..errors import A2AError
from .messages import Call, Header, Headers, HttpRequest, HttpResponse


class Codec(Protocol):
    """The framing of one face. ``keep_alive`` is what a quiet stream may be given, empty where nothing is."""

    @property
    def keep_alive(self) -> bytes: ...

    # server half

    def read_call(self, request: HttpRequest) -> Call:
        """Take the framing off a request. Raises ``Rejected`` and nothing else."""
        ...

    def read_id(self, request: HttpRequest) -> bytes:
        """The id to answer an unreadable request under. Raises ``Rejected`` if it is not even a request."""
        ...

    def read_timeout(self, headers: Headers) -> float | None:
        """Seconds that the caller is willing to wait, None if it does not say."""
        ...

    def write_result(self, call: Call, body: bytes) -> HttpResponse: ...

    def write_error(self, error: A2AError, id: bytes = b"null") -> HttpResponse: ...

    def stream_head(self, call: Call) -> HttpResponse:
        """Status and headers of a stream; its body follows in frames."""
        ...

    def write_event(self, call: Call, body: bytes) -> bytes: ...

    def write_stream_error(self, call: Call, error: A2AError) -> bytes:
        """The last frame of a stream that failed; empty where trailers say it."""
        ...

    def refuse_stream(self, call: Call, error: A2AError) -> HttpResponse:
        """The answer to a streaming call that failed before its first event."""
        ...

    def trailers(self, error: A2AError | None = None) -> list[Header] | None:
        """What follows the body of a stream; None where the binding has no trailers."""
        ...

    # client half

    def write_call(self, op: str, body: bytes, *, id: int = 1, tenant: str = "") -> HttpRequest:
        """Frame a message; the path is relative to the interface's url."""
        ...

    def read_result(self, op: str, response: HttpResponse) -> bytes:
        """Message bytes of a reply. Raises the ``A2AError`` that it is, or ``PeerError``."""
        ...

    def read_event(self, op: str, data: bytes, id: int = 1) -> bytes:
        """Message bytes of one event. Raises the ``A2AError`` that it is, or ``PeerError``."""
        ...
