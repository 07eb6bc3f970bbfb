"""JSON-RPC 2.0 framing of both versions (1.0 §9, 0.3 §3.2.1, jsonrpc.org/specification).

Rules of this module:

- An id is echoed as the JSON text that came: string, integer or null. Anything else makes the request invalid.
- ``params`` absent or null is ``{}``; positional params are refused. Batches are refused. A call without an id is a
  notification: it is read, and answered by nobody.
- HTTP status is 200 for every answer but a refused caller's (401, 403); any status is read.
- Frames are put together from prepared bytes around the message; nothing is encoded twice.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn

import msgspec
from msgspec import Raw

from ..errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    PeerError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnsupportedOperationError,
)
from . import jsontext, sse, status
from .messages import Call, Headers, HttpRequest, HttpResponse, Rejected
from .operations import VERSIONS, WIRE, Version
from .replies import error_headers, evidence_of_reply, plain_status, unreadable, write_json

_HEAD = b'{"jsonrpc":"2.0","id":'
_CLIENT_HEADERS = Headers(((b"content-type", b"application/json"), (b"accept", b"application/json")))
_STREAM_HEADERS = Headers(((b"content-type", b"application/json"), (b"accept", b"text/event-stream, application/json")))
_DELETE = "DeleteTaskPushNotificationConfig"
#: The one 0.3 method without params.
_CARD = "GetExtendedAgentCard"


class _Request(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    method: str
    id: Raw = Raw()
    params: Raw = Raw()


class _Response(msgspec.Struct, gc=False):
    id: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()


_requests = msgspec.json.Decoder(_Request)
_responses = msgspec.json.Decoder(_Response)


class JsonRpc:
    """The JSON-RPC codec of one version."""

    __slots__ = ("_calls", "_cures", "_ops", "_streams", "version")

    keep_alive = sse.KEEP_ALIVE

    def __init__(self, version: Version) -> None:
        self.version: Version = version
        rows = WIRE[version]
        self._ops = {name: op for op, row in rows.items() for name in (row.rpc, *row.rpc_aliases)}
        self._cures = {
            row.rpc: other
            for other in VERSIONS
            for row in WIRE[other].values()
            if other != version and row.rpc not in self._ops
        }
        self._calls = {op: b',"method":"' + row.rpc.encode() + b'"' for op, row in rows.items()}
        self._streams = frozenset(op for op, row in rows.items() if row.streaming)

    # server half

    def read_call(self, request: HttpRequest) -> Call:
        """Take the envelope off. Raises ``Rejected`` under the request's id as far as that can be read."""
        body = request.body
        kind = request.headers.get(b"content-type")
        if kind != b"application/json" and not jsontext.is_json(kind):
            shown = kind.decode("latin-1")
            raise Rejected(ContentTypeNotSupportedError(f"Content-Type {shown!r} is not application/json"))
        envelope, id = _read_envelope(body)
        op = self._ops.get(envelope.method)
        if op is None:
            raise Rejected(self._unknown(envelope.method), id or b"null")
        params = bytes(envelope.params)
        if params[:1] != b"{":
            if params and params != b"null":
                raise Rejected(InvalidParamsError("params must be an object: A2A has no positional parameters"), id)
            params = b"{}"
        return Call(op, params, id)

    def read_id(self, request: HttpRequest) -> bytes:
        """The id of a request that cannot be served. Raises ``Rejected`` if it is no JSON-RPC request."""
        return _read_envelope(request.body)[1] or b"null"

    def read_timeout(self, headers: Headers) -> None:
        """JSON-RPC has no deadlines."""

    def write_result(self, call: Call, body: bytes) -> HttpResponse:
        """The response object; 204 to a notification."""
        if not call.id:
            return HttpResponse(204)
        return write_json(200, b"".join((_HEAD, call.id, b',"result":', body or b"null", b"}")))

    def write_error(self, error: A2AError, id: bytes = b"null") -> HttpResponse:
        """An error object (1.0 §9.5)."""
        http = error.row.http if isinstance(error, UnauthenticatedError | PermissionDeniedError) else 200
        return write_json(http, self._error(error, id), error_headers(error))

    def stream_head(self, call: Call) -> HttpResponse:
        """Head of an event stream."""
        return HttpResponse(200, list(sse.HEAD))

    def write_event(self, call: Call, body: bytes) -> bytes:
        """One event: a whole response object (1.0 §9.4.2)."""
        return b"".join(
            (b'data: {"jsonrpc":"2.0","id":', call.id or b"null", b',"result":', sse.one_line(body), b"}\n\n")
        )

    def write_stream_error(self, call: Call, error: A2AError) -> bytes:
        """The last event of a stream that failed: an error response."""
        return sse.frame(self._error(error, call.id))

    def refuse_stream(self, call: Call, error: A2AError) -> HttpResponse:
        """The answer to a streaming call that failed before its first event.

        Plain JSON, but on 0.3 one event with the error: its clients look at nothing but an event stream.
        """
        if self.version == "1.0" or isinstance(error, UnauthenticatedError | PermissionDeniedError):
            return self.write_error(error, call.id)
        return HttpResponse(200, [*sse.HEAD, *error_headers(error)], self.write_stream_error(call, error))

    def trailers(self, error: A2AError | None = None) -> None:
        """JSON-RPC has none."""

    # client half

    def write_call(self, op: str, body: bytes, *, id: int = 1, tenant: str = "") -> HttpRequest:
        """A request object, to be posted to the interface's url. Raises ``UnsupportedOperationError``."""
        method = self._calls.get(op)
        if method is None:
            raise UnsupportedOperationError(f"A2A {self.version} has no {op}")
        bare = op == _CARD and self.version == "0.3"
        params = b"" if bare else b',"params":' + (body or b"{}")
        headers = _STREAM_HEADERS if op in self._streams else _CLIENT_HEADERS
        return HttpRequest("POST", "", "", headers, b"".join((_HEAD, b"%d" % id, method, params, b"}")))

    def read_result(self, op: str, response: HttpResponse, *, id: int = 1) -> bytes:
        """The ``result`` of a response object, whatever its HTTP status. Raises ``A2AError`` or ``PeerError``."""
        try:
            envelope = _responses.decode(response.body)
        except (msgspec.DecodeError, RecursionError):
            envelope = _Response()
        if bytes(envelope.error) not in (b"", b"null"):
            self._raise_error(op, envelope, response)
        result = bytes(envelope.result)
        if response.status >= 300 or not result:
            if op == _DELETE and 200 <= response.status < 300 and (bytes(envelope.id) or not response.body.strip()):
                return b"{}"
            raise plain_status(response, self.version) or unreadable(response, "a JSON-RPC response")
        _check_id(envelope, id)
        return result

    def read_event(self, op: str, data: bytes, id: int = 1) -> bytes:
        """The ``result`` of the response object in one event. Raises ``A2AError`` or ``PeerError``."""
        try:
            envelope = _responses.decode(data)
        except (msgspec.DecodeError, RecursionError) as e:
            text = jsontext.excerpt(data)
            raise PeerError(f"an event of the stream is no JSON-RPC response: {e}", excerpt=text) from e
        if bytes(envelope.error) not in (b"", b"null"):
            self._raise_error(op, envelope, HttpResponse(200, body=data))
        if not bytes(envelope.result):
            raise PeerError("an event of the stream has neither result nor error", excerpt=jsontext.excerpt(data))
        _check_id(envelope, id)
        return bytes(envelope.result)

    # both

    def _unknown(self, method: str) -> MethodNotFoundError:
        other = self._cures.get(method)
        if other is None:
            return MethodNotFoundError(f"Method not found: {method[:100]}")
        return MethodNotFoundError(f"{method} is a {other} method: send A2A-Version: {other}")

    def _error(self, error: A2AError, id: bytes) -> bytes:
        out: dict[str, Any] = {
            "code": status.code(error, self.version),
            "message": status.message(error, self.version),
        }
        data = status.details(error) if self.version == "1.0" else status.data03(error)
        if data:
            out["data"] = data
        return b"".join((_HEAD, id or b"null", b',"error":', jsontext.encode(out), b"}"))

    def _raise_error(self, op: str, envelope: _Response, response: HttpResponse) -> NoReturn:
        if bytes(envelope.result) not in (b"", b"null"):
            raise PeerError("a response has both result and error", excerpt=jsontext.excerpt(response.body))
        found = evidence_of_reply(response, {"error": jsontext.value(envelope.error)}, self.version, op)
        error = found.error() if found else None
        raise error or unreadable(response, "a JSON-RPC error")


