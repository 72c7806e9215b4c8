"""The plan of work: which problem is optimised under which arm and seed, in which order."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelwright.bench.settings import Arm, BenchSettings
from tools.problems.suite import SuiteItem
from tools.records import Record, content_hash


class Job(Record):
    """One run to be done."""

    item: SuiteItem
    arm: Arm
    seed: int

    @property
    def key(self) -> str:
        """The same as the key of the row it leads to."""
        return f"{self.item.name}|{self.arm.name}|{self.seed}"

    @property
    def run(self) -> str:
        """Name of its run: the same every time, so that a cut run is found again."""
        problem, arm = (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") for name in (self.item.name, self.arm.name))
        return f"{problem[:32]}-{arm[:28]}-s{self.seed}-{content_hash(self.key)[:6]}"


def all_jobs(settings: BenchSettings, items: Iterable[SuiteItem]) -> tuple[Job, ...]:
    """List every job, problem by problem: what one problem needs on the device is then shared by its arms."""
    arms = settings.arms()
    return tuple(Job(item=item, arm=arm, seed=seed) for item in items for seed in range(settings.seeds) for arm in arms)
