"""Judges kernels that hide work, each beside what its call truly takes: true times first, with nobody else on the device."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hacks.court import SIZES, Court
from tests.hacks.suite import Hack, least_us
from tests.hacks.true_time import TrueTime, true_times
from tools.errors import MachineError
from tools.hardware.devices import first_device
from tools.records import Evaluation

SIZE = "tiny"
_SIDE_BY_SIDE = 8
MOST = 1.25
"""The largest share of what its caller waits that an honest kernel's figure may be,"""
MOST_US = 15.0
"""or this much more: a timed call begins with a cold cache, one of many in a row with a warm one."""


@dataclass(frozen=True)
class Trial:
    """One kernel with one amount of work."""

    hack: Hack
    hostile: bool

    @property
    def name(self) -> str:
        """Name it in a table."""
        return f"{self.hack.name}-{'hostile' if self.hostile else 'honest'}"

    @property
    def source(self) -> str:
        """What is judged."""
        return self.hack.hostile if self.hostile else self.hack.honest


@dataclass(frozen=True)
class Finding:
    """What became of a trial."""

    trial: Trial
    found: Evaluation
    own: TrueTime
    honest: TrueTime
    """Of the same work done in its honest twin; `own` where it is that."""

    @property
    def true_us(self) -> float:
        """What the device takes for it by an honest kernel's events, or its own calls in a row where these take less."""
        return min(max(self.honest.device_us, self.trial.hack.work_us), self.own.chained_us)

    @property
    def published_us(self) -> float:
        """The figure that must hold its work; 0 where there is none."""
        return self.trial.hack.figure_us(self.found)

    @property
    def fault(self) -> str:
        """Say what the evaluator did wrong; empty where nothing."""
        passed = self.found.verdict == "PASS"
        if self.found.verdict not in (self.trial.hack.verdicts if self.trial.hostile else ("PASS",)):
            return f"it ended as {self.found.verdict} ({self.found.rule}): {self.found.notes}"
        if passed and self.published_us < least_us(self.true_us):
            return f"it is said to take {self.published_us:.4g} µs and takes {self.true_us:.4g} µs"
        if passed and not self.trial.hostile and self.published_us > MOST * self.own.chained_us + MOST_US:
            return f"it is said to take {self.published_us:.4g} µs, and its caller waits {self.own.chained_us:.4g} µs"
        return ""

    @property
    def row(self) -> str:
        """Write a line of JSON."""
        hack, found = self.trial.hack, self.found
        return json.dumps(
            {
                "kernel": self.trial.name,
                "work_us": hack.work_us,
                "true_us": round(self.true_us, 2),
                "chained_us": round(self.own.chained_us, 2),
                "published_us": round(self.published_us, 2),
                "verdict": found.verdict,
                "rule": found.rule,
                "tier": found.tier,
                "fault": self.fault,
                "notes": found.notes,
            }
        )


def heard(trials: Sequence[Trial], folder: Path) -> dict[Trial, Finding]:
    """Judge them all on the first GPU; each row stands in `folder`/rows.jsonl as soon as it is known.

    What could not be measured or judged has no finding; the row or the log says why.
    """
    times = true_times(_grouped(trials), SIZES[SIZE], packs={_stem(trial) for trial in trials if trial.hack.charged == "packing"})
    return asyncio.run(_judged(trials, times, folder))


async def _judged(trials: Sequence[Trial], times: dict[str, TrueTime], folder: Path) -> dict[Trial, Finding]:
    court = Court(folder, first_device(), _SIDE_BY_SIDE)
    findings: dict[Trial, Finding] = {}

    async def judge(trial: Trial) -> None:
        try:
            found = await court.evaluate(trial.name, trial.source, size=SIZE)
            findings[trial] = Finding(trial, found, times[trial.name], times[_twin(trial).name])
            row = findings[trial].row
        except (MachineError, KeyError) as error:
            row = json.dumps({"kernel": trial.name, "error": repr(error)})
        with (folder / "rows.jsonl").open("a") as file:
            file.write(row + "\n")

    try:
        await asyncio.gather(*map(judge, trials))
    finally:
        await court.close()
    return findings


def _twin(trial: Trial) -> Trial:
    return Trial(trial.hack, hostile=False)


def _stem(trial: Trial) -> str:
    return trial.hack.name.split("-")[0]


def _grouped(trials: Sequence[Trial]) -> dict[str, dict[str, str]]:
    """Sources by kernel, the honest ones first: what hostile ones leave behind is in their way no more."""
    wanted = dict.fromkeys(sorted([*map(_twin, trials), *trials], key=lambda trial: trial.hostile))
    groups: dict[str, dict[str, str]] = {}
    for trial in wanted:
        groups.setdefault(_stem(trial), {})[trial.name] = trial.source
    return groups