def _read_envelope(body: bytes) -> tuple[_Request, bytes]:
    """The request object and its id, empty for a notification."""
    try:
        jsontext.check(body)
        envelope = _requests.decode(body)
    except JSONParseError as error:
        raise Rejected(error) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise _diagnosis(body) from error
    id = bytes(envelope.id)
    if id and not id.isdigit() and not _is_id(id):
        raise Rejected(InvalidRequestError("id must be a string, an integer or null"))
    return envelope, id


def _is_id(text: bytes) -> bool:
    """Whether the JSON value ``text`` may be an id; an integer has digits and nothing else."""
    return text.isdigit() or text[:1] == b'"' or text == b"null" or (text[:1] == b"-" and text[1:].isdigit())


def _diagnosis(body: bytes) -> Rejected:
    """Why ``body`` is no request object."""
    try:
        whole = jsontext.value(body)
    except JSONParseError as error:
        return Rejected(error)
    if isinstance(whole, list):
        return Rejected(InvalidRequestError("A2A has no batches: send one request at a time"))
    if not isinstance(whole, dict):
        return Rejected(InvalidRequestError("A request must be an object"))
    reason = 'jsonrpc must be "2.0"' if whole.get("jsonrpc") != "2.0" else "method must be a string"
    id = bytes(jsontext.members(body).get("id", Raw(b"null")))
    return Rejected(InvalidRequestError(reason), id if _is_id(id) else b"null")


def _check_id(envelope: _Response, id: int) -> None:
    """Responses must answer what was asked; a peer that makes texts of numbers is let by."""
    got = bytes(envelope.id)
    if got != b"%d" % id and got != b'"%d"' % id:
        raise PeerError(f"the response has id {got.decode('utf-8', 'replace')[:80] or 'none'}, the request {id}")
