"""Faces: which binding and version pairs exist, and how two sides agree on one.

Rules of this module:

- A face is a row: ``FACES[Face(binding, version)]`` names the codec that knows its framing and the dialect that
  knows its shapes. Nothing else in the project switches on a binding or a version.
- A server reads the version that a request asks for with :func:`negotiate`; a client orders the interfaces of a
  card with :func:`interfaces`. Both are pure.
- A patch number never takes part (1.0 §3.6): ``1.0.3`` is ``1.0``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from .dialects import v03, v03_proto, v1
from .dialects.base import Dialect
from .dialects.files import Files, configured
from .errors import ConfigError, VersionNotSupportedError
from .model import AgentCard, AgentInterface
from .protocol.codec import Codec
from .protocol.grpc import Grpc
from .protocol.jsonrpc import JsonRpc
from .protocol.operations import BINDINGS, VERSIONS, Binding, Version
from .protocol.rest import Rest


class Face(NamedTuple):
    """A binding in a version, written ``0.3/JSONRPC``."""

    binding: Binding
    version: Version

    def __str__(self) -> str:
        return f"{self.version}/{self.binding}"

    @classmethod
    def parse(cls, text: str) -> Face:
        """Read ``1.0/GRPC``, in any letter case. Raises ``ConfigError`` if it is not one of the six."""
        version, _, binding = text.strip().partition("/")
        face = cls._of(version, binding)
        if face is None:
            raise ConfigError(f"{text!r} is not a face; the faces are {', '.join(map(str, ALL_FACES))}")
        return face

    @classmethod
    def _of(cls, version: str, binding: str) -> Face | None:
        known, spoken = read_version(version), read_binding(binding)
        return cls(spoken, known) if known and spoken else None


ALL_FACES: tuple[Face, ...] = tuple(Face(binding, version) for version in VERSIONS for binding in BINDINGS)


class FaceRow(NamedTuple):
    """What a face is made of: the codec that knows its framing, the dialect that knows its shapes."""

    codec: Codec
    dialect: Dialect


#: JSON-RPC of 0.3 speaks ``kind`` objects; its other two bindings speak the shape of its proto.
FACES: dict[Face, FaceRow] = {
    Face("JSONRPC", "1.0"): FaceRow(JsonRpc("1.0"), v1.JSON),
    Face("GRPC", "1.0"): FaceRow(Grpc("1.0"), v1.PROTOBUF),
    Face("HTTP+JSON", "1.0"): FaceRow(Rest("1.0"), v1.JSON),
    Face("JSONRPC", "0.3"): FaceRow(JsonRpc("0.3"), v03.JSON),
    Face("GRPC", "0.3"): FaceRow(Grpc("0.3"), v03_proto.PROTOBUF),
    Face("HTTP+JSON", "0.3"): FaceRow(Rest("0.3"), v03_proto.JSON),
}
#: The faces over which files have two forms (``dialects.files``), and their dialects.
TWO_FORMS: dict[Face, v03_proto.ProtobufDialect | v03_proto.ProtoJsonDialect] = {
    Face("GRPC", "0.3"): v03_proto.PROTOBUF,
    Face("HTTP+JSON", "0.3"): v03_proto.JSON,
}


def rows(*, base64_files: bool | None = False, files: Files | None = None) -> Mapping[Face, FaceRow]:
    """The faces as one peer writes them.

    ``base64_files``: over 0.3 gRPC and HTTP+JSON, the peer keeps base64 text where the bytes of a file belong, as
    the official SDKs for Python, Java and Go do; the text of the specification has bytes there. None: learn it.
    ``files``: what is known of that, instead.
    """
    kept = files or configured(base64_files)
    own = {face: FaceRow(FACES[face].codec, dialect.keeping(kept)) for face, dialect in TWO_FORMS.items()}
    return FACES if files is None and base64_files is False else {**FACES, **own}


#: Spellings of a binding seen in cards, upper case -> its name.
_BINDINGS: dict[str, Binding] = {
    "JSONRPC": "JSONRPC",
    "JSON-RPC": "JSONRPC",
    "GRPC": "GRPC",
    "HTTP+JSON": "HTTP+JSON",
    "HTTP_JSON": "HTTP+JSON",
    "REST": "HTTP+JSON",
}
#: URL schemes that a binding can be called under; gRPC also takes a bare ``host:port``.
_SCHEMES: dict[Binding, tuple[str, ...]] = {
    "JSONRPC": ("http", "https"),
    "HTTP+JSON": ("http", "https"),
    "GRPC": ("grpc", "grpcs", "http", "https"),
}


def read_binding(name: str) -> Binding | None:
    """The binding that a card means by ``name``, in any letter case; None if we do not speak it."""
    return _BINDINGS.get(name.strip().upper())


def read_version(text: str) -> Version | None:
    """The version of a card entry or setting; None if we do not speak it.

    ``0.2.x`` is taken as 0.3, its nearest kin (cards of that time still travel). An empty text is 1.0: only a 1.0
    card has entries that could lack it.
    """
    parts = text.strip().lower().removeprefix("v").split(".")
    if parts[:2] == ["0", "2"]:
        return "0.3"
    if parts == [""] or parts == ["1"]:
        return "1.0"
    return _plain(parts)


def _plain(parts: list[str]) -> Version | None:
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    name = f"{parts[0]}.{parts[1]}"
    return next((version for version in VERSIONS if version == name), None)


_EXACT: dict[bytes | str | None, Version] = {b"1.0": "1.0", "1.0": "1.0", b"0.3": "0.3", "0.3": "0.3"}


def negotiate(header: bytes | str | None, query: bytes | str | None, served: Collection[Version]) -> Version:
    """The version whose semantics a request asks for (1.0 §3.6.2).

    The header decides; without one, the query parameter; absent or empty is 0.3. Raises
    ``VersionNotSupportedError``, whose metadata ``supportedVersions`` lists ``served``, for anything else than a
    served Major.Minor with an optional patch number.
    """
    version = _EXACT.get(header)
    if version is None:
        value = _text(header) or _text(query)
        version = _plain(value.split(".")) if value else "0.3"
    if version is None or version not in served:
        raise _not_supported(_text(header) or _text(query), served)
    return version


def asked(header: bytes | str | None, query: bytes | str | None) -> bool:
    """Whether a request names a version at all."""
    return bool(header and header.strip()) or bool(query and query.strip())


def _text(value: bytes | str | None) -> str:
    if value is None:
        return ""
    return (value.decode("latin-1") if isinstance(value, bytes) else value).strip()


def _not_supported(value: str, served: Collection[Version]) -> VersionNotSupportedError:
    ordered = [version for version in VERSIONS if version in served]
    wanted = f"A2A-Version {value[:40]!r}" if value else "A request without A2A-Version means 0.3, which"
    return VersionNotSupportedError(
        f"{wanted} is not served here; send A2A-Version: {' or '.join(ordered)}",
        metadata={"supportedVersions": ",".join(ordered)},
    )


class Candidate(NamedTuple):
    """An interface of a card that we can call, and the face to call it with."""

    face: Face
    interface: AgentInterface


def interfaces(
    card: AgentCard,
    *,
    speaks: Collection[Face] = ALL_FACES,
    version: Version | None = None,
    binding: Binding | None = None,
    minimum_version: Version | None = None,
) -> tuple[Candidate, ...]:
    """The interfaces of ``card`` that we can call, best first (1.0 §8.3.2).

    Order is that of the card; among entries of one binding the newer version goes first, so a binding that is listed
    in both is called in 1.0. ``version`` and ``binding`` pin one; ``minimum_version`` leaves out older ones, so that
    no downgrade goes unnoticed. Raises ``ConfigError``, which says what the card offers, if nothing is left.
    """
    offered = [found for found in map(_candidate, card.supported_interfaces) if found and found.face in speaks]
    fitting = [
        found
        for found in offered
        if version in (None, found.face.version)
        and binding in (None, found.face.binding)
        and (minimum_version is None or found.face.version >= minimum_version)
    ]
    if not fitting:
        raise ConfigError(_nothing_fits(card, speaks, offered, (version, binding, minimum_version)))
    return tuple(_newer_first(fitting))


def _candidate(interface: AgentInterface) -> Candidate | None:
    face = Face._of(interface.protocol_version, interface.protocol_binding)
    if face is None or not _callable(face.binding, interface.url):
        return None
    return Candidate(face, interface)


def _callable(binding: Binding, url: str) -> bool:
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        return binding == "GRPC" and bool(url.strip())
    return bool(rest) and scheme.lower() in _SCHEMES[binding]


def _newer_first(found: Iterable[Candidate]) -> list[Candidate]:
    """Keep the places of each binding, and fill them by version."""
    places = list(found)
    for binding in BINDINGS:
        own = [place for place, one in enumerate(places) if one.face.binding == binding]
        by_version = sorted((places[place] for place in own), key=lambda one: one.face.version, reverse=True)
        for place, one in zip(own, by_version, strict=True):
            places[place] = one
    return places


def _nothing_fits(
    card: AgentCard,
    speaks: Collection[Face],
    offered: list[Candidate],
    wanted: tuple[Version | None, Binding | None, Version | None],
) -> str:
    entries = ", ".join(
        f"{one.protocol_version or '?'}/{one.protocol_binding} at {one.url}" for one in card.supported_interfaces
    )
    if not entries:
        return f"The card of {card.name!r} lists no interface at all"
    if not offered:
        return f"None of the card's interfaces can be called: it lists {entries}; we speak {_list(speaks)}"
    version, binding, minimum = wanted
    pins = [f"version {version}" if version else "", f"binding {binding}" if binding else ""]
    pins.append(f"version {minimum} or newer" if minimum else "")
    asked_for = ", ".join(pin for pin in pins if pin)
    return f"The card lists {entries}; none fits {asked_for}. Without that, {offered[0].face} would be called"


def _list(faces: Collection[Face]) -> str:
    return ", ".join(str(face) for face in ALL_FACES if face in faces)
