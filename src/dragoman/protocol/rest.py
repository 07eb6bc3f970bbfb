"""HTTP+JSON framing of both versions (1.0 §11, 0.3 §3.2.3).

Rules of this module:

- Path variables, query parameters and the tenant of a route become members of the message; a body that says
  something else about one of them is refused. A 0.3 variable ``{id}`` becomes the name ``tasks/{id}``.
- GET and DELETE take nothing from a body. Query names are camelCase, read in snake_case too, unknown ones ignored.
- Errors go out as ``application/json``: some clients read no other, whatever they accept.
- A body that needs nothing added is not looked into; the dialect reads it.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote

import msgspec
from msgspec import Raw

from ..errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InvalidParamsError,
    JSONParseError,
    PeerError,
    UnsupportedOperationError,
)
from . import jsontext, sse, status
from .messages import Call, Headers, HttpRequest, HttpResponse, Rejected
from .operations import WIRE, Kind, Names, Param, Version
from .replies import JSON, error_headers, evidence_of_reply, plain_status, unreadable, write_json
from .routes import Match, routes

A2A_JSON = b"application/a2a+json"
_EVENTS_FIRST = b"text/event-stream, application/json"
_ACCEPT = {"1.0": b"application/a2a+json, application/json", "0.3": b"application/json"}

#: Other names under which a query parameter is read.
_QUERY_ALIASES = {"lastUpdatedAfter": "statusTimestampAfter"}
#: Where the ``kind`` form of a 0.3 message has what a path variable of the proto form says.
_KIND_FORM = {"parent": "taskId", "name": "id"}


class Rest:
    """The HTTP+JSON codec of one version."""

    __slots__ = ("_accept", "_query", "_routes", "_rows", "version")

    keep_alive = sse.KEEP_ALIVE

    def __init__(self, version: Version) -> None:
        self.version: Version = version
        self._routes = routes(version)
        self._rows = WIRE[version]
        self._accept = _ACCEPT[version]
        tenant: dict[str, Kind] = {"tenant": "str"} if version == "1.0" else {}
        self._query = {op: _readable({**tenant, **row.query}) for op, row in self._rows.items()}

    # server half

    def read_call(self, request: HttpRequest) -> Call:
        """Find the route and put the message together. Raises ``Rejected``."""
        try:
            match = self._routes.find(request.method, request.path)
            body = self._message(match, request)
        except A2AError as error:
            raise Rejected(error) from error
        media = _reply_media(request.headers) if self.version == "1.0" else JSON
        return Call(match.route.op, body, b"", match.tenant, media)

    def read_id(self, request: HttpRequest) -> bytes:
        """HTTP+JSON has no ids."""
        return b""

    def read_timeout(self, headers: Headers) -> None:
        """HTTP+JSON has no deadlines."""

    def write_result(self, call: Call, body: bytes) -> HttpResponse:
        """200 with the bare message."""
        return write_json(200, body or b"{}", media=call.media)

    def write_error(self, error: A2AError, id: bytes = b"null") -> HttpResponse:
        """A google.rpc.Status in an envelope (1.0 §11.6), or the body that 0.3 clients between them need."""
        http = error.row.http if self.version == "1.0" else error.row.http03
        return write_json(http, jsontext.encode(self._error(error)), error_headers(error))

    def stream_head(self, call: Call) -> HttpResponse:
        """Head of an event stream."""
        return HttpResponse(200, list(sse.HEAD))

    def write_event(self, call: Call, body: bytes) -> bytes:
        """One event: the bare message (1.0 §11.7)."""
        return b"".join((b"data: ", sse.one_line(body), b"\n\n"))

    def write_stream_error(self, call: Call, error: A2AError) -> bytes:
        """The last event of a stream that failed; 0.3 names it, since its body could pass for an odd message."""
        return sse.frame(jsontext.encode(self._error(error)), b"error" if self.version == "0.3" else b"")

    def refuse_stream(self, call: Call, error: A2AError) -> HttpResponse:
        """The answer to a streaming call that failed before its first event: that of any call."""
        return self.write_error(error)

    def trailers(self, error: A2AError | None = None) -> None:
        """HTTP+JSON has none."""

    # client half

    def write_call(self, op: str, body: bytes, *, id: int = 1, tenant: str = "") -> HttpRequest:
        """A request whose path is relative to the interface's url.

        ``tenant``: prefix of the route (1.0). Raises ``UnsupportedOperationError`` if this version has no such
        operation, ``InvalidParamsError`` if an id cannot be put in a path.
        """
        names = self._rows.get(op)
        if names is None:
            raise UnsupportedOperationError(f"A2A {self.version} has no {op}")
        plain = names.body and not names.params and not tenant
        members = {} if plain else jsontext.members(body or b"{}")
        path = names.paths[0]
        for param in names.params:
            path = _fill(path, param, members)
        if tenant:
            path = "/" + _segment("tenant", tenant) + path
            members["tenant"] = Raw(jsontext.encode(tenant))
        accept = _EVENTS_FIRST if names.streaming else self._accept
        if not names.body:
            query = _query(names, members, bool(tenant))
            return HttpRequest(names.verbs[0], path, query, Headers(((b"accept", accept),)))
        if self.version == "1.0":
            for param in names.params:
                del members[param.key]
        headers = Headers(((b"content-type", JSON), (b"accept", accept)))
        return HttpRequest(names.verbs[0], path, "", headers, body if plain else jsontext.encode(members))

    def read_result(self, op: str, response: HttpResponse) -> bytes:
        """The message of a reply with any 2xx status. Raises ``A2AError`` or ``PeerError``."""
        body = response.body
        if not 200 <= response.status < 300:
            raise self._failure(op, response)
        if not body.strip():
            if op == "DeleteTaskPushNotificationConfig":
                return b"{}"
            raise unreadable(response, "a JSON message")
        if not jsontext.is_json(Headers(response.headers).get(b"content-type")) and body.lstrip()[:1] not in b"{[":
            raise unreadable(response, "a JSON message")
        return body

    def read_event(self, op: str, data: bytes, id: int = 1) -> bytes:
        """The message in one event. Raises ``A2AError`` if it is an error of any form, or ``PeerError``."""
        if b'"error"' in data or b'"code"' in data or b'"detail"' in data:
            self._raise_if_error(op, data)
        return data

    # both

    def _error(self, error: A2AError) -> dict[str, Any]:
        if self.version == "0.3":
            return status.body03(error)
        body = {"code": error.row.http, "status": error.row.grpc, "message": status.message(error, "1.0")}
        details = status.details(error)
        return {"error": {**body, "details": details} if details else body}

    def _message(self, match: Match, request: HttpRequest) -> bytes:
        """The message: the body, and what the request line adds to it."""
        names = match.route.names
        body = _body(request) if names.body else b""
        if not (names.params or match.tenant or request.query):
            return body or b"{}"
        added = {param.key: param.shape.format_map(match.values) for param in names.params}
        members = {key: jsontext.encode(text) for key, text in added.items()}
        if match.tenant:
            members["tenant"] = jsontext.encode(match.tenant)
        if request.query:
            _read_query(request.query, self._query[match.route.op], members)
        if self.version == "0.3":
            _check_names(match.values)
        if body and members:
            return _merge(body, members, added)
        return body or _object(members)

    def _failure(self, op: str, response: HttpResponse) -> A2AError | PeerError:
        try:
            value: Any = jsontext.value(response.body)
        except JSONParseError:
            value = None
        found = evidence_of_reply(response, value, self.version, op) if response.status >= 400 else None
        error = found.error() if found else plain_status(response, self.version)
        return error or unreadable(response, "a JSON message")

    def _raise_if_error(self, op: str, data: bytes) -> None:
        try:
            members = jsontext.members(data)
        except (JSONParseError, TypeError):
            return  # the dialect says what is wrong with it
        if not members.keys() & {"error", "code", "detail"}:
            return
        found = evidence_of_reply(HttpResponse(0), jsontext.value(data), self.version, op)
        error = found.error() if found else None
        raise error or PeerError("the stream ended with an error of unknown form", excerpt=jsontext.excerpt(data))


def _reply_media(headers: Headers) -> bytes:
    """The media type of a 1.0 reply: A2A's own, unless Accept or the request's Content-Type prefers plain JSON."""
    accept = headers.get(b"accept")
    plain, own = JSON in accept, A2A_JSON in accept
    if plain != own:
        return JSON if plain else A2A_JSON
    return JSON if jsontext.media_type(headers.get(b"content-type")) == JSON else A2A_JSON


def _body(request: HttpRequest) -> bytes:
    """The body of a request that may have one: empty if it has none, ``null`` or only blanks."""
    body = request.body
    if not body:
        return b""
    kind = request.headers.get(b"content-type")
    if not jsontext.is_json(kind):
        raise ContentTypeNotSupportedError(f"Content-Type {kind.decode('latin-1')!r} is no JSON")
    jsontext.check(body)
    return b"" if len(body) < 64 and body.strip() in (b"", b"null") else body


def _readable(query: dict[str, Kind]) -> dict[str, tuple[str, Kind]]:
    """Every spelling of a query parameter -> message key and kind."""
    table = {key: (key, kind) for key, kind in query.items()}
    table |= {alias: (key, query[key]) for alias, key in _QUERY_ALIASES.items() if key in query}
    return {_snake(name): row for name, row in table.items()} | table


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name)


def _read_query(query: str, table: dict[str, tuple[str, Kind]], members: dict[str, bytes]) -> None:
    """Add the parameters of ``query`` to ``members``."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError as e:
        raise InvalidParamsError(f"The query cannot be read: {e}") from e
    for name, text in pairs:
        if row := table.get(name):
            key, kind = row
            value = _typed(key, kind, text)
            if members.setdefault(key, value) != value:
                raise _conflict(key, "given twice, with different values")


