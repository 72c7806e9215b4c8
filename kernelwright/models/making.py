"""Has operators made for what was chosen, and once more for what lies in operators that were taken out again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphs.run.evaluators import open_shared
from kernelwright.models.first_choices import first_choices
from kernelwright.models.operators import Listener, optimise_all
from kernelwright.models.records import ModelSettings, OperatorOutcome, Outcome
from kernelwright.models.side_by_side import LEAST_S, kept_apart
from kernelwright.models.side_by_side import Made as OneMade
from kernelwright.models.work import Work
from tools.models.choosing.choice import apart, choose_instead
from tools.models.choosing.chosen import Chosen, overlap
from tools.models.packaging.delivered import Delivered
from tools.models.records import Capture
from tools.scratch import PREFIX, scratch

Made = tuple[tuple[OperatorOutcome, ...], tuple[Delivered, ...]]


@dataclass
class Making:
    """The runs of one model's operators, and the wall time that they took."""

    captured: Capture
    settings: ModelSettings
    home: Path
    listener: Listener
    work: Work
    spent_s: float = field(default=0.0, init=False)
    spared: dict[str, Delivered] = field(default_factory=dict, init=False)
    """By name what was made and lies in or around what was kept."""

    def __post_init__(self) -> None:
        """Know the groups by their names."""
        self._groups = {group.name: group for group in self.captured.groups}

    def optimise(self, rows: Sequence[Chosen]) -> Made:
        """Have what has a budget optimised, with one evaluator for all."""
        if not any(row.budget for row in rows):
            return (), ()
        began = time.monotonic()
        try:
            with scratch(f"{PREFIX}operators-") as folder:
                made = asyncio.run(self._optimise(rows, folder))
        finally:
            self.spent_s += time.monotonic() - began
        outcomes, kept, spared = kept_apart(
            made, {row.group: row for row in rows}, self._groups, by_module=not self.settings.budget, weights=self.captured.weights
        )
        self.spared |= {one.group.name: one for one in spared}
        return outcomes, kept

    def instead(self, outcome: Outcome) -> tuple[Outcome, tuple[Delivered, ...]]:
        """Put what was spared in the place of operators that were taken out; else have what lies in them optimised, where time is left."""
        outcome, back = self._from_spared(outcome)
        if back:
            return outcome, back
        rows = choose_instead(
            outcome.chosen,
            self.captured.groups,
            gone=[one.name for one in outcome.operators if one.taken_out],
            kept=[one.name for one in outcome.operators if one.kept],
            tried=[one.name for one in outcome.operators],
        )
        left_s = self.settings.minutes * 60.0 - self.spent_s
        if not rows or (self.settings.minutes and left_s < LEAST_S):
            return outcome, ()
        made = Making(self.captured, self._lasting(left_s), self.home, self.listener, self.work)
        outcomes, delivered = made.optimise(rows)
        chosen = {row.group: row for row in (*outcome.chosen, *rows)}
        return outcome.model_copy(update={"operators": (*outcome.operators, *outcomes), "chosen": tuple(chosen.values())}), delivered

    def _from_spared(self, outcome: Outcome) -> tuple[Outcome, tuple[Delivered, ...]]:
        kept = [self._groups[one.name] for one in outcome.operators if one.kept]
        free = [name for name in self.spared if not any(overlap(one, self._groups[name]) for one in kept)]
        back = {row.group for row in apart([row for row in outcome.chosen if row.group in free], self._groups, margin=1.0)}
        operators = tuple(one.model_copy(update={"taken_out": ""}) if one.name in back else one for one in outcome.operators)
        return outcome.model_copy(update={"operators": operators}), tuple(self.spared.pop(name) for name in sorted(back))

    def _lasting(self, left_s: float) -> ModelSettings:
        return self.settings.model_copy(update={"minutes": left_s / 60.0}) if self.settings.minutes else self.settings

    async def _optimise(self, rows: Sequence[Chosen], folder: Path) -> tuple[OneMade, ...]:
        if not self.settings.budget:
            made = await asyncio.to_thread(first_choices, rows, self.settings, self._groups, folder)
            for outcome, _ in made:
                self.listener({"event": "outcome", "outcome": outcome})
            return made
        pool = open_shared(self.settings.run, folder / "evaluator")
        try:
            return await optimise_all(rows, self.settings, self._groups, pool, folder, self.home, self.listener, self.work)
        finally:
            if pool is not None:
                await pool.close()
