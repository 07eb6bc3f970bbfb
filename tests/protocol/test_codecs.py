"""What holds for all six codecs: every row of the operation and error tables, both directions."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors
from dragoman.errors import A2AError, PeerError
from dragoman.protocol.codec import Codec
from dragoman.protocol.grpc import Grpc
from dragoman.protocol.jsonrpc import JsonRpc
from dragoman.protocol.messages import Call, Header, Headers, HttpRequest, HttpResponse, Rejected
from dragoman.protocol.operations import WIRE, Binding, Names, Version
from dragoman.protocol.rest import Rest
from dragoman.protocol.sse import Decoder

SPEC = Path(__file__).parent.parent / "spec"
V10: Version = "1.0"
V03: Version = "0.3"
CODECS: dict[tuple[Version, Binding], Codec] = {
    (V10, "JSONRPC"): JsonRpc(V10),
    (V10, "HTTP+JSON"): Rest(V10),
    (V10, "GRPC"): Grpc(V10),
    (V03, "JSONRPC"): JsonRpc(V03),
    (V03, "HTTP+JSON"): Rest(V03),
    (V03, "GRPC"): Grpc(V03),
}


def rows(name: str) -> list[dict[str, str]]:
    with (SPEC / name).open() as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


OPERATIONS = rows("operations.tsv")
ERRORS = rows("errors.tsv")


def row_id(row: dict[str, str]) -> str:
    return f"{row['version']} {row['binding']} {row['operation']}"


def wire(row: dict[str, str]) -> tuple[Codec, Names]:
    version: Version = "1.0" if row["version"] == "1.0" else "0.3"
    binding: Binding = next(b for v, b in CODECS if b == row["binding"])
    return CODECS[version, binding], WIRE[version][row["operation"]]


def message(names: Names, **values: str) -> dict[str, str]:
    """A message with the ids that a path needs."""
    both = {param.key for param in names.params} == {"taskId", "id"}
    known = {"id": "c1" if both else "t1", "taskId": "t1", "configId": "c1"} | values
    return {param.key: param.shape.format_map(known) for param in names.params}


def encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def test_the_tables_have_a_row_for_every_operation_and_no_other() -> None:
    listed = {(row["version"], row["operation"], row["binding"]) for row in OPERATIONS}
    assert listed == {(v, op, b) for v, table in WIRE.items() for op in table for b in ("JSONRPC", "HTTP+JSON", "GRPC")}


@pytest.mark.parametrize("row", OPERATIONS, ids=row_id)
def test_streaming_operations_are_those_of_the_table(row: dict[str, str]) -> None:
    assert wire(row)[1].streaming == (row["streaming"] == "yes")


@pytest.mark.parametrize("row", OPERATIONS, ids=row_id)
def test_a_client_writes_the_name_of_the_table(row: dict[str, str]) -> None:
    codec, names = wire(row)
    request = codec.write_call(row["operation"], encoded(message(names)))
    assert request.method == row["verb"].split("|")[0]
    if row["binding"] == "JSONRPC":
        assert msgspec.json.decode(request.body)["method"] == row["name"]
    else:
        variables = iter(("t1", "c1"))
        assert request.path == re.sub(r"\{\w+\}", lambda _: next(variables), row["name"])


@pytest.mark.parametrize("row", OPERATIONS, ids=row_id)
def test_a_server_reads_what_a_client_writes(row: dict[str, str]) -> None:
    codec, names = wire(row)
    bare = row["binding"] == "JSONRPC" and row["version"] == "0.3" and row["operation"] == "GetExtendedAgentCard"
    sent = {} if bare else {**message(names, id="x-1"), **({"metadata": {"a": 1}} if names.body else {})}
    call = codec.read_call(codec.write_call(row["operation"], encoded(sent)))
    assert call.op == row["operation"]
    assert msgspec.json.decode(call.body) == sent


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row["aliases"]], ids=row_id)
def test_a_server_reads_every_other_name_of_an_operation(row: dict[str, str]) -> None:
    codec, names = wire(row)
    request = codec.write_call(row["operation"], encoded(message(names)))
    if row["binding"] == "JSONRPC":
        request.body = encoded({"jsonrpc": "2.0", "id": 1, "method": row["aliases"]})
    else:
        request.path = row["aliases"].format(id="t1", configId="c1")
    assert codec.read_call(request).op == row["operation"]


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row["binding"] == "HTTP+JSON"], ids=row_id)
def test_every_verb_and_no_other_leads_to_the_operation(row: dict[str, str]) -> None:
    codec, _ = wire(row)
    path = re.sub(r"\{\w+\}", "t1", row["name"])
    others = {
        r["verb"] for r in OPERATIONS if r["version"] == row["version"] and _shape(r["name"]) == _shape(row["name"])
    }
    taken = set("|".join(others).split("|"))
    for verb in row["verb"].split("|"):
        assert codec.read_call(HttpRequest(verb, path)).op == row["operation"]
    for verb in {"GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS"} - taken:
        with pytest.raises(Rejected) as caught:
            codec.read_call(HttpRequest(verb, path))
        response = codec.write_error(caught.value.error)
        assert response.status == 405
        assert set(Headers(response.headers).text("allow").split(", ")) == taken


def _shape(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row["tenant_route"]], ids=row_id)
def test_the_tenant_of_a_route_reaches_call_and_message(row: dict[str, str]) -> None:
    codec, names = wire(row)
    request = codec.write_call(row["operation"], encoded(message(names)), tenant="acme co")
    variables = iter(("acme%20co", "t1", "c1"))
    assert request.path == re.sub(r"\{\w+\}", lambda _: next(variables), row["tenant_route"])
    call = codec.read_call(request)
    assert call.op == row["operation"]
    assert call.tenant == msgspec.json.decode(call.body)["tenant"] == "acme co"


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row["query"]], ids=row_id)
def test_query_parameters_are_those_of_the_table(row: dict[str, str]) -> None:
    codec, names = wire(row)
    values = {"str": "a b&c", "int": 7, "bool": True}
    assert set(names.query) == set(row["query"].split(","))
    sent = {**message(names), **{key: values[kind] for key, kind in names.query.items()}}
    request = codec.write_call(row["operation"], encoded(sent))
    assert msgspec.json.decode(codec.read_call(request).body) == sent


def test_an_operation_that_a_version_lacks_is_refused_before_it_is_sent() -> None:
    for binding in ("JSONRPC", "HTTP+JSON", "GRPC"):
        with pytest.raises(errors.UnsupportedOperationError):
            CODECS["0.3", binding].write_call("ListTasks", b"{}")


# Errors


def error_of(row: dict[str, str]) -> type[A2AError]:
    name = row["name"] if row["name"].endswith("Error") else row["name"] + "Error"
    found: type[A2AError] = getattr(errors, name)
    return found


def error_id(row: dict[str, str]) -> str:
    return row["name"]


def test_the_error_table_has_a_row_for_every_class() -> None:
    ours = set(errors.WIRE_ERRORS) - {errors.DeadlineExceededError}  # a gRPC status, no error of the specification
    assert {error_of(row) for row in ERRORS} == ours


@pytest.mark.parametrize("row", ERRORS, ids=error_id)
def test_errors_have_the_codes_of_the_table(row: dict[str, str]) -> None:
    cls = error_of(row)
    if row["jsonrpc_code"]:
        assert cls.row.code == int(row["jsonrpc_code"])
    assert (cls.row.grpc, cls.row.http) == (row["grpc_status"], int(row["http_status"]))
    if row["reason"]:
        assert cls.row.reason == row["reason"]
    if row["code_03"]:
        assert (cls.row.code03 or cls.row.code) == int(row["code_03"])


@pytest.mark.parametrize("row", ERRORS, ids=error_id)
def test_errors_go_out_as_the_table_says(row: dict[str, str]) -> None:
    error = error_of(row)("What happened")
    auth = row["name"] in ("Unauthenticated", "PermissionDenied")
    for version in (V10, V03):
        rpc = CODECS[version, "JSONRPC"].write_error(error, b"7")
        assert rpc.status == (int(row["http_status"]) if auth else 200)
        body = msgspec.json.decode(rpc.body)
        code = row["jsonrpc_code"] if version == V10 else row["code_03"]
        assert body["id"] == 7
        assert not code or body["error"]["code"] == int(code)
    rest = CODECS[V10, "HTTP+JSON"].write_error(error)
    status = msgspec.json.decode(rest.body)["error"]
    assert rest.status == status["code"] == int(row["http_status"])
    assert status["status"] == row["grpc_status"]
    reasons = [d["reason"] for d in status.get("details", ()) if d["@type"].endswith("ErrorInfo")]
    assert not row["reason"] or reasons == [row["reason"]]
    grpc = dict(CODECS[V10, "GRPC"].trailers(error) or ())
    assert grpc[b"grpc-status"] == b"%d" % errors.GRPC_CODES[row["grpc_status"]]


#: Where the table has what the SDKs for Python and Java send, which read the name in front of the text, and the one
#: for JavaScript reads only this.
BETTER_03 = {"TaskNotCancelableError": "FAILED_PRECONDITION"}


@pytest.mark.parametrize("row", [row for row in ERRORS if row["code_03"]], ids=error_id)
def test_03_errors_carry_what_each_sdk_reads(row: dict[str, str]) -> None:
    error = error_of(row)("What happened")
    rest = CODECS[V03, "HTTP+JSON"].write_error(error)
    body = msgspec.json.decode(rest.body)
    assert not row["http_03"] or rest.status == int(row["http_03"])
    assert body["code"] == int(row["code_03"])
    assert body["message"].endswith("What happened")
    name = row["name_03"] or errors.BY_CODE[int(row["code_03"])].__name__
    assert body["error"] == "io.a2a.spec." + name
    trailers = dict(CODECS[V03, "GRPC"].trailers(error) or ())
    told = row["name_03"] or row["name"]  # an error that 0.3 lacks goes under its 1.0 name
    assert trailers[b"grpc-message"] == f"{told}: What happened".encode()
    status = BETTER_03.get(row["name"], row["grpc_03"])
    assert not status or trailers[b"grpc-status"] == b"%d" % errors.GRPC_CODES[status]


@pytest.mark.parametrize("cls", errors.WIRE_ERRORS)
@pytest.mark.parametrize("face", CODECS, ids=str)
def test_every_error_comes_back_as_itself(face: tuple[Version, Binding], cls: type[A2AError]) -> None:
    codec = CODECS[face]
    error = cls("Über: 100 % of\nit", metadata={"taskId": "t-1"}, violations=(("message.parts", "needs one"),))
    with pytest.raises(A2AError) as caught:
        codec.read_result("GetTask", codec.write_error(error, b"1"))
    got = caught.value
    assert type(got) is cls
    assert got.message == error.message
    if face[0] == V10:
        assert got.violations == error.violations
        assert got.metadata == ({} if cls is errors.MethodNotFoundError else error.metadata)
    elif face[1] != "GRPC":
        assert got.violations == error.violations
        assert got.data["taskId"] == "t-1"


@pytest.mark.parametrize("cls", errors.WIRE_ERRORS)
@pytest.mark.parametrize("face", [face for face in CODECS if face[1] != "GRPC"], ids=str)
def test_an_error_in_mid_stream_comes_back_as_itself(face: tuple[Version, Binding], cls: type[A2AError]) -> None:
    codec = CODECS[face]
    sent = cls
    if face == (V10, "HTTP+JSON") and cls in (errors.JSONParseError, errors.InvalidRequestError):
        cls = errors.InvalidParamsError  # without details, this binding has one look for the three
    frame = codec.write_stream_error(Call("SendStreamingMessage", b"{}", b"1"), sent("What happened"))
    (event,) = Decoder().feed(frame)
    with pytest.raises(cls, match="What happened"):
        codec.read_event("SendStreamingMessage", event.data)


@pytest.mark.parametrize("face", CODECS, ids=str)
def test_a_stream_that_never_began_is_an_error_of_its_own(face: tuple[Version, Binding]) -> None:
    codec = CODECS[face]
    response = codec.refuse_stream(Call("SendStreamingMessage", b"{}", b"1"), errors.TaskNotFoundError("gone"))
    with pytest.raises(errors.TaskNotFoundError, match="gone"):
        if Headers(response.headers).get(b"content-type") == b"text/event-stream":
            assert face == (V03, "JSONRPC")  # whose clients read nothing else
            (event,) = Decoder().feed(response.body)
            codec.read_event("SendStreamingMessage", event.data)
        else:
            codec.read_result("SendStreamingMessage", response)


@pytest.mark.parametrize("face", CODECS, ids=str)
def test_a_code_that_only_the_peer_knows_survives_where_codes_travel(face: tuple[Version, Binding]) -> None:
    codec = CODECS[face]
    detail = {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "http://x"}]}
    error = errors.OpaqueError("odd", code=-32050, details=(detail,))
    with pytest.raises(A2AError, match="odd") as caught:
        codec.read_result("GetTask", codec.write_error(error, b"1"))
    if face[1] == "JSONRPC" or face == (V03, "HTTP+JSON"):
        assert caught.value.code == -32050
    if face[0] == V10:
        assert caught.value.details == (detail,)


def test_data_of_a_03_error_survives_10_and_comes_back() -> None:
    error = errors.InvalidParamsError("bad", data=[1, {"a": None}])
    for binding in ("JSONRPC", "HTTP+JSON", "GRPC"):
        codec = CODECS[V10, binding]
        with pytest.raises(errors.InvalidParamsError) as caught:
            codec.read_result("GetTask", codec.write_error(error, b"1"))
        assert caught.value.data == [1, {"a": None}]
    body = msgspec.json.decode(CODECS[V10, "JSONRPC"].write_error(error, b"1").body)
    assert body["error"]["data"][0]["metadata"] == {"v03Data": '[1,{"a":null}]'}
    body = msgspec.json.decode(CODECS[V03, "JSONRPC"].write_error(caught.value, b"1").body)
    assert body["error"]["data"] == [1, {"a": None}]


@pytest.mark.parametrize("face", CODECS, ids=str)
def test_when_to_come_back_is_told(face: tuple[Version, Binding]) -> None:
    codec = CODECS[face]
    response = codec.write_error(errors.RateLimitedError(retry_after=1.5), b"1")
    with pytest.raises(errors.RateLimitedError) as caught:
        codec.read_result("GetTask", response)
    if face != (V03, "GRPC"):
        assert caught.value.retry_after == (1.5 if face[0] == V10 else 2.0)
    if face[1] != "GRPC":
        assert Headers(response.headers).get(b"retry-after") == b"2"


@pytest.mark.parametrize("face", [face for face in CODECS if face[1] != "GRPC"], ids=str)
def test_a_challenge_is_told_and_read(face: tuple[Version, Binding]) -> None:
    codec = CODECS[face]
    response = codec.write_error(errors.UnauthenticatedError(challenge='Bearer realm="a",\r\n x'), b"1")
    assert response.status == 401
    assert Headers(response.headers).get(b"www-authenticate") == b'Bearer realm="a", x'
    with pytest.raises(errors.UnauthenticatedError) as caught:
        codec.read_result("GetTask", response)
    assert caught.value.challenge == 'Bearer realm="a", x'


def test_a_subclass_goes_out_as_the_error_that_readers_know() -> None:
    class MineError(errors.TaskNotFoundError):
        pass

    body = msgspec.json.decode(CODECS[V03, "HTTP+JSON"].write_error(MineError()).body)
    assert body["error"] == "io.a2a.spec.TaskNotFoundError"


@pytest.mark.parametrize("face", CODECS, ids=str)
def test_text_that_is_no_unicode_does_not_break_a_reply(face: tuple[Version, Binding]) -> None:
    error = errors.InvalidParamsError("a\ud800b", metadata={"k": "\udfff"}, violations=(("\ud800", "\ud800"),))
    with pytest.raises(errors.InvalidParamsError, match=r"a\?b"):
        CODECS[face].read_result("GetTask", CODECS[face].write_error(error, b"1"))


# Anything at all

_METHODS = st.sampled_from(["GET", "POST", "DELETE", "PUT", ""])
_PATHS = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(["v1", "tasks", "task", "message:send", "a:cancel", ":", "%FF", "%2F", "", "x", "card",
                         "pushNotificationConfigs", "t:subscribe", "lf.a2a.v1.A2AService", "SendMessage", "t\0"]),
        max_size=6,
    ).map(lambda parts: "/" + "/".join(parts)),
)  # fmt: skip
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
_ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "method": st.one_of(st.sampled_from(["SendMessage", "tasks/get", 1]), st.text(max_size=5)),
        "id": _JSON,
        "params": _JSON,
    },
).map(lambda value: str(value) and encoded_or_empty(value))


def encoded_or_empty(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return b""


_BODIES = st.one_of(
    st.binary(max_size=60),
    _JSON.map(encoded_or_empty),
    _ENVELOPES,
    st.builds(lambda flag, size, rest: bytes([flag]) + size.to_bytes(4, "big") + rest,
              st.integers(0, 2), st.integers(0, 9), st.binary(max_size=9)),
)  # fmt: skip
_TYPES = st.sampled_from([b"", b"application/json", b"application/grpc", b"text/html", b"application/x+json; q=\xff"])
_FIELDS = st.builds(
    lambda kind, encoding, timeout: Headers(
        [(b"content-type", kind), (b"grpc-encoding", encoding), (b"grpc-timeout", timeout), (b"accept", b"*/*")]
    ),
    _TYPES,
    st.sampled_from([b"", b"gzip", b"identity", b"snappy"]),
    st.binary(max_size=4),
)


@given(_METHODS, _PATHS, st.text(max_size=30), _FIELDS, _BODIES)
def test_reading_any_request_raises_nothing_but_rejected(
    method: str, path: str, query: str, headers: Headers, body: bytes
) -> None:
    for codec in CODECS.values():
        request = HttpRequest(method, path, query, headers, body)
        codec.read_timeout(headers)
        try:
            call = codec.read_call(request)
        except Rejected as rejected:
            response = codec.write_error(rejected.error, rejected.id)
            with pytest.raises(A2AError):
                codec.read_result("GetTask", response)
            continue
        codec.write_result(call, b"{}")


_REPLY_TYPES: st.SearchStrategy[list[Header]] = st.sampled_from(
    [[], [(b"content-type", b"application/json")], [(b"content-type", b"text/html")], [(b"grpc-status", b"5")]]
)
_TRAILERS: st.SearchStrategy[list[Header]] = st.lists(
    st.tuples(st.sampled_from([b"grpc-status", b"grpc-message", b"grpc-status-details-bin"]), st.binary(max_size=9)),
    max_size=3,
)
_ERROR_BODIES = st.fixed_dictionaries(
    {},
    optional={
        "error": st.one_of(_JSON, st.fixed_dictionaries({}, optional={
            "code": _JSON, "message": _JSON, "status": _JSON, "data": _JSON,
            "details": st.lists(st.fixed_dictionaries({"@type": st.sampled_from(
                ["type.googleapis.com/google.rpc.ErrorInfo", "type.googleapis.com/google.rpc.BadRequest",
                 "type.googleapis.com/google.rpc.RetryInfo"])}, optional={
                     "reason": _JSON, "domain": _JSON, "metadata": _JSON, "fieldViolations": _JSON,
                     "retryDelay": _JSON})),
        })),
        "code": _JSON, "message": _JSON, "errors": _JSON, "supportedVersions": _JSON, "type": _JSON, "id": _JSON,
    },
).map(encoded_or_empty)  # fmt: skip


@given(
    st.integers(100, 599),
    _REPLY_TYPES,
    st.one_of(_BODIES, _ERROR_BODIES),
    _TRAILERS,
    st.sampled_from(list(WIRE["1.0"])),
)
def test_reading_any_reply_raises_nothing_but_a2a_and_peer_errors(
    status: int, headers: list[Header], body: bytes, trailers: list[Header], op: str
) -> None:
    for codec in CODECS.values():
        try:
            assert isinstance(codec.read_result(op, HttpResponse(status, headers, body, trailers)), bytes)
        except (A2AError, PeerError):
            pass
        try:
            assert isinstance(codec.read_event(op, body), bytes)
        except (A2AError, PeerError):
            pass


def test_only_grpc_has_trailers_and_only_the_others_have_a_keep_alive() -> None:
    for (_, binding), codec in CODECS.items():
        assert (codec.trailers() is None) == (binding != "GRPC")
        assert (codec.keep_alive == b"") == (binding == "GRPC")
