"""What a run found, kept as JSON so that the table can be drawn again without running."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .kit.report import Outcome
from .parties import CACHE, Cell, Face, Seat

RESULTS = CACHE / "results.json"


@dataclass
class Result:
    """A cell with its outcomes; `raw` holds the bytes of the steps that failed, `note` what our side said of it."""

    cell: Cell
    outcomes: list[Outcome]
    raw: dict[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def counted(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.skipped]

    @property
    def failures(self) -> list[Outcome]:
        return [outcome for outcome in self.counted if not outcome.ok]

    @property
    def late(self) -> bool:
        """Whether it was not run for want of time."""
        return any(outcome.step == "time" for outcome in self.outcomes)

    @property
    def passed(self) -> int:
        return len(self.counted) - len(self.failures)


def save(results: list[Result], path: Path = RESULTS) -> None:
    """Keep these results, and of earlier ones those of other cells."""
    cells = {result.cell for result in results}
    results = [result for result in read(path) if result.cell not in cells] + results
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(result) for result in results], indent=1, ensure_ascii=False))


def read(path: Path = RESULTS) -> list[Result]:
    if not path.exists():
        return []
    return [_result(row) for row in json.loads(path.read_text())]


def _result(row: dict[str, Any]) -> Result:
    section, client, agent = row["cell"]["section"], row["cell"]["client"], row["cell"]["agent"]
    cell = Cell(section, _seat(client), _seat(agent))
    return Result(cell, [Outcome(**outcome) for outcome in row["outcomes"]], row["raw"], row.get("note", ""))


def _seat(row: list[Any]) -> Seat:
    return Seat(row[0], Face(*row[1]))
