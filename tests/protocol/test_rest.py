"""HTTP+JSON framing: routes, query, bodies, media types, and every error body that peers send."""

from __future__ import annotations

import msgspec
import pytest

from dragoman import errors
from dragoman.errors import A2AError, PeerError
from dragoman.protocol.messages import Call, Headers, HttpRequest, HttpResponse, Rejected
from dragoman.protocol.rest import Rest

V10 = Rest("1.0")
V03 = Rest("0.3")
JSON = [(b"content-type", b"application/json")]


def read(codec: Rest, line: str, body: bytes = b"", *headers: tuple[bytes, bytes]) -> Call:
    method, _, target = line.partition(" ")
    path, _, query = target.partition("?")
    return codec.read_call(HttpRequest(method, path, query, Headers([*headers]), body))


def refused(codec: Rest, line: str, body: bytes = b"", *headers: tuple[bytes, bytes]) -> A2AError:
    with pytest.raises(Rejected) as caught:
        read(codec, line, body, *headers)
    return caught.value.error


@pytest.mark.parametrize(
    ("line", "op", "body"),
    [
        ("POST /message:send", "SendMessage", {}),
        ("POST /message:send/", "SendMessage", {}),
        ("GET /tasks/", "ListTasks", {}),
        ("GET /tasks/a%2Fb", "GetTask", {"id": "a/b"}),
        ("GET /tasks/a:b", "GetTask", {"id": "a:b"}),
        ("GET /tasks/a:cancel:x", "GetTask", {"id": "a:cancel:x"}),
        ("GET /tasks/a%3Acancel", "GetTask", {"id": "a:cancel"}),
        ("POST /tasks/a:b:cancel", "CancelTask", {"id": "a:b"}),
        ("GET /tasks/%C3%BC", "GetTask", {"id": "ü"}),
        ("GET /tasks/tasks", "GetTask", {"id": "tasks"}),
        ("POST /tasks/a:subscribe?tenant=x", "SubscribeToTask", {"id": "a", "tenant": "x"}),
        ("GET /tasks/a/pushNotificationConfigs", "ListTaskPushNotificationConfigs", {"taskId": "a"}),
    ],
)
def test_a_path_leads_to_its_operation(line: str, op: str, body: dict[str, str]) -> None:
    call = read(V10, line)
    assert (call.op, msgspec.json.decode(call.body), call.tenant) == (op, body, "")


@pytest.mark.parametrize(
    ("line", "op", "tenant"),
    [
        ("POST /acme/message:send", "SendMessage", "acme"),
        ("POST /tasks/message:send", "SendMessage", "tasks"),
        ("POST /v1/message:send", "SendMessage", "v1"),
        ("GET /a%2Fb/tasks", "ListTasks", "a/b"),
        ("GET /x/extendedAgentCard", "GetExtendedAgentCard", "x"),
    ],
)
def test_a_first_segment_that_is_no_route_is_the_tenant(line: str, op: str, tenant: str) -> None:
    call = read(V10, line)
    assert (call.op, call.tenant) == (op, tenant)
    assert msgspec.json.decode(call.body) == {"tenant": tenant}


@pytest.mark.parametrize(
    ("codec", "line", "text"),
    [
        (V10, "GET /nothing", "No route GET /nothing"),
        (V10, "GET /tasks//pushNotificationConfigs", "No route"),
        (V10, "GET /", "No route"),
        (V10, "GET //tasks/a", "No route"),
        (V10, "GET /v1/card", "GET /v1/card is a 0.3 route: send A2A-Version: 0.3"),
        (V03, "POST /message:send", "POST /message:send is a 1.0 route: send A2A-Version: 1.0"),
        (V03, "GET /extendedAgentCard", "send A2A-Version: 1.0"),
        (V03, "GET /v1/tasks", "No route"),
        (V03, "POST /acme/v1/message:send", "No route"),
    ],
)
def test_other_paths_are_no_route_and_may_be_told_the_cure(codec: Rest, line: str, text: str) -> None:
    error = refused(codec, line)
    assert type(error) is errors.MethodNotFoundError
    assert text in str(error)
    response = codec.write_error(error)
    assert response.status == 404
    assert b"ErrorInfo" not in response.body


