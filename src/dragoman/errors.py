"""Every error of the project, and for each that crosses a wire its row.

::

    DragomanError
    |- A2AError                              crosses the wire; ``row`` says how on each binding and version
    |  |- TaskNotFoundError ... VersionNotSupportedError      the nine of A2A 1.0 §5.4
    |  |- JSONParseError, InvalidRequestError, MethodNotFoundError, InvalidParamsError, InternalError
    |  |- UnauthenticatedError, PermissionDeniedError, RateLimitedError, UnavailableError, DeadlineExceededError
    |  `- OpaqueError                        a code that only the peer knows, kept as it came
    |- PeerError                             the other side broke the protocol
    |- TransportError                        connect, TLS, timeout, closed
    `- ConfigError                           our caller's mistake, raised before anything starts

An error is one A2A error whichever face it crosses: what differs per face is in its :class:`Row`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

DOMAIN = "a2a-protocol.org"

#: gRPC status names and numbers (https://grpc.io/docs/guides/status-codes/).
GRPC_CODES: dict[str, int] = {
    name: number
    for number, name in enumerate(
        (
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        )
    )
}
GRPC_NAMES: dict[int, str] = {number: name for name, number in GRPC_CODES.items()}


class Row(NamedTuple):
    """How one error looks on the wires (1.0 §5.4, 0.3 §8).

    ``grpc`` and ``http`` are those of 1.0.1; ``grpc03`` and ``http03`` what 0.3 peers use. ``reason`` is the
    ErrorInfo reason, empty where A2A defines none. ``code03`` differs where 0.3 has no such error.
    """

    code: int
    grpc: str
    http: int
    reason: str
    title: str
    grpc03: str
    http03: int
    title03: str = ""
    code03: int = 0


class DragomanError(Exception):
    """Base of everything this project raises on purpose."""


class A2AError(DragomanError):
    """An error that crosses the wire.

    ``message``: text for people, default the row's title. ``metadata``: ErrorInfo metadata, text to text.
    ``violations``: ``(field, description)`` pairs, field in camelCase dotted form. ``data``: the JSON value that a
    0.3 peer sent along. ``details``: other typed objects of a 1.0 error, kept as they came. ``retry_after``: seconds.
    """

    row: ClassVar[Row] = Row(-32603, "INTERNAL", 500, "", "Internal error", "INTERNAL", 500)

    def __init__(
        self,
        message: str = "",
        *,
        metadata: Mapping[str, str] | None = None,
        violations: tuple[tuple[str, str], ...] = (),
        data: Any = None,
        details: tuple[dict[str, Any], ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or self.row.title)
        self.message = message or self.row.title
        self.metadata = dict(metadata or {})
        self.violations = violations
        self.data = data
        self.details = details
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        """The JSON-RPC code."""
        return self.row.code


class TaskNotFoundError(A2AError):
    """Raised when the task (or the push config of a Get) is unknown, or hidden from this caller."""

    row = Row(-32001, "NOT_FOUND", 404, "TASK_NOT_FOUND", "Task not found", "NOT_FOUND", 404)


class TaskNotCancelableError(A2AError):
    """Raised when a task is terminal or its agent refuses to cancel."""

    row = Row(
        -32002,
        "FAILED_PRECONDITION",
        400,
        "TASK_NOT_CANCELABLE",
        "Task cannot be canceled",
        "FAILED_PRECONDITION",  # the SDKs for Python and Java read the name before the text, that for JavaScript this
        409,
    )


class PushNotificationNotSupportedError(A2AError):
    """Raised when a webhook is asked for and the card does not declare pushNotifications."""

    row = Row(
        -32003,
        "FAILED_PRECONDITION",
        400,
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
        "Push notifications are not supported",
        "UNIMPLEMENTED",
        501,
        "Push Notification is not supported",
    )


class UnsupportedOperationError(A2AError):
    """Raised when this agent, or this version, cannot do what was asked."""

    row = Row(
        -32004,
        "FAILED_PRECONDITION",
        400,
        "UNSUPPORTED_OPERATION",
        "This operation is not supported",
        "UNIMPLEMENTED",
        501,
    )


class ContentTypeNotSupportedError(A2AError):
    """Raised when a media type, of a part or of the HTTP body, is not supported."""

    row = Row(
        -32005,
        "INVALID_ARGUMENT",
        400,
        "CONTENT_TYPE_NOT_SUPPORTED",
        "Incompatible content types",
        "UNIMPLEMENTED",
        415,
    )


class InvalidAgentResponseError(A2AError):
    """Raised when an agent's reply breaks the specification."""

    row = Row(-32006, "INTERNAL", 500, "INVALID_AGENT_RESPONSE", "Invalid agent response", "INTERNAL", 502)


class ExtendedAgentCardNotConfiguredError(A2AError):
    """Raised when the extended card is declared and there is none."""

    row = Row(
        -32007,
        "FAILED_PRECONDITION",
        400,
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
        "Extended agent card is not configured",
        "UNIMPLEMENTED",
        404,
        "Authenticated Extended Card is not configured",
    )


class ExtensionSupportRequiredError(A2AError):
    """Raised when the caller did not activate an extension that the card requires."""

    row = Row(
        -32008,
        "FAILED_PRECONDITION",
        400,
        "EXTENSION_SUPPORT_REQUIRED",
        "Extension support required",
        "INVALID_ARGUMENT",
        400,
        code03=-32600,
    )


