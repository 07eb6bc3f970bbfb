"""How an A2A error is told on each version: the parts that the bodies of all bindings are made of (1.0 §5.4, 0.3 §8).

Rules of this module:

- 1.0 carries typed details; an error without a reason of its own gets an ErrorInfo only to hold metadata, and
  MethodNotFound never does (a client takes its absence for "no such route" and tries another way).
- 0.3 carries ``data``; what a 0.3 peer put there crosses 1.0 as ErrorInfo metadata ``v03Data``.
- Where a 0.3 code does not tell the error (the two that 0.3 lacks travel as -32600), its name precedes the message.
- ErrorInfo metadata is text to text, its keys camelCase.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .. import errors
from ..errors import BY_CODE, BY_REASON, DOMAIN, WIRE_ERRORS, A2AError
from . import details as rpc
from .details import Detail
from .operations import Version


def reason_of(name: str) -> str:
    """The ErrorInfo reason that follows from a class name: UPPER_SNAKE_CASE without the final ``Error``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Error").replace("JSON", "Json")).upper()


#: Reasons that are read: A2A's own, and those that SDKs make of the names of the generic errors.
REASONS: dict[str, type[A2AError]] = {reason_of(c.__name__): c for c in WIRE_ERRORS} | BY_REASON
#: ErrorInfo metadata key that holds the ``data`` of a 0.3 error on 1.0, as JSON text.
V03_DATA = "v03Data"

_NAMES_03: dict[type[A2AError], str] = {
    errors.ExtendedAgentCardNotConfiguredError: "AuthenticatedExtendedCardNotConfiguredError"
}


def wire_class(error: A2AError) -> type[A2AError]:
    """The class that readers know: ``error``'s own, or the nearest above it that has a row in the table."""
    return next((c for c in type(error).__mro__ if c in WIRE_ERRORS), errors.InternalError)


def message(error: A2AError, version: Version) -> str:
    """The text for people: on 0.3 its own standard text, and the error's name where its code tells too little."""
    text = text_of(error.message)
    if version == "1.0":
        return text
    if error.row.title03 and text == error.row.title:
        text = error.row.title03
    return text if _told_by_code(error) else f"{wire_class(error).__name__}: {text}"


def message03_grpc(error: A2AError) -> str:
    """As :func:`message`, always with a name: that is all that a 0.3 gRPC reader has besides the status."""
    text = message(error, "0.3")
    return f"{name03(error)}: {text}" if _told_by_code(error) else text


def _told_by_code(error: A2AError) -> bool:
    cls = wire_class(error)
    return cls is errors.InternalError or BY_CODE.get(code(error, "0.3")) is cls


def code(error: A2AError, version: Version) -> int:
    """The JSON-RPC code."""
    return error.row.code03 or error.code if version == "0.3" else error.code


def name03(error: A2AError) -> str:
    """The 0.3 class name."""
    cls = BY_CODE[error.row.code03] if error.row.code03 else wire_class(error)
    return _NAMES_03.get(cls, cls.__name__)


def details(error: A2AError) -> list[Detail]:
    """The typed objects that a 1.0 error carries (1.0 §9.5)."""
    out: list[Detail] = []
    if info := _error_info(error):
        out.append(info)
    if error.violations:
        out.append({"@type": rpc.BAD_REQUEST, "fieldViolations": _violations(error)})
    if error.retry_after is not None:
        out.append({"@type": rpc.RETRY_INFO, "retryDelay": rpc.duration(error.retry_after)})
    out.extend(error.details)
    return out


def _error_info(error: A2AError) -> Detail | None:
    metadata = {camel(key): text_of(value) for key, value in error.metadata.items()}
    if error.data is not None:
        metadata[V03_DATA] = text_of(error.data)
    cls = wire_class(error)
    if not error.row.reason and (not metadata or cls is errors.MethodNotFoundError):
        return None
    reason = error.row.reason or reason_of(cls.__name__)
    info = {"@type": rpc.ERROR_INFO, "reason": reason, "domain": DOMAIN}
    return {**info, "metadata": metadata} if metadata else info


def data03(error: A2AError) -> Any:
    """The ``data`` of a 0.3 error: as it came from a 0.3 peer, else metadata and violations as an object, or None."""
    if error.data is not None:
        return error.data
    data: dict[str, Any] = {camel(key): text_of(value) for key, value in error.metadata.items()}
    if error.violations:
        data["fieldViolations"] = _violations(error)
    return data or None


def body03(error: A2AError) -> dict[str, Any]:
    """A 0.3 HTTP+JSON error body, with every key that some 0.3 client insists on."""
    name = name03(error)
    body = {
        "code": code(error, "0.3"),
        "message": message(error, "0.3"),
        "error": "io.a2a.spec." + name,
        "type": name,
    }
    data = data03(error)
    return body if data is None else {**body, "data": data}


def camel(key: str) -> str:
    """A metadata key as camelCase."""
    head, *rest = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest) if rest and head else key


def text_of(item: object) -> str:
    """A value as metadata text: JSON if it is no text; what is no Unicode character is replaced."""
    text = item if isinstance(item, str) else msgspec.json.encode(item).decode()
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _violations(error: A2AError) -> list[dict[str, str]]:
    return [{"field": text_of(name), "description": text_of(text)} for name, text in error.violations]
