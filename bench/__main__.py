"""``python -m bench``: run the cases, print a table (``--json``: the records) and keep them in ``bench/results``.

Exit code 0 if everything ran, whatever the figures are: a missed bar is said, not failed. 1 if something did not run.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from pathlib import Path

import uvloop

from .cases import CASES, Bench, Case, Measure, Sample, Side
from .load import BadReply
from .processes import OTHERS, ProcessError
from .report import Row, document, row, table

RESULTS = Path(__file__).resolve().parent / "results" / "latest.json"
WARM_UP_SECONDS = 0.5
_FAILURES = (ProcessError, BadReply, OSError, ValueError, KeyError, TimeoutError)


def main() -> int:
    """Parse the command line and run."""
    options = _options()
    os.sched_setaffinity(0, {OTHERS})
    chosen = [case for case in CASES if not options.only or any(name in case.name for name in options.only)]
    if not chosen:
        raise SystemExit(f"no case is called {options.only}; there are: {', '.join(case.name for case in CASES)}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        bench = Bench(runner, options.seconds)
        rows = [run(case, bench, options.rounds) for case in chosen]
    found = document(rows, options.seconds, options.rounds)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_bytes(found)
    print(found.decode() if options.json else table(rows))
    return 1 if any(row.failures for row in rows) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="CPU per call, side by side.")
    parser.add_argument("--only", action="append", metavar="NAME", help="cases whose name holds NAME; may be repeated")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of one run (default 1.5)")
    parser.add_argument("--rounds", type=int, default=5, help="runs per side, taken in turns (default 5)")
    parser.add_argument("--json", action="store_true", help="print the records instead of the table")
    return parser.parse_args()


def run(case: Case, bench: Bench, rounds: int) -> Row:
    """Measure both sides of a case in turns. A side that fails is told in the row, and the other one goes on."""
    failures: list[str] = []
    taken: dict[str, list[Sample]] = {"ours": [], "theirs": []}
    with contextlib.ExitStack() as stack:
        sides = {"theirs": case.theirs, "ours": case.ours}
        ready = {label: _opened(stack, side, bench, label, failures) for label, side in sides.items()}
        for _ in range(rounds):
            for label, measure in ready.items():
                if measure is None:
                    continue
                try:
                    taken[label].append(measure(bench.seconds))
                except _FAILURES as error:
                    failures.append(f"{label}: {error}")
                    ready[label] = None
    done = row(case, taken["ours"], taken["theirs"], failures)
    _progress(done)
    return done


def _opened(stack: contextlib.ExitStack, side: Side, bench: Bench, label: str, failures: list[str]) -> Measure | None:
    try:
        measure = stack.enter_context(side(bench))
        measure(WARM_UP_SECONDS)
    except _FAILURES as error:
        failures.append(f"{label}: {error}")
        return None
    return measure


def _progress(done: Row) -> None:
    figures = ((done.against, done.theirs), ("ours", done.ours))
    said = ", ".join(f"{label} {figure.us:,.1f} us" if figure else f"{label} failed" for label, figure in figures)
    print(f"{done.name}: {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
