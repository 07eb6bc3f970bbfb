"""What a run found, as lines for a terminal and as a section of ``docs/endurance.md``."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from .faults import Faults
from .load import Tally
from .soak import Soak

PAGE = Path("docs/endurance.md")
MIB = 2**20
_HEAD = """# What the gateway stands

Two runs against the gateway as a process of its own, with agents in processes of their own, on one machine with the
load. Each replaces its own section here: `make faults` and `make soak` (20 minutes; `ARGS="--minutes 2"` for less).
"""


def soak_lines(found: Soak) -> list[str]:
    """The figures of a soak as Markdown."""
    tally, sizes = found.tally, [size / MIB for _, size in found.memory] or [0.0]
    rows = {
        "length": f"{found.seconds / 60:.1f} min",
        **_load(tally),
        "reloads of the configuration": f"{found.reloads}",
        "agents killed and restarted": f"{found.restarts}",
        "webhooks registered": f"{len(found.webhooks)}",
        "of these never told of the end": f"{len(found.untold)}",
        "notifications received": f"{found.notifications}",
        "errors explained by a killed agent": f"{tally.explained.total()}",
        "errors without an explanation": f"{tally.unexplained.total()}",
        "memory of the gateway": f"{sizes[0]:.0f} MiB at first, {max(sizes):.0f} at most, {sizes[-1]:.0f} at last",
        "its slope after the first quarter": f"{found.slope:+.1f} MiB/h",
        "file descriptors": f"{min(found.files, default=0)} to {max(found.files, default=0)}",
        "CPU of the gateway": f"{found.cpu / max(found.seconds, 1):.0%} of one core",
        "exit code on SIGTERM": f"{found.exit_code}",
    }
    return [*_table(rows), "", *_errors("Unexplained", tally.unexplained), *_errors("Explained", tally.explained)]


def faults_lines(found: Faults) -> list[str]:
    """The figures of a fault run as Markdown."""
    tally = found.tally
    rows = {
        "healthy load": f"{found.calling} concurrent calls, {found.following} open streams",
        "connections for it, caller to gateway": f"{found.connections}",
        **_load(tally),
        "errors among the healthy": f"{tally.unexplained.total()}",
        "streams left unread meanwhile": f"{found.unread}",
        "memory of the gateway": " -> ".join(f"{name} {size / MIB:.0f} MiB" for name, size in found.memory.items()),
    }
    lines = [*_table(rows), "", "| fault | upstream face | calls | answered with | slowest |", "|---|---|---|---|---|"]
    for one in found.faults:
        told = ", ".join(f"{name} x{count}" for name, count in sorted(one.errors.items()))
        lines.append(f"| {one.mode} | {one.face} | {one.tried} | {told} | {one.slowest:.1f} s |")
    return [*lines, "", *_errors("Unexplained", tally.unexplained)]


def _load(tally: Tally) -> dict[str, str]:
    return {
        "calls answered": f"{tally.calls:,}",
        "time to an answer": f"{tally.quantile(0.5) * 1000:.0f} ms median, {tally.quantile(0.99) * 1000:.0f} ms p99",
        "streams opened": f"{tally.streams:,}",
        "stream events": f"{tally.events:,}",
        "longest gap within a stream": f"{tally.gap:.1f} s (one event each 0.5 s)",
    }


def _table(rows: dict[str, str]) -> list[str]:
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]


def _errors(title: str, found: Counter[str]) -> list[str]:
    return [f"{title}:", "", *(f"- {count}x {text}" for text, count in found.most_common(20)), ""] if found else []


def write(section: str, lines: list[str]) -> None:
    """Put a section into the page in place of its last one."""
    text = PAGE.read_text() if PAGE.exists() else _HEAD
    block = f"\n## {section}\n\n" + "\n".join(lines).rstrip() + "\n"
    found = re.search(rf"\n## {re.escape(section)}\n.*?(?=\n## |\Z)", text, re.DOTALL)
    PAGE.write_text(text[: found.start()] + block + text[found.end() :] if found else text.rstrip() + "\n" + block)
