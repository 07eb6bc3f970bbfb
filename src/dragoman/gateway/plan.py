"""The effective plan: per upstream, which face is called and why, and where it is served.

It is made of what is known at the moment: a failover or a late answer changes the next one.
"""

from __future__ import annotations

import msgspec

from ..dialects.files import Files, configured
from ..faces import TWO_FORMS, Candidate, Face, interfaces
from ..model import AgentCard, AgentInterface
from .agents import Agent
from .config import Upstream
from .emulation.stack import lacking
from .replicas import Replica


class PlannedInterface(msgspec.Struct, frozen=True, rename="camel"):
    """An interface that callers get, as a card names it."""

    protocol_binding: str
    protocol_version: str
    url: str


class PlannedReplica(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One replica of an upstream that has several. ``face`` and ``calls`` are empty while it cannot be reached."""

    url: str
    face: str = ""
    calls: str = ""
    error: str = ""


class Planned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One upstream of the plan. ``face``, ``calls`` and ``why`` are empty while it cannot be reached; then ``error``
    says what happened, as it does when what was reached cannot be any more. ``others``: faces of its card that could be
    called too. ``dialect``: the hybrid that it is, if it is one, and ``dialect_known_by``. ``agent_files`` and
    ``caller_files``: how files are kept, on faces where that is a question. ``grpc``: how gRPC finds it. ``push``,
    ``emulated``, ``listed`` (ListTasks is answered from what was seen) and ``isolated`` (its callers are kept apart):
    what the gateway does on its own. ``replicas``: all of them, if there are several."""

    name: str
    url: str
    path: str
    face: str = ""
    calls: str = ""
    why: str = ""
    others: tuple[str, ...] = ()
    dialect: str = ""
    dialect_known_by: str = ""
    agent_files: str = ""
    caller_files: str = ""
    grpc: str = ""
    push: str = ""
    emulated: tuple[str, ...] = ()
    listed: bool = False
    isolated: bool = False
    replicas: tuple[PlannedReplica, ...] = ()
    interfaces: tuple[PlannedInterface, ...]
    notes: tuple[str, ...] = ()
    error: str = ""


def plan(agent: Agent, base: str) -> Planned:
    """The plan of one upstream, for a caller who reaches the gateway at ``base`` (no trailing slash)."""
    config, client = agent.config, agent.client
    common = Planned(
        name=config.name,
        url=config.url,
        path=config.path,
        grpc=grpc_place(config),
        push=config.push,
        caller_files=_caller_files(agent) if TWO_FORMS.keys() & set(config.faces) else "",
        replicas=tuple(map(_replica, agent.pool.replicas)) if config.replicas else (),
        interfaces=served(agent, base),
        notes=tuple(agent.notes),
        error=str(agent.error) if agent.error is not None else "",
    )
    if client is None:
        return msgspec.structs.replace(common, error=common.error or "has not answered yet")
    return msgspec.structs.replace(
        common,
        face=str(client.face),
        calls=client.interface.url,
        why=why(client.card, client.face, pinned=config.pin is not None),
        dialect=client.hybrid.name if client.hybrid is not None else "",
        dialect_known_by=client.hybrid_known_by,
        agent_files=_form(agent.files) if client.face in TWO_FORMS else "",
        emulated=tuple(lacking(config.emulate, client.card)),
        listed=agent.lists,
        isolated=agent.isolates,
        others=tuple(str(one.face) for one in interfaces(client.card) if one.face != client.face),
    )


def _form(files: Files) -> str:
    """How files are kept, and how that is known."""
    return f"{files.form}: {files.why}" if files.form else "not known: taken for bytes until its files show it"


def _caller_files(agent: Agent) -> str:
    said = agent.config.base64_files
    return "each caller's show it" if said is None else _form(configured(said))


def _replica(one: Replica) -> PlannedReplica:
    error = str(one.error or one.last_error or "") if not one.reachable else ""
    if one.line is None:
        return PlannedReplica(url=one.url, error=error or "has not answered yet")
    client = one.line.client
    return PlannedReplica(url=one.url, face=str(client.face), calls=client.interface.url, error=error)


def served(agent: Agent, base: str) -> tuple[PlannedInterface, ...]:
    """The interfaces that its card lists for a caller who reaches the gateway at ``base``."""
    path = "" if agent.config.path == "/" else agent.config.path
    card = agent.app.published.at((agent.app.public_url or base + path).rstrip("/"))
    return tuple(map(_interface, card.supported_interfaces))


def _interface(one: AgentInterface) -> PlannedInterface:
    return PlannedInterface(one.protocol_binding, one.protocol_version, one.url)


def grpc_place(config: Upstream) -> str:
    """How gRPC calls find an upstream, in words; empty if it is not served over gRPC."""
    if not any(face.binding == "GRPC" for face in config.faces):
        return ""
    told = [f"host {config.authority}"] if config.authority else []
    told += [f"port {config.port}"] if config.port else []
    told += [f"tenant {config.tenant}{'' if told else ', 1.0 only: 0.3 has none'}"] if config.tenant else []
    return ", ".join(told) or "every other host"


def why(card: AgentCard, chosen: Face, *, pinned: bool) -> str:
    """Why ``chosen`` is called, of all the faces of ``card`` (rules: :func:`dragoman.faces.interfaces`)."""
    if pinned:
        return "the configuration says so"
    ordered = interfaces(card)
    if len({one.face for one in ordered}) == 1:
        return "its card lists no other"
    if ordered[0].face != chosen:
        return "those before it in the card cannot be called"
    return "the first of its card" if _listed_first(card, ordered) == chosen else "newer than the first of its card"


def _listed_first(card: AgentCard, ordered: tuple[Candidate, ...]) -> Face:
    """The face of the entry that the card lists first, of those that can be called."""
    callable_ones = {id(one.interface): one.face for one in ordered}
    return next(callable_ones[id(one)] for one in card.supported_interfaces if id(one) in callable_ones)
