"""Runs the cells: groups side by side, the cells of a group one after another, all before a deadline."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from . import envs, ours, platforms, processes, stacks
from .kit.report import Outcome
from .parties import CACHE, OURS, PARTIES, PROBE, Cell
from .results import Result

CELL_LIMIT = 120.0
LATE = Outcome("time", False, "not run: the run's time was used up")
Progress = Callable[[Result], None]


async def run(cells: Sequence[Cell], steps: Sequence[str], *, jobs: int, deadline: float, progress: Progress) -> None:
    """Run them all within `deadline` seconds, making of environments included, and tell `progress` of each.

    Where an environment cannot be made, or a server does not start, its cells have that as their outcome.
    """
    ends = time.monotonic() + deadline
    used = {seat.party for cell in cells for seat in (cell.client, cell.agent)} - {OURS.name, PROBE.name}
    launchers, unmade = await envs.ensure_all([PARTIES[name] for name in sorted(used)], deadline)
    runner = _Runner(launchers, steps, ends, progress)
    groups: dict[stacks.Group, list[Cell]] = {}
    for cell in cells:
        if why := unmade.get(cell.client.party) or unmade.get(cell.agent.party):
            progress(Result(cell, [Outcome("environment", False, why)]))
        else:
            groups.setdefault(stacks.group_of(cell), []).append(cell)
    slots = asyncio.Semaphore(jobs)

    async def one(group: stacks.Group, members: list[Cell]) -> None:
        async with slots:
            await runner.group(group, members)

    async def all_of(shared: bool) -> None:
        async with asyncio.TaskGroup() as tasks:
            for group in by_size:
                if group.shared is shared:
                    tasks.create_task(one(group, groups[group]))

    by_size = sorted(groups, key=lambda group: len(groups[group]), reverse=True)
    await all_of(shared=False)
    if shared := [group for group in groups if group.shared]:
        try:
            async with platforms.platform(shared, launchers) as runner.platform:
                await all_of(shared=True)
        except processes.NotReady as error:
            for group in shared:
                runner.give_up(groups[group], Outcome("servers", False, str(error)))


class _Runner:
    platform: platforms.Platform

    def __init__(self, launchers: stacks.Launchers, steps: Sequence[str], deadline: float, progress: Progress) -> None:
        self._launchers, self._steps, self._deadline, self._progress = launchers, steps, deadline, progress

    async def group(self, group: stacks.Group, cells: Sequence[Cell]) -> None:
        waiting = list(cells)
        if self._left() <= 0:
            self.give_up(waiting, LATE)
            return
        try:
            if group.shared:
                await self._on_platform(group, waiting)
                return
            async with stacks.stack(group, self._launchers) as target:
                while waiting:
                    self._progress(await self._cell(waiting[0], target))
                    waiting.pop(0)
        except (processes.NotReady, OSError) as error:
            self.give_up(waiting, Outcome("servers", False, str(error)))

    async def _on_platform(self, group: stacks.Group, waiting: list[Cell]) -> None:
        while waiting:
            async with AsyncExitStack() as running:
                target = await self.platform.target(waiting[0], group, running)
                self._progress(await self._cell(waiting[0], target))
            waiting.pop(0)

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def give_up(self, cells: Sequence[Cell], why: Outcome) -> None:
        for cell in cells:
            self._progress(Result(cell, [why]))

    async def _cell(self, cell: Cell, target: stacks.Target) -> Result:
        left = self._left()
        if left <= 0:
            return Result(cell, [LATE])
        target.forget()
        client = f"{cell.section}.{cell.client}".replace("/", "-")
        log = CACHE / "logs" / str(stacks.group_of(cell)) / f"{client}.log"
        outcomes = await processes.client(self._command(cell, target), log, min(CELL_LIMIT, left))
        failed = [outcome for outcome in outcomes if not outcome.ok and not outcome.skipped]
        raw = {outcome.step: target.bytes_between(outcome.started, outcome.ended) for outcome in failed}
        return Result(cell, outcomes, raw, target.note)

    def _command(self, cell: Cell, target: stacks.Target) -> list[str]:
        if cell.client.party == OURS.name:
            return ours.client(target.url, cell.client, PARTIES[cell.agent.party], self._steps)
        if cell.client.party == PROBE.name:
            return [sys.executable, "-m", "tests.interop.probe", target.url]
        peer = PARTIES[cell.client.party]
        command = [*self._launchers[peer.name], envs.script(peer, "client")]
        if peer.node:
            command = [sys.executable, "-m", "tests.interop.remote_client", *command]
        command += [target.url, "--version", cell.client.face.version, "--binding", cell.client.face.binding]
        command += ["--talk"] if cell.talks else []
        command += [argument for step in self._steps for argument in ("--step", step)]
        return command + [argument for pair in target.via.items() for argument in ("--via", "=".join(pair))]
