"""The records of a report on memory's worth."""

from __future__ import annotations

from kernelwright.bench.comparison import ArmFigures
from tools.records import Record

OFF, SEEDS, LEARNT = "off", "seeds", "learnt"
"""Arms: no memory, the curated seeds alone, what was learnt on the other problems; the last two recall and do not learn."""

Interval = tuple[float, float] | None


class Against(Record):
    """One arm compared with no memory, problem by problem and seed by seed; ratios below 1 are savings, gains above 1 are gains."""

    arm: str
    evaluations: float
    """Evaluations to 90 % of the best known gain, over those without memory: geometric mean of the pairs."""
    evaluations_interval: Interval
    gpu_s: float
    """The same of GPU seconds; NaN where none were spent."""
    gpu_s_interval: Interval
    final: float
    """Final gain over that without memory."""
    final_interval: Interval
    pairs: int
    harmed: tuple[tuple[str, float], ...]
    """Problems that end more than 2 % below: name, final gain over that without memory."""


class Group(Record):
    """Held-out problems of families that were learnt on, or of others."""

    title: str
    problems: tuple[str, ...]
    arms: tuple[ArmFigures, ...]
    against: tuple[Against, ...]


class StrategyWorth(Record):
    """What came of one strategy in the runs that recalled what was learnt."""

    id: str
    title: str
    recalled: int
    """Parents it was brought up for."""
    cited: int
    """Plans that rested on it."""
    passed: int
    median_gain: float | None
    """Of the plans that cited it and passed."""
    basis: str
    uncited_gain: float | None
    """Of the plans on the same parents and rounds that did not cite it and passed."""
    problems: tuple[str, ...]
    """Problems on which it was cited."""


class WorthReport(Record):
    """All of it."""

    basis: str
    """`measured` or `estimated`."""
    learnt_on: tuple[str, ...]
    """Problems; empty where the memory was brought along."""
    budget: int
    seeds: int
    groups: tuple[Group, ...]
    strategies: tuple[StrategyWorth, ...]
    """Most cited first."""
    notes: tuple[str, ...] = ()
