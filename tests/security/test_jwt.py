"""Tokens: which are taken, whom they name, and why the others are not."""

from __future__ import annotations

import base64
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from dragoman.errors import UnauthenticatedError, UnavailableError
from dragoman.security.jwt import LEEWAY, MOST_TOKEN, Issuer, Tokens
from tests.security.issuer import NAME, NOW, Clock, Key, Trusted, ec, ed, mac_with_public_key, rsa, token, unsigned


def refusal(why: str) -> UnauthenticatedError:
    return UnauthenticatedError(why)


async def verify(trusted: Trusted, text: str) -> str:
    return await trusted.tokens.verify(text.encode(), refusal)


def known(trusted: Trusted, text: str) -> str | None:
    return trusted.tokens.known(sha256(text.encode()).digest())


@pytest.mark.parametrize(
    ("key", "alg"),
    [(rsa("a"), "RS256"), (rsa("a"), "PS512"), (ec("e"), "ES256"), (ed("o"), "EdDSA"), (ed("o"), "Ed25519")],
    ids=lambda one: one if isinstance(one, str) else one.key_type,
)
async def test_a_good_token_names_its_issuer_and_subject(key: Key, alg: str) -> None:
    trusted = Trusted(key, algorithms=(alg,))
    text = token(key, alg) if alg not in ("EdDSA",) else _quietly(lambda: token(key, alg))
    assert await verify(trusted, text) == f"{NAME}#alice"


def _quietly(make: Callable[[], str]) -> str:
    """What joserfc signs under protest: the name is old, and in use."""
    from joserfc.errors import SecurityWarning

    with pytest.warns(SecurityWarning):
        return make()


GOOD: tuple[dict[str, Any], ...] = (
    {"aud": ["other", "dragoman"]},
    {"exp": int(NOW) - LEEWAY + 1},
    {"exp": NOW + 0.5},
    {"nbf": int(NOW) + LEEWAY},
    {"iat": int(NOW) + LEEWAY},
    {"iat": int(NOW), "jti": "1", "scope": "a b", "roles": ["x"], "nested": {"a": [1]}},
)


@pytest.mark.parametrize("claims", GOOD, ids=str)
async def test_clocks_may_differ_and_further_claims_are_fine(claims: dict[str, Any]) -> None:
    assert await verify(Trusted(rsa("a")), token(rsa("a"), **claims)) == f"{NAME}#alice"


@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "AT+JWT", "application/at+jwt", None])
async def test_tokens_for_access_are_taken(typ: str | None) -> None:
    text = token(rsa("a"), "RS256", {"typ": typ, "x5t": "abc", "nonce": "n" * 600})
    assert await verify(Trusted(rsa("a")), text) == f"{NAME}#alice"


BAD_CLAIMS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"exp": int(NOW) - LEEWAY}, "The token has expired"),
    ({"exp": None}, "The token is not valid"),
    ({"exp": "tomorrow"}, "The token is not valid"),
    ({"exp": True}, "The token is not valid"),
    ({"nbf": int(NOW) + LEEWAY + 1}, "The token is not valid"),
    ({"iat": int(NOW) + LEEWAY + 1}, "The token is not valid"),
    ({"sub": None}, "The token does not name a caller"),
    ({"sub": ""}, "The token does not name a caller"),
    ({"sub": "a\nb"}, "The token does not name a caller"),
    ({"sub": "a" * 256}, "The token does not name a caller"),
)


@pytest.mark.parametrize(("claims", "why"), BAD_CLAIMS, ids=lambda one: str(one)[:40])
async def test_a_token_that_says_something_wrong_is_refused(claims: dict[str, Any], why: str) -> None:
    trusted = Trusted(rsa("a"))
    text = token(rsa("a"), **claims)
    with pytest.raises(UnauthenticatedError, match=why):
        await verify(trusted, text)
    assert known(trusted, text) is None


NOT_OURS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"iss": "https://evil.example"}, "The token is of an unknown issuer"),
    ({"iss": None}, "The token is of an unknown issuer"),
    ({"iss": NAME + "/"}, "The token is of an unknown issuer"),
    ({"iss": [NAME]}, "The token is of an unknown issuer"),
    ({"aud": "other"}, "The token is for another audience"),
    ({"aud": ["dragoman2", "other"]}, "The token is for another audience"),
    ({"aud": None}, "The token is for another audience"),
    ({"aud": {"dragoman": 1}}, "The token is for another audience"),
    ({"filling": "x" * MOST_TOKEN}, "The token is not valid"),
)


@pytest.mark.parametrize(("claims", "why"), NOT_OURS, ids=lambda one: str(one)[:40])
def test_a_token_for_somebody_else_is_told_at_first_sight(claims: dict[str, Any], why: str) -> None:
    text, tokens = token(rsa("a"), **claims).encode(), Trusted(rsa("a")).tokens
    assert tokens.why_not_ours(text) == why
    assert not tokens.addressed(text)


