"""Every route of the table answers, with and without a slash at its end, mounted or not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from dragoman.faces import Face
from dragoman.model import OPERATIONS, SEND_MESSAGE
from dragoman.protocol.operations import WIRE, Names, Version
from dragoman.server.app import A2AApp
from tests.asgi_driver import App, Exchange, scope
from tests.server.callers import EACH_FACE, Wire, bench, failure, good_call, send, sending, wire

ROUTES = [
    pytest.param(version, verb, path, id=f"{version} {verb} {path}")
    for version, rows in WIRE.items()
    for names in rows.values()
    for path in names.paths
    for verb in names.verbs
]


def names_of(version: Version, path: str) -> Names:
    return next(names for names in WIRE[version].values() if path in names.paths)


@pytest.mark.parametrize("tenant", ["", "/acme"])
@pytest.mark.parametrize(("version", "verb", "path"), ROUTES)
async def test_a_route_answers_the_same_with_a_slash_at_its_end(
    version: Version, verb: str, path: str, tenant: str
) -> None:
    if tenant and version == "0.3":
        tenant = ""
    where = tenant + re.sub(r"\{\w+\}", "ghost", path)
    headers = {"a2a-version": version, "content-type": "application/json", "accept": "application/json"}
    body = b"{}" if verb == "POST" else b""
    app = bench().app
    plain, slashed = [await send(app, Wire(verb, one, headers, body)) for one in (where, where + "/")]
    assert (plain.status, plain.body) == (slashed.status, slashed.body)
    assert plain.status not in (301, 302, 307, 308, 405, 500)
    if plain.status == 404:
        assert failure(Face("HTTP+JSON", version), plain).message == "Task not found"


async def test_json_rpc_answers_at_the_mount_with_and_without_slash() -> None:
    app = bench().app
    for path, root in (("/", ""), ("", ""), ("/agents/one", "/agents/one"), ("/agents/one/", "/agents/one")):
        for version in ("1.0", "0.3"):
            face = Face("JSONRPC", version)
            answer = await send(app, wire(face, SEND_MESSAGE, sending("x"))._replace(path=path), root_path=root)
            assert answer.status == 200 and b'"result"' in answer.body


def test_the_table_of_routes_covers_every_operation() -> None:
    assert {*WIRE["1.0"]} == {*OPERATIONS}


# -- mounted in somebody else's application


def mounted(app: A2AApp, **options: Any) -> Starlette:
    return Starlette(routes=[Mount("/agents/one", app=app)], **options)


class At:
    """An app seen by callers who put a prefix before every path."""

    def __init__(self, app: App, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        path, raw = self._prefix + scope["path"], self._prefix.encode() + scope["raw_path"]
        await self._app({**scope, "path": path, "raw_path": raw}, receive, send)


@pytest.mark.parametrize("face", [face for face in EACH_FACE if face.binding != "GRPC"], ids=str)
async def test_a_mounted_app_needs_no_lifespan(face: Face) -> None:
    await good_call(At(mounted(bench().app), "/agents/one"), face)


@pytest.mark.parametrize("face", [face for face in EACH_FACE if face.binding != "GRPC"], ids=str)
async def test_a_mounted_app_may_be_closed_by_its_hosts_lifespan(face: Face) -> None:
    server = bench()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with server.app:
            yield

    host = mounted(server.app, lifespan=lifespan)
    async with lifespan(host):
        await good_call(At(host, "/agents/one"), face)


async def test_the_card_of_a_mounted_app_is_below_the_mount_and_names_it() -> None:
    app = At(mounted(bench().app), "/agents/one")
    request = Wire("GET", "/.well-known/agent-card.json", {"host": "agent.test", "a2a-version": "1.0"}, b"")
    answer = await send(app, request)
    assert answer.status == 200
    assert b'"http://agent.test/agents/one"' in answer.body


async def test_encoded_slashes_of_an_id_survive_the_mount() -> None:
    app = At(mounted(bench().app), "/agents/one")
    request = Wire("GET", "/tasks/a%2Fb%3Acancel", {"host": "agent.test", "a2a-version": "1.0"}, b"")
    found = failure(Face("HTTP+JSON", "1.0"), await send(app, request))
    assert found.metadata["taskId"] == "a/b:cancel"


async def test_lifespan_is_answered_and_websockets_are_refused() -> None:
    said: list[str] = []
    events = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        return {"type": next(events)}

    async def say(message: Any) -> None:
        said.append(message["type"])

    app = bench().app
    await app({"type": "lifespan"}, receive, say)
    await app({"type": "websocket", "path": "/"}, receive, say)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


async def test_a_caller_that_leaves_in_the_middle_of_its_body_costs_nothing() -> None:
    app = bench().app
    request = wire(Face("JSONRPC", "1.0"), SEND_MESSAGE, sending("x"))
    exchange = Exchange(app, scope("POST", "/", request.headers), [request.body[:5], b""])
    exchange._incoming.get_nowait()
    exchange._incoming.get_nowait()
    exchange._incoming.put_nowait({"type": "http.request", "body": request.body[:5], "more_body": True})
    exchange.disconnect()
    answer = await exchange.run()
    assert answer.status == 0
    await good_call(app, Face("JSONRPC", "1.0"))


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_large_body_is_served(face: Face) -> None:
    """Case 36."""
    text = "x" * 300_000
    assert (await good_call(bench().app, face, text)).artifacts[0].parts[0].text == text
