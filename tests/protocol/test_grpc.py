"""gRPC framing: frames, deadlines, trailers, and which error a status is."""

from __future__ import annotations

import base64
import gzip
import zlib
from importlib import import_module
from typing import Any

import pytest

from dragoman import errors
from dragoman.errors import A2AError, PeerError
from dragoman.protocol.grpc import Grpc, frame, read_frames
from dragoman.protocol.messages import Call, Headers, HttpRequest, HttpResponse, Rejected

# Modules without type stubs.
error_details_pb2 = import_module("google.rpc.error_details_pb2")
status_pb2 = import_module("google.rpc.status_pb2")

V10 = Grpc("1.0", max_message=1000)
V03 = Grpc("0.3")
SEND = "/lf.a2a.v1.A2AService/SendMessage"


def call(body: bytes, *headers: tuple[bytes, bytes], path: str = SEND, method: str = "POST") -> HttpRequest:
    return HttpRequest(method, path, "", Headers([(b"content-type", b"application/grpc"), *headers]), body)


def refused(codec: Grpc, request: HttpRequest) -> A2AError:
    with pytest.raises(Rejected) as caught:
        codec.read_call(request)
    return caught.value.error


def packed(data: bytes, flag: int = 1) -> bytes:
    return bytes((flag,)) + len(data).to_bytes(4, "big") + data


def test_one_frame_is_the_message() -> None:
    assert V10.read_call(call(b"\0\0\0\0\3abc")) == Call("SendMessage", b"abc")
    assert V10.read_call(call(b"\0\0\0\0\0")).body == b""


@pytest.mark.parametrize("kind", [b"application/grpc+proto", b"application/grpc;charset=utf-8", b"Application/GRPC"])
def test_the_content_type_may_name_proto(kind: bytes) -> None:
    assert V10.read_call(HttpRequest("POST", SEND, "", Headers([(b"content-type", kind)]), frame(b"a"))).body == b"a"


@pytest.mark.parametrize("kind", [b"application/grpc+json", b"application/grpc-web", b"application/json", b""])
def test_other_content_types_are_refused(kind: bytes) -> None:
    request = HttpRequest("POST", SEND, "", Headers([(b"content-type", kind)]), frame(b"a"))
    assert type(refused(V10, request)) is errors.ContentTypeNotSupportedError


@pytest.mark.parametrize(("encoding", "pack"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
def test_compressed_messages_are_read(encoding: bytes, pack: object) -> None:
    assert callable(pack)
    request = call(packed(pack(b"hello")), (b"grpc-encoding", encoding))
    assert V10.read_call(request).body == b"hello"


def test_an_uncompressed_message_may_come_under_any_encoding() -> None:
    assert V10.read_call(call(frame(b"hello"), (b"grpc-encoding", b"snappy"))).body == b"hello"


def test_an_unknown_compression_is_told_the_known_ones() -> None:
    error = refused(V10, call(packed(b"hello"), (b"grpc-encoding", b"snappy")))
    headers = dict(V10.write_error(error).headers)
    assert headers[b"grpc-status"] == b"12"
    assert headers[b"grpc-accept-encoding"] == b"identity,gzip,deflate"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"", b""),
        (b"\0\0\0", b""),
        (b"\0\0\0\0\4abc", b""),
        (b"\0\0\0\0\2abc", b""),
        (frame(b"a") + frame(b"b"), b""),
        (packed(b"a", 2), b"gzip"),
        (packed(b"a"), b""),
        (packed(b"a"), b"identity"),
        (packed(b"no gzip"), b"gzip"),
        (packed(gzip.compress(b"hello", mtime=0)[:-3]), b"gzip"),
    ],
)
def test_anything_but_one_whole_message_is_refused(body: bytes, encoding: bytes) -> None:
    error = refused(V10, call(body, (b"grpc-encoding", encoding)))
    assert type(error) is errors.InvalidRequestError
    assert dict(V10.write_error(error).headers)[b"grpc-status"] == b"3"


@pytest.mark.parametrize(
    ("body", "encoding"), [(frame(b"x" * 1001), b""), (packed(gzip.compress(b"x" * 10_000_000, mtime=0)), b"gzip")]
)
def test_a_message_beyond_the_limit_exhausts_resources(body: bytes, encoding: bytes) -> None:
    if encoding:
        codec = Grpc("1.0", max_message=100_000)
        assert len(body) < codec.max_message
    else:
        codec = V10
    response = codec.write_error(refused(codec, call(body, (b"grpc-encoding", encoding))))
    assert dict(response.headers)[b"grpc-status"] == b"8"


@pytest.mark.parametrize("path", ["/lf.a2a.v1.A2AService/Nope", "/x/SendMessage", "", "/"])
def test_an_unknown_method_is_unimplemented(path: str) -> None:
    response = V10.write_error(refused(V10, call(frame(b""), path=path)))
    assert dict(response.headers)[b"grpc-status"] == b"12"


def test_a_method_of_the_other_version_is_named() -> None:
    error = refused(V10, call(frame(b""), path="/a2a.v1.A2AService/TaskSubscription"))
    assert "is a 0.3 method" in str(error)


