"""From a url, or a card, to a client: which interface is called, where, and with which credentials.

Rules of this module:

- The card decides which interfaces there are and in which order; ``version``, ``binding`` and ``minimum_version``
  only leave some out.
- Headers, bearer token and client certificate go to the origin that the caller named: that of the url, or those of
  the card if the caller brought it. To others only if they are in ``credential_origins``.
- What was decided instead of the caller (another url, another interface, no credentials) is said through ``on_note``
  and in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from ..dialects.files import Files
from ..errors import ConfigError
from ..faces import ALL_FACES, Candidate, Face, FaceRow, interfaces, read_binding, rows
from ..model import AgentCard, AgentInterface
from ..protocol.grpc import Grpc
from ..protocol.messages import Header
from ..protocol.operations import VERSION_HEADER, Binding, Version
from .failover import Interfaces
from .hybrids import base_of, hybrid_of
from .options import Limits, Resume, Timeouts, Tls
from .rebase import origin, rebase
from .remote import Behaviour, Remote, sendable
from .resolve import Found, resolve
from .transports.base import Transport

if TYPE_CHECKING:
    from .client import Client

log = logging.getLogger(__name__)

Note = Callable[[str], None]
_NEEDS: dict[Binding, tuple[str, str]] = {
    "JSONRPC": ("pyreqwest", "client"),
    "HTTP+JSON": ("pyreqwest", "client"),
    "GRPC": ("grpc", "grpc"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What :func:`connect` was told; see there."""

    version: Version | None
    binding: Binding | None
    minimum_version: Version | None
    headers: Mapping[str, str]
    credential_origins: frozenset[str]
    timeouts: Timeouts
    limits: Limits
    tls: Tls
    proxy: str | None
    extensions: tuple[str, ...]
    tenant: str | None
    rebase: bool
    check_card: bool
    hybrid: str
    rows: Mapping[Face, FaceRow]
    behaviour: Behaviour
    note: Note


def connect(
    agent: str | AgentCard,
    *,
    version: Version | None = None,
    binding: Binding | None = None,
    minimum_version: Version | None = None,
    headers: Mapping[str, str] | None = None,
    bearer: str | None = None,
    credential_origins: Collection[str] = (),
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - immutable
    limits: Limits = Limits(),  # noqa: B008 - immutable
    tls: Tls = Tls(),  # noqa: B008 - immutable
    proxy: str | None = None,
    extensions: Iterable[str] = (),
    tenant: str | None = None,
    rebase: bool = True,
    check_card: bool = True,
    lenient: bool = True,
    base64_files: bool | None = None,
    files: Files | None = None,
    resume: Resume = Resume(),  # noqa: B008 - immutable
    refuse_losses: Iterable[str] = (),
    hybrid: str = "",
    on_note: Note | None = None,
    found: Found | None = None,
) -> Connecting:
    """Connect to a remote agent: ``client = await connect(...)``, or ``async with connect(...) as client``.

    ``agent``: its base url, the url of its card, or its card. ``version`` and ``binding`` pin one; ``minimum_version``
    refuses older interfaces. ``headers`` and ``bearer`` go with every request, to the named origin and
    ``credential_origins`` (as ``https://host:port``). ``proxy``: url of a proxy; the environment's are not used.
    ``extensions``: URIs to activate. ``tenant``: instead of the interface's. ``rebase``: call the given origin where
    the card's url cannot be right. ``check_card``: refuse calls whose capability the card does not declare.
    ``lenient``: read what breaks the specification but can be understood; else ``PeerError``. ``base64_files``: the
    agent keeps base64 text in the bytes of a file over 0.3 gRPC and HTTP+JSON, see :func:`dragoman.faces.rows`; None
    learns it from the agent's files, into ``files`` if that is given.
    ``resume``: how broken streams are taken up again. ``refuse_losses``: names of rows of ``dialects.losses``; what
    would meet one raises ``UnsupportedOperationError`` and is not sent. ``hybrid``: which one it is of
    ``client.hybrids``, else told from its card. ``on_note``: is told, in words, what was forgiven and decided.
    ``found``: the card of that url, if it was resolved before.

    Raises ``ConfigError`` if no interface of the card fits, and what :func:`dragoman.client.resolve.resolve` raises.
    No connection to the interface itself is made before the first call.
    """
    given = dict(headers or {})
    if bearer is not None:
        given["authorization"] = f"Bearer {bearer}"
    settings = Settings(
        version=version,
        binding=binding,
        minimum_version=minimum_version,
        headers=given,
        credential_origins=frozenset(map(origin, credential_origins)),
        timeouts=timeouts,
        limits=limits,
        tls=tls,
        proxy=proxy,
        extensions=tuple(extensions),
        tenant=tenant,
        rebase=rebase,
        check_card=check_card,
        hybrid=hybrid,
        rows=rows(base64_files=base64_files, files=files),
        behaviour=Behaviour(
            reply=timeouts.reply,
            lenient=lenient,
            resume=resume,
            note=on_note,
            refuse_losses=frozenset(refuse_losses),
        ),
        note=on_note or _quiet,
    )
    return Connecting(agent, settings, found)


