"""Which url of an interface is called."""

from __future__ import annotations

import pytest

from dragoman.client.rebase import origin, rebase
from dragoman.protocol.operations import Binding

PUBLIC = "https://agent.example"


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("https://agent.example/a2a", PUBLIC),
        ("https://other.example/a2a", PUBLIC),
        ("http://other.example/a2a", PUBLIC),
        ("https://agent.example:8443/a2a", PUBLIC),
        ("http://127.0.0.1:9001/", "http://127.0.0.1:9000"),
        ("http://localhost:9001/", "http://127.0.0.1:9000"),
        ("http://172.17.0.2:80/", "http://localhost:9000"),
        ("http://10.0.0.5/", "http://10.0.0.4"),
        ("http://agent:8000/", "http://agent:8000"),
        ("http://worker:8000/", "http://registry:8000"),
        ("https://a.svc.cluster.local/", "https://b.internal"),
        ("http://127.0.0.1:9001/", ""),
        ("https://[2606:4700::1]/", PUBLIC),
    ],
)
def test_a_url_that_may_be_right_is_left_alone(url: str, given: str) -> None:
    assert rebase(url, "JSONRPC", given) == (url, "")


@pytest.mark.parametrize(
    ("url", "given", "called"),
    [
        ("http://agent.example/a2a", PUBLIC, "https://agent.example/a2a"),
        ("http://agent.example:8080/a2a?x=1", PUBLIC, "https://agent.example/a2a?x=1"),
        ("http://0.0.0.0:9999/", "http://localhost:8000", "http://localhost:8000/"),
        ("http://[::]:8081/invoke", PUBLIC, "https://agent.example/invoke"),
        ("http://localhost:9999/a", PUBLIC, "https://agent.example/a"),
        ("http://127.0.0.1:9999/a", "http://192.168.1.5:80", "http://192.168.1.5:80/a"),
        ("http://10.1.2.3/a", PUBLIC, "https://agent.example/a"),
        ("http://172.18.0.4:8000/a", PUBLIC, "https://agent.example/a"),
        ("http://169.254.1.1/a", PUBLIC, "https://agent.example/a"),
        ("http://100.64.0.9/a", PUBLIC, "https://agent.example/a"),
        ("http://[fd00::1]/a", PUBLIC, "https://agent.example/a"),
        ("http://worker:8000/a", PUBLIC, "https://agent.example/a"),
        ("http://worker:8000/a", "http://localhost:9000", "http://localhost:9000/a"),
        ("http://a.ns.svc.cluster.local/a", PUBLIC, "https://agent.example/a"),
        ("http://host.docker.internal:1/a", "http://localhost:9000", "http://localhost:9000/a"),
        ("/a2a", "https://agent.example/x", "https://agent.example/a2a"),
        ("http://localhost/a", "https://user:secret@agent.example:8443", "https://agent.example:8443/a"),
    ],
)
def test_a_url_that_cannot_be_right_gets_the_origin_that_was_given(url: str, given: str, called: str) -> None:
    found = rebase(url, "JSONRPC", given)
    assert found.url == called
    assert found.why


@pytest.mark.parametrize(
    ("url", "given", "called"),
    [
        ("a.example:50051", "https://a.example", "grpcs://a.example:50051"),
        ("a.example:50051", "http://a.example", "grpc://a.example:50051"),
        ("localhost:50051", "", "grpc://localhost:50051"),
        ("a.example:50051", "", "grpcs://a.example:50051"),
        ("0.0.0.0:50051", "http://localhost:8000", "grpc://localhost:50051"),
        ("[::]:50051", "http://[::1]:8000", "grpc://[::1]:50051"),
        ("http://agent.example:50051", PUBLIC, "https://agent.example"),
        ("https://agent.example:50051", PUBLIC, "https://agent.example:50051"),
    ],
)
def test_grpc_keeps_its_own_port_where_only_the_host_is_wrong(url: str, given: str, called: str) -> None:
    binding: Binding = "GRPC"
    assert rebase(url, binding, given).url == called


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("https://A.example/x", "https://a.example:443"),
        ("grpcs://a.example", "https://a.example:443"),
        ("grpc://a.example:80", "http://a.example"),
        ("http://[::1]:8000/x", "http://[::1]:8000"),
    ],
)
def test_an_origin_has_one_form(url: str, same: str) -> None:
    assert origin(url) == origin(same)


@pytest.mark.parametrize("other", ["http://a.example:443", "https://a.example:8443", "https://b.example"])
def test_origins_differ_by_scheme_port_and_host(other: str) -> None:
    assert origin(other) != origin("https://a.example")
