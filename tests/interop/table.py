"""Draws docs/interop.md from the results of a run."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from . import faults
from .faults import Fault
from .kit.steps import CATALOGUE
from .parties import HERE, OURS, PARTIES, PEERS, Cell, Party, Seat
from .results import Result

TITLES = {
    "serve": (
        "Their clients, our server",
        "Each client of an official SDK against `dragoman serve`, on every face that it can call.",
    ),
    "client": (
        "Our client, their agents",
        "`dragoman.connect` against an agent built on each SDK, on every face that it can serve.",
    ),
    "gateway": (
        "Their clients, our gateway, their agents",
        "Each client calls `dragoman gateway`, which calls the agent. A row is who calls, and in which face; a column\n"
        "is the agent behind, and the face that the gateway calls.",
    ),
    "peers": (
        "Among themselves",
        "The SDKs without us in between. What fails here is nothing that a server in the middle did.",
    ),
}
PAGE = HERE / "page.md"
CARRIERS = ("uvicorn", "httpx", "grpcio", "protobuf")
BINDINGS = {"JSONRPC": "JSON-RPC", "HTTP+JSON": "HTTP+JSON", "GRPC": "gRPC"}


def page(results: Sequence[Result], known: Sequence[Fault]) -> str:
    """The page: `page.md`, with what was found in the place of its comments."""
    cited: dict[str, Fault] = {}
    drawn = {
        "summary": _summary(results, known),
        "sections": _sections(results, known, cited),
        "faults": _faults(cited.values()),  # a generator: runs after the sections have cited
        "versions": _versions(),
        "steps": _steps(),
    }
    text = PAGE.read_text()
    for place, lines in drawn.items():
        text = text.replace(f"<!-- {place} -->", "\n".join(lines).strip())
    return text


def _sections(results: Sequence[Result], known: Sequence[Fault], cited: dict[str, Fault]) -> Iterable[str]:
    for section, (title, text) in TITLES.items():
        if rows := _of(results, section):
            yield from (f"## {title}", "", text, "", *_grid(rows, known, cited), "")


def _of(results: Sequence[Result], section: str) -> list[Result]:
    return [result for result in results if result.cell.section == section]


def _summary(results: Sequence[Result], known: Sequence[Fault]) -> Iterable[str]:
    yield from ("| | cells | steps | passed | faults of theirs | not explained |", "|---|---|---|---|---|---|")
    for section, (title, _) in TITLES.items():
        if not (rows := _of(results, section)):
            continue
        found = [faults.explain(known, row.cell, outcome) for row in rows for outcome in row.failures]
        steps, passed = sum(len(row.counted) for row in rows), sum(row.passed for row in rows)
        numbers = (len(rows), steps, passed, sum(map(bool, found)), found.count(None))
        yield f"| [{title}](#{title.lower().replace(',', '').replace(' ', '-')}) | {' | '.join(map(str, numbers))} |"


def _versions() -> Iterable[str]:
    yield from ("| | faces | with |", "|---|---|---|")
    for party in (OURS, *PEERS):
        faces = ", ".join(f"{face.version} {BINDINGS[face.binding]}" for face in party.faces)
        yield f"| {party.label} | {faces} | {', '.join(_pins(party))} |"
    yield from ("", f"Python {platform.python_version()}. Every SDK sits in an environment of its own.")


def _pins(party: Party) -> list[str]:
    """The libraries that carry the party's bytes, with their versions."""
    if party is OURS:
        return [f"{library} {version(library)}" for library in ("pyreqwest", "grpcio")]
    pins = (line.split("==") for line in (party.home / "requirements.txt").read_text().split())
    return [f"{library} {pinned}" for library, pinned in pins if library in CARRIERS]


def name(seat: Seat) -> str:
    return f"{PARTIES[seat.party].label}<br>{seat.face.version} {BINDINGS[seat.face.binding]}"


def _grid(rows: Sequence[Result], known: Sequence[Fault], cited: dict[str, Fault]) -> Iterable[str]:
    """One column an agent where both sides speak the same face, else one column an agent's face."""
    squares = {(row.cell.client, _column(row.cell)): square(row, known, cited) for row in rows}
    clients = dict.fromkeys(client for client, _ in squares)
    columns = dict.fromkeys(column for _, column in squares)
    yield f"| client | {' | '.join(columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for client in clients:
        yield f"| {name(client)} | {' | '.join(squares.get((client, c), '') for c in columns)} |"


def _column(cell: Cell) -> str:
    return name(cell.agent) if cell.section == "gateway" else PARTIES[cell.agent.party].label


def square(result: Result, known: Sequence[Fault], cited: dict[str, Fault]) -> str:
    """`passed/total`, the footnotes of what is explained, and a loud mark for what is not."""
    notes: dict[str, None] = {}
    for outcome in result.failures:
        fault = faults.explain(known, result.cell, outcome)
        if fault:
            cited[fault.id] = fault
        notes[f"[^{fault.id}]" if fault else f"**{outcome.step}?**"] = None
    return " ".join([f"{result.passed}/{len(result.counted)}", *notes])


def _faults(cited: Iterable[Fault]) -> Iterable[str]:
    cited = sorted(cited, key=lambda fault: (fault.owner, fault.id))
    if not cited:
        return
    yield from (
        "## Faults",
        "",
        "Each is explained once, with the bytes that show whose it is: `>` to the server, `<` from it.",
        "",
    )
    for fault in cited:
        yield f"[^{fault.id}]: **{fault.title}** Whose: {fault.owner}."
        yield from (f"    {line}".rstrip() for line in ["", *fault.why.splitlines(), "", "```text"])
        yield from (f"    {line}".rstrip() for line in [*fault.evidence.splitlines(), "```", ""])


def _steps() -> Iterable[str]:
    yield from ("| step | what is done, and must come of it | since |", "|---|---|---|")
    for step in CATALOGUE:
        yield f"| {step.name} | {step.title} | {step.since} |"
