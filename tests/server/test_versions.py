"""Which version a request is read in, on each binding, and what an unserved one is told (1.0 §3.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.faces import Face
from dragoman.model import GET_TASK, SEND_MESSAGE, GetTaskRequest
from dragoman.protocol.operations import BINDINGS, Binding, Version
from tests.asgi_driver import Answer
from tests.server.callers import Bench, Wire, bench, check_failure, failure, good_call, reply_task, send, sending, wire

#: What a request says, and what that means; None: nothing that we serve.
ASKED: list[tuple[str, str | None, str, Version | None]] = [
    # id, header, query, version
    ("1.0", "1.0", "", "1.0"),
    ("0.3", "0.3", "", "0.3"),
    ("patch of 1.0", "1.0.1", "", "1.0"),
    ("patch of 0.3", "0.3.26", "", "0.3"),
    ("blanks around", "  1.0 ", "", "1.0"),
    ("absent", None, "", "0.3"),
    ("empty", "", "", "0.3"),
    ("query alone", None, "A2A-Version=1.0", "1.0"),
    ("query in lower case", None, "a2a-version=1.0", "1.0"),
    ("empty header, query", "", "A2A-Version=1.0", "1.0"),
    ("header wins over query", "0.3", "A2A-Version=1.0", "0.3"),
    ("major alone", "1", "", None),
    ("v1.0", "v1.0", "", None),
    ("newer", "1.1", "", None),
    ("older", "0.2", "", None),
    ("list", "1.0, 0.3", "", None),
    ("list of one twice", "1.0,1.0", "", None),
    ("word", "latest", "", None),
    ("four numbers", "1.0.0.0", "", None),
    ("other digits", "١.٠", "", None),
    ("unknown in query", None, "A2A-Version=9.9", None),
]


def asking(binding: Binding, version: Version, header: str | None, query: str) -> Wire:
    """A good request of that version that says something about versions."""
    made = wire(Face(binding, version), SEND_MESSAGE, sending("hello"))
    headers = {name: value for name, value in made.headers.items() if name != "a2a-version"}
    if header is not None:
        headers["A2A-Version"] = header.encode().decode("latin-1")
    return made._replace(headers=headers, path=made.path + ("?" + query if query else ""))


def served_as(face: Face, answer: Answer) -> bool:
    return reply_task(face, answer).artifacts[0].parts[0].text == "hello"


@pytest.mark.parametrize(("header", "query", "version"), [pytest.param(*row[1:], id=row[0]) for row in ASKED])
@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_the_version_is_what_the_request_asks_for(
    binding: Binding, header: str | None, query: str, version: Version | None
) -> None:
    server = bench()
    answer = await send(server.app, asking(binding, version or "1.0", header, query))
    if version is not None:
        assert served_as(Face(binding, version), answer)
    else:
        found = check_failure(Face(binding, "1.0"), answer, "version")
        assert found.metadata["supportedVersions"] == "1.0,0.3"


@pytest.mark.parametrize(("header", "query", "version"), [pytest.param(*row[1:], id=row[0]) for row in ASKED])
async def test_a_grpc_service_is_of_one_version_and_the_metadata_must_not_differ(
    header: str | None, query: str, version: Version | None
) -> None:
    server = bench()
    for service in ("1.0", "0.3"):
        face = Face("GRPC", service)
        answer = await send(server.app, asking("GRPC", face.version, header, query))
        if version == service:
            assert served_as(face, answer)
        else:
            check_failure(face, answer, "version")


@pytest.mark.parametrize("binding", BINDINGS)
async def test_an_interface_of_one_version_names_it_to_those_who_ask_for_the_other(binding: Binding) -> None:
    server = bench(faces=[Face(binding, "1.0")])
    answer = await send(server.app, asking(binding, "1.0", "0.3", ""))
    found = check_failure(Face(binding, "1.0"), answer, "version")
    assert found.metadata["supportedVersions"] == "1.0"
    assert "1.0" in found.message


async def test_a_version_error_is_answered_under_the_id_of_the_request() -> None:
    request = asking("JSONRPC", "1.0", "7.0", "")
    body = request.body.replace(b'"id":1', b'"id":"q-7"')
    answer = await send(bench().app, request._replace(body=body))
    assert json.loads(answer.body)["id"] == "q-7"


# -- lenient: what names no version is told by its method, route or service


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("header", [None, ""])
async def test_leniently_the_name_decides_when_no_version_is_sent(
    binding: Binding, version: Version, header: str | None
) -> None:
    server = bench(lenient=True)
    assert served_as(Face(binding, version), await send(server.app, asking(binding, version, header, "")))


@pytest.mark.parametrize("binding", BINDINGS)
async def test_strictly_a_1_0_request_without_version_is_refused(binding: Binding) -> None:
    answer = await send(bench().app, asking(binding, "1.0", None, ""))
    if binding == "GRPC":
        check_failure(Face(binding, "1.0"), answer, "version")
    else:
        found = check_failure(Face(binding, "0.3"), answer, "no method")
        assert "A2A-Version: 1.0" in found.message


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("lenient", [True, False])
async def test_a_version_that_was_sent_is_never_overruled(binding: Binding, lenient: bool) -> None:
    server = bench(lenient=lenient)
    answer = await send(server.app, asking(binding, "1.0", "0.3", ""))
    check_failure(
        Face(binding, "1.0" if binding == "GRPC" else "0.3"), answer, "version" if binding == "GRPC" else "no method"
    )


@pytest.mark.parametrize("binding", BINDINGS)
async def test_leniently_an_unknown_version_is_still_refused(binding: Binding) -> None:
    check_failure(
        Face(binding, "1.0"), await send(bench(lenient=True).app, asking(binding, "1.0", "3.1", "")), "version"
    )


async def test_leniently_a_bad_request_is_refused_in_the_version_whose_name_it_uses() -> None:
    server = bench(lenient=True)
    for version, method in (("1.0", "SendMessage"), ("0.3", "message/send")):
        body = json.dumps({"jsonrpc": "2.0", "id": 3, "method": method, "params": {}}).encode()
        answer = await send(server.app, Wire("POST", "/", {"content-type": "application/json"}, body))
        check_failure(Face("JSONRPC", version), answer, "params")  # type: ignore[arg-type]  # one of the two


async def test_a_route_that_both_versions_could_own_follows_the_header() -> None:
    """``/v1/...`` is the 0.3 prefix, and a 1.0 tenant may be called v1."""
    server = bench()
    old = Wire("GET", "/v1/tasks/ghost", {"a2a-version": "0.3"}, b"")
    new = Wire("GET", "/v1/tasks/ghost", {"a2a-version": "1.0"}, b"")
    check_failure(Face("HTTP+JSON", "0.3"), await send(server.app, old), "task not found")
    check_failure(Face("HTTP+JSON", "1.0"), await send(server.app, new), "task not found")


async def test_a_binding_that_is_not_served_says_so() -> None:
    server = bench(faces=[Face("JSONRPC", "1.0")])
    for binding in ("GRPC", "HTTP+JSON"):
        face: Face = Face(binding, "1.0")
        found = check_failure(face, await send(server.app, asking(face.binding, "1.0", "1.0", "")), "no method")
        assert "agent card" in found.message
    await good_call(server.app, Face("JSONRPC", "1.0"))


# -- tenants (1.0 §8.3.2, quirk Q2)


async def tenant_seen(server: Bench, face: Face, **more: Any) -> str | None:
    answer = await send(server.app, wire(face, SEND_MESSAGE, sending("tenant", tenant=more.pop("field", "")), **more))
    text = reply_task(face, answer).artifacts[0].parts[0].text
    return text if isinstance(text, str) else None


@pytest.mark.parametrize("binding", BINDINGS)
async def test_the_tenant_of_the_message_reaches_the_agent(binding: Binding) -> None:
    assert await tenant_seen(bench(), Face(binding, "1.0"), field="acme") == "acme"
    assert await tenant_seen(bench(), Face(binding, "1.0")) == "none"


async def test_the_tenant_of_the_route_reaches_the_agent() -> None:
    face = Face("HTTP+JSON", "1.0")
    assert await tenant_seen(bench(), face, tenant="acme", field="acme") == "acme"
    assert await tenant_seen(bench(), face, tenant="a b/c") == "a b/c"


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        (
            "POST",
            "/acme/message:send",
            b'{"tenant":"other","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}',
        ),
        ("GET", "/acme/tasks/t?tenant=other", b""),
        ("GET", "/acme/tasks?tenant=other", b""),
    ],
)
async def test_a_tenant_that_differs_from_the_route_is_refused(verb: str, path: str, body: bytes) -> None:
    request = Wire(verb, path, {"a2a-version": "1.0", "content-type": "application/json"}, body)
    found = check_failure(Face("HTTP+JSON", "1.0"), await send(bench().app, request), "params")
    assert found.fields == ("tenant",)


@pytest.mark.parametrize("binding", BINDINGS)
async def test_the_task_of_one_tenant_does_not_exist_for_another(binding: Binding) -> None:
    server, face = bench(), Face(binding, "1.0")
    task = reply_task(face, await send(server.app, wire(face, SEND_MESSAGE, sending("hi", tenant="acme"))))
    for tenant, seen in (("acme", True), ("other", False), ("", False)):
        answer = await send(server.app, wire(face, GET_TASK, GetTaskRequest(id=task.id, tenant=tenant)))
        if seen:
            assert answer.status == 200
        else:
            check_failure(face, answer, "task not found")


async def test_a_task_called_tasks_wins_over_a_tenant_of_that_name() -> None:
    answer = await send(bench().app, Wire("GET", "/tasks/tasks", {"a2a-version": "1.0"}, b""))
    found = failure(Face("HTTP+JSON", "1.0"), answer)
    assert (found.reason, found.metadata["taskId"]) == ("TASK_NOT_FOUND", "tasks")