def _typed(key: str, kind: Kind, text: str) -> bytes:
    """The JSON of one query value."""
    if kind == "str":
        return jsontext.encode(text)
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower().encode()
    digits = text.strip().removeprefix("-")
    if kind == "int" and digits.isascii() and digits.isdigit() and len(digits) < 20:
        return b"%d" % int(text)
    raise InvalidParamsError(violations=((key, "must be true or false" if kind == "bool" else "must be an integer"),))


def _check_names(values: dict[str, str]) -> None:
    """A 0.3 resource name is split on slashes, so no id in it may hold one."""
    for name, text in values.items():
        if "/" in text:
            raise InvalidParamsError(f"A 0.3 {name} cannot hold a slash", violations=((name, "holds a slash"),))


def _object(members: dict[str, bytes]) -> bytes:
    return b"{" + b",".join([b'"%b":%b' % (key.encode(), value) for key, value in members.items()]) + b"}"


def _merge(body: bytes, added: dict[str, bytes], path: dict[str, str]) -> bytes:
    """``body`` with ``added`` members. Raises ``InvalidParamsError`` where the two disagree."""
    try:
        members = jsontext.members(body)
    except TypeError as e:
        raise InvalidParamsError("The body must be a JSON object") from e
    for key, value in added.items():
        for name in (key, _snake(key)):
            _agree(members.pop(name, None), name, value)
    for key, text in path.items():
        if (other := _KIND_FORM.get(key)) in members:
            _agree(members[other], other, jsontext.encode(text.removeprefix("tasks/")))
    members.update({key: Raw(value) for key, value in added.items()})
    return jsontext.encode(members)


