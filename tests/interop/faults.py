"""Failures that are understood: whose each is, how it is recognised, and the bytes that show it."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .kit.report import Outcome
from .parties import HERE, Cell

FAULTS = HERE / "faults.toml"
#: Outcomes of the bench itself, which no fault of a peer explains: nothing was tried.
UNTRIED = frozenset({"environment", "servers", "time"})
PLACES = ("section", "client", "client_face", "agent", "agent_face", "step")


@dataclass(frozen=True)
class Mark:
    """How a fault shows: patterns for the cell and the step, a regular expression for the detail."""

    where: Mapping[str, str]
    pattern: re.Pattern[str]

    def fits(self, cell: Cell, outcome: Outcome) -> bool:
        place = (cell.section, cell.client.party, cell.client.face, cell.agent.party, cell.agent.face)
        seen = dict(zip(PLACES, (*map(str, place), outcome.step), strict=True))
        return all(
            any(fnmatch.fnmatchcase(seen[name], one) for one in wanted.split("|"))
            for name, wanted in self.where.items()
        ) and bool(self.pattern.search(outcome.detail))


@dataclass(frozen=True)
class Fault:
    id: str
    owner: str
    title: str
    why: str
    evidence: str
    marks: tuple[Mark, ...]
    may_hide: bool = False


def load(path: Path = FAULTS) -> list[Fault]:
    return [_fault(row) for row in tomllib.loads(path.read_text())["fault"]]


def _fault(row: Mapping[str, Any]) -> Fault:
    return Fault(
        row["id"],
        row["owner"],
        row["title"],
        row["why"].strip(),
        row["evidence"].strip("\n"),
        tuple(_mark(mark) for mark in row["match"]),
        row.get("may_hide", False),
    )


def _mark(row: Mapping[str, str]) -> Mark:
    where = {name: value for name, value in row.items() if name != "pattern"}
    if unknown := where.keys() - set(PLACES):
        raise ValueError(f"faults.toml: unknown keys {sorted(unknown)}")
    return Mark(where, re.compile(row.get("pattern", "")))


def explain(faults: Iterable[Fault], cell: Cell, outcome: Outcome) -> Fault | None:
    if outcome.step in UNTRIED:
        return None
    return next((fault for fault in faults if any(mark.fits(cell, outcome) for mark in fault.marks)), None)
