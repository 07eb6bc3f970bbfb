"""Agent cards: 1.0, 0.3, mixtures of both and half-broken ones, to the canonical card; and out again in any shape.

Rules of this module:

- A card needs a name and an interface, else it is none: HTTP 200 with ``{}`` is an error that says what is missing.
  Everything else that is REQUIRED has a default, and its absence is noted.
- ``supportedInterfaces`` wins over ``url``. Interfaces of a 0.3 card carry the version "0.3"; patch numbers are cut
  off, 0.2.x is taken for 0.3.
- A signature covers the shape it was made for and is dropped when the shape changes. A 1.0 card keeps its own.
- The mixture that readers of both versions understand has every key of both; its schemes are told by wrapper and
  ``type`` at once.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..errors import PeerError, VersionNotSupportedError
from ..model import AgentCard, AgentInterface
from .base import Notes
from .down import Tree, Writing
from .lenient import fit
from .reading import FAILURES, Unparsable, Unreadable, blame, excerpt, shallow, structure, tree
from .schemes import down_requirements, down_schemes, kind_scheme, up_requirements, up_schemes
from .trees import camelised
from .up import Reading

CardShape = Literal["1.0", "0.3", "hybrid"]

#: What a 0.3 card says of its version; readers look at the first two numbers.
VERSION_03 = "0.3.0"
_DEFAULT_BINDING = "JSONRPC"

_decode = msgspec.json.Decoder(AgentCard).decode
_encode = msgspec.json.Encoder().encode


# Reading


def load_card(body: bytes, notes: Notes | None = None) -> AgentCard:
    """Read a card of any version. Raises ``PeerError`` if it is none, or nothing that can be called is in it."""
    notes = notes if notes is not None else Notes()
    try:
        card = _decode(body)
    except FAILURES:
        try:
            return up_card(shallow(tree(body)), notes, body)
        except (Unparsable, Unreadable) as error:
            raise blame(error, "the agent card request", body) from error
    checked_card(card, body)
    if all(each.protocol_version == minor(each.protocol_version) for each in card.supported_interfaces):
        return card
    interfaces = [_version(msgspec.to_builtins(each), notes) for each in card.supported_interfaces]
    return msgspec.structs.replace(card, supported_interfaces=msgspec.convert(interfaces, tuple[AgentInterface, ...]))


def checked_card(card: AgentCard, body: bytes) -> AgentCard:
    """Return a card that has a name and an interface. Raises ``PeerError`` for one that has not."""
    _need(card.name, card.supported_interfaces, body)
    return card


def _need(name: Any, interfaces: Any, body: bytes) -> None:
    lacking = [what for what, value in (("name", name), ("supportedInterfaces (or url)", interfaces)) if not value]
    if lacking:
        raise PeerError(f"not an agent card: no {' and no '.join(lacking)}", excerpt=excerpt(body))


def up_card(card: Any, notes: Notes, body: bytes = b"") -> AgentCard:
    """The tree of a card of any version to the canonical card. Raises ``PeerError``, ``Unreadable``."""
    if type(card) is not dict:
        raise PeerError("not an agent card: no JSON object", excerpt=excerpt(body))
    reading = Reading(notes)
    card = camelised(card, keep=("securitySchemes", "security"))
    interfaces = _interfaces(card, notes)
    _need(card.get("name"), interfaces, body)
    if not card.get("supportedInterfaces") and card.get("signatures"):
        del card["signatures"]
        reading.lose("card-signature")
    card["supportedInterfaces"] = interfaces
    _capabilities(card, reading)
    _security(card, reading)
    for key in _ONLY_03:
        card.pop(key, None)
    return structure(fit(card, AgentCard, reply=True, notes=notes), AgentCard)


_ONLY_03 = (
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "protocolVersion",
    "security",
    "supportsAuthenticatedExtendedCard",
    "supportsExtendedAgentCard",
)


def minor(version: str) -> str:
    """``Major.Minor`` of a version text: "0.3.0" and "v0.3" are "0.3"; 0.2 cards are read as 0.3."""
    short = ".".join(version.strip().lstrip("vV").split(".")[:2])
    return "0.3" if short == "0.2" else short


def _interfaces(card: Tree, notes: Notes) -> list[Tree]:
    given = card.get("supportedInterfaces")
    if type(given) is list and given:
        return [_version(each, notes) for each in given if type(each) is dict and each.get("url")]
    return _interfaces_03(card, notes)


def _version(interface: Tree, notes: Notes) -> Tree:
    version = interface.get("protocolVersion")
    if type(version) is str and minor(version) != version:
        notes.forgiven.append(f"protocolVersion {version} taken as {minor(version)}")
        return {**interface, "protocolVersion": minor(version)}
    return interface


def _interfaces_03(card: Tree, notes: Notes) -> list[Tree]:
    """``url`` first, then each other interface once."""
    version = card.get("protocolVersion")
    if type(version) is not str or not version.startswith("0.3"):
        notes.forgiven.append(f"card of protocolVersion {version!r:.40} read as 0.3")
    if not card.get("preferredTransport") and card.get("url"):
        notes.forgiven.append(f"preferredTransport absent, taken as {_DEFAULT_BINDING}")
    found = [{"url": card.get("url"), "transport": card.get("preferredTransport")}]
    more = card.get("additionalInterfaces")
    found += [each for each in more if type(each) is dict] if type(more) is list else []
    out: list[Tree] = []
    for each in found:
        binding = each.get("transport") or each.get("protocolBinding") or _DEFAULT_BINDING
        interface = {"url": each.get("url"), "protocolBinding": binding, "protocolVersion": "0.3"}
        if interface["url"] and interface not in out:
            out.append(interface)
    return out


def _capabilities(card: Tree, r: Reading) -> None:
    capabilities = card.get("capabilities")
    if type(capabilities) is not dict:
        r.forgive("capabilities absent, taken as none")
        capabilities = card["capabilities"] = {}
    for holder in (card, capabilities):
        for key in ("supportsAuthenticatedExtendedCard", "supportsExtendedAgentCard"):
            if type(value := holder.pop(key, None)) is bool:
                capabilities.setdefault("extendedAgentCard", value)
    if capabilities.pop("stateTransitionHistory", None):
        r.lose("state-transition-history")
    extensions = capabilities.get("extensions")
    if type(extensions) is list:
        named = [each for each in extensions if type(each) is dict and each.get("uri")]
        if len(named) < len(extensions):
            r.forgive("extension without uri ignored")
        capabilities["extensions"] = named


def _security(card: Tree, r: Reading) -> None:
    schemes = card.get("securitySchemes")
    wrapped, split = up_schemes(schemes, r) if type(schemes) is dict else ({}, {})
    card["securitySchemes"] = wrapped
    _merge_requirements(card, split)
    skills = card.get("skills")
    for skill in skills if type(skills) is list else ():
        if type(skill) is dict:
            _merge_requirements(skill, split)


def _merge_requirements(holder: Tree, split: dict[str, tuple[str, ...]]) -> None:
    """``security`` of 0.3 (and of 1.0 samples) and ``securityRequirements`` into the latter."""
    both = [holder.get("securityRequirements"), holder.pop("security", None)]
    listed = [each for requirements in both if type(requirements) is list for each in requirements]
    holder["securityRequirements"] = up_requirements(listed, split)


# Writing


def dump_card(card: AgentCard, version: CardShape, notes: Notes | None = None) -> bytes:
    """Write a card for readers of ``version``; "hybrid" is for readers of both.

    A hybrid of a card without a 0.3 interface is the 1.0 card. Raises ``VersionNotSupportedError`` when a 0.3 card
    is asked for and the agent has no 0.3 interface.
    """
    if version == "0.3":
        return _encode(down_card(card, Writing(notes, kind=True)))
    if version == "1.0" or not _served_03(card):
        return _encode(card)
    return _encode(_hybrid(card, notes))


def _served_03(card: AgentCard) -> list[AgentInterface]:
    """Interfaces that a 0.3 client can use: it cannot name a tenant."""
    return [
        each for each in card.supported_interfaces if minor(each.protocol_version) in ("0.3", "") and not each.tenant
    ]


def down_card(card: AgentCard, w: Writing) -> Tree:
    """A card as 0.3 writes it, in the kind or the proto shape. Raises ``VersionNotSupportedError``."""
    out = {**_legacy(card, w), **_common(card), "capabilities": _capabilities_03(card, w)}
    if card.security_schemes:
        out["securitySchemes"] = down_schemes(card.security_schemes, w)
    out["skills"] = [_skill(skill, w) for skill in card.skills]
    if card.signatures:
        w.lose("card-signature")
    return out


_COMMON = (
    "name",
    "description",
    "provider",
    "version",
    "documentationUrl",
    "defaultInputModes",
    "defaultOutputModes",
    "iconUrl",
)


def _common(card: AgentCard) -> Tree:
    everything: Tree = msgspec.to_builtins(card)
    return {key: everything[key] for key in _COMMON if key in everything}


def _legacy(card: AgentCard, w: Writing) -> Tree:
    """The keys that only 0.3 has."""
    served = _served_03(card)
    if not served:
        raise VersionNotSupportedError("this agent has no 0.3 interface")
    if len(served) < len(card.supported_interfaces):
        w.lose("interface-version")
    first, *rest = served
    out: Tree = {
        "protocolVersion": VERSION_03,
        "url": first.url,
        "preferredTransport": first.protocol_binding,
    }
    if rest:
        out["additionalInterfaces"] = [{"url": each.url, "transport": each.protocol_binding} for each in rest]
    if card.capabilities.extended_agent_card is not None:
        out["supportsAuthenticatedExtendedCard"] = card.capabilities.extended_agent_card
    if card.security_requirements:
        out["security"] = down_requirements(card.security_requirements, w.kind)
    return out


def _capabilities_03(card: AgentCard, w: Writing) -> Tree:
    out: Tree = msgspec.to_builtins(card.capabilities)
    out.pop("extendedAgentCard", None)
    return out


def _skill(skill: Any, w: Writing) -> Tree:
    out: Tree = msgspec.to_builtins(skill)
    if out.pop("securityRequirements", None):
        out["security"] = down_requirements(skill.security_requirements, w.kind)
    return out


def _hybrid(card: AgentCard, notes: Notes | None) -> Tree:
    w = Writing(notes, kind=True)
    out: Tree = {**msgspec.to_builtins(card), **_legacy(card, w)}
    if out.pop("signatures", None):
        w.lose("card-signature")
    for name, wrapped in out.get("securitySchemes", {}).items():
        out["securitySchemes"][name] = {**kind_scheme(wrapped), **wrapped}
    for tree_, skill in zip(out["skills"], card.skills, strict=True):
        if skill.security_requirements:
            tree_["security"] = down_requirements(skill.security_requirements, True)
    return out
