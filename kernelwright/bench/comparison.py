"""Arms side by side at equal budgets: gain against evaluations, area, evaluations to most of the gain, cost, harm, by family."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from kernelwright.bench.row import ResultRow
from kernelwright.bench.statistics import first_reaching, geomean, interval, mean, value_at
from tools.records import Record

ENOUGH = 0.9
"""Share of the best known gain, in logarithms, that counts as reached."""

NOTICEABLE = 1.02
"""Gains and losses below 2 % are not told from noise between sessions."""

Interval = tuple[float, float] | None


class ArmFigures(Record):
    """One arm over the problems that every arm has done."""

    arm: str
    curve: tuple[float, ...]
    """Geometric mean over problems and seeds of the best speed-up after 1, 2, … evaluations."""
    band: tuple[tuple[float, float], ...]
    """Its 95 % bootstrap interval over seeds; empty with one seed."""
    final: float
    final_interval: Interval
    area: float
    """Geometric mean of `curve` over the budget: 1.0 is no gain at all, `final` is all of it at once."""
    area_interval: Interval
    reached: float
    """Share of runs that reached 90 % of the best gain that any arm and seed found on their problem."""
    evaluations_to_most: float
    """Mean evaluations until then; a run that never did counts the whole budget."""
    evaluations_interval: Interval
    gpu_s_to_most: float
    """GPU seconds until then; a run that never did counts all of its own."""
    evaluations: float
    """Mean a run, confirming ones too."""
    gpu_s: float
    tokens: float
    money_usd: float
    families: dict[str, float]
    """Final gain by the problems' heaviest family."""
    worse: int
    """Problems on which it ends more than 2 % below the first arm, over all seeds."""
    better: int
    """Problems on which it ends more than 2 % above it."""
    worst: tuple[tuple[str, float], ...]
    """The problems with the largest losses: final gain over the first arm's."""


class Comparison(Record):
    """What comparing the arms of a bench shows."""

    problems: int
    """Problems that every arm has done under every seed; the others are left out."""
    left_out: int
    gaining: int
    """Those on which some arm gains more than 2 %: only they can tell how soon a gain is reached."""
    seeds: int
    budget: int
    """Evaluations on the horizontal axis."""
    arms: tuple[ArmFigures, ...]
    family_counts: dict[str, int]


class _Table:
    """Rows by arm, seed and problem, with every cell filled."""

    def __init__(self, rows: Sequence[ResultRow], arms: Sequence[str]) -> None:
        cells = {(row.arm, row.seed, row.problem): row for row in rows if row.judgeable and row.run}
        self.seeds = sorted({seed for _, seed, _ in cells})
        every = dict.fromkeys(row.problem for row in rows)
        self.problems = [p for p in every if all((arm, seed, p) in cells for arm in arms for seed in self.seeds)]
        self.left_out = len(every) - len(self.problems)
        self.cells = cells
        self.arms = list(arms)

    def curve(self, arm: str, seed: int, problem: str) -> list[float]:
        return [step.speedup for step in self.cells[arm, seed, problem].curve]

    def log_final(self, arm: str, seed: int, problem: str) -> float:
        curve = self.curve(arm, seed, problem)
        return math.log(curve[-1]) if curve else 0.0

    def best(self, problem: str) -> float:
        return max(self.log_final(arm, seed, problem) for arm in self.arms for seed in self.seeds)


def compare(rows: Sequence[ResultRow], arms: Sequence[str], budget: int) -> Comparison | None:
    """Compare `arms`, the first being what the others are compared with; None where no problem was done by all of them."""
    table = _Table(rows, arms)
    if not table.problems or not table.seeds:
        return None
    horizon = budget or max((len(row.curve) for row in table.cells.values()), default=1)
    best = {problem: table.best(problem) for problem in table.problems}
    gaining = [problem for problem in table.problems if best[problem] > math.log(NOTICEABLE)]
    families: dict[str, list[str]] = defaultdict(list)
    for problem in table.problems:
        found = table.cells[table.arms[0], table.seeds[0], problem].families
        families[found[0] if found else "unknown"].append(problem)
    return Comparison(
        problems=len(table.problems),
        left_out=table.left_out,
        gaining=len(gaining),
        seeds=len(table.seeds),
        budget=horizon,
        arms=tuple(_arm(table, arm, horizon, {p: best[p] for p in gaining}, families) for arm in arms),
        family_counts={name: len(members) for name, members in families.items()},
    )