def test_a_call_is_a_post() -> None:
    assert type(refused(V10, call(frame(b""), method="GET"))).__mro__[1] is errors.MethodNotFoundError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (b"1H", 3600.0),
        (b"2M", 120.0),
        (b"3S", 3.0),
        (b"250m", 0.25),
        (b"5u", 5e-6),
        (b"99999999n", 0.099999999),
        (b"0S", 0.0),
        (b"", None),
        (b"5", None),
        (b"S", None),
        (b"-1S", None),
        (b"123456789S", None),
        (b"1.5S", None),
        (b"1s", None),
        (b"\xb2S", None),
    ],
)
def test_the_deadline_is_read(text: bytes, seconds: float | None) -> None:
    got = V10.read_timeout(Headers([(b"grpc-timeout", text)]))
    assert got == (None if seconds is None else pytest.approx(seconds))


def test_a_result_is_a_frame_with_trailers() -> None:
    assert V10.write_result(Call("GetTask", b""), b"abc") == HttpResponse(
        200, [(b"content-type", b"application/grpc")], b"\0\0\0\0\3abc", [(b"grpc-status", b"0")]
    )


def test_a_stream_is_frames_with_trailers() -> None:
    one = Call("SubscribeToTask", b"")
    assert V10.stream_head(one) == HttpResponse(200, [(b"content-type", b"application/grpc")])
    assert V10.write_event(one, b"") == b"\0\0\0\0\0"
    assert V10.write_stream_error(one, errors.InternalError()) == b""
    assert V10.trailers() == [(b"grpc-status", b"0")]
    assert V10.keep_alive == b""


def test_an_error_without_a_message_is_headers_alone() -> None:
    response = V10.write_error(errors.TaskNotFoundError("Über 100 %\n", metadata={"task_id": "t-1"}))
    assert (response.status, response.body, response.trailers) == (200, b"", [])
    headers = dict(response.headers)
    assert headers[b"content-type"] == b"application/grpc"
    assert headers[b"grpc-status"] == b"5"
    assert headers[b"grpc-message"] == b"%C3%9Cber 100 %25%0A"
    status = status_pb2.Status.FromString(base64.b64decode(headers[b"grpc-status-details-bin"] + b"=="))
    assert (status.code, status.message) == (5, "Über 100 %\n")
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == ("TASK_NOT_FOUND", "a2a-protocol.org", {"taskId": "t-1"})


def test_an_invalid_field_is_a_bad_request_detail() -> None:
    headers = dict(V10.trailers(errors.InvalidParamsError(violations=(("a.b", "c"),), retry_after=2.5)))
    status = status_pb2.Status.FromString(base64.b64decode(headers[b"grpc-status-details-bin"] + b"=="))
    bad, retry = error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    assert status.details[0].Unpack(bad)
    assert status.details[1].Unpack(retry)
    assert [(v.field, v.description) for v in bad.field_violations] == [("a.b", "c")]
    assert retry.retry_delay.ToMilliseconds() == 2500


def test_an_error_with_nothing_to_detail_has_no_details() -> None:
    assert dict(V10.trailers(errors.InternalError())) == {b"grpc-status": b"13", b"grpc-message": b"Internal error"}


def test_trailers_stay_within_header_limits() -> None:
    error = errors.TaskNotFoundError("x" * 50_000, metadata={"k": "v" * 50_000}, violations=(("f", "d" * 50_000),))
    trailers = V10.trailers(error)
    assert sum(len(name) + len(value) + 32 for name, value in trailers) < 8192
    with pytest.raises(errors.TaskNotFoundError):
        V10.read_result("GetTask", HttpResponse(200, trailers))


def test_a_03_error_has_its_name_before_the_text() -> None:
    assert V03.trailers(errors.ExtendedAgentCardNotConfiguredError("none")) == [
        (b"grpc-status", b"12"),
        (b"grpc-message", b"AuthenticatedExtendedCardNotConfiguredError: none"),
    ]


# Client half


def test_a_request_is_framed() -> None:
    request = V03.write_call("SubscribeToTask", b"abc")
    assert (request.method, request.path) == ("POST", "/a2a.v1.A2AService/TaskSubscription")
    assert request.body == b"\0\0\0\0\3abc"
    assert request.headers.get(b"te") == b"trailers"


def test_frames_are_cut() -> None:
    assert read_frames(frame(b"a") + frame(b"") + frame(b"bc")) == [b"a", b"", b"bc"]
    assert read_frames(b"") == []


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse(200, [], b"<html>"),
        HttpResponse(502, [(b"content-type", b"text/html")], b"<html>"),
        HttpResponse(200, [], b"\0\0", [(b"grpc-status", b"0")]),
        HttpResponse(200, [], b"", [(b"grpc-status", b"0")]),
        HttpResponse(200, [], b"", [(b"grpc-status", b"x")]),
    ],
)
def test_a_reply_that_is_no_grpc_is_the_peers_fault(response: HttpResponse) -> None:
    with pytest.raises(PeerError):
        V10.read_result("GetTask", response)


