"""Draws docs/interop.md from the results of a run."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from . import faults
from .faults import Fault
from .kit.steps import CATALOGUE
from .parties import OURS, PARTIES, PEERS, Cell, Party, Seat
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
        "Each client calls `dragoman gateway`, which calls the agent. A row is who calls and what it speaks; a column is "
        "the agent behind\nand the face that the gateway calls it on.",
    ),
    "peers": (
        "Among themselves",
        "The SDKs without us in between. What fails here is nothing that a server in the middle did.",
    ),
}
READING = """\
A *face* is a protocol version over a binding, such as 0.3 over JSON-RPC. A *cell* is one client, in a process and an
environment of its own, speaking one face to one agent. It walks through the [steps](#steps): sending, streaming, tasks,
parts of every kind, push configs, errors. An agent is a script that every SDK acts out with its own means, so that one
step means the same everywhere.

- **34/34**: every step passed. A step passes only if what arrives is exactly what was meant: the same parts, the same
  states, an error of the right type.
- **33/34** with a footnote: one step failed, and the footnote says whose fault that is, with bytes as they went over the
  wire. A failure that nobody has explained makes the run fail.
- The second number is how many steps the client can take. 0.3 knows no ListTasks and no data but objects, and some
  clients have no call for some push operations.

Push notifications behind a gateway: a webhook is told in the version of the agent, so a caller of another version is
refused with PushNotificationNotSupportedError. ListTasks before an agent of 0.3 is refused with UnsupportedOperationError.
In the cells where versions differ, just these errors are the pass, as errors of that type that the client understands."""
DISAGREEMENTS = """\
Files over 0.3 gRPC and 0.3 HTTP+JSON. The specification has a field of bytes for the content of a file. The SDKs for
Python, Java and Go put base64 *text* in it, so that over HTTP+JSON a file is base64 of base64; the SDK for JavaScript puts
the bytes. Nobody can tell the two apart from the bytes alone, so Dragoman does what is specified unless told otherwise:

| where | switch |
|---|---|
| callers of `dragoman serve` and `dragoman gateway` | `--base64-files` (`A2AApp(rows=rows(base64_files=True))`) |
| the agent behind `dragoman gateway` | `--upstream-base64-files` |
| the agent that `dragoman.connect` calls | `base64_files=True` |

All cells with a2a-sdk, which is the one for Python, run with the switch on; it touches nothing but those two faces. The
bytes `abc` as a2a-sdk sends them over 0.3 HTTP+JSON and as specified:

```text
{"file":{"fileWithBytes":"WVdKag==","mimeType":"text/plain"}}
{"file":{"fileWithBytes":"YWJj","mimeType":"text/plain"}}
```

What a2a-sdk makes of a file as specified, over gRPC and over HTTP+JSON:

```text
grpc-message: Unexpected <class 'UnicodeDecodeError'>: 'utf-8' codec can't decode byte 0x80 in position 128: invalid start byte

HTTP/1.1 500 Internal Server Error
{"message":"unknown exception"}
```"""
RUNNING = """\
    make interop                                     everything; writes this page; fails if anything is not explained
    make interop ARGS='--section gateway'            one section
    make interop ARGS='--only a2a_sdk_1@0.3 --raw'   some cells, with the bytes of what is not explained

It takes about five minutes, and needs the network once, to install the SDKs into environments of their own."""
CARRIERS = ("uvicorn", "httpx", "grpcio", "protobuf")
BINDINGS = {"JSONRPC": "JSON-RPC", "HTTP+JSON": "HTTP+JSON", "GRPC": "gRPC"}


def page(results: Sequence[Result], known: Sequence[Fault]) -> str:
    lines = [
        "# Interoperability",
        "",
        "<!-- Written by `make interop`; edit tests/interop/table.py or tests/interop/faults.toml instead. -->",
        "",
        f"Dragoman and the official A2A SDKs ({' and '.join(peer.label for peer in PEERS)}), each against each.",
        "",
        *_summary(results, known),
        *("", "## How to read this", "", READING, ""),
    ]
    cited: dict[str, Fault] = {}
    for section, (title, text) in TITLES.items():
        if rows := _of(results, section):
            lines += [f"## {title}", "", text, "", *_grid(rows, known, cited), ""]
    lines += [*_faults(cited.values()), "## A disagreement with a switch", "", DISAGREEMENTS, ""]
    lines += ["## What was run", "", *_versions(), "", "## How to run it", "", RUNNING, "", *_catalogue()]
    return "\n".join(lines) + "\n"


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


def _catalogue() -> Iterable[str]:
    yield from ("## Steps", "", "| step | what is done, and must come of it | since |", "|---|---|---|")
    for step in CATALOGUE:
        yield f"| {step.name} | {step.title} | {step.since} |"
