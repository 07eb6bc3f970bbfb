from __future__ import annotations

from typing import Any

import pytest

from dragoman.protocol.messages import Headers
from dragoman.server.origin import base_url, trusted_networks

PROXY: dict[str, Any] = {"client": ("10.0.0.9", 1234)}
STRANGER: dict[str, Any] = {"client": ("203.0.113.5", 1234)}


def base(headers: dict[str, str], *, public: str = "", trusted: tuple[str, ...] = (), **scope: object) -> str:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return base_url(
        {"scheme": "http", "server": ("127.0.0.1", 8000), **scope}, Headers(raw), public, trusted_networks(trusted)
    )


def test_a_configured_url_wins_over_everything_the_request_says() -> None:
    headers = {"host": "evil.test", "x-forwarded-host": "other.test"}
    assert (
        base(headers, public="https://agents.example/a/", trusted=("10.0.0.0/8",), **PROXY)
        == "https://agents.example/a"
    )


def test_the_host_that_was_asked_for_is_used_when_nothing_is_configured() -> None:
    assert base({"host": "agent.test:8080"}) == "http://agent.test:8080"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"forwarded": 'for=1.2.3.4;proto=https;host="api.test"'}, "https://api.test"),
        ({"forwarded": "proto=https;host=first.test, proto=http;host=second.test"}, "https://first.test"),
        ({"x-forwarded-proto": "https", "x-forwarded-host": "api.test"}, "https://api.test"),
        ({"x-forwarded-proto": "https, http", "x-forwarded-host": "a.test, b.test"}, "https://a.test"),
        ({"x-forwarded-proto": "https", "x-forwarded-host": "a.test", "x-forwarded-prefix": "/x/"}, "https://a.test/x"),
        ({"x-forwarded-host": "a.test", "x-forwarded-port": "8443"}, "http://a.test:8443"),
        ({"x-forwarded-proto": "javascript", "x-forwarded-host": "a.test"}, "http://a.test"),
    ],
)
def test_a_trusted_proxy_decides(headers: dict[str, str], expected: str) -> None:
    assert base({"host": "inner:8000", **headers}, trusted=("10.0.0.0/8",), **PROXY) == expected


def test_forwarding_headers_of_strangers_are_ignored() -> None:
    headers = {"host": "agent.test", "x-forwarded-host": "evil.test", "forwarded": "host=evil.test"}
    assert base(headers, trusted=("10.0.0.0/8",), **STRANGER) == "http://agent.test"
    assert base(headers, **PROXY) == "http://agent.test"


@pytest.mark.parametrize("host", ["0.0.0.0", "0.0.0.0:8000", "[::]:8081", "a b", "x/y", "a\r\nb", ""])
def test_a_host_that_cannot_be_called_is_never_repeated(host: str) -> None:
    assert base({"host": host}) == "http://127.0.0.1:8000"


def test_an_app_listening_everywhere_without_a_host_names_localhost() -> None:
    assert base({}, server=("0.0.0.0", 9000)) == "http://localhost:9000"


@pytest.mark.parametrize(
    ("prefix", "root", "path"),
    [
        ("/x", "", "/x"),
        ("/x", "/x", "/x"),
        ("/x", "/x/agents", "/x/agents"),
        ("/x", "/agents", "/x/agents"),
        ("/x", "/xy", "/x/xy"),
        ("", "/agents", "/agents"),
    ],
)
def test_a_prefix_is_never_doubled(prefix: str, root: str, path: str) -> None:
    """Case 16."""
    headers = {"host": "inner", "x-forwarded-host": "a.test", "x-forwarded-prefix": prefix}
    assert base(headers, trusted=("10.0.0.0/8",), root_path=root, **PROXY) == f"http://a.test{path}"


def test_the_mount_point_is_part_of_the_base() -> None:
    assert base({"host": "a.test"}, root_path="/agents/one") == "http://a.test/agents/one"
