"""Browser clients of other origins, by the table of the Fetch standard."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.faces import Face
from dragoman.model import SEND_MESSAGE, SEND_STREAMING_MESSAGE
from dragoman.security.callers import Verifier
from dragoman.security.keys import Keys
from dragoman.server.cors import Cors
from tests.asgi_driver import Answer, Exchange, scope
from tests.server.callers import bench, send, sending, wire

APP = "https://app.example"
CARD = "/.well-known/agent-card.json"
WEB = [Face("JSONRPC", "1.0"), Face("HTTP+JSON", "0.3")]
KEYS = Keys([("ci", "ci-secret")])


def behind(*origins: str, **more: Any) -> Cors:
    return Cors(bench(callers=Verifier(keys=KEYS)).app, origins or (APP,), **more)


async def ask(app: Cors, method: str, path: str, **headers: str) -> Answer:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return await Exchange(app, scope(method, path, fields), []).run()


async def preflight(app: Cors, origin: str, headers: str = "content-type") -> Answer:
    return await ask(
        app,
        "OPTIONS",
        "/",
        origin=origin,
        access_control_request_method="POST",
        access_control_request_headers=headers,
    )


def granted(answer: Answer) -> dict[str, str]:
    """What the CORS protocol says of an answer."""
    begin = "access-control-allow-"
    return {name.removeprefix(begin): text for name, text in answer.headers.items() if name.startswith(begin)}


async def test_a_preflight_is_answered_before_anybody_asks_who_is_calling() -> None:
    answer = await preflight(behind(), APP)
    assert answer.status == 204 and answer.complete and answer.body == b""
    allowed = granted(answer)
    assert allowed["origin"] == APP
    assert set(allowed["methods"].split(", ")) == {"GET", "HEAD", "POST", "DELETE"}
    named = set(allowed["headers"].split(", "))
    assert {"authorization", "content-type", "a2a-version", "a2a-extensions", "x-a2a-extensions"} <= named
    assert "credentials" not in allowed
    assert answer.headers["access-control-max-age"] == "600"
    assert answer.headers["vary"].startswith("Origin")


REFUSED = ("https://evil.example", "http://app.example", "https://app.example:8443", "https://APP.example", "null")


@pytest.mark.parametrize("origin", [*REFUSED, "https://app.example.evil.example", "https://sub.app.example"])
async def test_an_origin_that_may_not_is_granted_nothing(origin: str) -> None:
    answer = await preflight(behind(), origin)
    assert (answer.status, granted(answer)) == (403, {})
    answer = await ask(behind(), "GET", CARD, origin=origin)
    assert (answer.status, granted(answer)) == (200, {})
    assert "Origin" in answer.headers["vary"]


async def test_each_of_several_origins_is_granted_itself() -> None:
    app = behind(APP, "http://localhost:3000")
    for origin in (APP, "http://localhost:3000"):
        assert granted(await preflight(app, origin))["origin"] == origin
        assert granted(await ask(app, "GET", CARD, origin=origin)) == {"origin": origin}


async def test_every_origin_is_granted_without_credentials_whatever_is_set() -> None:
    app = behind("*", credentials=True)
    for answer in (await preflight(app, "https://any.example"), await ask(app, "GET", CARD, origin="null")):
        assert granted(answer)["origin"] == "*"
        assert "credentials" not in granted(answer)
    assert "Origin" not in (await ask(app, "GET", CARD, origin="null")).headers["vary"]


async def test_credentials_go_along_where_they_may() -> None:
    app = behind(credentials=True)
    for answer in (await preflight(app, APP), await ask(app, "GET", CARD, origin=APP)):
        assert granted(answer)["credentials"] == "true"


async def test_further_fields_can_be_named() -> None:
    app = behind(headers=("X-API-Key",), expose=("X-Trace",), max_age=5)
    answer = await preflight(app, APP)
    assert "x-api-key" in granted(answer)["headers"].split(", ")
    assert answer.headers["access-control-max-age"] == "5"
    shown = (await ask(app, "GET", CARD, origin=APP)).headers["access-control-expose-headers"].split(", ")
    assert {"A2A-Extensions", "A2A-Version", "Retry-After", "WWW-Authenticate", "X-Trace"} <= set(shown)


async def test_whatever_is_asked_for_can_be_allowed() -> None:
    asked = "authorization,x-anything"
    assert granted(await preflight(behind(headers=("*",)), APP, asked))["headers"] == asked


@pytest.mark.parametrize("op", [SEND_MESSAGE, SEND_STREAMING_MESSAGE], ids=lambda op: op.name)
@pytest.mark.parametrize("face", WEB, ids=str)
async def test_errors_and_event_streams_can_be_read_by_the_page(face: Face, op: Any) -> None:
    app = behind()
    for key, status in (("ci-secret", 200), ("nonsense", 401)):
        headers = {"origin": APP, "x-api-key": key}
        answer = await send(app, wire(face, op, sending("hello"), headers=headers))
        assert (answer.status, granted(answer)) == (status, {"origin": APP})
        assert "www-authenticate" in answer.headers["access-control-expose-headers"].lower()


async def test_a_request_of_no_page_is_served_as_ever_and_says_what_caches_must_know() -> None:
    answer = await ask(behind(), "GET", CARD)
    assert (answer.status, granted(answer)) == (200, {})
    assert "Origin" in answer.headers["vary"]


async def test_options_that_is_no_preflight_is_the_apps_to_answer() -> None:
    assert (await ask(behind(), "OPTIONS", CARD, origin=APP)).status == 405
    assert (await ask(behind(), "OPTIONS", CARD, access_control_request_method="POST")).status == 405


async def test_a_reply_that_is_kept_for_others_is_not_written_into() -> None:
    shared = [(b"content-type", b"text/plain")]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": shared})
        await send({"type": "http.response.body"})

    assert (await ask(Cors(app, [APP]), "GET", "/", origin=APP)).headers["access-control-allow-origin"] == APP
    assert shared == [(b"content-type", b"text/plain")]