def test_a_wrong_verb_is_told_the_right_ones() -> None:
    response = V10.write_error(refused(V10, "DELETE /tasks/a:subscribe"))
    assert response.status == 405
    assert (b"allow", b"GET, POST") in response.headers
    assert msgspec.json.decode(response.body)["error"]["code"] == 405


def test_a_path_that_does_not_decode_is_refused() -> None:
    assert refused(V10, "GET /tasks/%FF").violations == (("id", "not UTF-8"),)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("pageSize=10&includeArtifacts=true", {"pageSize": 10, "includeArtifacts": True}),
        ("page_size=10&include_artifacts=False", {"pageSize": 10, "includeArtifacts": False}),
        ("lastUpdatedAfter=2026-01-01T00:00:00Z", {"statusTimestampAfter": "2026-01-01T00:00:00Z"}),
        ("last_updated_after=a%2Bb+c", {"statusTimestampAfter": "a+b c"}),
        ("status=TASK_STATE_WORKING&unknown=1&A2A-Version=1.0", {"status": "TASK_STATE_WORKING"}),
        ("pageSize=5&pageSize=5", {"pageSize": 5}),
        ("contextId=", {"contextId": ""}),
        ("contextId=%C3%BC%22", {"contextId": 'ü"'}),
        ("historyLength=-1", {"historyLength": -1}),
    ],
)
def test_query_parameters_become_members(query: str, message: dict[str, object]) -> None:
    assert msgspec.json.decode(read(V10, f"GET /tasks?{query}").body) == message


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pageSize=ten", "pageSize"),
        ("pageSize=", "pageSize"),
        ("pageSize=1.5", "pageSize"),
        ("pageSize=1e1", "pageSize"),
        ("page_size=" + "9" * 5000, "pageSize"),
        ("includeArtifacts=maybe", "includeArtifacts"),
        ("pageSize=5&page_size=6", "pageSize"),
    ],
)
def test_a_bad_query_parameter_is_named(query: str, field: str) -> None:
    error = refused(V10, f"GET /tasks?{query}")
    assert type(error) is errors.InvalidParamsError
    assert [name for name, _ in error.violations] == [field]


def test_a_query_that_is_no_utf8_or_endless_is_refused() -> None:
    assert type(refused(V10, "GET /tasks?contextId=%FF")) is errors.InvalidParamsError
    assert type(refused(V10, "GET /tasks?" + "a=1&" * 1000)) is errors.InvalidParamsError


def test_get_and_delete_take_nothing_from_a_body() -> None:
    assert read(V10, "GET /tasks/a", b'{"id":"b"}').body == b'{"id":"a"}'
    assert read(V10, "POST /tasks/a:subscribe", b"not json", (b"content-type", b"text/html")).body == b'{"id":"a"}'


def test_a_body_that_needs_nothing_is_not_touched() -> None:
    body = b'{ "message" : {"parts":[ ]} }'
    assert read(V10, "POST /message:send", body, *JSON).body == body


@pytest.mark.parametrize("body", [b"", b" ", b"null", b" null\n", b"{}"])
def test_an_empty_body_is_an_empty_message(body: bytes) -> None:
    assert read(V10, "POST /tasks/a:cancel", body, *JSON).body == b'{"id":"a"}'
    assert msgspec.json.decode(read(V10, "POST /message:send", body, *JSON).body) == {}


