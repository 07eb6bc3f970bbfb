"""`python -m tests.interop`: run the matrix, or a part of it, and write docs/interop.md."""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import sys
import time
from collections.abc import Sequence

from . import faults, matrix, results, table
from .faults import Fault
from .parties import ROOT, SECTIONS, Cell
from .results import Result

PAGE = ROOT / "docs" / "interop.md"
TOTAL_LIMIT = 1200.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("--section", action="append", choices=SECTIONS, help="default: all")
    parser.add_argument("--only", action="append", default=[], help="part or pattern of a cell's name")
    parser.add_argument("--step", action="append", default=[], help="name or pattern of a step")
    parser.add_argument("--jobs", type=int, default=4, help="groups of cells that run at the same time")
    parser.add_argument("--limit", type=float, default=TOTAL_LIMIT, help="seconds for the whole run")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and stop")
    parser.add_argument("--draw", action="store_true", help="take the results of earlier runs; run nothing")
    parser.add_argument("--resume", action="store_true", help="take those that there are; run the cells without one")
    parser.add_argument("--write", action="store_true", help="write the page after a partial run too")
    parser.add_argument("--raw", action="store_true", help="print the bytes of what is not explained")
    return parser.parse_args()


def chosen(sections: Sequence[str], only: Sequence[str]) -> list[Cell]:
    cells = [cell for section in sections for cell in SECTIONS[section]()]
    if not only:
        return cells
    return [c for c in cells if any(part in str(c) or fnmatch.fnmatch(str(c), part) for part in only)]


def main() -> int:
    given = arguments()
    cells = chosen(given.section or list(SECTIONS), given.only)
    if given.list:
        print("\n".join(map(str, cells)))
        return 0
    if not cells:
        print("no cell has such a name; --list prints the names", file=sys.stderr)
        return 2
    known = faults.load()
    whole = not (given.section or given.only or given.step)
    kept = {result.cell: result for result in results.read()} if given.draw or given.resume else {}
    if not given.draw:
        fresh = run([cell for cell in cells if cell not in kept], given, known)
        if not given.step:
            results.save([result for result in fresh if not result.late])
        kept |= {result.cell: result for result in fresh}
    found = [kept[cell] for cell in cells if cell in kept]
    missing = len(cells) - len(found) + sum(result.late for result in found)
    if missing:
        print(f"{missing} cells were not run", file=sys.stderr)
    if (whole and not missing) or given.write:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(table.page(found, known))
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return verdict(found, known, whole=whole and not missing, raw=given.raw) or bool(missing)


def run(cells: Sequence[Cell], given: argparse.Namespace, known: Sequence[Fault]) -> list[Result]:
    """What was found, as far as it got if it is interrupted."""
    started = time.monotonic()
    found: list[Result] = []

    def progress(result: Result) -> None:
        found.append(result)
        square = table.square(result, known, {})
        print(f"[{len(found):3}/{len(cells)} {time.monotonic() - started:4.0f} s] {result.cell}  {square}", flush=True)
        for outcome in result.failures:
            if not faults.explain(known, result.cell, outcome):
                print(f"      {outcome.step}: {outcome.detail[:300]}", flush=True)

    work = matrix.run(cells, given.step, jobs=given.jobs, deadline=given.limit, progress=progress)
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    return found


def verdict(found: Sequence[Result], known: Sequence[Fault], *, whole: bool, raw: bool) -> int:
    """Say what is not explained, and what is explained but no longer seen."""
    seen: set[str] = set()
    unexplained = 0
    for result in found:
        for outcome in result.failures:
            if fault := faults.explain(known, result.cell, outcome):
                seen.add(fault.id)
                continue
            unexplained += 1
            print(f"\nUNEXPLAINED {result.cell} {outcome.step}\n  {outcome.detail}")
            if raw:
                print(result.raw.get(outcome.step, ""))
    for fault in known:
        if whole and fault.id not in seen and not fault.may_hide:
            print(f"\nno longer seen: {fault.id} ({fault.title}); take it out of faults.toml")
    steps = sum(len(result.counted) for result in found)
    passed = sum(result.passed for result in found)
    print(f"\n{len(found)} cells, {passed} of {steps} steps passed, {unexplained} failures unexplained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
