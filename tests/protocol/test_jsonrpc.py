"""JSON-RPC framing: literal bytes, and what is wrong with a request or a reply."""

from __future__ import annotations

import pytest

from dragoman import errors
from dragoman.errors import A2AError, PeerError
from dragoman.protocol.jsonrpc import JsonRpc
from dragoman.protocol.messages import Call, Headers, HttpRequest, HttpResponse, Rejected
from dragoman.protocol.operations import Version
from dragoman.protocol.replies import retry_after

V10 = JsonRpc("1.0")
V03 = JsonRpc("0.3")
JSON = Headers([(b"content-type", b"application/json")])


def post(body: bytes) -> HttpRequest:
    return HttpRequest("POST", "/", "", JSON, body)


def rejected(codec: JsonRpc, body: bytes) -> Rejected:
    with pytest.raises(Rejected) as caught:
        codec.read_call(post(body))
    return caught.value


def test_a_request_is_sliced_without_touching_its_message() -> None:
    body = b'{"jsonrpc":"2.0","id":"a-\xc3\xbc","method":"SendMessage","params":{"message" : {"x":1.0}}}'
    assert V10.read_call(post(body)) == Call("SendMessage", b'{"message" : {"x":1.0}}', b'"a-\xc3\xbc"')


@pytest.mark.parametrize(
    ("params", "expected"), [("", b"{}"), (',"params":null', b"{}"), (',"params":{ }', b"{ }")], ids=str
)
def test_absent_and_null_params_are_an_empty_object(params: str, expected: bytes) -> None:
    call = V10.read_call(post(b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"%b}' % params.encode()))
    assert call.body == expected


@pytest.mark.parametrize("id", [b"1", b"-7", b"0", b'"x"', b'""', b"null", b"123456789012345678901234567890"])
def test_ids_are_echoed_as_they_came(id: bytes) -> None:
    call = V10.read_call(post(b'{"jsonrpc":"2.0","id":%b,"method":"ListTasks"}' % id))
    assert call.id == id
    assert V10.write_result(call, b"{}").body == b'{"jsonrpc":"2.0","id":%b,"result":{}}' % id


@pytest.mark.parametrize("id", [b"1.5", b"1.0", b"1e3", b"true", b"false", b"{}", b"[1]"])
def test_other_ids_make_the_request_invalid(id: bytes) -> None:
    refused = rejected(V10, b'{"jsonrpc":"2.0","id":%b,"method":"ListTasks"}' % id)
    assert type(refused.error) is errors.InvalidRequestError
    assert refused.id == b"null"


def test_a_notification_is_read_and_answered_with_204() -> None:
    call = V10.read_call(post(b'{"jsonrpc":"2.0","method":"CancelTask","params":{"id":"t"}}'))
    assert call.id == b""
    response = V10.write_result(call, b"{}")
    assert (response.status, response.body) == (204, b"")


@pytest.mark.parametrize(
    ("body", "cls", "id"),
    [
        (b"", errors.JSONParseError, b"null"),
        (b"{", errors.JSONParseError, b"null"),
        (b"[{", errors.JSONParseError, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"a":"\xff"}}', errors.JSONParseError, b"null"),
        (b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"a":"\\ud800"}}', errors.JSONParseError, b"null"),
        (b'{"id":1,"x":' + b"[" * 101 + b"]" * 101 + b"}", errors.JSONParseError, b"null"),
        (b"[" * 100_000, errors.JSONParseError, b"null"),
        (b"[]", errors.InvalidRequestError, b"null"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ListTasks"}]', errors.InvalidRequestError, b"null"),
        (b'"x"', errors.InvalidRequestError, b"null"),
        (b"{}", errors.InvalidRequestError, b"null"),
        (b'{"jsonrpc":"1.0","id":4,"method":"ListTasks"}', errors.InvalidRequestError, b"4"),
        (b'{"id":"a","method":"ListTasks"}', errors.InvalidRequestError, b'"a"'),
        (b'{"jsonrpc":"2.0","id":4,"method":5}', errors.InvalidRequestError, b"4"),
        (b'{"jsonrpc":"2.0","id":4.5,"method":5}', errors.InvalidRequestError, b"null"),
        (b'{"jsonrpc":"2.0","id":4}', errors.InvalidRequestError, b"4"),
        (b'{"jsonrpc":"2.0","id":4,"method":"Nope"}', errors.MethodNotFoundError, b"4"),
        (b'{"jsonrpc":"2.0","method":"Nope"}', errors.MethodNotFoundError, b"null"),
        (b'{"jsonrpc":"2.0","id":4,"method":"ListTasks","params":[]}', errors.InvalidParamsError, b"4"),
        (b'{"jsonrpc":"2.0","id":4,"method":"ListTasks","params":7}', errors.InvalidParamsError, b"4"),
    ],
)
def test_a_bad_request_is_refused_under_its_id(body: bytes, cls: type[A2AError], id: bytes) -> None:
    refused = rejected(V10, body)
    assert (type(refused.error), refused.id) == (cls, id)


@pytest.mark.parametrize(
    ("codec", "method", "cure"),
    [
        (V03, "SendMessage", "SendMessage is a 1.0 method: send A2A-Version: 1.0"),
        (V03, "ListTasks", "ListTasks is a 1.0 method: send A2A-Version: 1.0"),
        (V10, "message/send", "message/send is a 0.3 method: send A2A-Version: 0.3"),
        (V10, "tasks/send", "Method not found: tasks/send"),
    ],
)
def test_a_method_of_the_other_version_is_told_the_cure(codec: JsonRpc, method: str, cure: str) -> None:
    refused = rejected(codec, b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % method.encode())
    assert type(refused.error) is errors.MethodNotFoundError
    assert str(refused.error) == cure


@pytest.mark.parametrize(
    "kind", [b"application/json; charset=utf-8", b"Application/JSON", b"application/a2a+json", b""]
)
def test_json_types_are_taken(kind: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ListTasks"}'
    assert V10.read_call(HttpRequest("POST", "/", "", Headers([(b"content-type", kind)]), body)).op == "ListTasks"


@pytest.mark.parametrize("kind", [b"text/plain", b"application/x-www-form-urlencoded"])
def test_types_that_a_browser_sends_without_asking_are_refused(kind: bytes) -> None:
    with pytest.raises(Rejected) as caught:
        V10.read_call(HttpRequest("POST", "/", "", Headers([(b"content-type", kind)]), b"{}"))
    assert type(caught.value.error) is errors.ContentTypeNotSupportedError


def test_the_id_of_a_request_that_cannot_be_served_is_read() -> None:
    assert V10.read_id(post(b'{"jsonrpc":"2.0","id":"q","method":"whatever","params":3}')) == b'"q"'
    assert V10.read_id(post(b'{"jsonrpc":"2.0","method":"whatever"}')) == b"null"
    with pytest.raises(Rejected):
        V10.read_id(post(b"[]"))


def test_a_result_is_put_together_around_the_message() -> None:
    response = V10.write_result(Call("GetTask", b"{}", b"7"), b'{"id":"t"}')
    assert response.status == 200
    assert response.body == b'{"jsonrpc":"2.0","id":7,"result":{"id":"t"}}'
    assert response.headers == [(b"content-type", b"application/json"), (b"content-length", b"44")]


def test_errors_are_those_of_each_version() -> None:
    error = errors.TaskNotFoundError(metadata={"task_id": "t-1"})
    assert V10.write_error(error, b"7").body == (
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Task not found","data":['
        b'{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND",'
        b'"domain":"a2a-protocol.org","metadata":{"taskId":"t-1"}}]}}'
    )
    assert V03.write_error(error, b"7").body == (
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Task not found","data":{"taskId":"t-1"}}}'
    )
    assert V03.write_error(errors.TaskNotFoundError(), b"7").body == (
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Task not found"}}'
    )


def test_a_validation_error_names_its_fields() -> None:
    error = errors.InvalidParamsError(violations=(("message.parts", "needs at least one part"),))
    assert V10.write_error(error, b'"a"').body == (
        b'{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"Invalid parameters","data":['
        b'{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":'
        b'[{"field":"message.parts","description":"needs at least one part"}]}]}}'
    )


def test_a_parse_error_has_no_details_and_id_null() -> None:
    assert V10.write_error(errors.JSONParseError()).body == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Invalid JSON payload"}}'
    )


def test_03_has_its_own_standard_texts_and_names_what_it_has_no_code_for() -> None:
    assert b'"Push Notification is not supported"' in V03.write_error(errors.PushNotificationNotSupportedError()).body
    assert V03.write_error(errors.VersionNotSupportedError("Not 9.9")).body == (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"VersionNotSupportedError: Not 9.9"}}'
    )


