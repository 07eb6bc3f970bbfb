"""Security schemes and requirements of cards, in both shapes.

Rules of this module:

- 0.3 (kind shape) tells a scheme by ``type`` and a requirement is ``{scheme: [scopes]}``; 1.0 and the 0.3 proto wrap:
  ``{httpAuthSecurityScheme: {..}}`` and ``{schemes: {scheme: {list: [scopes]}}}``. Reading takes either, per object.
- 1.0 allows one OAuth flow per scheme. A scheme with several is split: the first flow, in the order of ``FLOWS``, keeps
  the scheme's name, the others get ``name-flow``; a requirement that names it becomes one alternative per flow.
- Reading works on trees and leaves alone what it does not know; writing starts from structs.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from ..model import SecurityRequirement, SecurityScheme
from .down import Writing
from .trees import camelised
from .up import Reading

Tree: TypeAlias = dict[str, Any]

#: Member of the wrapper -> ``type`` of the kind shape.
TYPES = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
_MEMBERS = {kind: member for member, kind in TYPES.items()}
_MARKS = {"type", *TYPES}
#: OAuth flows, the one that keeps the scheme's name first.
FLOWS = ("authorizationCode", "clientCredentials", "implicit", "password", "deviceCode")

Split: TypeAlias = dict[str, tuple[str, ...]]


def up_schemes(schemes: Tree, r: Reading) -> tuple[Tree, Split]:
    """Schemes of either shape to the wrapped one, and which names became several."""
    out: Tree = {}
    split: Split = {}
    for name, scheme in schemes.items():
        wrapped = _wrapped(camelised(scheme)) if type(scheme) is dict else None
        if wrapped is not None and "in_" in scheme:
            r.forgive(f"in_ in security scheme {name} taken as in")
        if wrapped is None:
            r.forgive(f"security scheme {name} of unknown type ignored")
            continue
        parts = _one_flow_each(name, *wrapped)
        out |= parts
        if len(parts) > 1:
            split[name] = tuple(parts)
            r.lose("several-oauth-flows")
    return out, split


def _wrapped(scheme: Tree) -> tuple[str, Tree] | None:
    """Member name and content of a scheme in either shape."""
    for member in TYPES:
        if type(scheme.get(member)) is dict:
            return member, scheme[member]
    kind = scheme.get("type")
    if type(kind) is not str or kind not in _MEMBERS:
        return None
    names = {"in": "location"} if kind == "apiKey" else {}
    return _MEMBERS[kind], {names.get(key, key): value for key, value in scheme.items() if key not in _MARKS}


def _one_flow_each(name: str, member: str, content: Tree) -> Tree:
    flows = content.get("flows")
    found = [flow for flow in FLOWS if flows.get(flow) is not None] if type(flows) is dict else []
    if len(found) < 2 or type(flows) is not dict:
        return {name: {member: content}}
    return {
        (name if index == 0 else f"{name}-{flow}"): {member: {**content, "flows": {flow: flows[flow]}}}
        for index, flow in enumerate(found)
    }


def up_requirements(requirements: list[Any], split: Split) -> list[Any]:
    """Requirements of either shape to the wrapped one, alternatives added for schemes that were split."""
    out: list[Any] = []
    for requirement in requirements:
        if type(requirement) is not dict:
            continue
        schemes = requirement.get("schemes")
        plain = schemes if type(schemes) is dict else requirement
        for alternative in _alternatives({name: _scopes(scopes) for name, scopes in plain.items()}, split):
            if alternative not in out:
                out.append(alternative)
    return out


def _scopes(scopes: Any) -> Any:
    listed = scopes.get("list") if type(scopes) is dict else scopes
    return {"list": listed} if type(listed) is list and listed else {}


def _alternatives(schemes: Tree, split: Split) -> list[Tree]:
    choices: list[Tree] = [{}]
    for name, scopes in schemes.items():
        choices = [{**choice, each: scopes} for each in split.get(name, (name,)) for choice in choices]
    return [{"schemes": choice} for choice in choices]


def down_schemes(schemes: dict[str, SecurityScheme], w: Writing) -> Tree:
    """Schemes for a 0.3 card: what came with 1.0 is left out."""
    out: Tree = {}
    for name, scheme in schemes.items():
        wrapped: Tree = msgspec.to_builtins(scheme)
        flows = wrapped.get("oauth2SecurityScheme", {}).get("flows", {})
        if flows.pop("deviceCode", None) is not None:
            w.lose("device-code-flow")
        if flows.get("authorizationCode", {}).pop("pkceRequired", False):
            w.lose("pkce-required")
        out[name] = kind_scheme(wrapped) if w.kind else wrapped
    return out


def kind_scheme(wrapped: Tree) -> Tree:
    """A wrapped scheme told by ``type``. 0.3 flows must have scopes, so an absent map becomes an empty one."""
    for member, content in wrapped.items():
        out = {"type": TYPES[member], **content}
        if member == "apiKeySecurityScheme":
            out["in"] = out.pop("location")
        if member == "oauth2SecurityScheme":
            out["flows"] = {name: {"scopes": {}, **flow} for name, flow in content["flows"].items()}
        return out
    return {}


def down_requirements(requirements: tuple[SecurityRequirement, ...], kind: bool) -> list[Tree]:
    """Requirements for a 0.3 card of either shape."""
    if not kind:
        return [msgspec.to_builtins(requirement) for requirement in requirements]
    return [{name: list(scopes.list) for name, scopes in each.schemes.items()} for each in requirements]
