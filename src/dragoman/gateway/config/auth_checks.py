"""What may not stand in ``[auth]`` and ``[cors]``: each complaint is a place and a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from ...model import OPERATIONS
from ...security.algorithms import ALGORITHMS
from .auth import ANONYMOUS, Auth, Certificate, Cors, Jwt, Key, Rule
from .values import Said, meant

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:/-]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET = re.compile(r"[!-~]+")
_ORIGIN = re.compile(r"https?://(?:[a-z0-9][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_USUAL_PORT = re.compile(r"http://.*:80|https://.*:443")


def wrong(auth: Auth, upstreams: Iterable[str], *, client_ca: bool, clear: bool) -> Said:
    """Everything that is wrong with it. ``upstreams``: names that there are; ``client_ca``: certificates of callers are
    checked by the server; ``clear``: secrets may stand in the file."""
    if not _TOKEN.fullmatch(auth.api_key_header) or auth.api_key_header.lower() == "authorization":
        yield ("api_key_header",), f"{auth.api_key_header!r} is no header name for keys"
    if not (auth.anonymous or auth.key or auth.jwt or auth.certificate):
        yield (), "nobody could call: give keys, issuers or certificates, or set anonymous = true"
    yield from _each("key", auth.key, lambda one: _key(one, clear))
    yield from _each("jwt", auth.jwt, _jwt)
    yield from _each("certificate", auth.certificate, lambda one: _certificate(one, client_ca))
    yield from _taken("key", "secret", (one.secret.value for one in auth.key))
    yield from _taken("jwt", "issuer", (one.issuer for one in auth.jwt))
    yield from _taken("caller", "name", (one.name for one in auth.caller))
    names = tuple(upstreams)
    yield from ((("default", *path), text) for path, text in _rule(auth.default, names))
    yield from _each("caller", auth.caller, lambda one: _rule(one, names))
    yield from _unreachable(auth)


def _each(key: str, several: Iterable[Any], check: Callable[[Any], Said]) -> Said:
    for place, one in enumerate(several):
        yield from (((key, place, *path), text) for path, text in check(one))


def _key(one: Key, clear: bool) -> Said:
    yield from _name(one.name)
    if not _SECRET.fullmatch(one.secret.value):
        yield ("secret",), "cannot be sent: it must be visible ASCII without spaces"
    if one.secret.clear and not clear:
        cure = 'use { env = "NAME" } or { file = "path" }, or set allow_clear_secrets = true'
        yield ("secret",), f"stands in clear: {cure}"


def _name(name: str) -> Said:
    if name == ANONYMOUS:
        yield ("name",), f"{ANONYMOUS} is who shows no credentials"
    elif not _NAME.fullmatch(name):
        yield ("name",), f"{name!r} is no name: letters, digits and . _ @ : / - only"


def _jwt(one: Jwt) -> Said:
    if find_spec("joserfc") is None:
        yield (), "tokens need the package joserfc: pip install dragoman[auth]"
    if not one.issuer or "#" in one.issuer or one.issuer == "certificate":
        yield ("issuer",), f"{one.issuer!r} is no issuer"
    if not one.audiences or not all(one.audiences):
        yield ("audience",), "must name the gateway as the issuer's tokens do"
    for name in one.algorithms:
        if name not in ALGORITHMS:
            yield ("algorithms",), f"{name!r} is not one of {', '.join(ALGORITHMS)}"
    if not one.algorithms:
        yield ("algorithms",), "must have one at least"
    if one.jwks and one.jwks_file:
        yield ("jwks",), "and jwks_file are two places for the same keys"
    found_by = ("jwks", one.jwks) if one.jwks else ("issuer", one.issuer)
    if not one.jwks_file and not _is_url(found_by[1]):
        yield (found_by[0],), f"{found_by[1]!r} is no URL to fetch keys by: it must begin with https:// or http://"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        )
    except ValueError:
        return False


def _certificate(one: Certificate, client_ca: bool) -> Said:
    if find_spec("cryptography") is None:
        yield (), "client certificates need the package cryptography: pip install dragoman[auth]"
    if not client_ca:
        yield (), "needs server.tls.client_ca, the roots to check certificates of callers against"
    if not (one.subject or one.san):
        yield (), "must say which certificates: give a pattern for subject or san"
    if one.name:
        yield from _name(one.name)


def _rule(one: Rule, upstreams: tuple[str, ...]) -> Said:
    for name in one.upstreams or ():
        if name not in upstreams:
            yield ("upstreams",), f"there is no upstream {name!r}{meant(name, upstreams)}"
    for name in one.operations or ():
        if name not in OPERATIONS:
            yield ("operations",), f"{name!r} is no operation{meant(name, OPERATIONS)}"
    if one.burst is not None and one.calls_per_second is None:
        yield ("burst",), "is for calls_per_second, which is not limited"


def _taken(key: str, field: str, values: Iterable[str]) -> Said:
    first: dict[str, int] = {}
    for place, value in enumerate(values):
        if value and first.setdefault(value, place) != place:
            yield (key, place, field), f"is that of {key}[{first[value]}] too"


def _unreachable(auth: Auth) -> Said:
    """Rules for a name that nobody can have: a slip of the pen would leave a caller to the default."""
    given = {one.name for one in auth.key} | {one.name for one in auth.certificate if one.name}
    issuers = {one.issuer for one in auth.jwt} | {"certificate"}
    for place, one in enumerate(auth.caller):
        if one.name == ANONYMOUS:
            if not auth.anonymous:
                yield ("caller", place, "name"), "is for callers who show nothing, and anonymous = false refuses them"
        elif "#" in one.name and not any(sign in one.name.rpartition("#")[0] for sign in "*?["):
            if one.name.rpartition("#")[0] not in issuers:
                yield ("caller", place, "name"), f"no [[auth.jwt]] has the issuer {one.name.rpartition('#')[0]!r}"
        elif not any(fnmatchcase(name, one.name) for name in given) and not _of_tokens(one.name, issuers):
            yield ("caller", place, "name"), f"no key or certificate has the name {one.name!r}"
        wider = next((rule.name for rule in auth.caller[:place] if fnmatchcase(one.name, rule.name)), None)
        if wider is not None and one.name != ANONYMOUS and _is_pattern(one.name) and wider != one.name:
            yield ("caller", place, "name"), f"is never reached: {wider!r} before it fits the same callers"


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def _of_tokens(pattern: str, issuers: Iterable[str]) -> bool:
    """Whether a pattern may fit callers whose names are told by tokens or certificates."""
    if not _is_pattern(pattern):
        return False
    before = re.split(r"[*?\[]", pattern)[0]
    return any(name.startswith(before) or before.startswith(f"{name}#") for name in (*issuers, "certificate"))


def wrong_cors(cors: Cors) -> Said:
    """Everything that is wrong with it."""
    for origin in cors.origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            yield ("origins",), f"{origin!r} is no origin: write https://host or https://host:port, in lower case"
        elif _USUAL_PORT.fullmatch(origin):
            yield ("origins",), f"{origin} is never sent: browsers leave the usual port out"
    if not cors.origins:
        yield ("origins",), "must have one at least"
    if "*" in cors.origins and cors.credentials:
        yield ("credentials",), "cannot be for every origin: name those that may"
    for key in ("headers", "expose"):
        for name in getattr(cors, key):
            if not _TOKEN.fullmatch(name):
                yield (key,), f"{name!r} is no header name"
