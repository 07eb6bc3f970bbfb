"""Runs the cells: groups side by side, the cells of a group one after another, all before a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import envs, ours, processes, stacks
from .kit.report import Outcome
from .parties import CACHE, OURS, PARTIES, PEERS, Cell
from .results import Result

CELL_LIMIT = 120.0
LATE = Outcome("time", False, "not run: the run's time was used up")
Progress = Callable[[Result], None]


async def run(
    cells: Sequence[Cell], steps: Sequence[str], *, jobs: int, deadline: float, progress: Progress
) -> list[Result]:
    """Run them all within `deadline` seconds, making of environments included. Raises `EnvError`."""
    ends = time.monotonic() + deadline
    used = {seat.party for cell in cells for seat in (cell.client, cell.agent)}
    try:
        async with asyncio.timeout(deadline):
            pythons = {peer.name: await envs.ensure(peer) for peer in PEERS if peer.name in used}
    except TimeoutError:
        raise envs.EnvError(f"the environments were not made within {deadline:g} s") from None
    groups: dict[stacks.Group, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(stacks.group_of(cell), []).append(cell)
    runner = _Runner(pythons, steps, ends, progress)
    slots = asyncio.Semaphore(jobs)

    async def one(group: stacks.Group, members: list[Cell]) -> None:
        async with slots:
            await runner.group(group, members)

    async with asyncio.TaskGroup() as all_groups:
        for group, members in groups.items():
            all_groups.create_task(one(group, members))
    place = {cell: number for number, cell in enumerate(cells)}
    return sorted(runner.results, key=lambda result: place[result.cell])


def _refusals(cell: Cell) -> list[str]:
    """What a gateway refuses by design where the versions differ, as STEP=ERROR."""
    if cell.client.face.version == cell.agent.face.version:
        return []
    refused = ["push-*=PushNotificationNotSupported"]
    return [*refused, "list-tasks=UnsupportedOperation"] if cell.agent.face.version == "0.3" else refused


class _Runner:
    def __init__(self, pythons: Mapping[str, Path], steps: Sequence[str], deadline: float, progress: Progress) -> None:
        self.results: list[Result] = []
        self._pythons, self._steps, self._deadline, self._progress = pythons, steps, deadline, progress

    def _add(self, result: Result) -> None:
        self.results.append(result)
        self._progress(result)

    async def group(self, group: stacks.Group, cells: Sequence[Cell]) -> None:
        waiting = list(cells)
        if self._left() <= 0:
            self._give_up(waiting, LATE)
            return
        try:
            async with stacks.stack(group, self._pythons) as target:
                while waiting:
                    self._add(await self._cell(waiting[0], target))
                    waiting.pop(0)
        except (processes.NotReady, OSError) as error:
            self._give_up(waiting, Outcome("servers", False, str(error)))

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _give_up(self, cells: Sequence[Cell], why: Outcome) -> None:
        for cell in cells:
            self._add(Result(cell, [why]))

    async def _cell(self, cell: Cell, target: stacks.Target) -> Result:
        left = self._left()
        if left <= 0:
            return Result(cell, [LATE])
        target.forget()
        log = CACHE / "logs" / str(stacks.group_of(cell)) / f"{str(cell.client).replace('/', '-')}.log"
        outcomes = await processes.client(self._command(cell, target), log, min(CELL_LIMIT, left))
        failed = [outcome for outcome in outcomes if not outcome.ok and not outcome.skipped]
        raw = {outcome.step: target.bytes_between(outcome.started, outcome.ended) for outcome in failed}
        return Result(cell, outcomes, raw)

    def _command(self, cell: Cell, target: stacks.Target) -> list[str]:
        if cell.client.party == OURS.name:
            return ours.client(target.url, cell.client, PARTIES[cell.agent.party], self._steps)
        peer = PARTIES[cell.client.party]
        command = [str(self._pythons[peer.name]), str(peer.home / "client.py"), target.url]
        command += ["--version", cell.client.face.version, "--binding", cell.client.face.binding]
        command += [argument for step in self._steps for argument in ("--step", step)]
        command += [argument for refusal in _refusals(cell) for argument in ("--refused", refusal)]
        return command + [argument for pair in target.via.items() for argument in ("--via", "=".join(pair))]
