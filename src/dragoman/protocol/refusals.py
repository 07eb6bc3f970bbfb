"""A2A errors that only framing raises: a known class, but a status of its own on some binding.

Rules of this module: each is a subclass of the error that readers know, so its code, reason and name are that one's;
the row changes where HTTP or gRPC have a better word. What HTTP wants in a header stands in an attribute.
"""

from __future__ import annotations

from typing import Any

from ..errors import InvalidRequestError, MethodNotFoundError, Row


class VerbNotAllowedError(MethodNotFoundError):
    """Raised when a route exists and its verb does not. ``allow``: the verbs that do, for the Allow header."""

    row = Row(-32601, "UNIMPLEMENTED", 405, "", "Verb not allowed", "UNIMPLEMENTED", 405)

    def __init__(self, message: str = "", *, allow: tuple[str, ...], **more: Any) -> None:
        super().__init__(message, **more)
        self.allow = allow


class EncodingNotSupportedError(MethodNotFoundError):
    """Raised when a gRPC message is compressed in a way that is not read; the reply says which ways are."""

    row = Row(-32601, "UNIMPLEMENTED", 415, "", "Compression not supported", "UNIMPLEMENTED", 415)


class MessageTooLargeError(InvalidRequestError):
    """Raised when a message, or what it decompresses to, is beyond the limit."""

    row = Row(-32600, "RESOURCE_EXHAUSTED", 413, "", "Message too large", "RESOURCE_EXHAUSTED", 413)