def test_an_event_is_a_whole_response_on_one_line() -> None:
    call = Call("SendStreamingMessage", b"{}", b'"s"')
    assert V10.write_event(call, b'{"task":\r\n{}}') == (b'data: {"jsonrpc":"2.0","id":"s","result":{"task":  {}}}\n\n')
    assert dict(V10.stream_head(call).headers)[b"content-type"] == b"text/event-stream"


# Client half


def test_a_client_posts_to_the_url_itself() -> None:
    request = V10.write_call("SendMessage", b'{"message":{}}', id=5)
    assert (request.method, request.path, request.query) == ("POST", "", "")
    assert request.body == b'{"jsonrpc":"2.0","id":5,"method":"SendMessage","params":{"message":{}}}'
    assert request.headers.get(b"content-type") == b"application/json"
    assert V10.write_call("SendStreamingMessage", b"{}").headers.get(b"accept").startswith(b"text/event-stream")


def test_the_03_card_method_has_no_params() -> None:
    request = V03.write_call("GetExtendedAgentCard", b"{}")
    assert request.body == b'{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}'


def reply(body: bytes, status: int = 200, kind: bytes = b"application/json") -> HttpResponse:
    return HttpResponse(status, [(b"content-type", kind)], body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}',
        b'{"id":"1","result":{"a":1},"error":null,"more":[]}',
    ],
)
def test_a_result_is_sliced_out(body: bytes) -> None:
    assert V10.read_result("GetTask", reply(body)) == b'{"a":1}'
    assert V10.read_event("SubscribeToTask", body) == b'{"a":1}'


