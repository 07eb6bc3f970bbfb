"""Running the catalogue against one driver, one JSON line a step."""

from __future__ import annotations

import asyncio
import fnmatch
import json
import sys
import time
from dataclasses import asdict, dataclass

from . import steps, talk
from .model import Driver, Unavailable
from .options import Options
from .steps import Mismatch, Step

STEP_LIMIT = 15.0
TALK_LIMIT = 6.0  # nothing there takes time


@dataclass(frozen=True)
class Outcome:
    """How one step went; `started` and `ended` let the recorder find the bytes of it."""

    step: str
    ok: bool
    detail: str
    skipped: bool = False
    started: float = 0.0
    ended: float = 0.0


async def run(driver: Driver, given: Options) -> int:
    """Run the steps and print their outcomes; the number of failures is returned."""
    failures = 0
    limit = TALK_LIMIT if given.talk else STEP_LIMIT
    for step in talk.CATALOGUE if given.talk else steps.CATALOGUE:
        if given.only and not any(fnmatch.fnmatch(step.name, pattern) for pattern in given.only):
            continue
        error = next((name for pattern, name in given.refused.items() if fnmatch.fnmatch(step.name, pattern)), "")
        outcome = await attempt(step.or_refused_with(error) if error else step, driver, limit)
        failures += not outcome.ok and not outcome.skipped
        emit(outcome)
    return failures


def emit(outcome: Outcome) -> None:
    print(json.dumps(asdict(outcome)), flush=True)


async def attempt(step: Step, driver: Driver, limit: float) -> Outcome:
    started = time.time()
    ok = skipped = False
    if driver.version != "any" and step.since > driver.version:
        return Outcome(step.name, False, f"not in {driver.version}", skipped=True)
    try:
        async with asyncio.timeout(limit):
            detail = await step.act(driver)
        ok = True
    except Unavailable as error:
        skipped, detail = True, str(error)
    except TimeoutError:
        detail = f"timed out: no result within {limit:g} s"
    except Mismatch as error:
        detail = str(error)
    except Exception as error:  # whatever an SDK raises is a finding, not a crash of the bench
        detail = f"{type(error).__name__}: {error}"
    return Outcome(step.name, ok, " ".join(detail.split())[:800], skipped, started, time.time())


def broken(detail: str) -> None:
    """The client could not even be set up: one line that stands for every step."""
    emit(Outcome("connect", False, detail, started=time.time(), ended=time.time()))
    sys.exit(1)
