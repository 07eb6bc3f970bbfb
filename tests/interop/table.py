"""Draws docs/interop.md from the results of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import faults
from .faults import Fault
from .kit.steps import CATALOGUE
from .parties import PARTIES, PEERS, Cell, Seat
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
        "Rows are what the client speaks, columns what the agent behind the gateway is spoken to.",
    ),
    "peers": (
        "Among themselves",
        "The SDKs without us in between. What fails here is nothing that a server in the middle did.",
    ),
}
BINDINGS = {"JSONRPC": "JSON-RPC", "HTTP+JSON": "HTTP+JSON", "GRPC": "gRPC"}


def page(results: Sequence[Result], known: Sequence[Fault]) -> str:
    labels = " and ".join(peer.label for peer in PEERS)
    lines = [
        "# Interoperability",
        "",
        "<!-- Written by `make interop`; edit tests/interop/table.py or tests/interop/faults.toml instead. -->",
        "",
        f"Measured against {labels}. A square says how many steps passed of those that the client can take;",
        "a footnote names the fault behind each step that did not. The steps are listed at the end.",
        "",
    ]
    cited: dict[str, Fault] = {}
    for section, (title, text) in TITLES.items():
        rows = [result for result in results if result.cell.section == section]
        if rows:
            lines += [f"## {title}", "", text, "", *_grid(rows, known, cited), ""]
    lines += [*_faults(cited.values()), *_catalogue()]
    return "\n".join(lines) + "\n"


def name(seat: Seat) -> str:
    return f"{PARTIES[seat.party].label}, {seat.face.version} {BINDINGS[seat.face.binding]}"


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
    yield from ("## Faults", "", "Each is explained once, with the bytes that show whose it is.", "")
    for fault in cited:
        yield f"[^{fault.id}]: **{fault.title}** Whose: {fault.owner}."
        yield from (f"    {line}".rstrip() for line in ["", *fault.why.splitlines(), "", "```text"])
        yield from (f"    {line}".rstrip() for line in [*fault.evidence.splitlines(), "```", ""])


def _catalogue() -> Iterable[str]:
    yield from ("## Steps", "", "| step | what is done, and must come of it | since |", "|---|---|---|")
    for step in CATALOGUE:
        yield f"| {step.name} | {step.title} | {step.since} |"