def _agree(said: Raw | None, name: str, value: bytes) -> None:
    """A body may repeat what the request line says, or leave it empty; a 0.3 name may come as bare id."""
    if said is None:
        return
    found, wanted = jsontext.value(said), msgspec.json.decode(value)
    if found not in (None, "", wanted) and f"tasks/{found}" != wanted:
        raise _conflict(name, "differs from the request line")


def _conflict(field: str, reason: str) -> InvalidParamsError:
    return InvalidParamsError(f"{field} {reason}", violations=((field, reason),))


def _fill(path: str, param: Param, members: dict[str, Raw]) -> str:
    """``path`` with the variables that the message key of ``param`` holds; the key stays where it is."""
    found = jsontext.value(members.get(param.key, Raw(b"null")))
    text = found if isinstance(found, str) else ""
    shape = param.shape.split("/")
    parts = text.split("/") if len(shape) > 1 else [text]
    if len(parts) == 1 and len(shape) == 2:  # a bare id where a name belongs
        parts = [shape[0], text]
    if len(parts) != len(shape):
        raise InvalidParamsError(f"{param.key} must be {param.shape}", violations=((param.key, "no such name"),))
    for part, value in zip(shape, parts, strict=True):
        if part.startswith("{"):
            path = path.replace(part, _segment(param.key, value))
    return path


def _segment(name: str, text: str) -> str:
    """``text`` as one path segment. What URL parsers resolve away cannot be one, encoded or not."""
    if text in ("", ".", ".."):
        raise InvalidParamsError(f"{name} {text!r} cannot stand in a path", violations=((name, "cannot be in a path"),))
    return quote(text, safe="")


def _query(names: Names, members: dict[str, Raw], routed: bool) -> str:
    """The members of a message that travel in the query; the tenant does not if the route has it."""
    pairs = []
    for key in names.query:
        if key in members and not (routed and key == "tenant") and (value := jsontext.value(members[key])) is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            pairs.append(f"{key}={quote(text, safe='')}")
    return "&".join(pairs)
