"""The keys of an issuer: fetched when needed, renewed, kept when they cannot be."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from pathlib import Path

import pytest

from dragoman.errors import PeerError, UnauthenticatedError, UnavailableError
from dragoman.protocol.messages import Headers, HttpResponse
from dragoman.security.jwks import FRESH, PAUSE, STALE, KeySet, read_keys
from dragoman.security.key_sources import max_age, of_file, of_issuer, of_url
from tests.security.issuer import NAME, Clock, Trusted, ec, key_set, rsa, token


def refusal(why: str) -> UnauthenticatedError:
    return UnauthenticatedError(why)


async def verify(trusted: Trusted, text: str) -> str:
    return await trusted.tokens.verify(text.encode(), refusal)


async def fetched(trusted: Trusted, times: int) -> None:
    """Wait for the fetch that is under way, if one is; so often it was asked for then."""
    if trusted.keys._task is not None:
        await asyncio.wait((trusted.keys._task,), timeout=10)
    assert trusted.endpoint.fetched == times


async def test_keys_are_fetched_once_for_many_tokens_at_once() -> None:
    trusted = Trusted(rsa("a"))
    texts = [token(rsa("a"), sub=f"caller {number}") for number in range(5)]
    assert len(set(await asyncio.gather(*(verify(trusted, text) for text in texts)))) == 5
    assert trusted.endpoint.fetched == 1


async def test_a_new_key_is_fetched_when_its_id_is_shown() -> None:
    trusted = Trusted(rsa("a"))
    await verify(trusted, token(rsa("a")))
    trusted.endpoint.publish(rsa("a"), rsa("b"))
    trusted.clock.now += PAUSE
    assert await verify(trusted, token(rsa("b"))) == f"{NAME}#alice"
    assert trusted.endpoint.fetched == 2


async def test_unknown_ids_do_not_make_us_fetch_more_often_than_allowed() -> None:
    trusted = Trusted(rsa("a"))
    for number in range(20):
        with pytest.raises(UnauthenticatedError):
            await verify(trusted, token(rsa("z"), "RS256", {"kid": f"made up {number}"}))
        trusted.clock.now += 1
    assert trusted.endpoint.fetched == 2


async def test_a_withdrawn_key_ends_the_tokens_that_it_signed() -> None:
    trusted = Trusted(rsa("a"))
    text = token(rsa("a"), exp=int(trusted.clock.now) + 10_000)
    await verify(trusted, text)
    digest = sha256(text.encode()).digest()
    trusted.endpoint.publish(rsa("b"))
    trusted.clock.now += FRESH[1]
    trusted.tokens.known(digest)  # sees that the set is no longer fresh, and does not wait
    await fetched(trusted, 2)
    assert trusted.tokens.known(digest) is None
    with pytest.raises(UnauthenticatedError, match="unknown key"):
        await verify(trusted, text)


async def test_a_fetch_that_hangs_holds_up_nobody_whose_key_is_known() -> None:
    trusted = Trusted(rsa("a"))
    await verify(trusted, token(rsa("a")))
    trusted.endpoint.gate.clear()
    trusted.clock.now += FRESH[1]
    stranger = asyncio.create_task(verify(trusted, token(rsa("z"))))
    async with asyncio.timeout(10):
        assert await verify(trusted, token(rsa("a"), sub="bob", exp=int(trusted.clock.now) + 60)) == f"{NAME}#bob"
    assert not stranger.done()
    trusted.endpoint.gate.set()
    with pytest.raises(UnauthenticatedError):
        await stranger


async def test_a_caller_that_leaves_does_not_end_the_fetch_for_others() -> None:
    trusted = Trusted(rsa("a"))
    trusted.endpoint.gate.clear()
    leaving, staying = (asyncio.create_task(verify(trusted, token(rsa("a")))) for _ in range(2))
    await trusted.endpoint.asked.wait()
    leaving.cancel()
    trusted.endpoint.gate.set()
    assert await staying == f"{NAME}#alice"
    assert trusted.endpoint.fetched == 1


async def test_keys_are_kept_while_the_endpoint_is_down_and_the_operator_hears_it_once() -> None:
    trusted = Trusted(rsa("a"))
    await verify(trusted, token(rsa("a")))
    trusted.endpoint.down = True
    for number in range(3):
        trusted.clock.now += FRESH[1]
        later = int(trusted.clock.now) + 60
        assert await verify(trusted, token(rsa("a"), sub=f"{number}", exp=later)) == f"{NAME}#{number}"
        await fetched(trusted, number + 2)
    assert len(trusted.told) == 1 and "kept" in trusted.told[0] and NAME in trusted.told[0]
    trusted.endpoint.down = False
    trusted.clock.now += FRESH[1]
    await verify(trusted, token(rsa("a"), exp=int(trusted.clock.now) + 60))
    await fetched(trusted, 5)
    assert trusted.told[1:] == [f"the keys of {NAME} can be fetched again"]


async def test_keys_without_news_are_not_kept_for_ever() -> None:
    trusted = Trusted(rsa("a"))
    await verify(trusted, token(rsa("a")))
    trusted.endpoint.down = True
    trusted.clock.now += FRESH[1] + STALE
    with pytest.raises(UnavailableError):
        await verify(trusted, token(rsa("a"), exp=int(trusted.clock.now) + 60))


async def test_after_failures_it_is_tried_ever_less_often() -> None:
    trusted = Trusted(rsa("a"))
    trusted.endpoint.down = True
    asked = []
    for _ in range(100):
        with pytest.raises(UnavailableError):
            await verify(trusted, token(rsa("a")))
        asked.append(trusted.endpoint.fetched)
        trusted.clock.now += 1
    assert asked[:8] == [1, 2, 2, 3, 3, 3, 3, 4]
    assert asked[-1] <= 8


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"keys": []}', b'{"keys": 5}', b'{"keys": [1, null]}']
)
async def test_a_reply_that_is_no_key_set_changes_nothing(body: bytes) -> None:
    trusted = Trusted(rsa("a"))
    await verify(trusted, token(rsa("a")))
    trusted.endpoint.body = body
    trusted.clock.now += PAUSE
    with pytest.raises(UnauthenticatedError, match="unknown key"):
        await verify(trusted, token(rsa("z")))
    assert await verify(trusted, token(rsa("a"), sub="bob")) == f"{NAME}#bob"


@pytest.mark.parametrize(("told", "fresh"), [(None, 300), (0.0, 60), (120.0, 120), (1e9, 3600)])
async def test_freshness_is_what_the_reply_says_within_bounds(told: float | None, fresh: float) -> None:
    trusted = Trusted(rsa("a"))
    trusted.endpoint.max_age = told
    await trusted.keys.renewed()
    trusted.clock.now += fresh - 1
    trusted.keys.freshen()
    await fetched(trusted, 1)
    trusted.clock.now += 1
    trusted.keys.freshen()
    await fetched(trusted, 2)


def test_only_public_keys_for_signatures_are_read() -> None:
    more = (
        {"kty": "oct", "k": "c2VjcmV0", "kid": "mac"},
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "abc"},
        {**rsa("enc").as_dict(private=False), "use": "enc"},
        {**rsa("wrap").as_dict(private=False), "key_ops": ["wrapKey"]},
        {"kty": "RSA", "n": "!", "e": "AQAB"},
        {"kty": "EC", "crv": "P-999", "x": "a", "y": "b"},
        {"kty": ["RSA"]},
        {"kty": "RSA", "n": "x" * 171, "e": "AQAB", "kid": "weak"},
        {**rsa("sig").as_dict(private=False), "use": "sig", "alg": "RS256", "key_ops": ["verify"], "x5c": ["abc"]},
    )
    found = read_keys(key_set(ec("e"), more=more))
    assert [key.kid for key in found] == ["e", "sig"]


HEADERS = [
    ("max-age=60", "", 60.0),
    ("public, Max-Age=600, must-revalidate", "200", 400.0),
    ("max-age=60", "100", 0.0),
    ("no-store", "", 0.0),
    ("no-cache, max-age=600", "", 0.0),
    ("max-age=soon", "", None),
    ("", "", None),
]


@pytest.mark.parametrize(("control", "age", "expected"), HEADERS)
def test_cache_headers(control: str, age: str, expected: float | None) -> None:
    headers = Headers([(b"cache-control", control.encode()), (b"age", age.encode())])
    assert max_age(headers) == expected


class Web:
    """Documents by URL; what is asked for."""

    def __init__(self, **pages: object) -> None:
        self.pages = {url.replace("_", "/"): page for url, page in pages.items()}
        self.asked: list[str] = []

    async def __call__(self, url: str) -> HttpResponse:
        self.asked.append(url)
        page = self.pages.get(url.partition("://")[2])
        if page is None:
            return HttpResponse(404)
        return HttpResponse(200, [(b"cache-control", b"max-age=77")], json.dumps(page).encode())


def metadata(**more: object) -> dict[str, object]:
    return {"issuer": NAME, "jwks_uri": f"{NAME}/keys", **more}


WELL_KNOWN = "id.example/.well-known/openid-configuration"


async def test_the_keys_of_an_issuer_are_found_by_its_metadata() -> None:
    web = Web()
    web.pages = {WELL_KNOWN: metadata(), "id.example/keys": {"keys": []}}
    document = await of_issuer(web, NAME)()
    assert document == (b'{"keys": []}', 77.0)
    assert web.asked == [f"https://{WELL_KNOWN}", f"{NAME}/keys"]


@pytest.mark.parametrize(
    "told",
    [metadata(issuer="https://other.example"), metadata(jwks_uri="http://id.example/keys"), metadata(jwks_uri=5), []],
    ids=str,
)
async def test_metadata_of_another_or_without_safe_keys_is_refused(told: object) -> None:
    web = Web()
    web.pages = {WELL_KNOWN: told, "id.example/keys": {"keys": []}}
    with pytest.raises(PeerError):
        await of_issuer(web, NAME)()
    assert web.asked == [f"https://{WELL_KNOWN}"]


async def test_a_status_that_is_not_ok_is_a_failure() -> None:
    with pytest.raises(PeerError, match="404"):
        await of_url(Web(), f"{NAME}/keys")()


async def test_a_file_is_read_again_when_it_is_time_to(tmp_path: Path) -> None:
    path, clock = tmp_path / "keys.json", Clock()
    path.write_bytes(key_set(rsa("a")))
    keys = KeySet(of_file(str(path)), clock=clock)
    await keys.renewed()
    assert [key.kid for key in keys.find(None, "RS256")] == ["a"]
    path.write_bytes(key_set(rsa("b")))
    clock.now += FRESH[1]
    await keys.renewed()
    assert [key.kid for key in keys.find(None, "RS256")] == ["b"]
    path.unlink()
    with pytest.raises(OSError):
        await of_file(str(path))()


async def test_closing_ends_a_fetch_that_is_under_way() -> None:
    trusted = Trusted(rsa("a"))
    trusted.endpoint.gate.clear()
    trusted.tokens.start()
    await trusted.endpoint.asked.wait()
    await trusted.tokens.aclose()
    assert not trusted.keys.usable
