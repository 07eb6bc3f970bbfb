"""Cards of every version and state of repair are read, and written for every reader."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import model
from dragoman.dialects import v03, v03_proto, v1
from dragoman.dialects.base import Dialect, Notes
from dragoman.dialects.cards import dump_card, load_card
from dragoman.errors import PeerError, VersionNotSupportedError
from dragoman.model import AgentCard, AgentInterface, SecurityRequirement, StringList
from tests.dialects.vectors import CASES, text
from tests.oracle import messages

[SMALL, FULL] = [case for case in CASES if case.op is model.GET_EXTENDED_AGENT_CARD and case.side == "reply"]
ONE = SMALL.bodies["1.0"] | {
    "supportedInterfaces": [{"url": "https://a.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
}
OLD = SMALL.bodies["kind"]
SIGNATURE = {"protected": "e30", "signature": "c2ln"}


def load(card: Any, notes: Notes | None = None) -> AgentCard:
    return load_card(text(card), notes)


def without(card: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in card.items() if key not in keys}


@pytest.mark.parametrize("shape", ["1.0", "kind"])
@pytest.mark.parametrize("case", [SMALL, FULL], ids=["small", "full"])
def test_a_good_card_needs_no_forgiveness(case: Any, shape: str) -> None:
    notes = Notes()
    assert load(case.bodies[shape], notes) == case.canonical
    assert (notes.forgiven, notes.lost) == ([], [])


@pytest.mark.parametrize("case", [SMALL, FULL], ids=["small", "full"])
def test_a_hybrid_reads_as_itself_and_as_either_version(case: Any) -> None:
    hybrid = json.loads(dump_card(case.canonical, "hybrid"))
    assert load(hybrid) == case.canonical
    assert load(without(hybrid, "supportedInterfaces")) == case.canonical
    assert hybrid["protocolVersion"] == "0.3.0"
    assert hybrid["url"] and hybrid["preferredTransport"]


def test_schemes_of_a_hybrid_are_told_in_both_ways() -> None:
    schemes = json.loads(dump_card(FULL.canonical, "hybrid"))["securitySchemes"]
    assert schemes["http"] == {
        "type": "http",
        "scheme": "Bearer",
        "bearerFormat": "JWT",
        "httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"},
    }
    assert schemes["key"]["in"] == "header"


@pytest.mark.parametrize(
    ("body", "lacking"),
    [
        ({}, "no name and no supportedInterfaces (or url)"),
        ({"name": "n"}, "no supportedInterfaces (or url)"),
        ({"name": "n", "supportedInterfaces": []}, "no supportedInterfaces (or url)"),
        ({"url": "https://a.example"}, "no name"),
        (ONE | {"supportedInterfaces": []}, "no supportedInterfaces (or url)"),
        (ONE | {"name": ""}, "no name"),
        ([], "no JSON object"),
        (None, "no JSON object"),
    ],
)
def test_what_is_no_card_is_said_with_what_is_missing(body: Any, lacking: str) -> None:
    with pytest.raises(PeerError) as caught:
        load(body)
    assert lacking in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"<html>login</html>", b"", b"\xff", b"[" * 10_000, b'{"name":' + b"[" * 300 + b"]" * 300 + b"}"]
)
def test_what_is_no_json_is_no_card(body: bytes) -> None:
    with pytest.raises(PeerError, match="not JSON"):
        load_card(body)


@pytest.mark.parametrize(
    "key", ["description", "version", "capabilities", "defaultInputModes", "defaultOutputModes", "skills"]
)
@pytest.mark.parametrize("card", [ONE, OLD], ids=["1.0", "0.3"])
def test_an_absent_member_is_its_default_and_noted(card: Any, key: str) -> None:
    notes = Notes()
    found = load(without(card, key), notes)
    assert not msgspec.to_builtins(found)[key]
    assert any(key in note for note in notes.forgiven)


@pytest.mark.parametrize(
    ("changes", "interfaces"),
    [
        ({}, [("https://a.example/", "JSONRPC", "0.3")]),
        ({"preferredTransport": None}, [("https://a.example/", "JSONRPC", "0.3")]),
        ({"preferredTransport": "GRPC", "protocolVersion": "0.2.9"}, [("https://a.example/", "GRPC", "0.3")]),
        ({"protocolVersion": None}, [("https://a.example/", "JSONRPC", "0.3")]),
        (
            {
                "additionalInterfaces": [
                    {"url": "https://a.example/", "transport": "JSONRPC"},
                    {"url": "https://b.example/", "transport": "GRPC"},
                ]
            },
            [("https://a.example/", "JSONRPC", "0.3"), ("https://b.example/", "GRPC", "0.3")],
        ),
        (
            {
                "url": None,
                "additionalInterfaces": [{"url": "https://b.example/", "transport": "HTTP+JSON"}, "nonsense"],
            },
            [("https://b.example/", "HTTP+JSON", "0.3")],
        ),
        (
            {
                "supportedInterfaces": [
                    {"url": "https://c.example/", "protocolBinding": "GRPC", "protocolVersion": "1.0.1"}
                ]
            },
            [("https://c.example/", "GRPC", "1.0")],
        ),
        (
            {
                "supportedInterfaces": [
                    {"url": "https://c.example/", "transport": "GRPC", "protocolVersion": "v1.0"},
                    {"url": ""},
                ]
            },
            [("https://c.example/", "GRPC", "1.0")],
        ),
        (
            {"supportedInterfaces": [{"url": "https://c.example/", "protocolBinding": "GRPC"}]},
            [("https://c.example/", "GRPC", "")],
        ),
    ],
)
def test_interfaces_are_read_from_either_version(changes: Any, interfaces: list[tuple[str, str, str]]) -> None:
    card = load(OLD | changes)
    found = [(each.url, each.protocol_binding, each.protocol_version) for each in card.supported_interfaces]
    assert found == interfaces


def test_a_patch_number_is_cut_off_a_card_that_is_otherwise_good() -> None:
    notes = Notes()
    card = load(ONE | {"supportedInterfaces": [ONE["supportedInterfaces"][0] | {"protocolVersion": "1.0.0"}]}, notes)
    assert card.supported_interfaces[0].protocol_version == "1.0"
    assert len(notes.forgiven) == 1


def test_snake_case_names_are_read() -> None:
    card = {
        "name": "n",
        "supported_interfaces": [{"url": "u", "protocol_binding": "GRPC", "protocol_version": "1.0"}],
        "security_schemes": {"my_key": {"api_key_security_scheme": {"location": "query", "name": "k"}}},
        "default_input_modes": ["a/b"],
    }
    found = load(card)
    assert found.supported_interfaces == (AgentInterface(url="u", protocol_binding="GRPC", protocol_version="1.0"),)
    assert found.default_input_modes == ("a/b",)
    key = found.security_schemes["my_key"].api_key_security_scheme
    assert key is not None and key.location == "query"


@pytest.mark.parametrize("where", ["in", "in_", "location"])
def test_the_place_of_an_api_key_is_read_however_it_is_called(where: str) -> None:
    card = load(OLD | {"securitySchemes": {"k": {"type": "apiKey", where: "header", "name": "X-Key"}}})
    key = card.security_schemes["k"].api_key_security_scheme
    assert key is not None and (key.location, key.name) == ("header", "X-Key")


def test_a_scheme_of_unknown_type_is_ignored_and_noted() -> None:
    notes = Notes()
    card = load(OLD | {"securitySchemes": {"odd": {"type": "retina"}, "worse": 1, "ok": {"type": "mutualTLS"}}}, notes)
    assert list(card.security_schemes) == ["ok"]
    assert any("odd" in note for note in notes.forgiven) and any("worse" in note for note in notes.forgiven)


def requirement(**schemes: tuple[str, ...]) -> SecurityRequirement:
    return SecurityRequirement(schemes={name: StringList(list=scopes) for name, scopes in schemes.items()})


@pytest.mark.parametrize(
    "given",
    [
        {"security": [{"a": ["x"]}, {}]},
        {"securityRequirements": [{"a": ["x"]}, {"schemes": {}}]},
        {"securityRequirements": [{"schemes": {"a": ["x"]}}], "security": [{"a": ["x"]}, {}]},
        {"security": [{"schemes": {"a": {"list": ["x"]}}}, {"schemes": {}}]},
    ],
)
@pytest.mark.parametrize("card", [ONE, OLD], ids=["1.0", "0.3"])
def test_requirements_are_read_in_either_shape_and_merged(card: Any, given: Any) -> None:
    assert load(card | given).security_requirements == (requirement(a=("x",)), requirement())


FLOWS = {
    "password": {"tokenUrl": "t", "scopes": {}},
    "clientCredentials": {"tokenUrl": "t", "scopes": {"s": "S"}},
    "authorizationCode": {"authorizationUrl": "a", "tokenUrl": "t", "scopes": {}},
}


def test_a_scheme_with_several_flows_is_split_and_its_requirements_with_it() -> None:
    notes = Notes()
    skill = {"id": "s", "name": "s", "description": "", "tags": ["t"], "security": [{"o": ["s"]}]}
    card = load(
        OLD
        | {
            "securitySchemes": {"o": {"type": "oauth2", "flows": FLOWS}, "k": {"type": "mutualTLS"}},
            "security": [{"o": ["s"], "k": []}],
            "skills": [skill],
        },
        notes,
    )
    assert list(card.security_schemes) == ["o", "o-clientCredentials", "o-password", "k"]
    first = card.security_schemes["o"].oauth2_security_scheme
    assert first is not None and first.flows.authorization_code is not None and first.flows.password is None
    names = ("o", "o-clientCredentials", "o-password")
    assert card.security_requirements == tuple(requirement(**{name: ("s",)}, k=()) for name in names)
    assert card.skills[0].security_requirements == tuple(requirement(**{name: ("s",)}) for name in names)
    assert notes.lost == ["several-oauth-flows"]


@pytest.mark.parametrize(
    "given",
    [
        {"supportsAuthenticatedExtendedCard": True},
        {"supportsExtendedAgentCard": True},
        {"capabilities": {"supportsExtendedAgentCard": True}},
        {"capabilities": {"extendedAgentCard": True}, "supportsAuthenticatedExtendedCard": False},
    ],
)
def test_every_name_of_the_extended_card_flag_is_read(given: Any) -> None:
    assert load(OLD | given).capabilities.extended_agent_card is True


def test_state_transition_history_is_noted_as_lost() -> None:
    notes = Notes()
    load(OLD | {"capabilities": {"streaming": True, "stateTransitionHistory": True}}, notes)
    assert (notes.forgiven, notes.lost) == ([], ["state-transition-history"])


def test_an_extension_without_uri_is_ignored() -> None:
    card = load(OLD | {"capabilities": {"extensions": [{"description": "x"}, {"uri": "u"}]}})
    assert [each.uri for each in card.capabilities.extensions] == ["u"]


# Writing


@pytest.mark.parametrize("shape", ["0.3", "hybrid"])
def test_a_signature_does_not_survive_a_change_of_shape(shape: Any) -> None:
    card = load(ONE | {"supportedInterfaces": SMALL.bodies["1.0"]["supportedInterfaces"], "signatures": [SIGNATURE]})
    notes = Notes()
    assert card.signatures
    assert "signatures" not in json.loads(dump_card(card, shape, notes))
    assert notes.lost == ["card-signature"]
    assert json.loads(dump_card(card, "1.0"))["signatures"] == [SIGNATURE]


def test_a_signature_of_a_0_3_card_is_dropped_when_read() -> None:
    notes = Notes()
    assert load(OLD | {"signatures": [SIGNATURE]}, notes).signatures == ()
    assert notes.lost == ["card-signature"]


def test_a_card_without_a_0_3_interface_has_no_0_3_shape() -> None:
    card = load(ONE)
    with pytest.raises(VersionNotSupportedError):
        dump_card(card, "0.3")
    assert dump_card(card, "hybrid") == dump_card(card, "1.0")


def test_a_0_3_card_offers_only_what_a_0_3_client_can_call() -> None:
    offered = [
        AgentInterface(url="https://one.example", protocol_binding="JSONRPC", protocol_version="1.0"),
        AgentInterface(url="https://t.example", protocol_binding="JSONRPC", protocol_version="0.3", tenant="acme"),
        AgentInterface(url="https://a.example", protocol_binding="HTTP+JSON", protocol_version="0.3"),
        AgentInterface(url="https://b.example", protocol_binding="GRPC", protocol_version=""),
    ]
    notes = Notes()
    card = msgspec.structs.replace(load(ONE), supported_interfaces=tuple(offered))
    written = json.loads(dump_card(card, "0.3", notes))
    assert (written["url"], written["preferredTransport"]) == ("https://a.example", "HTTP+JSON")
    assert written["additionalInterfaces"] == [{"url": "https://b.example", "transport": "GRPC"}]
    assert notes.lost == ["interface-version"]


def test_what_came_with_1_0_is_left_out_of_a_0_3_card() -> None:
    device = {"deviceAuthorizationUrl": "d", "tokenUrl": "t", "scopes": {}}
    code = FLOWS["authorizationCode"] | {"pkceRequired": True}
    schemes = {
        "device": {"oauth2SecurityScheme": {"flows": {"deviceCode": device}}},
        "code": {"oauth2SecurityScheme": {"flows": {"authorizationCode": code}}},
    }
    notes = Notes()
    card = load(SMALL.bodies["1.0"] | {"securitySchemes": schemes})
    written = json.loads(dump_card(card, "0.3", notes))["securitySchemes"]
    assert written["device"] == {"type": "oauth2", "flows": {}}
    assert written["code"]["flows"] == {"authorizationCode": FLOWS["authorizationCode"]}
    assert notes.lost == ["device-code-flow", "pkce-required"]


@pytest.mark.parametrize("dialect", [v1.JSON, v1.PROTOBUF, v03.JSON, v03_proto.JSON, v03_proto.PROTOBUF])
@pytest.mark.parametrize("case", [SMALL, FULL], ids=["small", "full"])
def test_the_extended_card_crosses_every_face(dialect: Dialect, case: Any) -> None:
    written = dialect.dump_reply(model.GET_EXTENDED_AGENT_CARD, case.canonical)
    read = dialect.load_reply(model.GET_EXTENDED_AGENT_CARD, written)
    if dialect is v03_proto.PROTOBUF:  # no presence: false is absent
        streaming = msgspec.structs.replace(case.canonical.capabilities, push_notifications=None)
        assert read == msgspec.structs.replace(case.canonical, capabilities=streaming)
    else:
        assert read == case.canonical


def test_0_3_grpc_has_the_card_of_the_proto() -> None:
    written = v03_proto.PROTOBUF.dump_reply(model.GET_EXTENDED_AGENT_CARD, FULL.canonical)
    card: Any = messages("0.3")["AgentCard"].FromString(written)
    assert card.security[0].schemes["oauth"].list == ["read"]
    assert card.security_schemes["key"].api_key_security_scheme.location == "header"
    assert card.supports_authenticated_extended_card and card.protocol_version == "0.3.0"
    assert card.skills[0].security[0].schemes.keys() == {"http"}


@pytest.mark.parametrize("dialect", [v1.PROTOBUF, v03_proto.PROTOBUF])
def test_a_grpc_card_without_anything_is_none(dialect: Dialect) -> None:
    with pytest.raises(PeerError, match="not an agent card"):
        dialect.load_reply(model.GET_EXTENDED_AGENT_CARD, b"")
