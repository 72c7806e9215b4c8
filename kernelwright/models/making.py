"""Has operators made for what was chosen, and once more for what lies in operators that were taken out again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphs.run.evaluators import open_shared
from kernelwright.models.operators import LEAST_S, Listener, optimise_all
from kernelwright.models.records import ModelSettings, OperatorOutcome, Outcome
from kernelwright.models.work import Work
from tools.models.choice import Chosen, choose_instead
from tools.models.delivered import Delivered
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

    def optimise(self, rows: Sequence[Chosen]) -> Made:
        """Have what has a budget optimised, with one evaluator for all."""
        if not any(row.budget for row in rows):
            return (), ()
        began = time.monotonic()
        try:
            with scratch(f"{PREFIX}operators-") as folder:
                return asyncio.run(self._optimise(rows, folder))
        finally:
            self.spent_s += time.monotonic() - began

    def instead(self, outcome: Outcome) -> tuple[Outcome, tuple[Delivered, ...]]:
        """Have what lies in operators that were taken out optimised in their place, where there is time left."""
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

    def _lasting(self, left_s: float) -> ModelSettings:
        return self.settings.model_copy(update={"minutes": left_s / 60.0}) if self.settings.minutes else self.settings

    async def _optimise(self, rows: Sequence[Chosen], folder: Path) -> Made:
        pool = open_shared(self.settings.run, folder / "evaluator")
        try:
            return await optimise_all(rows, self.captured.groups, self.settings, pool, folder, self.home, self.listener, self.work)
        finally:
            if pool is not None:
                await pool.close()
