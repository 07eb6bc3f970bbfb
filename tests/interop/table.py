"""Draws docs/interop.md from the results of a run."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from . import faults
from .faults import Fault
from .kit import talk
from .kit.steps import CATALOGUE
from .parties import (
    ANY,
    DIRECT,
    FASTA2A,
    FRAMED,
    FRAMEWORKS,
    HERE,
    OURS,
    PARTIES,
    PEERS,
    PLATFORM,
    PROBE,
    PYTHON,
    Cell,
    Party,
    Seat,
)
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
        "Their clients, our gateway, their agent",
        "`dragoman gateway URL`: one agent, and a client of each face before it. A row is who calls, and in which\n"
        "face; a column is the agent behind, and the face that the gateway calls.",
    ),
    PLATFORM: (
        "Their clients, one gateway, all their agents",
        "`dragoman gateway --config`: one process, in front of every agent of this page at once, those of the\n"
        "frameworks below too. Each is there twice, for callers that keep base64 text in bytes and for those that do\n"
        "not: over HTTP under a path of its own; over gRPC under an authority of its own the one, at a port of its\n"
        "own the other.",
    ),
    DIRECT: (
        "Frameworks, without us",
        "An agent of each framework as its documentation builds it, its model replaced by a parrot. The official\n"
        "clients come as they are: nothing is switched on, and they choose by the card. *Speaks* is asked, not read:\n"
        "what the card says, and in which version the method of each version was answered.",
    ),
    FRAMED: (
        "Frameworks, through the gateway",
        "The same agents behind the one gateway, called by a client of each of the six faces.",
    ),
    "peers": (
        "Among themselves",
        "The SDKs without us in between. What fails here is nothing that a server in the middle did.",
    ),
}
PAGE = HERE / "page.md"
CARRIERS = ("a2a-sdk", "uvicorn", "httpx", "grpcio", "protobuf", "express", "@grpc/grpc-js")
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
            draw = _frameworks if section in (DIRECT, FRAMED) else _grid
            yield from (f"## {title}", "", text, "", *draw(rows, known, cited), "")


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
    for party in (OURS, *PEERS, *FRAMEWORKS):
        faces = ", ".join(f"{face.version} {BINDINGS[face.binding]}" for face in party.faces if face != ANY)
        yield f"| {party.label} | {faces or 'see above'} | {', '.join(_pins(party))} |"
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    where = (
        f"Python {platform.python_version()}, Node.js {node.removeprefix('v')}" if node else platform.python_version()
    )
    yield from ("", f"{where}. Every SDK and framework sits in an environment of its own.")


def _pins(party: Party) -> list[str]:
    """The libraries that carry the party's bytes, with their versions."""
    if party is OURS:
        return [f"{library} {version(library)}" for library in ("pyreqwest", "grpcio")]
    if party.node:
        pins = json.loads(party.requirements.read_text())["dependencies"].items()
    else:
        pins = (line.split("==") for line in party.requirements.read_text().split())
    bare = ((library.partition("[")[0], pinned) for library, pinned in pins)
    named = (f"{library} {pinned}" for library, pinned in bare if library in CARRIERS)
    return [text for text in named if text != party.label]


def name(seat: Seat) -> str:
    label = PARTIES[seat.party].label
    return label if seat.face == ANY else f"{label}<br>{seat.face.version} {BINDINGS[seat.face.binding]}"


def _frameworks(rows: Sequence[Result], known: Sequence[Fault], cited: dict[str, Fault]) -> Iterable[str]:
    """One row a framework; then the client that one of them has."""
    own = [row for row in rows if row.cell.client.party == FASTA2A.name]
    told = PROBE if rows[0].cell.section == DIRECT else PYTHON[0]
    facts = {row.cell.agent.party: _fact(row) for row in rows if row.cell.client.party == told.name}
    rows = [row for row in rows if row not in own and row.cell.client.party != PROBE.name]
    squares = {(row.cell.agent.party, row.cell.client): square(row, known, cited) for row in rows}
    clients = list(dict.fromkeys(row.cell.client for row in rows))
    yield f"| framework | {_FACTS[rows[0].cell.section]} | {' | '.join(map(name, clients))} |"
    yield f"|---|---|{'---|' * len(clients)}"
    for party in FRAMEWORKS:
        if any((party.name, client) in squares for client in clients):
            cells = " | ".join(squares.get((party.name, client), "") for client in clients)
            yield f"| {party.label} | {facts.get(party.name, '')} | {cells} |"
    whole = (f"{sum(_whole(row) for row in rows if row.cell.client == client)} of {len(facts)}" for client in clients)
    yield f"| **with every step** | | {' | '.join(whole)} |"
    if own:
        yield from (
            "",
            f"And the client of {FASTA2A.label}, which sends the methods of 0.3 and reads the replies of 1.0:",
            "",
        )
        yield f"| agent | {FASTA2A.label} |"
        yield "|---|---|"
        for row in own:
            yield f"| {name(row.cell.agent)} | {square(row, known, cited)} |"


def _whole(row: Result) -> bool:
    return not row.failures and bool(row.counted)


_FACTS = {DIRECT: "speaks", FRAMED: "called in"}


def _fact(row: Result) -> str:
    if row.cell.section == FRAMED:
        return row.note.replace("/", " ").replace("JSONRPC", "JSON-RPC").replace("GRPC", "gRPC")
    return row.outcomes[0].detail.replace("; ", "<br>") if row.outcomes[0].ok else ""


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
    return name(cell.agent) if cell.section in ("gateway", PLATFORM) else PARTIES[cell.agent.party].label


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
    yield from ("", "With the agents of frameworks, which know no script:", "")
    yield from ("| step | what is done, and must come of it |", "|---|---|")
    for step in talk.CATALOGUE:
        yield f"| {step.name} | {step.title} |"
