"""Routes of HTTP+JSON, found without regular expressions (1.0 §5.3 and the http annotations of its proto, 0.3 §3.2.3).

Rules of this module:

- A path is split on ``/`` first and percent-decoded after, so an id may hold an encoded slash or colon.
- The verb of a last segment is what follows its last colon, if that is a verb known at this place; else the colon
  belongs to the id.
- In 1.0 every route also exists below ``/{tenant}``; the route without tenant wins where both would do.
- A trailing slash is ignored.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from ..errors import InvalidParamsError, MethodNotFoundError
from .operations import VERSIONS, WIRE, Names, Version
from .refusals import VerbNotAllowedError


class Route(NamedTuple):
    """Where a path leads. ``variables``: names of its path variables, in order."""

    op: str
    names: Names
    variables: tuple[str, ...]


class Match(NamedTuple):
    """A route with what its path held: decoded variables, and the tenant if it named one."""

    route: Route
    values: dict[str, str]
    tenant: str = ""


_Verbs = dict[str, Route]  # HTTP verb -> route


class _Node:
    """One place in the tree: what follows as literal segment, as variable, and what ends here by verb suffix."""

    __slots__ = ("ends", "literals", "variable")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.variable: _Node | None = None
        self.ends: dict[str, _Verbs] = {}


class Routes:
    """All routes of one version."""

    def __init__(self, version: Version) -> None:
        self._version = version
        self._tenants = version == "1.0"
        self._exact: dict[str, dict[str, Match]] = {}
        self._root = _Node()
        for op, names in WIRE[version].items():
            for path in names.paths:
                self._add(op, names, path)

    def find(self, method: str, path: str) -> Match:
        """The match of a request line. Raises ``MethodNotFoundError``, ``VerbNotAllowedError`` (its subclass), and
        ``InvalidParamsError`` if a segment does not decode."""
        exact = self._exact.get(path)
        if exact is not None and (match := exact.get(method)):
            return match
        segments = path.rstrip("/").split("/")[1:]
        base, values = self._walk(segments)
        if route := base.get(method):
            return Match(route, _decoded(route, values))
        below: _Verbs = {}
        if self._tenants and len(segments) > 1 and segments[0]:
            below, values = self._walk(segments[1:])
            if route := below.get(method):
                return Match(route, _decoded(route, values), _decode("tenant", segments[0]))
        raise self._missing(method, path, base or below)

    def has(self, method: str, path: str) -> bool:
        """Whether a request line has a route of its own, without tenant."""
        return method in self._walk(path.rstrip("/").split("/")[1:])[0]

    def _add(self, op: str, names: Names, path: str) -> None:
        head, colon, verb = path.rpartition(":")
        segments = (head if colon else path).split("/")[1:]
        variables = tuple(segment[1:-1] for segment in segments if segment.startswith("{"))
        node = self._root
        for segment in segments:
            if segment.startswith("{"):
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.literals.setdefault(segment, _Node())
        route = Route(op, names, variables)
        for method in names.verbs:
            node.ends.setdefault(verb if colon else "", {})[method] = route
            if not variables:
                self._exact.setdefault(path, {})[method] = Match(route, {})

    def _walk(self, segments: list[str]) -> tuple[_Verbs, list[str]]:
        """What ends at ``segments``, by HTTP verb, and the raw values of the variables on the way."""
        node, values = self._root, []
        for segment in segments[:-1]:
            child = node.literals.get(segment)
            if child is None:
                if node.variable is None or not segment:
                    return {}, []
                child = node.variable
                values.append(segment)
            node = child
        return _last(node, segments[-1], values) if segments else ({}, [])

    def _missing(self, method: str, path: str, verbs: _Verbs) -> MethodNotFoundError:
        if verbs:
            allow = tuple(verbs)
            return VerbNotAllowedError(f"{path} takes {' or '.join(allow)}, not {method}", allow=allow)
        for other in VERSIONS:
            if other != self._version and routes(other).has(method, path):
                return MethodNotFoundError(f"{method} {path} is a {other} route: send A2A-Version: {other}")
        return MethodNotFoundError(f"No route {method[:20]} {path[:200]}")


def _last(node: _Node, segment: str, values: list[str]) -> tuple[_Verbs, list[str]]:
    head, colon, verb = segment.rpartition(":")
    if not colon:
        head, verb = segment, ""
    for text, suffix in ((head, verb), (segment, "")):
        child = node.literals.get(text)
        if child is not None and suffix in child.ends:
            return child.ends[suffix], values
        if text and node.variable is not None and suffix in node.variable.ends:
            return node.variable.ends[suffix], [*values, text]
    return {}, []


def _decoded(route: Route, values: list[str]) -> dict[str, str]:
    return {name: _decode(name, text) for name, text in zip(route.variables, values, strict=True)}


def _decode(name: str, text: str) -> str:
    try:
        return unquote(text, errors="strict") if "%" in text else text
    except UnicodeDecodeError as e:
        raise InvalidParamsError(f"The path holds a {name} that is not UTF-8", violations=((name, "not UTF-8"),)) from e


def routes(version: Version) -> Routes:
    """The routes of ``version``."""
    return _ROUTES[version]


_ROUTES: dict[Version, Routes] = {version: Routes(version) for version in VERSIONS}