@pytest.mark.parametrize(
    ("codec", "line", "body", "message"),
    [
        (V10, "POST /tasks/a:cancel", {"metadata": {"k": 1}}, {"metadata": {"k": 1}, "id": "a"}),
        (V10, "POST /tasks/a:cancel", {"id": "a"}, {"id": "a"}),
        (V10, "POST /tasks/a:cancel", {"id": None}, {"id": "a"}),
        (V10, "POST /tasks/a/pushNotificationConfigs", {"id": "c", "task_id": "a"}, {"id": "c", "taskId": "a"}),
        (V10, "POST /t/message:send", {"tenant": "t", "message": {}}, {"tenant": "t", "message": {}}),
        (V10, "POST /message:send?tenant=t", {"message": {}}, {"message": {}, "tenant": "t"}),
        (V03, "POST /v1/tasks/a:cancel", {"name": "tasks/a"}, {"name": "tasks/a"}),
        (V03, "POST /v1/tasks/a:cancel", {"name": "a"}, {"name": "tasks/a"}),
        (V03, "POST /v1/tasks/a:cancel", {"id": "a"}, {"id": "a", "name": "tasks/a"}),
        (V03, "POST /v1/tasks/a/pushNotificationConfigs", {"url": "u", "id": "c"},
         {"url": "u", "id": "c", "parent": "tasks/a"}),
        (V03, "POST /v1/task/a/pushNotificationConfigs", {"parent": "tasks/a", "configId": "c"},
         {"parent": "tasks/a", "configId": "c"}),
    ],
)  # fmt: skip
def test_the_request_line_completes_a_body(codec: Rest, line: str, body: object, message: object) -> None:
    call = read(codec, line, msgspec.json.encode(body), *JSON)
    assert msgspec.json.decode(call.body) == message


@pytest.mark.parametrize(
    ("codec", "line", "body", "field"),
    [
        (V10, "POST /tasks/a:cancel", {"id": "b"}, "id"),
        (V10, "POST /tasks/a:cancel", {"id": 5}, "id"),
        (V10, "POST /tasks/a/pushNotificationConfigs", {"task_id": "b"}, "task_id"),
        (V10, "POST /t/message:send", {"tenant": "u"}, "tenant"),
        (V10, "POST /t/message:send?tenant=u", {}, "tenant"),
        (V10, "POST /message:send?tenant=u", {"tenant": "t"}, "tenant"),
        (V03, "POST /v1/tasks/a:cancel", {"name": "tasks/b"}, "name"),
        (V03, "POST /v1/tasks/a:cancel", {"id": "b"}, "id"),
        (V03, "POST /v1/tasks/a/pushNotificationConfigs", {"taskId": "b"}, "taskId"),
    ],
)
def test_a_body_that_contradicts_the_request_line_is_refused(codec: Rest, line: str, body: object, field: str) -> None:
    error = refused(codec, line, msgspec.json.encode(body), *JSON)
    assert type(error) is errors.InvalidParamsError
    assert [name for name, _ in error.violations] == [field]


@pytest.mark.parametrize(
    ("body", "cls"),
    [
        (b"[]", errors.InvalidParamsError),
        (b'"x"', errors.InvalidParamsError),
        (b"{", errors.JSONParseError),
        (b'{"metadata":"\xff"}', errors.JSONParseError),
        (b'{"metadata":' + b"[" * 101 + b"]" * 101 + b"}", errors.JSONParseError),
    ],
)
def test_a_body_that_is_no_object_is_refused(body: bytes, cls: type[A2AError]) -> None:
    assert type(refused(V10, "POST /tasks/a:cancel", body, *JSON)) is cls


def test_an_id_with_a_slash_cannot_be_told_in_03() -> None:
    assert refused(V03, "GET /v1/tasks/a%2Fb").violations == (("id", "holds a slash"),)


@pytest.mark.parametrize(
    "kind",
    [b"application/json; charset=utf-8", b"application/a2a+json", b"application/vnd.x+json", b"APPLICATION/JSON"],
)
def test_json_under_any_name_is_taken(kind: bytes) -> None:
    assert read(V10, "POST /message:send", b"{}", (b"content-type", kind)).op == "SendMessage"


