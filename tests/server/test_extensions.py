"""Extensions: asked for under either spelling, answered under the version's own, required ones enforced."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from dragoman.faces import Face
from dragoman.model import (
    GET_EXTENDED_AGENT_CARD,
    GET_TASK,
    SEND_MESSAGE,
    SEND_STREAMING_MESSAGE,
    SUBSCRIBE_TO_TASK,
    AgentExtension,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    SubscribeToTaskRequest,
)
from tests.asgi_driver import Exchange, scope
from tests.server.callers import CARD, EACH_FACE, bench, check_failure, reply_task, send, sending, wire

A, B = "urn:ext:a", "urn:ext:b"
TWO = replace(CARD, capabilities=replace(CARD.capabilities, extensions=(AgentExtension(uri=A), AgentExtension(uri=B))))
STRICT = replace(
    CARD,
    capabilities=replace(CARD.capabilities, extensions=(AgentExtension(uri=A, required=True), AgentExtension(uri=B))),
)
ANSWERED_UNDER = {"1.0": "a2a-extensions", "0.3": "x-a2a-extensions"}


@pytest.mark.parametrize("spelling", ["a2a-extensions", "x-a2a-extensions", "A2A-Extensions", "X-A2A-Extensions"])
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_both_spellings_are_read_and_the_answer_uses_the_versions_own(face: Face, spelling: str) -> None:
    request = wire(face, SEND_MESSAGE, sending("extensions"), headers={spelling: f"{A}, urn:unknown"})
    answer = await send(bench(TWO).app, request)
    assert reply_task(face, answer).artifacts[0].parts[0].text == A
    assert answer.headers[ANSWERED_UNDER[face.version]] == A
    other = ANSWERED_UNDER["0.3" if face.version == "1.0" else "1.0"]
    assert other not in answer.headers


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_repeated_fields_and_lists_are_one_list_each_uri_once(face: Face) -> None:
    request = wire(face, SEND_MESSAGE, sending("extensions"))
    raw = [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    raw += [
        (b"a2a-extensions", B.encode()),
        (b"a2a-extensions", f"{A} ,,{B}".encode()),
        (b"x-a2a-extensions", A.encode()),
    ]
    exchange = Exchange(bench(TWO).app, {**scope(request.method, request.path, {}), "headers": raw}, [request.body])
    answer = await exchange.run()
    assert answer.headers[ANSWERED_UNDER[face.version]] == f"{B}, {A}"


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_what_nobody_asked_for_is_not_answered(face: Face) -> None:
    answer = await send(bench(TWO).app, wire(face, SEND_MESSAGE, sending("extensions")))
    assert reply_task(face, answer).artifacts[0].parts[0].text == "none"
    assert not {"a2a-extensions", "x-a2a-extensions"} & answer.headers.keys()


@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_stream_names_the_activated_in_its_head(face: Face) -> None:
    request = wire(face, SEND_STREAMING_MESSAGE, sending("hi"), headers={"a2a-extensions": A})
    answer = await send(bench(TWO).app, request)
    assert answer.headers[ANSWERED_UNDER[face.version]] == A


REFUSED = [
    (SEND_MESSAGE, sending("hi")),
    (SEND_STREAMING_MESSAGE, sending("hi")),
    (GET_TASK, GetTaskRequest(id="t")),
    (SUBSCRIBE_TO_TASK, SubscribeToTaskRequest(id="t")),
    (GET_EXTENDED_AGENT_CARD, GetExtendedAgentCardRequest()),
]


@pytest.mark.parametrize(("op", "request_"), REFUSED, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("asked", ["", B, "urn:ext:A"])
@pytest.mark.parametrize("face", EACH_FACE, ids=str)
async def test_a_call_without_a_required_extension_is_refused_and_names_it(
    face: Face, op: object, request_: object, asked: str
) -> None:
    server = bench(STRICT)
    headers = {"a2a-extensions": asked} if asked else {}
    found = check_failure(face, await send(server.app, wire(face, op, request_, headers=headers)), "extension")  # type: ignore[arg-type]  # a table of pairs
    assert A in found.message and B not in found.message
    if not (face.binding == "GRPC" and face.version == "0.3"):
        assert found.metadata["extensions"] == A
    good = await send(server.app, wire(face, SEND_MESSAGE, sending("hi"), headers={"a2a-extensions": A}))
    assert reply_task(face, good).id
