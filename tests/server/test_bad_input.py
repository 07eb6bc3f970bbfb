"""Bad input on every face: exactly the error that names it, and the next call is served as if nothing had been."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from dragoman.faces import FACES, Face
from dragoman.model import GET_TASK, LIST_TASKS, SEND_MESSAGE, GetTaskRequest, ListTasksRequest
from dragoman.protocol.grpc import frame
from dragoman.protocol.operations import GRPC_SERVICE, Version
from dragoman.server.app import AppLimits
from tests.oracle import messages
from tests.server.callers import EACH_FACE, Bench, Wire, bench, check_failure, good_call, send, sending, wire

DEEP = 150
BODY_LIMIT = 4096
JSON_FACES = [face for face in EACH_FACE if face.binding != "GRPC"]
RPC_FACES = [face for face in EACH_FACE if face.binding == "JSONRPC"]
REST_FACES = [face for face in EACH_FACE if face.binding == "HTTP+JSON"]
GRPC_FACES = [face for face in EACH_FACE if face.binding == "GRPC"]


@pytest.fixture
def server() -> Bench:
    return bench(limits=AppLimits(body=BODY_LIMIT), check_input_modes=False)


async def refused(server: Bench, face: Face, request: Wire, error: str) -> Any:
    """The error that a bad request gets; a good one is served after it."""
    answer = await send(server.app, request)
    found = check_failure(face, answer, error)
    assert (await good_call(server.app, face)).artifacts[0].parts[0].text == "hello"
    return found, answer


# -- messages, in the JSON of each face


def parts_key(face: Face) -> str:
    return "content" if face == Face("HTTP+JSON", "0.3") else "parts"


def good_message(face: Face) -> dict[str, Any]:
    """A message in the dialect of a face."""
    if face == Face("JSONRPC", "0.3"):
        parts = [{"kind": "text", "text": "hi"}]
        return {"kind": "message", "messageId": "m", "role": "user", "parts": parts}
    return {"messageId": "m", "role": "ROLE_USER", parts_key(face): [{"text": "hi"}]}


def posted(face: Face, body: bytes, op: str = "SendMessage", **headers: str) -> Wire:
    """Message bytes under the framing of a JSON face."""
    made = FACES[face].codec.write_call(op, body)
    fields = {"host": "agent.test", "content-type": "application/json", "a2a-version": face.version, **headers}
    return Wire("POST", made.path or "/", fields, made.body)


class BadMessage(NamedTuple):
    """A change that spoils a good message, and the fields that the error names (1.0 names; None: not asked)."""

    name: str
    spoil: Callable[[dict[str, Any], str], object]
    fields: tuple[str, ...] | None
    error: str = "params"


def _set(**members: Any) -> Callable[[dict[str, Any], str], object]:
    return lambda message, parts: message.update(members)


def _part(part: Any) -> Callable[[dict[str, Any], str], object]:
    return lambda message, parts: message.update({parts: [part]})


def _nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


BAD_MESSAGES = [
    BadMessage("no message id", lambda message, parts: message.pop("messageId"), ("message.messageId",)),
    BadMessage("empty message id", _set(messageId=""), ("message.messageId",)),
    BadMessage("message id is a number", _set(messageId=7), ("message.messageId",)),
    BadMessage("no role", lambda message, parts: message.pop("role"), ("message.role",)),
    BadMessage("unknown role", _set(role="ROLE_CAPTAIN"), ("message.role",)),
    BadMessage("role is an object", _set(role={}), ("message.role",)),
    BadMessage("no parts", lambda message, parts: message.pop(parts), ("message.parts",)),
    BadMessage("empty parts", lambda message, parts: message.update({parts: []}), ("message.parts",)),
    BadMessage(
        "parts are an object", lambda message, parts: message.update({parts: {"text": "a"}}), ("message.parts",)
    ),
    BadMessage("part is a text", _part("hi"), ("message.parts[0]",)),
    BadMessage("text is a number", _part({"text": 1, "kind": "text"}), ("message.parts[0].text",)),
    BadMessage("metadata is a list", _set(metadata=[]), ("message.metadata",)),
    BadMessage("extensions are a text", _set(extensions="urn:a"), ("message.extensions",)),
    BadMessage("message is deep", _set(metadata={"x": _nest(DEEP)}), None, "parse"),
]
BAD_PARTS: dict[Face, list[tuple[str, Any]]] = {
    Face("JSONRPC", "1.0"): [
        ("two members", {"text": "a", "url": "http://x/"}),
        ("two members, one null", {"text": "a", "data": None}),
        ("no member", {"mediaType": "text/plain"}),
        ("bad base64", {"raw": "&&&&"}),
    ],
    Face("JSONRPC", "0.3"): [
        ("no member", {"kind": "file"}),
        ("two files", {"kind": "file", "file": {"bytes": "QQ==", "uri": "http://x/"}}),
        ("bad base64", {"kind": "file", "file": {"bytes": "&&&&"}}),
        ("unknown kind", {"kind": "smell"}),
    ],
    Face("HTTP+JSON", "0.3"): [
        ("two members", {"text": "a", "file": {"fileWithUri": "http://x/"}}),
        ("no member", {}),
        ("bad base64", {"file": {"fileWithBytes": "&&&&"}}),
    ],
}
BAD_PARTS[Face("HTTP+JSON", "1.0")] = BAD_PARTS[Face("JSONRPC", "1.0")]


@pytest.mark.parametrize("bad", BAD_MESSAGES, ids=lambda bad: bad.name)
@pytest.mark.parametrize("face", JSON_FACES, ids=str)
async def test_a_message_that_breaks_a_rule_is_refused_by_field(server: Bench, face: Face, bad: BadMessage) -> None:
    message = good_message(face)
    bad.spoil(message, parts_key(face))
    request = posted(face, json.dumps({"message": message}).encode())
    found, _ = await refused(server, face, request, bad.error)
    if bad.fields is not None:
        assert found.fields == bad.fields


@pytest.mark.parametrize(
    ("face", "part"),
    [pytest.param(face, part, id=f"{face} {name}") for face, rows in BAD_PARTS.items() for name, part in rows],
)
async def test_a_part_that_is_none_or_two_things_is_refused(server: Bench, face: Face, part: Any) -> None:
    message = {**good_message(face), parts_key(face): [part]}
    found, _ = await refused(server, face, posted(face, json.dumps({"message": message}).encode()), "params")
    assert found.fields and found.fields[0].startswith("message.parts[0]")


BAD_PARAMS = [
    ("no message", {}, ("message",)),
    ("message is null", {"message": None}, ("message",)),
    ("message is a list", {"message": []}, ("message",)),
]


@pytest.mark.parametrize(("params", "fields"), [pytest.param(*row[1:], id=row[0]) for row in BAD_PARAMS])
@pytest.mark.parametrize("face", JSON_FACES, ids=str)
async def test_a_send_without_a_message_is_refused(server: Bench, face: Face, params: Any, fields: Any) -> None:
    found, _ = await refused(server, face, posted(face, json.dumps(params).encode()), "params")
    assert found.fields in (fields, ("request",))


@pytest.mark.parametrize("length", [-1, 10.5, "many", True, 2**31, {}])
@pytest.mark.parametrize("face", JSON_FACES, ids=str)
async def test_a_history_length_that_is_no_count_is_refused(server: Bench, face: Face, length: Any) -> None:
    params = {"message": good_message(face), "configuration": {"historyLength": length}}
    found, _ = await refused(server, face, posted(face, json.dumps(params).encode()), "params")
    assert found.fields == ("configuration.historyLength",)


BAD_TEXT = [
    ("not JSON", b"{nope"),
    ("cut off", b'{"message":{"messageId":"m"'),
    ("two values", b"{}{}"),
    ("wrong UTF-8", b'{"message":{"messageId":"\xff"}}'),
    ("lone surrogate", b'{"message":{"messageId":"\\ud800","role":"ROLE_USER","parts":[{"text":"a"}]}}'),
    ("deep arrays", b"[" * 1000 + b"]" * 1000),
    ("unclosed and deep", b"[" * 1000),
    ("NaN", b'{"message":NaN}'),
    ("HTML", b"<!doctype html><p>hello"),
    ("gzip", gzip.compress(b"{}")),
    ("BOM in UTF-16", "{}".encode("utf-16")),
]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in BAD_TEXT])
@pytest.mark.parametrize("face", JSON_FACES, ids=str)
async def test_a_body_that_is_no_json_is_a_parse_error(server: Bench, face: Face, text: bytes) -> None:
    request = posted(face, b"{}")
    _, answer = await refused(server, face, request._replace(body=text), "parse")
    if face.binding == "JSONRPC":
        assert json.loads(answer.body)["id"] is None


# -- JSON-RPC envelopes


class BadEnvelope(NamedTuple):
    name: str
    envelope: Any
    error: str
    id: Any = None


SEND: dict[Version, str] = {"1.0": "SendMessage", "0.3": "message/send"}
ENVELOPES = [
    BadEnvelope("empty body", "", "parse"),
    BadEnvelope("null", None, "request"),
    BadEnvelope("a text", "hello", "request"),
    BadEnvelope("empty batch", [], "request"),
    BadEnvelope("batch", [{"jsonrpc": "2.0", "id": 1, "method": "SEND"}], "request"),
    BadEnvelope("no version", {"id": 1, "method": "SEND"}, "request", 1),
    BadEnvelope("old version", {"jsonrpc": "1.0", "id": 1, "method": "SEND"}, "request", 1),
    BadEnvelope("version is a number", {"jsonrpc": 2.0, "id": "x", "method": "SEND"}, "request", "x"),
    BadEnvelope("no method", {"jsonrpc": "2.0", "id": 5}, "request", 5),
    BadEnvelope("method is a number", {"jsonrpc": "2.0", "id": 5, "method": 1}, "request", 5),
    BadEnvelope("id is a float", {"jsonrpc": "2.0", "id": 1.5, "method": "SEND"}, "request"),
    BadEnvelope("id is true", {"jsonrpc": "2.0", "id": True, "method": "SEND"}, "request"),
    BadEnvelope("id is an object", {"jsonrpc": "2.0", "id": {}, "method": "SEND"}, "request"),
    BadEnvelope("id is a list", {"jsonrpc": "2.0", "id": [1], "method": "SEND"}, "request"),
    BadEnvelope("unknown method", {"jsonrpc": "2.0", "id": 7, "method": "tasks/burn"}, "no method", 7),
    BadEnvelope("empty method", {"jsonrpc": "2.0", "id": 7, "method": ""}, "no method", 7),
    BadEnvelope("params are a list", {"jsonrpc": "2.0", "id": 7, "method": "SEND", "params": [1]}, "params", 7),
    BadEnvelope("params are a text", {"jsonrpc": "2.0", "id": 7, "method": "SEND", "params": "x"}, "params", 7),
    BadEnvelope("params are a number", {"jsonrpc": "2.0", "id": 7, "method": "SEND", "params": 3}, "params", 7),
    BadEnvelope("no params", {"jsonrpc": "2.0", "id": "é", "method": "SEND"}, "params", "é"),
    BadEnvelope("null id", {"jsonrpc": "2.0", "id": None, "method": "SEND", "params": {}}, "params"),
    BadEnvelope("large id", {"jsonrpc": "2.0", "id": 2**70, "method": "SEND"}, "params", 2**70),
]


@pytest.mark.parametrize("bad", ENVELOPES, ids=lambda bad: bad.name)
@pytest.mark.parametrize("face", RPC_FACES, ids=str)
async def test_an_envelope_that_is_no_request_is_refused_under_its_id(
    server: Bench, face: Face, bad: BadEnvelope
) -> None:
    body = (
        json.dumps(bad.envelope, ensure_ascii=False).replace("SEND", SEND[face.version]) if bad.envelope != "" else ""
    )
    request = posted(face, b"{}")._replace(body=body.encode())
    _, answer = await refused(server, face, request, bad.error)
    assert json.loads(answer.body)["id"] == bad.id


@pytest.mark.parametrize("face", RPC_FACES, ids=str)
async def test_a_notification_gets_no_answer_and_does_no_work(server: Bench, face: Face) -> None:
    body = {"jsonrpc": "2.0", "method": SEND[face.version], "params": {"message": good_message(face)}}
    answer = await send(server.app, posted(face, b"{}")._replace(body=json.dumps(body).encode()))
    assert (answer.status, answer.body) == (204, b"")
    listing = await send(server.app, wire(Face("JSONRPC", "1.0"), LIST_TASKS, ListTasksRequest()))
    assert json.loads(answer.body or listing.body)["result"]["tasks"] == []


@pytest.mark.parametrize(
    ("face", "method", "cure"),
    [
        (Face("JSONRPC", "1.0"), "message/send", "A2A-Version: 0.3"),
        (Face("JSONRPC", "0.3"), "SendMessage", "A2A-Version: 1.0"),
    ],
    ids=str,
)
async def test_a_method_of_the_other_version_is_not_found_and_the_cure_is_named(
    server: Bench, face: Face, method: str, cure: str
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}
    found, _ = await refused(server, face, posted(face, b"{}")._replace(body=json.dumps(body).encode()), "no method")
    assert cure in found.message


# -- HTTP


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", "%"]
)
@pytest.mark.parametrize("face", JSON_FACES, ids=str)
async def test_a_body_of_another_media_type_is_refused(server: Bench, face: Face, kind: str) -> None:
    good = wire(face, SEND_MESSAGE, sending("hi"))
    await refused(server, face, good._replace(headers={**good.headers, "content-type": kind}), "media type")


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_body_beyond_the_limit_is_refused(server: Bench, face: Face) -> None:
    found, answer = await refused(server, face, wire(face, SEND_MESSAGE, sending("x" * BODY_LIMIT)), "too large")
    assert str(BODY_LIMIT) in found.message
    assert b"<" not in answer.body


WRONG_VERBS = [
    ("PUT", "/message:send", "POST"),
    ("GET", "/message:send", "POST"),
    ("DELETE", "/tasks/t", "GET"),
    ("PATCH", "/tasks/t:cancel", "POST"),
    ("DELETE", "/tasks/t:subscribe", "GET, POST"),
    ("PUT", "/tasks/t/pushNotificationConfigs", "GET, POST"),
    ("POST", "/tasks/t/pushNotificationConfigs/c", "DELETE, GET"),
    ("PROPFIND", "/tasks/t", "GET"),
]


@pytest.mark.parametrize(("verb", "path", "allow"), WRONG_VERBS)
@pytest.mark.parametrize("face", REST_FACES, ids=str)
async def test_a_wrong_verb_is_405_and_says_which_are_right(
    server: Bench, face: Face, verb: str, path: str, allow: str
) -> None:
    prefix = "/v1" if face.version == "0.3" else ""
    request = Wire(verb, prefix + path, {"a2a-version": face.version}, b"")
    _, answer = await refused(server, face, request, "wrong verb")
    assert sorted(answer.headers["allow"].split(", ")) == sorted(allow.split(", "))


@pytest.mark.parametrize("path", ["/nope", "/tasks/t:burn/x", "/a/b/c/d/e", "/tasks//x", "//", "/%00", "/message:"])
@pytest.mark.parametrize("face", REST_FACES, ids=str)
async def test_an_unknown_route_is_404_without_an_a2a_reason(server: Bench, face: Face, path: str) -> None:
    prefix = "/v1" if face.version == "0.3" else ""
    await refused(server, face, Wire("GET", prefix + path, {"a2a-version": face.version}, b""), "no method")


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("face", REST_FACES, ids=str)
async def test_the_address_of_json_rpc_takes_nothing_but_post(server: Bench, face: Face, verb: str) -> None:
    _, answer = await refused(server, face, Wire(verb, "/", {"a2a-version": face.version}, b""), "wrong verb")
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "query", ["historyLength=x", "historyLength=1.5", "historyLength=-1", "historyLength=9999999999"]
)
@pytest.mark.parametrize("face", REST_FACES, ids=str)
async def test_a_query_value_of_the_wrong_type_is_refused(server: Bench, face: Face, query: str) -> None:
    prefix = "/v1" if face.version == "0.3" else ""
    request = Wire("GET", f"{prefix}/tasks/t?{query}", {"a2a-version": face.version}, b"")
    found, _ = await refused(server, face, request, "params")
    assert found.fields == ("historyLength",)


BAD_LISTS = [
    "pageSize=0",
    "pageSize=101",
    "pageSize=x",
    "status=TASK_STATE_ODD",
    "includeArtifacts=maybe",
    "statusTimestampAfter=yesterday",
    "pageToken=forged",
    "historyLength=-1",
]


@pytest.mark.parametrize("query", BAD_LISTS)
async def test_a_list_query_that_breaks_a_rule_is_refused_by_field(server: Bench, query: str) -> None:
    face = Face("HTTP+JSON", "1.0")
    found, _ = await refused(server, face, Wire("GET", "/tasks?" + query, {"a2a-version": "1.0"}, b""), "params")
    assert found.fields == (query.partition("=")[0],)


@pytest.mark.parametrize("face", REST_FACES, ids=str)
async def test_a_path_segment_that_is_not_utf8_is_refused(server: Bench, face: Face) -> None:
    prefix = "/v1" if face.version == "0.3" else ""
    await refused(server, face, Wire("GET", prefix + "/tasks/%ff", {"a2a-version": face.version}, b""), "params")


@pytest.mark.parametrize("face", REST_FACES, ids=str)
async def test_an_envelope_posted_to_a_route_is_refused_by_what_it_lacks(server: Bench, face: Face) -> None:
    """Case 23."""
    envelope = {"jsonrpc": "2.0", "id": 1, "method": SEND[face.version], "params": {"message": good_message(face)}}
    found, _ = await refused(server, face, posted(face, json.dumps(envelope).encode()), "params")
    assert found.fields == ("message",)


async def test_a_body_that_contradicts_the_path_is_refused(server: Bench) -> None:
    face = Face("HTTP+JSON", "1.0")
    request = Wire(
        "POST", "/tasks/one:cancel", {"a2a-version": "1.0", "content-type": "application/json"}, b'{"id":"two"}'
    )
    found, _ = await refused(server, face, request, "params")
    assert found.fields == ("id",)


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_an_unknown_task_is_not_found_with_its_id(server: Bench, face: Face) -> None:
    found, _ = await refused(server, face, wire(face, GET_TASK, GetTaskRequest(id="ghost")), "task not found")
    if not (face.binding == "GRPC" and face.version == "0.3"):
        assert found.metadata["taskId"] == "ghost"


# -- gRPC


def rpc(face: Face, body: bytes, path: str = "", verb: str = "POST", **headers: str) -> Wire:
    good = wire(face, SEND_MESSAGE, sending("hi"))
    fields = {**good.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Wire(verb, path or good.path, fields, body)


def good_bytes(face: Face) -> bytes:
    return wire(face, SEND_MESSAGE, sending("hi")).body[5:]


class BadFrame(NamedTuple):
    name: str
    body: Callable[[bytes], bytes]
    error: str = "request"
    encoding: str = ""


FRAMES = [
    BadFrame("nothing", lambda good: b""),
    BadFrame("no frame", lambda good: good),
    BadFrame("half a head", lambda good: b"\0\0\0"),
    BadFrame("cut off", lambda good: frame(good)[:-1]),
    BadFrame("more than it says", lambda good: frame(good) + b"x"),
    BadFrame("two messages", lambda good: frame(good) * 2),
    BadFrame("unknown flag", lambda good: b"\2" + frame(good)[1:]),
    BadFrame("claims 4 GB", lambda good: b"\0\xff\xff\xff\xff" + good, "too large"),
    BadFrame("compressed, encoding unsaid", lambda good: b"\1" + frame(good)[1:]),
    BadFrame("broken gzip", lambda good: b"\1" + frame(b"not gzip")[1:], "request", "gzip"),
    BadFrame("cut gzip", lambda good: b"\1" + frame(gzip.compress(good)[:-9])[1:], "request", "gzip"),
    BadFrame("bad gzip sum", lambda good: b"\1" + frame(gzip.compress(good)[:-8] + bytes(8))[1:], "request", "gzip"),
    BadFrame("gzip as deflate", lambda good: b"\1" + frame(gzip.compress(good))[1:], "request", "deflate"),
    BadFrame("bomb", lambda good: b"\1" + frame(zlib.compress(bytes(20 << 20), 9))[1:], "too large", "deflate"),
]


@pytest.mark.parametrize("bad", FRAMES, ids=lambda bad: bad.name)
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_broken_frame_is_refused(bad: BadFrame, face: Face) -> None:
    server = bench(limits=AppLimits(body=1 << 20))
    headers = {"grpc_encoding": bad.encoding} if bad.encoding else {}
    await refused(server, face, rpc(face, bad.body(good_bytes(face)), **headers), bad.error)


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_an_unknown_compression_is_unimplemented_and_the_known_are_named(server: Bench, face: Face) -> None:
    body = b"\1" + frame(good_bytes(face))[1:]
    answer = await send(server.app, rpc(face, body, grpc_encoding="snappy"))
    check_failure(face, answer, "no method")
    assert "gzip" in answer.headers["grpc-accept-encoding"]


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_compressed_message_is_read(server: Bench, face: Face) -> None:
    body = b"\1" + frame(gzip.compress(good_bytes(face)))[1:]
    answer = await send(server.app, rpc(face, body, grpc_encoding="gzip"))
    assert answer.trailers is not None and answer.trailers["grpc-status"] == "0"


BAD_PROTOBUF: list[tuple[str, Callable[[Face], bytes]]] = [
    ("cut varint", lambda face: b"\x0a\xff"),
    ("field number 0", lambda face: b"\x02\x00"),
    ("wire type 6", lambda face: b"\x0e\x00"),
    ("group that ends nothing", lambda face: b"\x0c"),
    ("length beyond the end", lambda face: b"\x12\x7f\x00"),
    ("varint of eleven bytes", lambda face: b"\x08" + b"\xff" * 11),
    ("bad UTF-8", lambda face: good_bytes(face).replace(b"m-1", b"\xff\xfe\xfd")),
    ("deep", lambda face: good_bytes(face) + deep_metadata(face)),
]


def deep_metadata(face: Face) -> bytes:
    """The request's metadata with lists in lists, deeper than protobuf's own readers go."""
    value = b""
    for _ in range(DEEP):
        value = chunk(6, chunk(1, value))  # Value.list_value, ListValue.values
    number = messages(face.version)["SendMessageRequest"].DESCRIPTOR.fields_by_name["metadata"].number
    return chunk(number, chunk(1, chunk(1, b"x") + chunk(2, value)))  # Struct.fields: key, value


def chunk(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    size, length = len(data), b""
    while size > 127:
        size, length = size >> 7, length + bytes((size & 127 | 128,))
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + data


@pytest.mark.parametrize("spoilt", [pytest.param(make, id=name) for name, make in BAD_PROTOBUF])
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_bytes_that_are_no_protobuf_are_a_parse_error(
    server: Bench, face: Face, spoilt: Callable[[Face], bytes]
) -> None:
    await refused(server, face, rpc(face, frame(spoilt(face))), "parse")


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda call, message, parts: message.ClearField("message_id"), "message.messageId"),
        (lambda call, message, parts: message.ClearField("role"), "message.role"),
        (lambda call, message, parts: setattr(message, "role", 9), "message.role"),
        (lambda call, message, parts: message.ClearField(parts), "message.parts"),
        (lambda call, message, parts: getattr(message, parts)[0].Clear(), "message.parts[0]"),
        (lambda call, message, parts: call.Clear(), "message"),
        (lambda call, message, parts: setattr(call.configuration, "history_length", -1), "configuration.historyLength"),
    ],
    ids=["no id", "no role", "unknown role", "no parts", "empty part", "no message", "negative history"],
)
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_protobuf_message_that_breaks_a_rule_is_refused_by_field(
    server: Bench, face: Face, spoil: Any, field: str
) -> None:
    call: Any = messages(face.version)["SendMessageRequest"].FromString(good_bytes(face))
    message, parts = (call.message, "parts") if face.version == "1.0" else (call.request, "content")
    spoil(call, message, parts)
    found, _ = await refused(server, face, rpc(face, frame(call.SerializeToString())), "params")
    if face.version == "1.0":
        assert found.fields == (field,)


@pytest.mark.parametrize(
    "path", ["/SERVICE/Nope", "/SERVICE/", "/SERVICE/SendMessage/", "/other.Service/SendMessage", "/x"]
)
@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_an_unknown_rpc_is_unimplemented(server: Bench, face: Face, path: str) -> None:
    await refused(server, face, rpc(face, frame(b""), path.replace("SERVICE", GRPC_SERVICE[face.version])), "no method")


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_an_rpc_of_the_other_version_says_so(face: Face) -> None:
    other = Face("GRPC", "0.3" if face.version == "1.0" else "1.0")
    server = bench(faces=[face])
    answer = await send(server.app, wire(other, SEND_MESSAGE, sending("hi")))
    check_failure(other, answer, "no method")


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_a_get_of_an_rpc_is_refused(server: Bench, face: Face) -> None:
    await refused(server, face, rpc(face, b"", verb="GET"), "no method")


@pytest.mark.parametrize("face", GRPC_FACES, ids=str)
async def test_json_posted_to_an_rpc_is_refused(server: Bench, face: Face) -> None:
    await refused(server, face, rpc(face, b"{}", content_type="application/json"), "media type")