@pytest.mark.parametrize("body", [b'{"jsonrpc":"2.0","id":1}', b'{"id":1,"result":null}', b'{"id":1,"result":{}}', b""])
def test_any_confirmation_of_a_delete_will_do(body: bytes) -> None:
    assert V10.read_result("DeleteTaskPushNotificationConfig", reply(body)) in (b"{}", b"null")


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":2,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32001,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"error":"x',
        b"<html>login</html>",
        b"",
        b"[]",
    ],
)
def test_a_reply_that_answers_nothing_is_the_peers_fault(body: bytes) -> None:
    with pytest.raises(PeerError):
        V10.read_result("GetTask", reply(body))


def test_a_page_is_named_with_status_type_and_excerpt() -> None:
    with pytest.raises(PeerError, match="HTTP 413 with text/html where a JSON-RPC response belongs") as caught:
        V10.read_result("SendMessage", reply(b"<h1>Too large</h1>", 413, b"text/html; charset=utf-8"))
    assert (caught.value.status, caught.value.excerpt) == (413, "<h1>Too large</h1>")


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_an_error_is_read_under_any_http_status(status: int) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"gone"}}'
    with pytest.raises(errors.TaskNotFoundError, match="gone"):
        V10.read_result("GetTask", reply(body, status))


@pytest.mark.parametrize(
    ("version", "error", "cls"),
    [
        ("1.0", b'{"code":-32603,"message":"m"}', errors.InternalError),
        ("1.0", b'{"code":-32050,"message":"m"}', errors.OpaqueError),
        ("1.0", b'{"code":-31401,"message":"m"}', errors.UnauthenticatedError),
        ("1.0", b'{"code":-31403,"message":"m"}', errors.PermissionDeniedError),
        ("1.0", b'{"code":"-32004","message":null}', errors.UnsupportedOperationError),
        ("1.0", b'{"code":-32603,"message":"m","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",'
                b'"reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org"}]}', errors.TaskNotCancelableError),
        ("1.0", b'{"code":-32603,"message":"m","data":{"@type":"type.googleapis.com/google.rpc.ErrorInfo",'
                b'"reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org"}}', errors.TaskNotCancelableError),
        ("1.0", b'{"code":-32002,"message":"m","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo",'
                b'"reason":"TASK_NOT_FOUND","domain":"elsewhere.org"}]}', errors.TaskNotCancelableError),
        ("0.3", b'{"code":-32602,"message":"t is in terminal state"}', errors.UnsupportedOperationError),
        ("0.3", b'{"code":-32603,"message":"Push notification config not found"}', errors.TaskNotFoundError),
        ("0.3", b'{"code":-32600,"message":"ExtensionSupportRequiredError: need x"}',
         errors.ExtensionSupportRequiredError),
        ("0.3", b'{"code":-32602,"message":"TaskNotFoundError: no"}', errors.InvalidParamsError),
    ],
)  # fmt: skip
def test_which_error_it_is(version: Version, error: bytes, cls: type[A2AError]) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":%b}' % error
    with pytest.raises(A2AError) as caught:
        JsonRpc(version).read_result("SendMessage", reply(body))
    assert type(caught.value) is cls
    with pytest.raises(cls):
        JsonRpc(version).read_event("SendMessage", body)


@pytest.mark.parametrize(
    ("status", "cls"),
    [
        (401, errors.UnauthenticatedError),
        (403, errors.PermissionDeniedError),
        (429, errors.RateLimitedError),
        (503, errors.UnavailableError),
        (504, errors.DeadlineExceededError),
    ],
)
@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"detail":"x"}', b'{"id":null,"error":{"code":-32603,"message":"x"}}']
)
def test_some_statuses_speak_for_themselves(status: int, cls: type[A2AError], body: bytes) -> None:
    response = reply(body, status)
    response.headers += [(b"www-authenticate", b'Bearer realm="x"'), (b"retry-after", b"9")]
    with pytest.raises(cls) as caught:
        V10.read_result("GetTask", response)
    assert caught.value.retry_after == 9
    if isinstance(caught.value, errors.UnauthenticatedError):
        assert caught.value.challenge == 'Bearer realm="x"'


def test_an_event_that_is_no_response_is_the_peers_fault() -> None:
    for data in (b"hello", b"{}", b'{"task":{}}', b'{"id":9,"result":{}}'):
        with pytest.raises(PeerError):
            V10.read_event("SubscribeToTask", data)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("9", 9.0), ("9" * 400, 86_400.0), ("Mon, 01 Jan 2026 00:00:00 +99999999999999", None), ("soon", None)],
)
def test_an_absurd_retry_after_is_bounded(text: str, seconds: float | None) -> None:
    date = (b"date", b"Mon, 01 Jan 2026 00:00:00 GMT")
    assert retry_after(Headers([(b"retry-after", text.encode()), date])) == seconds
