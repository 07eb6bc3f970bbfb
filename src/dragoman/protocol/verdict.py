"""Which A2A error a reply is: everything that it says is gathered as evidence, then weighed.

Rules of this module:

- ErrorInfo ``reason`` decides, then the JSON-RPC code, then the class name that 0.3 puts on the wire, then the status.
- Bodies of every shape that peers send are read; codec and version only change what the last resort means.
- Nothing is lost: details that are not understood stay on the error as they came, and so does 0.3 ``data``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .. import errors
from ..errors import BY_CODE, DOMAIN, WIRE_ERRORS, A2AError
from . import details as rpc
from .details import Detail
from .operations import Version
from .status import REASONS, V03_DATA, camel, reason_of, text_of

#: Class names that are read, less the final ``_v0_3`` that one SDK appends.
NAMES: dict[str, type[A2AError]] = {c.__name__: c for c in WIRE_ERRORS}
NAMES["AuthenticatedExtendedCardNotConfiguredError"] = errors.ExtendedAgentCardNotConfiguredError
#: Codes that are read: those of one error each, and the custom ones that an SDK gives to refused callers.
CODES: dict[int, type[A2AError]] = {c: e for c, e in BY_CODE.items() if e is not errors.InternalError}
CODES |= {-31401: errors.UnauthenticatedError, -31403: errors.PermissionDeniedError}

#: HTTP statuses that mean the same whatever the body says about itself.
PLAIN_HTTP: dict[int, type[A2AError]] = {
    401: errors.UnauthenticatedError,
    403: errors.PermissionDeniedError,
    429: errors.RateLimitedError,
    503: errors.UnavailableError,
    504: errors.DeadlineExceededError,
}
#: What a status means when nothing better is known. A bare 404 of 1.0 is a missing route, never a missing task.
HTTP: dict[Version, dict[int, type[A2AError]]] = {
    "1.0": {
        404: errors.MethodNotFoundError,
        405: errors.MethodNotFoundError,
        409: errors.TaskNotCancelableError,
        413: errors.InvalidRequestError,
        415: errors.ContentTypeNotSupportedError,
        422: errors.InvalidParamsError,
        501: errors.MethodNotFoundError,
        502: errors.InvalidAgentResponseError,
    },
    "0.3": {
        400: errors.InvalidRequestError,
        404: errors.TaskNotFoundError,
        405: errors.MethodNotFoundError,
        409: errors.TaskNotCancelableError,
        413: errors.InvalidRequestError,
        415: errors.ContentTypeNotSupportedError,
        422: errors.InvalidParamsError,
        501: errors.UnsupportedOperationError,
        502: errors.InvalidAgentResponseError,
    },
}
GRPC: dict[str, type[A2AError]] = {
    "INVALID_ARGUMENT": errors.InvalidParamsError,
    "OUT_OF_RANGE": errors.InvalidParamsError,
    "NOT_FOUND": errors.TaskNotFoundError,
    "FAILED_PRECONDITION": errors.UnsupportedOperationError,
    "UNIMPLEMENTED": errors.MethodNotFoundError,
    "DEADLINE_EXCEEDED": errors.DeadlineExceededError,
    "PERMISSION_DENIED": errors.PermissionDeniedError,
    "RESOURCE_EXHAUSTED": errors.RateLimitedError,
    "UNAVAILABLE": errors.UnavailableError,
    "UNAUTHENTICATED": errors.UnauthenticatedError,
}

#: What FAILED_PRECONDITION of a 0.3 peer means, by operation: the SDK for JavaScript names no class with it.
PRECONDITION_03: dict[str, type[A2AError]] = {
    "CancelTask": errors.TaskNotCancelableError,
    "GetExtendedAgentCard": errors.ExtendedAgentCardNotConfiguredError,
}

#: Codes beside which a class name still says something.
_VAGUE = (None, -32603, -32000)
_CARD = "GetExtendedAgentCard"
_SENDS = ("SendMessage", "SendStreamingMessage", "SubscribeToTask")


@dataclass(slots=True)
class Evidence:
    """Everything that a reply says about its error; :meth:`error` weighs it.

    ``code``: a JSON-RPC code. ``name``: a 0.3 class name. ``grpc``: a gRPC status name. ``http``: the HTTP status.
    ``op``: the operation that was called. ``challenge``: WWW-Authenticate.
    """

    version: Version
    op: str = ""
    message: str = ""
    code: int | None = None
    name: str = ""
    details: list[Detail] = field(default_factory=list)
    data: Any = None
    grpc: str = ""
    http: int = 0
    retry_after: float | None = None
    challenge: str = ""

    def error(self) -> A2AError | None:
        """The A2A error, or None if nothing names one."""
        facts = _Facts(self)
        cls = self._class(facts)
        if cls is None and self.code is None:
            return None
        if cls is None and self.code == A2AError.row.code:
            cls = errors.InternalError
        if self.version == "0.3":
            cls = self._told_by_text(cls)
        more: dict[str, Any] = {
            "metadata": facts.metadata,
            "violations": facts.violations,
            "data": facts.data,
            "details": tuple(facts.others),
            "retry_after": facts.retry_after if facts.retry_after is not None else self.retry_after,
        }
        if cls is None or cls is errors.OpaqueError:
            return errors.OpaqueError(self.message, code=self.code or A2AError.row.code, **more)
        if cls is errors.UnauthenticatedError and self.challenge:
            more["challenge"] = self.challenge
        return cls(self.message, **more)

    def _class(self, facts: _Facts) -> type[A2AError] | None:
        if facts.reason:
            return REASONS[facts.reason]
        cls = CODES.get(self.code or 0)
        if self.version == "0.3":
            cls = self._class_in_message(cls)
        if cls is None and self.code in _VAGUE:
            cls = NAMES.get(self.name.removesuffix("_v0_3"))
        if cls is None:
            cls = PLAIN_HTTP.get(self.http)
        if cls is None and self.code is None:
            cls = errors.OpaqueError if facts.unknown_reason else self._by_status()
        return cls

    def _class_in_message(self, cls: type[A2AError] | None) -> type[A2AError] | None:
        """The class named before the text: all that 0.3 gRPC has, and how errors that 0.3 lacks are told."""
        named, text = _split_name(self.message)
        if named is not None and (cls is None or named.row.code03):
            cls, self.message = named, text
        return cls

    def _told_by_text(self, cls: type[A2AError] | None) -> type[A2AError] | None:
        """Two errors of one 0.3 SDK differ from others by their text alone."""
        if cls is errors.InvalidParamsError and self.op in _SENDS and "is in terminal state" in self.message:
            return errors.UnsupportedOperationError
        if cls is errors.InternalError and "Push notification config not found" in self.message:
            return errors.TaskNotFoundError
        return cls

    def _by_status(self) -> type[A2AError] | None:
        if self.version == "0.3" and self.http == 404:
            if self.op == _CARD:
                return errors.ExtendedAgentCardNotConfiguredError
            if self.message in ("", "Not Found"):  # what web frameworks say of a route that they do not have
                return errors.MethodNotFoundError
        if self.version == "0.3" and self.grpc == "FAILED_PRECONDITION" and self.op in PRECONDITION_03:
            return PRECONDITION_03[self.op]
        cls = HTTP[self.version].get(self.http) or GRPC.get(self.grpc)
        if cls is None and self.http >= 400:
            cls = errors.InternalError if self.http >= 500 else errors.InvalidRequestError
        return cls or (errors.InternalError if self.grpc else None)


class _Facts:
    """What the details of an error hold, sorted."""

    def __init__(self, evidence: Evidence) -> None:
        self.reason = ""
        self.unknown_reason = False
        self.metadata: dict[str, str] = {}
        self.violations: tuple[tuple[str, str], ...] = ()
        self.retry_after: float | None = None
        self.data = evidence.data
        self.others: list[Detail] = []
        for detail in evidence.details:
            self._sort(detail)
        if evidence.version == "0.3" and isinstance(self.data, dict):
            self.violations = _violations(self.data.get("fieldViolations"))
        if (text := self.metadata.pop(V03_DATA, None)) is not None:
            self.data = _data_from(text)

    def _sort(self, detail: Detail) -> None:
        kind = detail.get("@type")
        if kind == rpc.ERROR_INFO and detail.get("domain") in (DOMAIN, None, ""):
            reason = str(detail.get("reason", ""))
            if reason in REASONS:
                self.reason = reason
            else:
                self.unknown_reason = True
                self.others.append(detail)
            metadata = detail.get("metadata")
            if reason in REASONS and isinstance(metadata, Mapping):
                self.metadata.update({camel(str(key)): text_of(value) for key, value in metadata.items()})
        elif kind == rpc.BAD_REQUEST:
            self.violations += _violations(detail.get("fieldViolations", detail.get("field_violations")))
        elif kind == rpc.RETRY_INFO:
            self.retry_after = rpc.seconds(str(detail.get("retryDelay", "")))
        else:
            self.others.append(detail)


def _violations(items: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(items, list):
        return ()
    return tuple((str(i.get("field", "")), str(i.get("description", ""))) for i in items if isinstance(i, dict))


def _data_from(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _split_name(text: str) -> tuple[type[A2AError] | None, str]:
    """The class whose name stands before the first colon, and the rest."""
    head, colon, rest = text.partition(":")
    cls = NAMES.get(head.strip()) if colon else None
    return cls, rest.strip() if cls else text


def evidence_of(value: object, version: Version) -> Evidence | None:
    """What an error body of any known shape says: JSON-RPC, google.rpc.Status, 0.3 bodies, problem+json, plain text.

    None if it is neither text nor an object. The whole body is given, on JSON-RPC the response object.
    """
    if isinstance(value, str):
        return Evidence(version, message=value)
    if not isinstance(value, dict):
        return None
    inner = value.get("error")
    body: dict[str, Any] = inner if isinstance(inner, dict) else value
    found = Evidence(version, message=_first_text(body, "message", "detail", "title"))
    code, status = body.get("code"), body.get("status")
    if isinstance(code, int | float | str):
        found.code = _json_rpc_code(code)
    if isinstance(status, str):
        found.grpc = status
    if isinstance(inner, str):
        found.name = inner.rpartition(".")[2]
    elif isinstance(kind := value.get("type"), str):
        found.name = _name_of_problem(kind)
    _gather(found, body)
    return found


def _gather(found: Evidence, body: dict[str, Any]) -> None:
    """Take details and data out of an error object."""
    data = body.get("data")
    if isinstance(data, dict) and "@type" in data:
        data = [data]
    for items in (body.get("details"), data):
        if isinstance(items, list) and all(isinstance(i, dict) and "@type" in i for i in items):
            found.details += items
            data = None if items is data else data
    found.data = data
    if versions := body.get("supportedVersions"):
        found.details.append(_problem_info(found.name, versions))
    elif isinstance(problems := body.get("errors"), list):
        fields = [{"field": _first_text(p, "field", "name"), "description": _first_text(p, "message", "reason")}
                  for p in problems if isinstance(p, dict)]  # fmt: skip
        found.details.append({"@type": rpc.BAD_REQUEST, "fieldViolations": fields})


def _problem_info(name: str, versions: object) -> Detail:
    text = ",".join(map(str, versions)) if isinstance(versions, list) else str(versions)
    metadata = {"supportedVersions": text}
    return {"@type": rpc.ERROR_INFO, "reason": reason_of(name), "domain": DOMAIN, "metadata": metadata}


def _name_of_problem(kind: str) -> str:
    """The class name in a problem type: ``.../errors/task-not-found`` -> ``TaskNotFoundError``."""
    words = kind.rstrip("/").rpartition("/")[2].split("-")
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name.endswith("Error") else name + "Error"


def _json_rpc_code(code: float | str) -> int | None:
    """A JSON-RPC code: negative. A positive number is an HTTP or gRPC status that was copied into the body."""
    try:
        number = int(code)
    except (ValueError, OverflowError):
        return None
    return number if number < 0 else None


def _first_text(body: dict[str, Any], *keys: str) -> str:
    return next((v for key in keys if isinstance(v := body.get(key), str) and v), "")