@pytest.mark.parametrize("kind", [b"text/plain", b"application/xml", b"application/jsonx", b"multipart/form-data"])
def test_other_types_are_refused_with_the_status_of_each_version(kind: bytes) -> None:
    error = refused(V10, "POST /message:send", b"{}", (b"content-type", kind))
    assert type(error) is errors.ContentTypeNotSupportedError
    assert (V10.write_error(error).status, V03.write_error(error).status) == (400, 415)


@pytest.mark.parametrize(
    ("line", "accept", "kind", "media"),
    [
        ("GET /tasks", b"", b"", b"application/a2a+json"),
        ("GET /tasks", b"*/*", b"", b"application/a2a+json"),
        ("GET /tasks", b"application/json", b"", b"application/json"),
        ("GET /tasks", b"application/a2a+json, application/json", b"", b"application/a2a+json"),
        ("POST /message:send", b"*/*", b"application/json", b"application/json"),
        ("POST /message:send", b"*/*", b"application/a2a+json", b"application/a2a+json"),
        ("POST /message:send", b"application/a2a+json", b"application/json", b"application/a2a+json"),
        ("POST /message:send", b"application/json, application/a2a+json", b"application/json", b"application/json"),
    ],
)
def test_a_reply_comes_in_the_type_that_was_asked_for(line: str, accept: bytes, kind: bytes, media: bytes) -> None:
    call = read(V10, line, b"{}", (b"accept", accept), (b"content-type", kind))
    assert V10.write_result(call, b"{}").headers[0] == (b"content-type", media)


def test_03_replies_are_plain_json() -> None:
    call = read(V03, "GET /v1/tasks/a", b"", (b"accept", b"application/a2a+json"))
    response = V03.write_result(call, b"{}")
    assert response.headers == [(b"content-type", b"application/json"), (b"content-length", b"2")]


def test_an_error_is_a_status_in_an_envelope() -> None:
    response = V10.write_error(errors.TaskNotCancelableError(metadata={"taskId": "t-1"}))
    assert response.status == 400
    assert response.headers[0] == (b"content-type", b"application/json")
    assert response.body == (
        b'{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"Task cannot be canceled",'
        b'"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_CANCELABLE",'
        b'"domain":"a2a-protocol.org","metadata":{"taskId":"t-1"}}]}}'
    )


def test_a_03_error_has_all_the_keys() -> None:
    response = V03.write_error(errors.TaskNotFoundError())
    assert response.status == 404
    assert response.body == (
        b'{"code":-32001,"message":"Task not found","error":"io.a2a.spec.TaskNotFoundError","type":"TaskNotFoundError"}'
    )


def test_events_are_bare_messages_and_an_error_is_the_last() -> None:
    call = Call("SubscribeToTask", b"{}")
    assert V10.write_event(call, b'{\n"task":{}}') == b'data: { "task":{}}\n\n'
    assert V10.write_stream_error(call, errors.InternalError()) == (
        b'data: {"error":{"code":500,"status":"INTERNAL","message":"Internal error"}}\n\n'
    )
    assert V03.write_stream_error(call, errors.InternalError()).startswith(b'event: error\ndata: {"code":-32603,')


# Client half