class Connecting:
    """A connection in the making; await it, or enter it."""

    def __init__(self, agent: str | AgentCard, settings: Settings, found: Found | None = None) -> None:
        self._agent = agent
        self._found = found
        self._settings = settings
        self._client: Client | None = None

    def __await__(self) -> Generator[object, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _connect(self) -> Client:
        from .client import Client

        settings = self._settings
        if isinstance(self._agent, AgentCard):
            found, given = Found(self._agent, ""), ""
        else:
            found, given = self._found or await _fetch(self._agent, settings), self._agent.strip()
        for note in found.notes:
            settings.note(f"card: {note}")
        builder = _Builder(settings, given, found)
        if builder.hybrid is not None:
            builder.say(f"It speaks {builder.hybrid.name} ({builder.hybrid.text}): {builder.known_by}")
        service = Interfaces(_candidates(found.card, builder.placed(), settings), builder.remote, builder.say)
        return Client(
            service,
            found.card,
            check_card=settings.check_card,
            hybrid=builder.hybrid,
            hybrid_known_by=builder.known_by,
        )


def _quiet(note: str) -> None:
    """Nobody listens."""


async def _fetch(url: str, settings: Settings) -> Found:
    return await resolve(
        url,
        headers=settings.headers,
        timeouts=settings.timeouts,
        tls=settings.tls,
        limits=settings.limits,
        proxy=settings.proxy,
    )


def _candidates(card: AgentCard, placed: tuple[AgentInterface, ...], settings: Settings) -> tuple[Candidate, ...]:
    """The interfaces to call, best first. Raises ``ConfigError``, which names a package if one is all that lacks."""
    card = msgspec.structs.replace(card, supported_interfaces=placed)
    speaks = [face for face in ALL_FACES if find_spec(_NEEDS[face.binding][0])]
    try:
        return _choose(card, speaks, settings)
    except ConfigError as error:
        if len(speaks) == len(ALL_FACES):
            raise
        extra = _NEEDS[_choose(card, ALL_FACES, settings)[0].face.binding][1]
        raise ConfigError(f"{error}. A package is missing: pip install dragoman[{extra}]") from error


def _choose(card: AgentCard, speaks: Collection[Face], settings: Settings) -> tuple[Candidate, ...]:
    return interfaces(
        card,
        speaks=speaks,
        version=settings.version,
        binding=settings.binding,
        minimum_version=settings.minimum_version,
    )


class _Builder:
    """Makes the client of one interface. ``given``: the url that the caller gave, empty if it was a card."""

    def __init__(self, settings: Settings, given: str, found: Found) -> None:
        self._settings = settings
        self._given = given
        self._found = found
        self._card_at = found.url
        known = hybrid_of(found.card, settings.hybrid)
        self.hybrid = known[0] if known is not None else None
        self.known_by = known[1] if known is not None else ""

    def say(self, note: str) -> None:
        """Tell a decision, to whoever listens and to the log."""
        log.info(note)
        self._settings.note(note)

    def placed(self) -> tuple[AgentInterface, ...]:
        """The card's interfaces, at the urls to call."""
        return tuple(map(self._place, self._found.card.supported_interfaces))

    def _place(self, interface: AgentInterface) -> AgentInterface:
        if self.hybrid is not None and self.hybrid.wire is not None:
            interface = msgspec.structs.replace(interface, protocol_version=self.hybrid.wire)
        binding = read_binding(interface.protocol_binding)
        if binding is None or not self._settings.rebase:
            return interface
        url, why = rebase(interface.url, binding, self._given, self._card_at)
        if why:
            self.say(f"The card's url {interface.url} is not called: {why}. Calling {url} instead")
        return msgspec.structs.replace(interface, url=url)

    def remote(self, candidate: Candidate) -> Remote:
        """The client of one interface."""
        settings, (face, interface) = self._settings, candidate
        trusted = not self._given or origin(interface.url) in settings.credential_origins | {origin(self._given)}
        if not trusted and settings.headers:
            self.say(
                f"No credentials are sent to {origin(interface.url)}, which is not the origin that was given; "
                "allow it with credential_origins"
            )
        tenant = interface.tenant if settings.tenant is None else settings.tenant
        return Remote(
            face,
            settings.rows[face].dialect,
            self._transport(face, interface.url, trusted, tenant),
            tenant=tenant,
            extensions=settings.extensions,
            trusted=trusted,
            behaviour=settings.behaviour,
        )

    def _transport(self, face: Face, url: str, trusted: bool, tenant: str) -> Transport:
        settings = self._settings
        codec = settings.rows[face].codec
        tls = settings.tls if trusted else settings.tls.without_identity()
        headers: list[Header] = [(VERSION_HEADER.encode(), face.version.encode())]
        if trusted:
            headers += sendable(settings.headers)
        if isinstance(codec, Grpc):
            from .transports.grpc import GrpcTransport, build_lines

            lines = build_lines(url, tls, settings.limits, proxy=settings.proxy)
            return GrpcTransport(url, codec, lines, headers=headers)
        from .transports.connection import build_client
        from .transports.http import HttpTransport

        client = build_client(settings.timeouts, tls, settings.proxy)
        paths = self.hybrid.paths if self.hybrid is not None and face.binding == "JSONRPC" else {}
        return HttpTransport(
            base_of(self.hybrid, url) if paths else url,
            face,
            codec,
            client,
            headers=headers,
            tenant=tenant if face.version == "1.0" else "",
            timeouts=settings.timeouts,
            limits=settings.limits,
            paths=paths,
            stream_query=self.hybrid.stream_query if self.hybrid is not None and face.binding == "HTTP+JSON" else "",
        )