def test_a_proxy_in_the_way_speaks_http() -> None:
    with pytest.raises(errors.UnavailableError):
        V10.read_result("GetTask", HttpResponse(503, [(b"content-type", b"text/html")], b"<html>"))


def test_a_compressed_reply_is_read() -> None:
    headers = [(b"grpc-encoding", b"gzip")]
    response = HttpResponse(200, headers, packed(gzip.compress(b"abc", mtime=0)), [(b"grpc-status", b"0")])
    assert V10.read_result("GetTask", response) == b"abc"


@pytest.mark.parametrize(
    ("codec", "code", "message", "cls", "text"),
    [
        (V10, 5, "m", errors.TaskNotFoundError, "m"),
        (V10, 3, "m", errors.InvalidParamsError, "m"),
        (V10, 9, "m", errors.UnsupportedOperationError, "m"),
        (V10, 12, "m", errors.MethodNotFoundError, "m"),
        (V10, 4, "m", errors.DeadlineExceededError, "m"),
        (V10, 14, "m", errors.UnavailableError, "m"),
        (V10, 8, "m", errors.RateLimitedError, "m"),
        (V10, 16, "m", errors.UnauthenticatedError, "m"),
        (V10, 7, "m", errors.PermissionDeniedError, "m"),
        (V10, 13, "m", errors.InternalError, "m"),
        (V10, 2, "", errors.InternalError, "gRPC status UNKNOWN"),
        (V10, 99, "", errors.InternalError, "gRPC status UNKNOWN"),
        (V10, 5, "TaskNotFoundError: m", errors.TaskNotFoundError, "TaskNotFoundError: m"),
        (V03, 12, "TaskNotCancelableError: m", errors.TaskNotCancelableError, "m"),
        (V03, 5, "MethodNotFoundError: m", errors.MethodNotFoundError, "m"),
        (V03, 12, "AuthenticatedExtendedCardNotConfiguredError: m", errors.ExtendedAgentCardNotConfiguredError, "m"),
        (V03, 3, "InvalidParamsError: is in terminal state", errors.UnsupportedOperationError, "is in terminal state"),
        (V03, 12, "Nothing: m", errors.MethodNotFoundError, "Nothing: m"),
        (V03, 5, "m", errors.TaskNotFoundError, "m"),
    ],
)
def test_which_error_a_status_is(codec: Grpc, code: int, message: str, cls: type[A2AError], text: str) -> None:
    error = codec.read_status(code, message, {}, "SendMessage")
    assert (type(error), error.message) == (cls, text)


@pytest.mark.parametrize(
    ("op", "cls"),
    [
        ("CancelTask", errors.TaskNotCancelableError),
        ("GetExtendedAgentCard", errors.ExtendedAgentCardNotConfiguredError),
        ("GetTask", errors.UnsupportedOperationError),
    ],
)
def test_a_failed_precondition_of_0_3_names_no_class_so_the_operation_tells(op: str, cls: type[A2AError]) -> None:
    assert type(V03.read_status(9, "Task not cancelable: t", {}, op)) is cls


def test_a_task_that_cannot_be_cancelled_is_a_failed_precondition_for_every_0_3_reader() -> None:
    trailers = V03.trailers(errors.TaskNotCancelableError("m"))
    assert trailers[:2] == [(b"grpc-status", b"9"), (b"grpc-message", b"TaskNotCancelableError: m")]


def rich(reason: str = "TASK_NOT_CANCELABLE") -> Any:
    status = status_pb2.Status(code=9, message="rich")
    info = error_details_pb2.ErrorInfo(reason=reason, domain="a2a-protocol.org", metadata={"task_id": "t"})
    help_ = error_details_pb2.Help(links=[error_details_pb2.Help.Link(description="d", url="u")])
    for detail in (info, help_):
        status.details.add().Pack(detail)
    odd = status.details.add()
    odd.type_url, odd.value = "type.googleapis.com/odd.Thing", b"\x08\x01"
    return status


def test_details_decide_and_are_kept() -> None:
    raw = rich().SerializeToString()
    for packed_status in (raw, base64.b64encode(raw).decode(), base64.b64encode(raw).decode().rstrip("=")):
        error = V10.read_status(9, "plain", {"grpc-status-details-bin": packed_status})
        assert type(error) is errors.TaskNotCancelableError
        assert (error.message, error.metadata) == ("rich", {"taskId": "t"})
        assert error.details == (
            {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "d", "url": "u"}]},
            {"@type": "type.googleapis.com/odd.Thing", "value": "CAE="},
        )
    trailers = V10.trailers(error)
    with pytest.raises(errors.TaskNotCancelableError) as caught:
        V10.read_result("CancelTask", HttpResponse(200, trailers))
    assert caught.value.details == error.details


@pytest.mark.parametrize("packed_status", [b"\xff\xff", b"\x1a\x7f", "!!!", b"\x12\x01\xff", b"\x1a\x03\x0a\x01\xff"])
def test_broken_details_leave_the_status(packed_status: bytes | str) -> None:
    error = V10.read_status(5, "m", {"grpc-status-details-bin": packed_status})
    assert (type(error), error.message) == (errors.TaskNotFoundError, "m")