def _arm(table: _Table, arm: str, horizon: int, best: dict[str, float], families: dict[str, list[str]]) -> ArmFigures:
    by_seed = [[_gain(table, arm, seed, n) for n in range(1, horizon + 1)] for seed in table.seeds]
    points = list(zip(*by_seed, strict=True))
    bands = [interval(point) for point in points]
    areas = [mean(one) for one in by_seed]
    finals = [mean([table.log_final(arm, seed, p) for p in table.problems]) for seed in table.seeds]
    sooner = [[_to_most(table, (arm, seed, p), best[p], horizon) for p in best] for seed in table.seeds]
    efforts = [mean([effort for effort, _, _ in one]) for one in sooner]
    rows = [table.cells[arm, seed, p] for seed in table.seeds for p in table.problems]
    against = {p: _ratio(table, arm, p) for p in table.problems}
    losses = sorted((p for p in against if against[p] < 1 / NOTICEABLE), key=lambda p: against[p])
    return ArmFigures(
        arm=arm,
        curve=tuple(math.exp(mean(point)) for point in points),
        band=tuple(_exp(band) for band in bands if band is not None),
        final=math.exp(mean(finals)),
        final_interval=_exp(found) if (found := interval(finals)) else None,
        area=math.exp(mean(areas)),
        area_interval=_exp(found) if (found := interval(areas)) else None,
        reached=mean([float(done) for one in sooner for _, _, done in one]),
        evaluations_to_most=mean(efforts),
        evaluations_interval=interval(efforts) if best else None,
        gpu_s_to_most=mean([gpu_s for one in sooner for _, gpu_s, _ in one]),
        evaluations=mean([row.spent.evaluations for row in rows]),
        gpu_s=mean([row.spent.gpu_s for row in rows]),
        tokens=mean([row.spent.tokens for row in rows]),
        money_usd=mean([row.spent.money_usd for row in rows]),
        families={
            name: geomean([math.exp(table.log_final(arm, s, p)) for s in table.seeds for p in members])
            for name, members in families.items()
        },
        worse=len(losses),
        better=sum(ratio > NOTICEABLE for ratio in against.values()),
        worst=tuple((p, against[p]) for p in losses[:5]),
    )


def _gain(table: _Table, arm: str, seed: int, evaluations: int) -> float:
    """Mean over problems of the logarithm of the best speed-up after so many evaluations."""
    return mean([math.log(value_at(table.curve(arm, seed, p), evaluations)) for p in table.problems])


def _to_most(table: _Table, cell: tuple[str, int, str], best: float, horizon: int) -> tuple[float, float, bool]:
    """Evaluations and GPU seconds until most of the best gain, and whether it was reached within the budget."""
    row = table.cells[cell]
    place = first_reaching(table.curve(*cell), math.exp(ENOUGH * best))
    if place is not None and place <= horizon:
        return float(place), row.curve[place - 1].gpu_s, True
    return float(horizon), row.curve[-1].gpu_s if row.curve else 0.0, False


def _ratio(table: _Table, arm: str, problem: str) -> float:
    """Final gain over the first arm's, both averaged over seeds."""
    mine, first = (mean([table.log_final(one, seed, problem) for seed in table.seeds]) for one in (arm, table.arms[0]))
    return math.exp(mine - first)


def _exp(band: tuple[float, float]) -> tuple[float, float]:
    return math.exp(band[0]), math.exp(band[1])
