"""Works on several groups at once: who begins when, with how much of the time, and which of those that lie in one another stay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kernelwright.models.records import ModelSettings, OperatorOutcome
from tools.cores import usable_cores
from tools.models.choosing.choice import apart
from tools.models.choosing.chosen import Chosen, gain_of, overlap
from tools.models.choosing.covering import covering
from tools.models.packaging.delivered import Delivered
from tools.models.records import Group

LEAST_S = 10.0
"""Wall time below which no operator is begun."""
WORTH_S = 50.0
"""Wall time of a run below which little is confirmed: operators that come later go without rather than all with too little."""
MOST_JOBS, CORES_A_JOB = 4, 4
"""Operators at once, at most, and the cores that each may fill: its compilers, its reference and its kernels' builds."""
LEAST_SPEEDUP = 1.001
"""What an operator that was delivered brings at least, when it is weighed against those inside of it."""
Made = tuple[OperatorOutcome, Delivered | None]
Make = Callable[[Chosen, float], Awaitable[Made]]
"""Has a group's operator made within so many seconds; 0 sets no limit."""


def jobs_of(settings: ModelSettings) -> int:
    """How many operators are worked on at once: what was asked for, or what the cores are enough for."""
    return settings.jobs or max(1, min(MOST_JOBS, usable_cores() // CORES_A_JOB))


def part_of(left_s: float, budgets: Sequence[int], jobs: int = 1) -> float:
    """Give the first of several its part of the wall time that is left, by their budgets, but enough to come to an end.

    `budgets` are of all that have not ended, so many of which are worked on at once.
    """
    return min(left_s, max(left_s * jobs * budgets[0] / sum(budgets), WORTH_S))


@dataclass
class Lineup:
    """The groups of one model that wait, are worked on, and have ended."""

    rows: Sequence[Chosen]
    settings: ModelSettings
    jobs: int
    waiting: list[Chosen] = field(init=False)
    running: dict[asyncio.Task[Made], Chosen] = field(default_factory=dict, init=False)
    made: list[Made] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """What has a budget waits; the others may take the place of one of these."""
        self.waiting = [row for row in self.rows if row.budget]
        self._others = {row.group: row for row in self.rows if not row.budget}
        self._until = time.monotonic() + self.settings.minutes * 60.0

    async def work(self, make: Make, begun: Callable[[str], str], listener: Callable[[dict[str, Any]], None]) -> None:
        """See all to an end; `begun` names the run of a group that was worked on before."""
        try:
            while True:
                self._begin(make, begun, listener)
                if not self.running:
                    return
                ended, _ = await asyncio.wait(self.running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    self._end(self.running.pop(task), task.result(), listener)
        finally:
            for task in self.running:
                task.cancel()
            if self.running:
                await asyncio.wait(self.running)

    def _begin(self, make: Make, begun: Callable[[str], str], listener: Callable[[dict[str, Any]], None]) -> None:
        while len(self.running) < self.jobs and (self.waiting or self._beside()):
            row = self.waiting.pop(0)
            wall_s = self._wall_s(row)
            if self.settings.minutes and wall_s < LEAST_S and not begun(row.group):
                left = OperatorOutcome(name=row.group, run="", reason="No time of --minutes was left for it.", delivered=False)
                self._end(row, (left, None), listener)
                continue
            listener({"event": "operator", "row": row})
            self.running[asyncio.ensure_future(make(row, wall_s))] = row

    def _beside(self) -> bool:
        """Where a place is free and time is limited, have what lies in those that are worked on made beside them."""
        if not self.settings.minutes:
            return False
        for row in self.running.values():
            if instead := self._instead(row, most=1):
                self.waiting += instead
                return True
        return False

    def _wall_s(self, row: Chosen) -> float:
        if not self.settings.minutes:
            return self.settings.run.budget.wall_s
        budgets = [one.budget for one in (row, *self.waiting, *self.running.values())]
        return part_of(self._until - time.monotonic(), budgets, self.jobs)

    def _instead(self, row: Chosen, most: int | None = None) -> list[Chosen]:
        """Take what may stand in a group's place, with its share of the evaluations that the group had."""
        free = [name for name in row.instead if name in self._others][:most]
        return [self._others.pop(name).model_copy(update={"budget": max(1, row.budget // len(row.instead))}) for name in free]

    def _end(self, row: Chosen, made: Made, listener: Callable[[dict[str, Any]], None]) -> None:
        self.made.append(made)
        listener({"event": "outcome", "outcome": made[0]})
        if made[1] is None:
            # what lies in it may do, with the evaluations that it had
            self.waiting += self._instead(row)


def kept_apart(
    made: Iterable[Made],
    rows: Mapping[str, Chosen],
    groups: Mapping[str, Group],
    *,
    by_module: bool = False,
    weights: Mapping[str, float] = MappingProxyType({}),
) -> tuple[tuple[OperatorOutcome, ...], tuple[Delivered, ...], tuple[Delivered, ...]]:
    """Of operators that lie in one another keep those that save more; gives all outcomes, what is kept, and what is spared for later.

    `by_module`: speed-ups are the cost model's, and an operator stays for those of its calls that lie in none of another's, where that
    saves more, by the workloads' `weights`.
    """
    made = tuple(made)
    speedups = {outcome.name: outcome.speedup for outcome, kernel in made if kernel is not None}
    gained = [
        row.model_copy(update={"gain": _gain(row, speedups[name], modelled=by_module)}) for name, row in rows.items() if name in speedups
    ]
    kept = {row.group for row in (covering(gained, groups, weights) if by_module else apart(gained, groups, margin=1.0))}
    outcomes, delivered, spared = [], [], []
    for outcome, kernel in made:
        if kernel is None or outcome.name in kept:
            outcomes.append(outcome)
            delivered += [kernel] if kernel else []
            continue
        around = next((name for name in kept if overlap(groups[name], groups[outcome.name])), "another")
        outcomes.append(outcome.model_copy(update={"taken_out": f"{around} is in its place, and saves more"}))
        spared.append(kernel)
    return tuple(outcomes), tuple(delivered), tuple(spared)


def _gain(row: Chosen, speedup: float, *, modelled: bool) -> float:
    """Speed-up of the whole model by an operator's own; a little where that is not known, or of one that is to beat eager alone."""
    speedup = max(speedup, LEAST_SPEEDUP)
    return gain_of(row.saving(row.baseline_us / speedup) if modelled else row.share * (1.0 - 1.0 / speedup))
