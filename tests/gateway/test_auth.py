"""A gateway that wants to know who is calling, from its configuration to the agent behind it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from msgspec.structs import replace

from dragoman.faces import ALL_FACES, Face
from dragoman.gateway.common import quiet
from dragoman.gateway.config import Auth, Config, Cors, FilePath, Secret, completed
from dragoman.gateway.config import Upstream as Configured
from dragoman.gateway.config.auth import CallerRule, Jwt, Key, Rule
from dragoman.gateway.switchboard import Switchboard
from dragoman.gateway.verifying import admission_of
from dragoman.model import GET_TASK, SEND_MESSAGE, SEND_STREAMING_MESSAGE, GetTaskRequest
from dragoman.server.asgi import Receive, Scope, Send
from dragoman.server.host import Server, TlsFiles, serve
from tests.asgi_driver import request
from tests.gateway.fronts import Upstream, upstream
from tests.security.issuer import key_set, rsa, token
from tests.server.callers import begin, check_failure, failure, reply_task, send, sending, wire

CI, OPS = Key(name="ci", secret=Secret("ci-secret")), Key(name="ops", secret=Secret("ops-secret"))
KEYS = Auth(key=(CI, OPS))
MINE = {"x-api-key": "ci-secret"}
JSONRPC = Face("JSONRPC", "1.0")


@asynccontextmanager
async def gateway(one: Upstream, auth: Auth, cors: Cors | None = None, **more: Any) -> AsyncIterator[Switchboard]:
    agent = Configured(url=f"http://127.0.0.1:{one.port}", name="billing", **more)
    async with Switchboard(completed(Config(upstream=(agent,), auth=auth, cors=cors))) as board:
        yield board


@pytest.fixture
async def agent() -> AsyncIterator[Upstream]:
    async with upstream() as one:
        yield one


async def arrived(one: Upstream, board: Any, headers: dict[str, str], face: Face = JSONRPC) -> dict[str, str]:
    """The fields with which a call of that caller reached the agent."""
    one.arrived.clear()
    reply_task(face, await send(board, wire(face, SEND_MESSAGE, sending("hello"), headers=headers)))
    (call,) = one.arrived
    return call.headers


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_what_verified_a_caller_does_not_go_on_to_the_agent(face: Face, agent: Upstream) -> None:
    async with gateway(agent, KEYS) as board:
        assert "authorization" not in await arrived(agent, board, {"authorization": "Bearer ci-secret"}, face)
        both = {"x-api-key": "ci-secret", "authorization": "Bearer ops-secret"}
        seen = await arrived(agent, board, both, face)
        assert "authorization" not in seen and "x-api-key" not in seen
        theirs = {"x-api-key": "ci-secret", "authorization": "Bearer of-the-agent"}
        assert (await arrived(agent, board, theirs, face))["authorization"] == "Bearer of-the-agent"


async def test_it_goes_on_where_the_operator_says_so(agent: Upstream) -> None:
    async with gateway(agent, KEYS, forward_credentials=True, forward=("X-API-Key",)) as board:
        seen = await arrived(agent, board, {"authorization": "Bearer ci-secret"})
        assert seen["authorization"] == "Bearer ci-secret"
        assert (await arrived(agent, board, MINE))["x-api-key"] == "ci-secret"


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_strangers_do_not_reach_the_agent(face: Face, agent: Upstream) -> None:
    async with gateway(agent, KEYS) as board:
        agent.arrived.clear()
        answer = await send(board, wire(face, SEND_MESSAGE, sending("hello")))
        assert answer.headers["www-authenticate"] == 'Bearer realm="dragoman"'
        assert agent.arrived == []


@pytest.mark.parametrize("face", ALL_FACES, ids=str)
async def test_permissions_and_limits_are_told_in_the_face_of_the_caller(face: Face, agent: Upstream) -> None:
    rules = (
        CallerRule(name="ci", operations=("SendMessage", "SendStreamingMessage"), streams=1),
        CallerRule(name="ops", calls_per_second=0.01, burst=1),
    )
    named = face.binding == "GRPC" or face == Face("HTTP+JSON", "1.0")
    async with gateway(agent, Auth(key=(CI, OPS), caller=rules)) as board:
        denied = failure(face, await send(board, wire(face, GET_TASK, GetTaskRequest(id="x"), headers=MINE)))
        assert denied.told == ("PERMISSION_DENIED" if named else -32000)
        assert "GetTask of billing" in denied.message
        theirs = {"x-api-key": "ops-secret"}
        for _ in range(2):
            answer = await send(board, wire(face, SEND_MESSAGE, sending("hello"), headers=theirs))
        assert failure(face, answer).told == ("RESOURCE_EXHAUSTED" if named else -32603)
        if face.binding != "GRPC":
            assert int(answer.headers["retry-after"]) >= 90
        held = begin(board, wire(face, SEND_STREAMING_MESSAGE, sending("hold"), headers=MINE))
        running = asyncio.create_task(held.run())
        await agent.behind.stage.begun.wait()
        again = await send(board, wire(face, SEND_STREAMING_MESSAGE, sending("hello"), headers=MINE))
        assert b"1 streams open" in again.body + repr((again.headers, again.trailers)).replace("%20", " ").encode()
        agent.behind.stage.go.set()
        await running
        after = await send(board, wire(face, SEND_STREAMING_MESSAGE, sending("hello"), headers=MINE))
        assert b"streams open" not in after.body


async def test_the_card_asks_for_what_the_gateway_takes(agent: Upstream) -> None:
    async with gateway(agent, KEYS) as board:
        answer = await request(board, "GET", "/.well-known/agent-card.json", headers={"a2a-version": "1.0"})
        card = json.loads(answer.body)
        assert set(card["securitySchemes"]) == {"bearer", "apiKey"}
        assert card["securityRequirements"]


async def test_pages_of_other_origins_call_where_they_may(agent: Upstream) -> None:
    async with gateway(agent, KEYS, Cors(origins=("https://app.example",)), port=9) as board:
        asked = {
            "origin": "https://app.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "x-api-key",
        }
        for app in (board, board.beside[9]):
            answer = await request(app, "OPTIONS", "/", headers=asked)
            assert answer.status == 204
            assert "x-api-key" in answer.headers["access-control-allow-headers"].split(", ")
            refused = await send(app, wire(JSONRPC, SEND_MESSAGE, sending("x"), headers={"origin": asked["origin"]}))
            assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, asked["origin"])


# -- tokens, keys fetched over sockets


class Identity:
    """An identity provider: discovery and keys."""

    def __init__(self) -> None:
        self.url = ""
        self.keys = key_set(rsa("a"))
        self.asked: list[str] = []

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError("has no lifespan")
        self.asked.append(scope["path"])
        body = self.keys
        if scope["path"].startswith("/.well-known/"):
            body = json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
        head = [(b"content-type", b"application/json"), (b"cache-control", b"max-age=600")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https with its own root"])
async def test_tokens_are_verified_with_the_keys_that_the_issuer_publishes(
    tls: bool, agent: Upstream, tmp_path: Path
) -> None:
    ca, identity = trustme.CA(), Identity()
    issued = ca.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    issued.private_key_pem.write_to_path(tmp_path / "key.pem")
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    files = TlsFiles(certificate=tmp_path / "cert.pem", key=tmp_path / "key.pem") if tls else None
    async with serve(identity.app, host="localhost", tls=files) as server:
        identity.url = server.url
        root = FilePath(str(tmp_path / "ca.pem")) if tls else None
        auth = Auth(jwt=(Jwt(issuer=server.url, audience="dragoman", ca=root),))
        async with gateway(agent, auth) as board:
            await _tokens(identity, server, board, agent)


async def _tokens(identity: Identity, server: Server, board: Switchboard, agent: Upstream) -> None:
    def shown(**claims: Any) -> dict[str, str]:
        made = token(rsa("a"), iss=server.url, exp=int(time.time()) + 600, **claims)
        return {"authorization": f"Bearer {made}"}

    for _ in range(2):
        assert "authorization" not in await arrived(agent, board, shown())
    assert identity.asked == ["/.well-known/openid-configuration", "/keys"]
    task = reply_task(JSONRPC, await send(board, wire(JSONRPC, SEND_MESSAGE, sending("x"), headers=shown())))
    asking = GetTaskRequest(id=task.id)
    wrong = await send(board, wire(JSONRPC, GET_TASK, asking, headers=shown(aud="other")))
    assert "another audience" in wrong.headers["www-authenticate"]
    assert (await send(board, wire(JSONRPC, GET_TASK, asking, headers=shown()))).status == 200


async def test_keys_that_cannot_be_fetched_are_told_to_the_operator_and_hold_up_no_other(agent: Upstream) -> None:
    told: list[str] = []
    jwt = Jwt(issuer="https://id.example", audience="dragoman", jwks="http://127.0.0.1:9/keys")
    config = Config(
        upstream=(Configured(url=f"http://127.0.0.1:{agent.port}"),), auth=Auth(key=(CI,), jwt=(jwt,), default=Rule())
    )
    async with Switchboard(completed(config), tell=told.append) as board:
        shown = {"authorization": f"Bearer {token(rsa('a'))}"}
        answer = await send(board, wire(JSONRPC, SEND_MESSAGE, sending("x"), headers=shown))
        check_failure(JSONRPC, answer, "unavailable")
        assert b"127.0.0.1:9" not in answer.body
        await arrived(agent, board, MINE)
    assert any("the keys of https://id.example cannot be fetched" in one for one in told)


async def test_a_reload_keeps_the_keys_of_issuers_and_the_accounts_of_callers(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_bytes(key_set(rsa("a")))
    file = FilePath(str(tmp_path / "keys.json"))
    same = Jwt(issuer="https://same.example", audience="dragoman")
    moved = Jwt(issuer="https://moved.example", audience="dragoman", jwks="https://moved.example/keys")
    filed = Jwt(issuer="https://filed.example", audience="dragoman", jwks_file=file)
    before = admission_of(Auth(jwt=(same, moved, filed)), quiet)
    after_move = Jwt(issuer="https://moved.example", audience="dragoman")
    new = Jwt(issuer="https://new.example", audience="dragoman")
    after = admission_of(Auth(jwt=(new, filed, after_move, replace(same, audience="gateway"))), quiet, before=before)
    assert after.accounts is before.accounts
    kept = [name for name, keys in after.key_sets.items() if keys is before.key_sets.get(name)]
    assert kept == ["https://same.example"]
    assert set(after.key_sets) == {one.issuer for one in (new, filed, after_move, same)}
