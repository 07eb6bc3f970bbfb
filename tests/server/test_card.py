"""The public card over HTTP: validators, shapes by version, and urls that a caller can call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.faces import Face
from dragoman.model import GET_EXTENDED_AGENT_CARD, AgentCardSignature, AgentInterface, GetExtendedAgentCardRequest
from dragoman.server.app import A2AApp
from tests.asgi_driver import Answer, request
from tests.server.callers import CARD, EACH_FACE, bench, reply, send, wire

PATH = "/.well-known/agent-card.json"
NEW, OLD = "supportedInterfaces", "additionalInterfaces"
SIGNED = replace(CARD, signatures=(AgentCardSignature(protected="e30", signature="AA"),))


async def card(app: A2AApp, method: str = "GET", path: str = PATH, **more: Any) -> Answer:
    return await request(app, method, path, **more)


def urls(answer: Answer) -> set[str]:
    """Every url of a card of any shape."""
    value = json.loads(answer.body)
    entries = value.get(NEW, []) + value.get(OLD, [])
    return {entry["url"] for entry in entries} | ({value["url"]} if "url" in value else set())


async def test_the_card_is_cacheable_and_names_what_it_depends_on() -> None:
    answer = await card(bench().app)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.body))
    assert "max-age=" in answer.headers["cache-control"]
    assert answer.headers["vary"] == "A2A-Version"
    assert answer.headers["etag"].startswith('"')


async def test_no_shared_cache_keeps_a_card_whose_urls_a_proxy_tells_of_the_request() -> None:
    told = bench(trusted_proxies=("127.0.0.0/8",)).app
    assert (await card(told)).headers["cache-control"].startswith("private")
    placed = bench(trusted_proxies=("127.0.0.0/8",), public_url="https://agent.example").app
    assert (await card(placed)).headers["cache-control"].startswith("public")


async def test_a_head_says_the_same_and_has_no_body() -> None:
    app = bench().app
    got, head = await card(app), await card(app, "HEAD")
    assert head.status == 200 and head.body == b""
    assert head.headers == got.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_the_card_is_read_only(method: str) -> None:
    answer = await card(bench().app, method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("tags", "status"),
    [("{etag}", 304), ("W/{etag}", 304), ('"other", {etag}', 304), ("*", 304), ('"other"', 200), ("", 200), ("x", 200)],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_card_that_the_caller_has_is_not_sent_again(method: str, tags: str, status: int) -> None:
    app = bench().app
    etag = (await card(app)).headers["etag"]
    answer = await card(app, method, headers={"if-none-match": tags.replace("{etag}", etag)})
    assert answer.status == status
    assert answer.headers["etag"] == etag
    assert answer.headers["vary"] == "A2A-Version"
    if status == 304:
        assert answer.body == b"" and "content-length" not in answer.headers


@pytest.mark.parametrize(
    ("header", "keys", "missing"),
    [
        ("1.0", {NEW}, {OLD, "url", "protocolVersion", "preferredTransport"}),
        ("1.0.1", {NEW}, {OLD, "url"}),
        ("0.3", {OLD, "url", "protocolVersion", "preferredTransport"}, {NEW}),
        ("0.3.0", {OLD, "url"}, {NEW}),
        (None, {NEW, "url", "preferredTransport"}, set()),
        ("", {NEW, "url"}, set()),
        ("9.9", {NEW, "url"}, set()),
    ],
)
async def test_the_version_that_is_asked_for_decides_the_shape(
    header: str | None, keys: set[str], missing: set[str]
) -> None:
    answer = await card(bench().app, headers={} if header is None else {"A2A-Version": header})
    value = json.loads(answer.body)
    assert answer.status == 200
    assert keys <= value.keys() and not missing & value.keys()


async def test_each_shape_has_an_etag_of_its_own() -> None:
    app = bench().app
    tags = {(await card(app, headers={"a2a-version": version})).headers["etag"] for version in ("1.0", "0.3", "")}
    assert len(tags) == 3


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("header", [None, "1.0", "0.3"])
async def test_a_server_of_one_version_has_one_card_whatever_is_asked_for(version: Any, header: str | None) -> None:
    app = bench(faces=[Face("JSONRPC", version)]).app
    answer = await card(app, headers={} if header is None else {"a2a-version": header})
    assert answer.status == 200
    assert (NEW in json.loads(answer.body)) == (version == "1.0")


async def test_the_card_lists_every_face_in_order_at_the_url_that_was_asked() -> None:
    answer = await card(bench().app, headers={"host": "agent.test:8080", "a2a-version": "1.0"})
    listed = [(one["protocolVersion"], one["protocolBinding"], one["url"]) for one in json.loads(answer.body)[NEW]]
    assert [(version, binding) for version, binding, _ in listed] == [(f.version, f.binding) for f in EACH_FACE]
    assert {url for *_, url in listed} == {
        "http://agent.test:8080/",
        "agent.test:8080",
        "http://agent.test:8080",
    }


async def test_the_interfaces_of_the_agents_own_card_are_replaced() -> None:
    own = replace(
        CARD,
        supported_interfaces=(
            AgentInterface(url="http://inner:1/", protocol_binding="JSONRPC", protocol_version="1.0"),
        ),
    )
    assert not any("inner" in url for url in urls(await card(bench(own).app)))


@pytest.mark.parametrize("version", ["1.0", "0.3", ""])
async def test_no_shape_of_a_republished_card_carries_a_signature(version: str) -> None:
    value = json.loads((await card(bench(SIGNED).app, headers={"a2a-version": version})).body)
    assert not value.get("signatures")


async def test_a_configured_url_wins() -> None:
    app = bench(public_url="https://public.example/agents/one/").app
    for version in ("1.0", "0.3", ""):
        found = urls(await card(app, headers={"a2a-version": version, "host": "inner:8000"}))
        assert found and all("public.example" in url and "inner" not in url for url in found)


@pytest.mark.parametrize(
    "headers",
    [
        {"forwarded": "proto=https;host=edge.example"},
        {"x-forwarded-proto": "https", "x-forwarded-host": "edge.example"},
    ],
)
async def test_a_trusted_proxy_tells_the_url_and_a_stranger_does_not(headers: dict[str, str]) -> None:
    app = bench(trusted_proxies=["192.0.2.0/24"]).app
    told = urls(await card(app, headers={**headers, "a2a-version": "1.0"}))
    assert "https://edge.example/" in told and "edge.example:443" in told
    stranger = urls(await card(app, headers={**headers, "a2a-version": "1.0"}, client=("198.51.100.1", 5)))
    assert not any("edge" in url for url in stranger)


@pytest.mark.parametrize("host", ["0.0.0.0:8000", "[::]:8081", "", "bad host", "[::"])
async def test_no_card_names_an_address_that_nobody_can_call(host: str) -> None:
    app = bench().app
    for server in (("0.0.0.0", 8000), ("::", 8000), ("127.0.0.1", 8000)):
        found = urls(await card(app, headers={"host": host}, server=server))
        assert found and not any("0.0.0.0" in url or "[::]" in url for url in found), found


async def test_the_path_of_0_2_answers_too() -> None:
    assert (await card(bench().app, path="/.well-known/agent.json")).status == 200


@pytest.mark.parametrize("version", ["1.0", "0.3", ""])
async def test_the_card_of_a_mounted_app_names_the_mount(version: str) -> None:
    answer = await card(
        bench().app, path="/agents/one" + PATH, root_path="/agents/one", headers={"a2a-version": version}
    )
    assert answer.status == 200
    web = {url for url in urls(answer) if url.startswith("http")}
    assert web and all(url.startswith("http://agent.test/agents/one") for url in web)


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_the_extended_card_names_our_interfaces_too(face: Face) -> None:
    call = wire(face, GET_EXTENDED_AGENT_CARD, GetExtendedAgentCardRequest())
    found = reply(face, GET_EXTENDED_AGENT_CARD, await send(bench(SIGNED).app, call))
    assert found.description == "for those we know"
    assert found.signatures == ()
    assert found.supported_interfaces
    assert all("agent.test" in one.url for one in found.supported_interfaces)


async def test_many_hosts_do_not_make_the_cache_grow_without_end() -> None:
    app = bench().app
    for number in range(200):
        assert f"host{number}" in next(iter(urls(await card(app, headers={"host": f"host{number}.test"}))))
    assert len(app.published._cache) <= 64
