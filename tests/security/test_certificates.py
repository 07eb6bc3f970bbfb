"""Whose client certificate it is."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.security.certificates import CertificateRule, Certificates
from tests.security.certificate import UNTIL, client_scope
from tests.security.issuer import Clock

Rule = CertificateRule
CASES: tuple[tuple[str, Rule, tuple[str, ...], str | None], ...] = (
    ("uri", Rule(name="billing", san="spiffe://corp/billing"), ("spiffe://corp/billing",), "billing"),
    ("pattern", Rule(san="spiffe://corp/*"), ("spiffe://corp/a/b",), "certificate#spiffe://corp/a/b"),
    ("host in any case", Rule(san="*.corp.example"), ("A.Corp.Example",), "certificate#a.corp.example"),
    ("email", Rule(san="*@corp.example"), ("bob@corp.example",), "certificate#bob@corp.example"),
    ("second name", Rule(san="b.*"), ("a.example", "b.example"), "certificate#b.example"),
    ("another", Rule(san="spiffe://corp/billing"), ("spiffe://corp/billing2",), None),
    ("prefix", Rule(san="billing"), ("billing.evil.example",), None),
    ("no names", Rule(san="*"), (), None),
    ("subject", Rule(name="x", subject="CN=x,O=Corp"), (), "x"),
    ("subject pattern", Rule(subject="*,O=Corp"), ("a.example",), "certificate#CN=x,O=Corp"),
    ("subject of another", Rule(subject="CN=y,*"), (), None),
    ("both", Rule(subject="*O=Corp", san="a.*"), ("a.example",), "certificate#a.example"),
    ("one of both", Rule(subject="*O=Other", san="a.*"), ("a.example",), None),
)


@pytest.mark.parametrize(("rule", "names", "expected"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_a_rule_names_its_callers(rule: Rule, names: tuple[str, ...], expected: str | None) -> None:
    assert Certificates([rule]).name_of(client_scope(*names)) == expected


def test_the_first_rule_that_fits_counts() -> None:
    both = Certificates([Rule(name="one", san="a.*"), Rule(name="two", san="a.example")])
    assert both.name_of(client_scope("a.example")) == "one"


NONE: tuple[dict[str, Any], ...] = (
    {"type": "http"},
    {"type": "http", "extensions": {}},
    {"type": "http", "extensions": {"tls": {"client_cert_chain": ()}}},
    {"type": "http", "extensions": {"tls": {"client_cert_chain": ("no PEM",), "client_cert_error": None}}},
    client_scope("a.example", error="self-signed certificate"),
)


@pytest.mark.parametrize("scope", NONE, ids=["clear", "no tls", "no chain", "unreadable", "not verified"])
def test_without_a_sound_certificate_there_is_no_caller(scope: dict[str, Any]) -> None:
    assert Certificates([Rule(san="*"), Rule(subject="*")]).name_of(scope) is None


def test_a_certificate_that_ran_out_on_an_open_connection_verifies_nobody() -> None:
    clock = Clock(UNTIL.timestamp() - 1)
    found = Certificates([Rule(san="*")], clock=clock)
    assert found.name_of(client_scope("a.example")) == "certificate#a.example"
    clock.now += 1
    assert found.name_of(client_scope("a.example")) is None


def test_a_name_that_cannot_be_shown_is_none() -> None:
    assert Certificates([Rule(subject="*")]).name_of(client_scope(common="a\nb")) is None
    assert Certificates([Rule(name="known", subject="*")]).name_of(client_scope(common="a\nb")) == "known"