@pytest.mark.parametrize("text", ["abc", "a.b.c", "..", "", "é.ü.ö", "e30.bnVsbA.e30", "e30.W10.e30", "a" * 100_000])
def test_what_is_no_token_is_told_at_first_sight(text: str) -> None:
    assert Trusted(rsa("a")).tokens.why_not_ours(text.encode()) == "The token is not valid"


FORGED: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("none", unsigned, "an algorithm that is not allowed"),
    ("mac with the public key", lambda: mac_with_public_key(rsa("a")), "an algorithm that is not allowed"),
    ("algorithm not allowed", lambda: token(rsa("a"), "RS384"), "an algorithm that is not allowed"),
    ("unknown kid", lambda: token(rsa("z")), "an unknown key"),
    ("another key under a known id", lambda: token(rsa("z"), "RS256", {"kid": "a"}), "The signature of the token"),
    ("kind of key", lambda: token(ec("e"), "ES256", {"kid": "a"}), "an unknown key"),
    ("logout token", lambda: token(rsa("a"), "RS256", {"typ": "logout+jwt"}), "a type that is not for access"),
    ("signature cut", lambda: token(rsa("a"))[:-8], "not valid|signature"),
    ("no signature", lambda: token(rsa("a")).rpartition(".")[0] + ".", "not valid|signature"),
    ("unknown critical header", lambda: _critical(token(rsa("a"))), "not valid"),
)


def _critical(text: str) -> str:
    """The token under a header that asks for what nobody knows."""
    head = base64.urlsafe_b64encode(b'{"alg":"RS256","kid":"a","crit":["exp"],"exp":1}').rstrip(b"=").decode()
    return f"{head}.{text.partition('.')[2]}"


@pytest.mark.parametrize(("make", "why"), [one[1:] for one in FORGED], ids=[one[0] for one in FORGED])
async def test_a_forged_token_is_refused(make: Callable[[], str], why: str) -> None:
    with pytest.raises(UnauthenticatedError, match=why):
        await verify(Trusted(rsa("a")), make())


async def test_a_changed_payload_breaks_the_signature() -> None:
    head, _, signature = token(rsa("a")).split(".")
    payload = token(rsa("a"), sub="root").split(".")[1]
    with pytest.raises(UnauthenticatedError, match="signature"):
        await verify(Trusted(rsa("a")), f"{head}.{payload}.{signature}")


async def test_without_a_key_id_every_key_that_fits_is_tried() -> None:
    trusted = Trusted(rsa("b"), ec("e"), rsa("a"))
    assert await verify(trusted, token(rsa("a"), "RS256", {"kid": None})) == f"{NAME}#alice"


async def test_a_verified_token_is_known_until_it_is_over() -> None:
    trusted = Trusted(rsa("a"))
    text = token(rsa("a"), exp=int(NOW) + 60)
    assert known(trusted, text) is None
    await verify(trusted, text)
    assert known(trusted, text) == f"{NAME}#alice"
    trusted.clock.now += 60 + LEEWAY - 1
    assert known(trusted, text) == f"{NAME}#alice"
    trusted.clock.now += 1
    assert known(trusted, text) is None


async def test_another_claim_can_name_the_caller() -> None:
    trusted = Trusted(rsa("a"), claim="client_id")
    assert await verify(trusted, token(rsa("a"), client_id="robot")) == f"{NAME}#robot"
    with pytest.raises(UnauthenticatedError, match="does not name a caller"):
        await verify(trusted, token(rsa("a")))


async def test_two_issuers_do_not_vouch_for_each_other() -> None:
    one, other = Trusted(rsa("a")), Trusted(rsa("b"))
    tokens = Tokens(
        [
            Issuer(NAME, ("dragoman",), ("RS256",), one.keys),
            Issuer("https://other.example", ("dragoman",), ("RS256",), other.keys),
        ],
        clock=Clock(),
    )
    assert await tokens.verify(token(rsa("a")).encode(), refusal) == f"{NAME}#alice"
    good = token(rsa("b"), iss="https://other.example")
    assert await tokens.verify(good.encode(), refusal) == "https://other.example#alice"
    with pytest.raises(UnauthenticatedError, match="signature"):
        await tokens.verify(token(rsa("b"), "RS256", {"kid": "a"}).encode(), refusal)


async def test_without_any_keys_nothing_can_be_said_of_a_token() -> None:
    trusted = Trusted(rsa("a"))
    trusted.endpoint.down = True
    with pytest.raises(UnavailableError) as raised:
        await verify(trusted, token(rsa("a")))
    assert raised.value.retry_after