@pytest.mark.parametrize(
    ("codec", "op", "message", "method", "target", "body"),
    [
        (V10, "GetTask", {"id": "a/b:c d", "historyLength": 0}, "GET", "/tasks/a%2Fb%3Ac%20d?historyLength=0", None),
        (V10, "GetTask", {"id": "a", "tenant": "t"}, "GET", "/tasks/a?tenant=t", None),
        (V10, "ListTasks", {"includeArtifacts": False, "pageToken": "a&b", "status": None}, "GET",
         "/tasks?pageToken=a%26b&includeArtifacts=false", None),
        (V10, "CancelTask", {"id": "a", "metadata": {}}, "POST", "/tasks/a:cancel", {"metadata": {}}),
        (V10, "CreateTaskPushNotificationConfig", {"taskId": "a", "url": "u"}, "POST",
         "/tasks/a/pushNotificationConfigs", {"url": "u"}),
        (V10, "SubscribeToTask", {"id": "a"}, "GET", "/tasks/a:subscribe", None),
        (V03, "GetTask", {"name": "tasks/a", "historyLength": 3}, "GET", "/v1/tasks/a?historyLength=3", None),
        (V03, "GetTask", {"name": "a"}, "GET", "/v1/tasks/a", None),
        (V03, "CancelTask", {"name": "tasks/a"}, "POST", "/v1/tasks/a:cancel", {"name": "tasks/a"}),
        (V03, "GetTaskPushNotificationConfig", {"name": "tasks/{configId}/pushNotificationConfigs/c"}, "GET",
         "/v1/tasks/%7BconfigId%7D/pushNotificationConfigs/c", None),
        (V03, "CreateTaskPushNotificationConfig", {"parent": "tasks/a", "config": {}}, "POST",
         "/v1/tasks/a/pushNotificationConfigs", {"parent": "tasks/a", "config": {}}),
    ],
)  # fmt: skip
def test_a_message_is_laid_out_over_the_request(
    codec: Rest, op: str, message: object, method: str, target: str, body: object
) -> None:
    request = codec.write_call(op, msgspec.json.encode(message))
    assert (request.method, request.path + ("?" + request.query if request.query else "")) == (method, target)
    assert (msgspec.json.decode(request.body) if request.body else None) == body


def test_a_tenant_prefixes_the_route_and_stays_in_a_body() -> None:
    request = V10.write_call("SendMessage", b'{"message":{}}', tenant="a b")
    assert request.path == "/a%20b/message:send"
    assert msgspec.json.decode(request.body) == {"message": {}, "tenant": "a b"}
    request = V10.write_call("ListTasks", b'{"tenant":"a","pageSize":3}', tenant="a")
    assert (request.path, request.query) == ("/a/tasks", "pageSize=3")


@pytest.mark.parametrize("id", ["", ".", "..", None, 5])
def test_an_id_that_a_url_cannot_hold_is_not_sent(id: object) -> None:
    with pytest.raises(errors.InvalidParamsError):
        V10.write_call("GetTask", msgspec.json.encode({"id": id}))


@pytest.mark.parametrize("name", ["tasks/..", "tasks/a/b", "", "tasks/a/pushNotificationConfigs/b"])
def test_a_name_that_a_route_cannot_hold_is_not_sent(name: str) -> None:
    with pytest.raises(errors.InvalidParamsError):
        V03.write_call("GetTask", msgspec.json.encode({"name": name}))


def reply(status: int, body: bytes = b"", kind: bytes = b"application/json") -> HttpResponse:
    return HttpResponse(status, [(b"content-type", kind)] if kind else [], body)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
@pytest.mark.parametrize("kind", [b"application/json", b"application/a2a+json", b"", b"text/plain"])
def test_any_success_is_a_result(status: int, kind: bytes) -> None:
    assert V03.read_result("SendMessage", reply(status, b' {"task":{}}', kind)) == b' {"task":{}}'


@pytest.mark.parametrize("body", [b"", b"{}", b"null"])
def test_any_confirmation_of_a_delete_will_do(body: bytes) -> None:
    assert V10.read_result("DeleteTaskPushNotificationConfig", reply(204, body)) in (b"{}", b"null")


def test_an_empty_reply_to_anything_else_is_the_peers_fault() -> None:
    with pytest.raises(PeerError):
        V10.read_result("GetTask", reply(200))


