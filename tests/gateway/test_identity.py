"""Whose a task is."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from dragoman.gateway.identity import credential_names, owner_of
from dragoman.model import APIKeySecurityScheme, SecurityScheme
from dragoman.protocol.messages import Headers
from dragoman.service import Context
from tests.server.callers import CARD


@dataclass(frozen=True)
class Known:
    name: str
    consumed: frozenset[bytes] = field(default_factory=frozenset)


def key_in(location: str, name: str) -> SecurityScheme:
    return SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location=location, name=name))


KEYED = replace(CARD, security_schemes={"key": key_in("header", "X-Agent-Key"), "cookie": key_in("cookie", "sid")})
NAMES = credential_names(KEYED, ["X-Customer", "X-Request-Id"])


def owner(*fields: tuple[bytes, bytes]) -> str:
    return owner_of(Context(headers=Headers(fields)), NAMES)


def test_the_fields_that_tell_callers_apart_are_the_credentials_and_what_the_operator_lets_through() -> None:
    assert NAMES == (b"authorization", b"cookie", b"x-agent-key", b"x-customer")


def test_a_verified_caller_is_its_name() -> None:
    ctx = Context(headers=Headers([(b"authorization", b"Bearer a")]), caller=Known("alice"))
    assert owner_of(ctx, NAMES) == "alice"


def test_who_shows_nothing_is_nobody() -> None:
    assert owner() == owner((b"traceparent", b"00-1"), (b"x-request-id", b"7"), (b"user-agent", b"x")) == ""


def test_the_same_credentials_are_the_same_caller_whatever_else_is_sent() -> None:
    one = owner((b"authorization", b"Bearer a"), (b"x-agent-key", b"k"), (b"traceparent", b"00-1"))
    assert one == owner((b"x-agent-key", b"k"), (b"x-request-id", b"7"), (b"authorization", b"Bearer a"))
    assert one.startswith("sha256:") and "Bearer" not in one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(b"authorization", b"Bearer a")], [(b"authorization", b"Bearer b")]),
        ([(b"authorization", b"a")], [(b"x-agent-key", b"a")]),
        ([(b"authorization", b"a"), (b"cookie", b"b")], [(b"authorization", b"ab")]),
        ([(b"authorization", b"a")], [(b"authorization", b"a"), (b"x-customer", b"7")]),
        ([(b"authorization", b"a")], []),
        ([(b"authorization", b"")], []),
    ],
)
def test_other_credentials_are_another_caller(one: list[tuple[bytes, bytes]], other: list[tuple[bytes, bytes]]) -> None:
    assert owner(*one) != owner(*other)