class VersionNotSupportedError(A2AError):
    """Raised when the interface does not serve the version that was asked for (absent = 0.3)."""

    row = Row(
        -32009,
        "FAILED_PRECONDITION",
        400,
        "VERSION_NOT_SUPPORTED",
        "Protocol version not supported",
        "INVALID_ARGUMENT",
        400,
        code03=-32600,
    )


class JSONParseError(A2AError):
    """Raised when a body is not JSON (or, on gRPC, not protobuf)."""

    row = Row(-32700, "INVALID_ARGUMENT", 400, "", "Invalid JSON payload", "INTERNAL", 400)


class InvalidRequestError(A2AError):
    """Raised when JSON is no JSON-RPC 2.0 request, or a body is beyond its limits."""

    row = Row(-32600, "INVALID_ARGUMENT", 400, "", "Request payload validation error", "INVALID_ARGUMENT", 400)


class MethodNotFoundError(A2AError):
    """Raised when a method, route or rpc is unknown in the version in force."""

    row = Row(-32601, "UNIMPLEMENTED", 404, "", "Method not found", "UNIMPLEMENTED", 404)


class InvalidParamsError(A2AError):
    """Raised when a field is missing, of the wrong type or out of range; ``violations`` name the fields."""

    row = Row(-32602, "INVALID_ARGUMENT", 400, "", "Invalid parameters", "INVALID_ARGUMENT", 422)


class InternalError(A2AError):
    """Raised for anything unexpected; the cause is logged, never sent."""


class UnauthenticatedError(A2AError):
    """Raised when credentials are missing or wrong. ``challenge`` becomes WWW-Authenticate."""

    row = Row(
        -32000,
        "UNAUTHENTICATED",
        401,
        "UNAUTHENTICATED",
        "Authentication required",
        "UNAUTHENTICATED",
        401,
    )

    def __init__(self, message: str = "", *, challenge: str = "Bearer", **more: Any) -> None:
        super().__init__(message, **more)
        self.challenge = challenge


class PermissionDeniedError(A2AError):
    """Raised when a known caller lacks the permission for an operation."""

    row = Row(-32000, "PERMISSION_DENIED", 403, "PERMISSION_DENIED", "Permission denied", "PERMISSION_DENIED", 403)


class RateLimitedError(A2AError):
    """Raised when a caller is beyond its limits; ``retry_after`` says when to come back."""

    row = Row(-32603, "RESOURCE_EXHAUSTED", 429, "RATE_LIMITED", "Rate limit exceeded", "RESOURCE_EXHAUSTED", 429)


class UnavailableError(A2AError):
    """Raised for a failure that may pass; ``retry_after`` may say when."""

    row = Row(-32603, "UNAVAILABLE", 503, "UNAVAILABLE", "Temporarily unavailable", "UNAVAILABLE", 503)


class DeadlineExceededError(A2AError):
    """Raised when an answer did not come within the time that was allowed."""

    row = Row(
        -32603,
        "DEADLINE_EXCEEDED",
        504,
        "DEADLINE_EXCEEDED",
        "Deadline exceeded",
        "DEADLINE_EXCEEDED",
        504,
    )


class OpaqueError(A2AError):
    """A code of a range that only the peer knows, kept as it came (JSON-RPC 2.0 §5.1)."""

    row = Row(-32603, "UNKNOWN", 500, "", "Unknown error", "UNKNOWN", 500)

    def __init__(self, message: str = "", *, code: int, **more: Any) -> None:
        super().__init__(message, **more)
        self._code = code

    @property
    def code(self) -> int:
        return self._code


class PeerError(DragomanError):
    """Raised when the other side broke the protocol; ``excerpt`` is the start of what it sent."""

    def __init__(self, message: str, *, excerpt: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.excerpt = excerpt
        self.status = status


class TransportError(DragomanError):
    """Raised when no reply came: not connected, TLS refused, timed out, closed early.

    ``sent``: False only if no byte of the request can have reached the other side, so that another interface
    may be tried. ``timed_out``: the other side was given up on, as opposed to a connection that broke.
    """

    def __init__(self, message: str, *, sent: bool = True, timed_out: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.timed_out = timed_out


class ConfigError(DragomanError):
    """Raised for a mistake of our own caller, before anything starts."""


#: Every class with a row of its own.
WIRE_ERRORS: tuple[type[A2AError], ...] = (
    TaskNotFoundError,
    TaskNotCancelableError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
    ContentTypeNotSupportedError,
    InvalidAgentResponseError,
    ExtendedAgentCardNotConfiguredError,
    ExtensionSupportRequiredError,
    VersionNotSupportedError,
    JSONParseError,
    InvalidRequestError,
    MethodNotFoundError,
    InvalidParamsError,
    InternalError,
    UnauthenticatedError,
    PermissionDeniedError,
    RateLimitedError,
    UnavailableError,
    DeadlineExceededError,
)
#: The class of each ErrorInfo reason.
BY_REASON: dict[str, type[A2AError]] = {c.row.reason: c for c in WIRE_ERRORS if c.row.reason}
#: The class of each JSON-RPC code that names one error.
BY_CODE: dict[int, type[A2AError]] = {c.row.code: c for c in WIRE_ERRORS[:14]}