@pytest.mark.parametrize("status", [200, 302, 404, 413, 500, 502])
def test_a_page_is_the_peers_fault(status: int) -> None:
    with pytest.raises(PeerError, match=f"HTTP {status} with text/html where a JSON message belongs") as caught:
        V10.read_result("GetTask", reply(status, b"<html>Sign in</html>", b"text/html"))
    assert (caught.value.excerpt, caught.value.status) == ("<html>Sign in</html>", status)


_INFO = b'{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"%b","domain":"a2a-protocol.org"}'


@pytest.mark.parametrize(
    ("codec", "status", "body", "cls"),
    [
        # 1.0.1 and 1.0.0: the reason decides
        (V10, 400, b'{"error":{"code":400,"status":"X","details":[%b]}}' % (_INFO % b"TASK_NOT_CANCELABLE"),
         errors.TaskNotCancelableError),
        (V10, 409, b'{"error":{"code":409,"message":"m","details":[%b]}}' % (_INFO % b"VERSION_NOT_SUPPORTED"),
         errors.VersionNotSupportedError),
        (V10, 400, b'{"code":400,"message":"m","details":[%b]}' % (_INFO % b"INVALID_REQUEST"),
         errors.InvalidRequestError),
        (V10, 409, b'{"error":{"code":409,"message":"m","details":[%b]}}' % (_INFO % b"TASK_GENERATION_MISMATCH"),
         errors.OpaqueError),
        # statuses that are all there is
        (V10, 404, b'{"error":{"code":404,"status":"NOT_FOUND","message":"m"}}', errors.MethodNotFoundError),
        (V10, 405, b"{}", errors.MethodNotFoundError),
        (V10, 501, b'{"message":"m"}', errors.MethodNotFoundError),
        (V10, 409, b'{"error":{"code":409,"message":"m"}}', errors.TaskNotCancelableError),
        (V10, 415, b'{"message":"m"}', errors.ContentTypeNotSupportedError),
        (V10, 400, b'{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"m"}}', errors.InvalidParamsError),
        (V10, 400, b'{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"m"}}',
         errors.UnsupportedOperationError),
        (V10, 400, b'{"message":"m"}', errors.InvalidRequestError),
        (V10, 418, b'{"message":"m"}', errors.InvalidRequestError),
        (V10, 500, b'{"message":"m"}', errors.InternalError),
        (V10, 401, b'{"message":"m"}', errors.UnauthenticatedError),
        (V10, 503, b"<html>", errors.UnavailableError),
        # JSON-RPC where REST belongs, and problem documents
        (V10, 400, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"m"}}',
         errors.PushNotificationNotSupportedError),
        (V10, 400, b'{"type":"https://a2a-protocol.org/errors/version-not-supported","title":"t","status":400,'
                   b'"detail":"m","supportedVersions":["0.3","1.0"]}', errors.VersionNotSupportedError),
        (V10, 404, b'{"type":"https://a2a-protocol.org/errors/task-not-found","title":"m"}', errors.TaskNotFoundError),
        # 0.3: Python
        (V03, 404, b'{"message":"m"}', errors.TaskNotFoundError),
        (V03, 409, b'{"message":"m"}', errors.TaskNotCancelableError),
        (V03, 415, b'{"message":"m"}', errors.ContentTypeNotSupportedError),
        (V03, 422, b'{"message":"m"}', errors.InvalidParamsError),
        (V03, 422, b'{"message":"m is in terminal state"}', errors.UnsupportedOperationError),
        (V03, 501, b'{"message":"m"}', errors.UnsupportedOperationError),
        (V03, 500, b'{"message":"m unknown exception"}', errors.InternalError),
        (V03, 404, b'{"detail":"Not Found"}', errors.MethodNotFoundError),
        # 0.3: Java
        (V03, 501, b'{"error":"io.a2a.spec.PushNotificationNotSupportedError","message":"m"}',
         errors.PushNotificationNotSupportedError),
        (V03, 404, b'{"error":"io.a2a.spec.AuthenticatedExtendedCardNotConfiguredError","message":"m"}',
         errors.ExtendedAgentCardNotConfiguredError),
        (V03, 500, b'{"error":"org.a2aproject.sdk.compat03.spec.TaskNotFoundError_v0_3","message":"m"}',
         errors.TaskNotFoundError),
        # 0.3: JS
        (V03, 400, b'{"code":-32004,"message":"m","data":{"a":1}}', errors.UnsupportedOperationError),
        # 0.3: .NET
        (V03, 404, b'"m"', errors.TaskNotFoundError),
        (V03, 422, b'{"type":"about:blank","title":"t","status":422,"detail":"m"}', errors.InvalidParamsError),
    ],
)  # fmt: skip
def test_which_error_a_body_is(codec: Rest, status: int, body: bytes, cls: type[A2AError]) -> None:
    with pytest.raises(A2AError) as caught:
        codec.read_result("SendMessage", reply(status, body))
    assert type(caught.value) is cls
    assert caught.value.message[:1] == "m" or caught.value.message in (cls.row.title, "Not Found")


