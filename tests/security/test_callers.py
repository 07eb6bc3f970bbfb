"""Which caller a request is of, by all that it shows."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import InvalidRequestError, UnauthenticatedError
from dragoman.protocol.messages import Headers
from dragoman.security.callers import Verifier, bearer_token
from dragoman.security.certificates import CertificateRule, Certificates
from dragoman.security.keys import Keys
from dragoman.service import ANONYMOUS
from tests.security.certificate import client_scope
from tests.security.issuer import AUDIENCE, NAME, Trusted, rsa, token

KEYS = Keys([("ci", "ci-secret"), ("ci", "ci-next-secret"), ("ops", "ops-secret")])
CERTIFICATES = Certificates([CertificateRule(name="billing", san="spiffe://corp/billing"), CertificateRule(san="*")])
SCOPE: dict[str, Any] = {"type": "http"}
CERTIFIED = client_scope("spiffe://corp/billing")
ALICE = f"{NAME}#alice"


def fields(**shown: str) -> Headers:
    return Headers([(name.replace("_", "-").encode(), value.encode()) for name, value in shown.items()])


def everything(**more: Any) -> Verifier:
    return Verifier(keys=KEYS, tokens=Trusted(rsa("a")).tokens, certificates=CERTIFICATES, **more)


def jwt(**claims: Any) -> str:
    return "Bearer " + token(rsa("a"), **claims)


SHOWN: tuple[tuple[str, dict[str, str], dict[str, Any], str, frozenset[bytes]], ...] = (
    ("key as bearer", {"authorization": "Bearer ci-secret"}, SCOPE, "ci", frozenset({b"authorization"})),
    ("its next one", {"authorization": "bearer ci-next-secret"}, SCOPE, "ci", frozenset({b"authorization"})),
    ("key in its field", {"x_api_key": " ops-secret "}, SCOPE, "ops", frozenset({b"x-api-key"})),
    ("token", {"authorization": "token"}, SCOPE, ALICE, frozenset({b"authorization"})),
    ("certificate", {}, CERTIFIED, "billing", frozenset()),
    ("key and certificate", {"x_api_key": "ci-secret"}, CERTIFIED, "ci", frozenset({b"x-api-key"})),
    ("bearer and certificate", {"authorization": "token"}, CERTIFIED, ALICE, frozenset({b"authorization"})),
    (
        "two keys",
        {"x_api_key": "ci-secret", "authorization": "Bearer ops-secret"},
        SCOPE,
        "ci",
        frozenset({b"x-api-key", b"authorization"}),
    ),
    (
        "key and token of ours",
        {"x_api_key": "ci-secret", "authorization": "token"},
        SCOPE,
        "ci",
        frozenset({b"x-api-key", b"authorization"}),
    ),
    (
        "key, and a token for the agent",
        {"x_api_key": "ci-secret", "authorization": "Bearer of-the-agent"},
        SCOPE,
        "ci",
        frozenset({b"x-api-key"}),
    ),
    (
        "key, and a token of our issuer for the agent",
        {"x_api_key": "ci-secret", "authorization": "for the agent"},
        SCOPE,
        "ci",
        frozenset({b"x-api-key"}),
    ),
    (
        "certificate, and a token for the agent",
        {"authorization": "Bearer of-the-agent"},
        CERTIFIED,
        "billing",
        frozenset(),
    ),
)


@pytest.mark.parametrize(
    ("shown", "scope", "name", "consumed"), [one[1:] for one in SHOWN], ids=[one[0] for one in SHOWN]
)
async def test_whose_a_request_is_and_what_of_it_stays_here(
    shown: dict[str, str], scope: dict[str, Any], name: str, consumed: frozenset[bytes]
) -> None:
    made = {"token": jwt(), "for the agent": jwt(aud="the agent")}
    caller = await everything().verify(fields(**{key: made.get(value, value) for key, value in shown.items()}), scope)
    assert (caller.name, caller.consumed) == (name, consumed)


WRONG: tuple[tuple[str, dict[str, str], dict[str, Any], str], ...] = (
    ("key", {"x_api_key": "nonsense"}, SCOPE, "The key in X-API-Key is not valid"),
    ("key beside a certificate", {"x_api_key": "nonsense"}, CERTIFIED, "The key in X-API-Key is not valid"),
    ("key beside a key", {"x_api_key": "", "authorization": "Bearer ci-secret"}, SCOPE, "The key in X-API-Key"),
    ("bearer", {"authorization": "Bearer nonsense"}, SCOPE, "The token is not valid"),
    ("name for a secret", {"authorization": "Bearer ci"}, SCOPE, "The token is not valid"),
    ("no bearer", {"authorization": "Basic Y2k6Y2ktc2VjcmV0"}, SCOPE, "The token is not valid"),
    ("two bearers", {"authorization": "Bearer ci-secret, Bearer ops-secret"}, SCOPE, "The token is not valid"),
    ("expired, certificate or not", {"authorization": "expired"}, CERTIFIED, "The token has expired"),
    ("expired", {"authorization": "expired"}, SCOPE, "The token has expired"),
)


@pytest.mark.parametrize("anonymous", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize(("shown", "scope", "why"), [one[1:] for one in WRONG], ids=[one[0] for one in WRONG])
async def test_a_wrong_credential_makes_nobody_anonymous(
    shown: dict[str, str], scope: dict[str, Any], why: str, anonymous: bool
) -> None:
    made = {"expired": jwt(exp=1)}
    with pytest.raises(UnauthenticatedError, match=why) as raised:
        await everything(anonymous=anonymous).verify(
            fields(**{key: made.get(value, value) for key, value in shown.items()}), scope
        )
    assert raised.value.challenge.startswith('Bearer realm="dragoman", error="invalid_token", error_description="')


@pytest.mark.parametrize("scope", [SCOPE, CERTIFIED], ids=["no certificate", "certificate"])
@pytest.mark.parametrize(
    "pair",
    [
        ("authorization", "Bearer ci-secret", "Bearer of-the-agent"),
        ("authorization", "Bearer ci-secret", "Bearer ci-secret"),
        ("authorization", "Basic eDp5", "Bearer nonsense"),
        ("x-api-key", "ci-secret", "ops-secret"),
        ("x-api-key", "nonsense", ""),
    ],
    ids=str,
)
async def test_credentials_that_come_twice_are_refused_whatever_they_are(
    pair: tuple[str, str, str], scope: dict[str, Any]
) -> None:
    name, *values = pair
    verifier = everything(anonymous=True)
    shown = Headers([(name.encode(), value.encode()) for value in values])
    assert verifier.known(shown, scope) is None
    with pytest.raises(InvalidRequestError, match=f"(?i){name} came more than once"):
        await verifier.verify(shown, scope)


async def test_who_shows_nothing_is_told_what_to_show() -> None:
    with pytest.raises(UnauthenticatedError, match="a bearer token or a key in X-API-Key or a client cert") as raised:
        await everything().verify(Headers(), SCOPE)
    assert raised.value.challenge == 'Bearer realm="dragoman"'


async def test_who_shows_nothing_may_be_let_in() -> None:
    assert everything(anonymous=True).known(Headers(), SCOPE) is ANONYMOUS


async def test_where_only_certificates_count_authorization_is_the_agents() -> None:
    only = Verifier(certificates=CERTIFICATES)
    caller = await only.verify(fields(authorization="Bearer of-the-agent"), CERTIFIED)
    assert (caller.name, caller.consumed) == ("billing", frozenset())
    with pytest.raises(UnauthenticatedError) as raised:
        await only.verify(fields(authorization="Bearer of-the-agent"), SCOPE)
    assert raised.value.challenge == 'ClientCertificate realm="dragoman"'


async def test_what_needs_no_work_is_known_at_once() -> None:
    verifier = everything()
    assert verifier.known(fields(x_api_key="ci-secret"), SCOPE) is not None
    assert verifier.known(fields(authorization="Bearer ops-secret"), SCOPE) is not None
    assert verifier.known(Headers(), CERTIFIED) is not None
    shown = fields(authorization=jwt())
    assert verifier.known(shown, SCOPE) is None
    verified = await verifier.verify(shown, SCOPE)
    assert verifier.known(shown, SCOPE) == verified


async def test_a_subject_or_certificate_cannot_take_the_name_of_a_key() -> None:
    verifier = everything()
    names = [
        (await verifier.verify(fields(authorization=jwt(sub="ci")), SCOPE)).name,
        (await verifier.verify(fields(authorization=jwt(sub="certificate#ci", aud=AUDIENCE)), SCOPE)).name,
        (await verifier.verify(Headers(), client_scope("ci"))).name,
        (await verifier.verify(fields(x_api_key="ci-secret"), SCOPE)).name,
    ]
    assert names == [f"{NAME}#ci", f"{NAME}#certificate#ci", "certificate#ci", "ci"]


async def test_the_header_for_keys_can_be_another() -> None:
    verifier = Verifier(keys=KEYS, api_key_header="X-Gateway-Key", realm="agents")
    caller = await verifier.verify(fields(x_gateway_key="ci-secret"), SCOPE)
    assert caller.consumed == frozenset({b"x-gateway-key"})
    with pytest.raises(UnauthenticatedError, match="a key in X-Gateway-Key") as raised:
        await verifier.verify(fields(x_api_key="ci-secret"), SCOPE)
    assert raised.value.challenge == 'Bearer realm="agents"'


TEXTS = [(b"Bearer a.b.c", b"a.b.c"), (b"BEARER  a ", b"a"), (b"Bearer", b""), (b"Basic a", b""), (b"a.b.c", b"")]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_the_token_of_a_field(text: bytes, expected: bytes) -> None:
    assert bearer_token(text) == expected


async def test_an_empty_bearer_is_nobodys_key() -> None:
    with pytest.raises(UnauthenticatedError):
        await everything().verify(fields(authorization="Bearer "), SCOPE)
