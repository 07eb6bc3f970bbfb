"""The card at the well-known path: which interfaces it names, in which shape, with which validators.

One URL serves every shape: ``A2A-Version: 1.0`` gets the 1.0 card, ``0.3`` the 0.3 card, and a caller that sends
nothing gets the hybrid that readers of both understand (1.0 §8.6, §14.3; RFC 9110 §8.8.3, §13.1.2).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

import msgspec

from ..dialects.cards import CardShape, dump_card
from ..errors import VersionNotSupportedError
from ..faces import Face
from ..model import AgentCard, AgentInterface
from ..protocol.messages import Headers, HttpResponse

#: Paths that answer with the public card; the second is the one of 0.2.
CARD_PATHS = frozenset({"/.well-known/agent-card.json", "/.well-known/agent.json"})
CARD_MAX_AGE = 60  # seconds that a card may be cached; short, because it moves with a deployment
_SHAPES: dict[str, CardShape] = {"1": "1.0", "0": "0.3"}  # by the major number that was asked for
_CACHED_BASES = 64  # the host is the caller's to choose, so what is kept per host is bounded


def grpc_target(base: str) -> str:
    """gRPC has no paths and no scheme: ``host:port`` (unreleased 1.0.2; every SDK takes it)."""
    parts = urlsplit(base)
    return parts.netloc if parts.port else f"{parts.netloc}:{443 if parts.scheme == 'https' else 80}"


def with_interfaces(
    card: AgentCard,
    faces: Iterable[Face],
    base: str,
    tenant: str = "",
    *,
    grpc_at: Callable[[str], str] = grpc_target,
    grpc_tenant: str = "",
) -> AgentCard:
    """The card with one interface per face, all at ``base`` (a URL without trailing slash), in the order given.

    ``grpc_at``: from ``base`` to the ``host:port`` of gRPC. ``grpc_tenant``: the tenant of gRPC alone;
    0.3 has none.
    """
    interfaces = tuple(
        AgentInterface(
            url=grpc_at(base) if face.binding == "GRPC" else base + ("/" if face.binding == "JSONRPC" else ""),
            protocol_binding=face.binding,
            protocol_version=face.version,
            tenant=grpc_tenant if grpc_tenant and face == Face("GRPC", "1.0") else tenant,
        )
        for face in faces
    )
    return msgspec.structs.replace(card, supported_interfaces=interfaces)


class PublishedCard:
    """Answers requests for the public card from a cache of finished bytes."""

    def __init__(
        self,
        card: AgentCard,
        faces: tuple[Face, ...],
        grpc_at: Callable[[str], str] = grpc_target,
        grpc_tenant: str = "",
    ) -> None:
        self._card = card
        self._faces = faces
        self._grpc_at = grpc_at
        self._grpc_tenant = grpc_tenant
        self._versions = {face.version for face in faces}
        self._cache: OrderedDict[tuple[str, CardShape], tuple[bytes, bytes]] = OrderedDict()

    @property
    def card(self) -> AgentCard:
        """The card without the interfaces of a request's base URL."""
        return self._card

    def at(self, base: str) -> AgentCard:
        """The canonical card as a caller at ``base`` sees it."""
        return self.rewritten(self._card, base)

    def rewritten(self, card: AgentCard, base: str) -> AgentCard:
        """Another card of this agent (the extended one) with our interfaces; its signatures no longer hold."""
        placed = with_interfaces(card, self._faces, base, grpc_at=self._grpc_at, grpc_tenant=self._grpc_tenant)
        return msgspec.structs.replace(placed, signatures=())

    def respond(self, method: str, headers: Headers, base: str, *, told: bool = False) -> HttpResponse:
        """Answer GET or HEAD of the card; 405 for the rest, 304 when the caller has it already.

        ``told``: ``base`` comes from what a proxy says of this request, so that no shared cache may keep the answer.
        """
        if method not in ("GET", "HEAD"):
            return HttpResponse(405, [(b"allow", b"GET, HEAD"), (b"content-length", b"0")])
        body, etag = self._bytes(base, self._shape(headers.text("a2a-version").strip()))
        common = [
            (b"etag", etag),
            (b"cache-control", b"%s, max-age=%d" % (b"private" if told else b"public", CARD_MAX_AGE)),
            (b"vary", b"A2A-Version"),
        ]
        if _matches(headers.get(b"if-none-match"), etag):
            return HttpResponse(304, common)
        typed = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        return HttpResponse(200, typed + common, b"" if method == "HEAD" else body)

    def _shape(self, version: str) -> CardShape:
        """The card is exempt from VersionNotSupportedError: what we cannot give becomes what we have."""
        if len(self._versions) == 1:
            return next(iter(self._versions))
        return _SHAPES.get(version.partition(".")[0], "hybrid")

    def _bytes(self, base: str, shape: CardShape) -> tuple[bytes, bytes]:
        found = self._cache.get((base, shape))
        if found is None:
            body = _dump(self.at(base), shape)
            found = body, b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()
            self._cache[base, shape] = found
            if len(self._cache) > _CACHED_BASES:
                self._cache.popitem(last=False)
        return found


def _dump(card: AgentCard, shape: CardShape) -> bytes:
    try:
        return dump_card(card, shape)
    except VersionNotSupportedError:
        return dump_card(card, "1.0")


def _matches(header: bytes, etag: bytes) -> bool:
    """If-None-Match compares weakly (RFC 9110 §13.1.2)."""
    return header.strip() == b"*" or etag in (tag.strip().removeprefix(b"W/") for tag in header.split(b","))