def test_what_a_body_holds_besides_is_kept() -> None:
    body = b'{"type":"x/version-not-supported","detail":"m","supportedVersions":["0.3","1.0"]}'
    with pytest.raises(errors.VersionNotSupportedError) as caught:
        V10.read_result("GetTask", reply(400, body, b"application/problem+json"))
    assert caught.value.metadata == {"supportedVersions": "0.3,1.0"}
    body = b'{"type":"x/invalid-params","detail":"m","errors":[{"field":"pageSize","message":"too big"}]}'
    with pytest.raises(errors.InvalidParamsError) as params:
        V10.read_result("GetTask", reply(400, body, b"application/problem+json"))
    assert params.value.violations == (("pageSize", "too big"),)
    with pytest.raises(errors.UnsupportedOperationError) as data:
        V03.read_result("GetTask", reply(400, b'{"code":-32004,"message":"m","data":{"a":1}}'))
    assert data.value.data == {"a": 1}


def test_the_03_card_route_may_be_missing() -> None:
    with pytest.raises(errors.ExtendedAgentCardNotConfiguredError):
        V03.read_result("GetExtendedAgentCard", reply(404, b'{"detail":"Not Found"}'))


@pytest.mark.parametrize(
    "data",
    [
        b'{"task":{"id":"a"}}',
        b'{"statusUpdate":{"metadata":{"error":{"code":1}}}}',
        b'{"message":{"parts":[{"data":{"detail":"x"}}]}}',
        b'{"kind":"status-update","error_free":true,"x":"\\"error\\""}',
        b"not json",
    ],
)
def test_an_event_that_is_no_error_is_passed_on(data: bytes) -> None:
    assert V10.read_event("SubscribeToTask", data) == data


@pytest.mark.parametrize(
    ("codec", "data", "cls"),
    [
        (V10, b'{"error":{"code":404,"status":"NOT_FOUND","message":"m","details":[%b]}}' % (_INFO % b"TASK_NOT_FOUND"),
         errors.TaskNotFoundError),
        (V10, b'{"code":500,"status":"INTERNAL","message":"m","details":[]}', errors.InternalError),
        (V10, b'{ "error" : {"code":-32004,"message":"m"}}', errors.UnsupportedOperationError),
        (V03, b'{"code":-32603,"message":"m"}', errors.InternalError),
    ],
)  # fmt: skip
def test_an_event_that_is_an_error_is_raised(codec: Rest, data: bytes, cls: type[A2AError]) -> None:
    with pytest.raises(cls, match="m"):
        codec.read_event("SubscribeToTask", data)


def test_an_error_event_that_says_nothing_is_the_peers_fault() -> None:
    with pytest.raises(PeerError):
        V10.read_event("SubscribeToTask", b'{"error":7}')
