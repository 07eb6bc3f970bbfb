"""What a run found, as records for JSON and as a table for people."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec

from .cases import Case, Sample

_PACKAGES = ("dragoman", "h2corn", "msgspec", "pyreqwest", "uvloop", "grpcio")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a case: median CPU microseconds per unit, units per CPU second, each sample, bytes of a reply."""

    us: float
    per_cpu_second: float
    samples: tuple[float, ...]
    reply_bytes: int


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One case. ``ratio`` is the median over the rounds; it and ``met`` are None unless both sides ran, ``met`` also if
    there is no bar. ``notes`` say where two translations differ."""

    name: str
    title: str
    unit: str
    against: str
    bar: float | None
    at_least: bool
    ours: Figure | None
    theirs: Figure | None
    ratio: float | None = None
    met: bool | None = None
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


def figure(samples: Sequence[Sample]) -> Figure | None:
    """The figure of a side's samples, None if there are none."""
    if not samples:
        return None
    us = statistics.median(sample.us for sample in samples)
    return Figure(
        us=round(us, 2),
        per_cpu_second=round(1e6 / us, 1),
        samples=tuple(round(sample.us, 2) for sample in samples),
        reply_bytes=samples[-1].size,
    )


def row(case: Case, ours: Sequence[Sample], theirs: Sequence[Sample], failures: Sequence[str]) -> Row:
    """The row of a case that ran."""
    mine, other = figure(ours), figure(theirs)
    ratio = _ratio(ours, theirs) if case.floor else _ratio(theirs, ours)
    met = None
    if ratio is not None and case.bar is not None:
        met = ratio >= case.bar if case.floor else ratio <= case.bar
    return Row(
        name=case.name,
        title=case.title,
        unit=case.unit,
        against=case.against,
        bar=case.bar,
        at_least=case.floor,
        ours=mine,
        theirs=other,
        ratio=ratio,
        met=met,
        notes=tuple(_remarks(ours, theirs)),
        failures=tuple(failures),
    )


def _ratio(small: Sequence[Sample], big: Sequence[Sample]) -> float | None:
    """Median of the ratios within each round: the two runs of a round saw the same neighbours."""
    if not small or not big:
        return None
    return round(statistics.median(b.us / a.us for a, b in zip(small, big, strict=False)), 2)


def _remarks(ours: Sequence[Sample], theirs: Sequence[Sample]) -> Iterable[str]:
    if ours and theirs and ours[-1].body and theirs[-1].body:
        where = _first_difference(json.loads(ours[-1].body), json.loads(theirs[-1].body))
        if where:
            yield f"the two translations differ at {where}"
    for label, samples in (("ours", ours), ("theirs", theirs)):
        if samples and samples[-1].memory:
            yield f"{label}: {samples[-1].memory / 1024:.1f} KiB of memory per open stream"


def _first_difference(ours: Any, theirs: Any, path: str = "$") -> str:
    """Where two JSON values differ first, empty if they are equal."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        found = (_first_difference(ours[key], theirs[key], f"{path}.{key}") for key in ours)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        found = (_first_difference(a, b, f"{path}[{n}]") for n, (a, b) in enumerate(zip(ours, theirs, strict=True)))
    else:
        return "" if ours == theirs else f"{path}: {str(ours)[:80]} / {str(theirs)[:80]}"
    return next((where for where in found if where), "")


def document(rows: Sequence[Row], seconds: float, rounds: int) -> bytes:
    """The whole run as JSON."""
    about = {
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "load_average": os.getloadavg(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "seconds": seconds,
        "rounds": rounds,
        "figure": "CPU microseconds of the process under test per unit, median",
    }
    return msgspec.json.format(msgspec.json.encode({"about": about, "rows": rows}), indent=1) + b"\n"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def table(rows: Sequence[Row]) -> str:
    """The rows for people: CPU microseconds per unit, units per CPU second, ratio and bar."""
    lines = []
    for against in dict.fromkeys(row.against for row in rows):
        head = ("", f"CPU us, {against}", "CPU us, ours", "per CPU s", "ratio", "bar", "")
        cells = [head, *(_cells(row) for row in rows if row.against == against)]
        widths = [max(len(line[n]) for line in cells) for n in range(len(head))]
        lines += ["  ".join([line[0].ljust(widths[0]), *_right(line[1:], widths[1:])]).rstrip() for line in cells]
        lines.append("")
    for row in rows:
        lines += [f"{row.name}: {text}" for text in (*row.notes, *row.failures)]
    return "\n".join(lines).rstrip()


def _right(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "met", False: "MISSED", None: "failed" if row.failures else ""}[row.met]
    return (
        row.title,
        _number(row.theirs),
        _number(row.ours),
        f"{row.ours.per_cpu_second:,.0f}" if row.ours else "-",
        f"{row.ratio:.2f}x" if row.ratio is not None else "-",
        f"{'>=' if row.at_least else '<='} {row.bar:g}x" if row.bar is not None else "",
        verdict,
    )


def _number(figure: Figure | None) -> str:
    return f"{figure.us:,.1f}" if figure else "-"
