"""``python -m tests.endurance faults|soak``: run it, print what was found, ``--write`` it into docs/endurance.md.

Exit code 1 if anything happened that the run cannot explain.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from pathlib import Path

import uvloop

from .faults import faults
from .report import faults_lines, soak_lines, write
from .soak import soak

FOLDER = Path(".endurance")


def main() -> int:
    options = _options()
    folder = FOLDER.absolute() / options.what
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if options.what == "soak":
            soaked = runner.run(soak(folder, options.minutes, options.workers, options.streams))
            title, lines = "Soak", soak_lines(soaked)
            sound = not soaked.tally.unexplained and not soaked.untold and soaked.exit_code == 0
        else:
            found = runner.run(faults(folder, options.calls, options.streams))
            title, lines, sound = "Faults", faults_lines(found), found.sound
    print("\n".join(lines))
    if options.write:
        write(title, lines)
    return 0 if sound else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    runs = parser.add_subparsers(dest="what", required=True)
    soaking = runs.add_parser("soak", help="mixed load with reloads and restarts")
    soaking.add_argument("--minutes", type=float, default=20.0)
    soaking.add_argument("--workers", type=int, default=48, help="callers at a time (default 48)")
    soaking.add_argument("--streams", type=int, default=48, help="streams at a time (default 48)")
    faulty = runs.add_parser("faults", help="every failure of an upstream beside healthy load")
    faulty.add_argument("--calls", type=int, default=200, help="healthy calls at a time (default 200)")
    faulty.add_argument("--streams", type=int, default=300, help="healthy streams open (default 300)")
    for one in (soaking, faulty):
        one.add_argument("--write", action="store_true", help="put the result into docs/endurance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
