"""The figures of one arm: right answers, means, fast_p, distance to the roofline, what was spent. Rows of one basis only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.bench.row import FLAGS_OF, ResultRow, Status
from kernelwright.bench.statistics import FAST, fast_share, finite, gain_share, geomean, mean
from tools.records import Record

CHECKPOINTS = (1, 4, 16, 64)
"""Evaluations after which the share of the gain is told."""


class Means(Record):
    """Speed-ups against one baseline over all problems of a group; a problem without a win counts 1.0, its user keeping the baseline."""

    against: str
    geomean: float
    arithmetic: float
    zeroed: float
    """Arithmetic mean with every problem without a win counted 0, as some papers do."""
    best_right: float
    """Geometric mean of the fastest right candidates of the search, delivered or not, not confirmed; 1.0 where none was right."""
    fast: dict[str, float]
    """fast_p by p, of all problems."""
    timed: int
    """Rows behind it: a kernel beside which this baseline could not be timed is left out."""


class GroupFigures(Record):
    """One group of problems under one arm."""

    title: str
    problems: int
    rows: int
    """Problems times seeds."""
    right: int
    """Rows in which a candidate passed every check."""
    delivered: int
    reference: int
    not_judgeable: int
    failed: int
    """Unreadable files and failures of the machine."""
    means: tuple[Means, ...]
    of_roofline: float
    """Geometric mean of floor / time of what the user ends with: 1.0 is the hardware's bound."""
    baseline_of_roofline: float
    """The same of the better baseline."""
    evaluations: float
    """Mean a run."""
    gpu_s: float
    wall_s: float
    tokens: float
    money_usd: float
    shares: dict[str, float]
    """Share of the gain reached after 1, 4, 16 and 64 evaluations."""


def against_names(rows: Sequence[ResultRow]) -> tuple[str, ...]:
    """Name the baselines that were timed, eager first, the better of them where there are several, and other policies' flags."""
    seen = dict.fromkeys(name for row in rows for name in (*row.baselines_us, *row.speedups))
    names = sorted(seen, key=lambda name: (name != "eager", name))
    others = dict.fromkeys(f"{FLAGS_OF}{policy}" for row in rows for policy in row.other_baselines_us)
    return (*names, *(["better"] if len(names) > 1 else []), *others) if names else ("eager",)


def figures_of(title: str, rows: Sequence[ResultRow], against: Sequence[str]) -> GroupFigures:
    """Work out the figures of a group."""
    count = {status: sum(row.status is status for row in rows) for status in Status}
    curves = [[step.speedup for step in row.curve] for row in rows]
    ran = [row for row in rows if row.run]
    return GroupFigures(
        title=title,
        problems=len({row.problem for row in rows}),
        rows=len(rows),
        right=sum(row.right for row in rows),
        delivered=count[Status.KERNEL],
        reference=count[Status.REFERENCE],
        not_judgeable=count[Status.NOT_JUDGEABLE],
        failed=count[Status.UNREADABLE] + count[Status.FAILED],
        means=tuple(means_of(rows, name) for name in against),
        of_roofline=geomean([of_roofline(row) for row in ran]),
        baseline_of_roofline=geomean([_share(row.floor_us, min(row.baselines_us.values(), default=0.0)) for row in ran]),
        evaluations=mean([row.spent.evaluations for row in ran]),
        gpu_s=mean([row.spent.gpu_s for row in ran]),
        wall_s=mean([row.spent.wall_s for row in ran]),
        tokens=mean([row.spent.tokens for row in ran]),
        money_usd=mean([row.spent.money_usd for row in ran]),
        shares={str(n): gain_share(curves, n) for n in CHECKPOINTS},
    )


def means_of(rows: Sequence[ResultRow], against: str) -> Means:
    """Work out the means against one baseline."""
    # who has the baseline keeps it where a kernel was delivered against another one alone
    values = [1.0 if (value := row.speedup(against)) < 1.0 else value for row in rows]
    won = [row.speedup(against) for row in rows if row.status is Status.KERNEL]
    timed = len(finite(values))
    return Means(
        against=against,
        geomean=geomean(values),
        arithmetic=mean(values),
        zeroed=sum(value for value in finite(won) if value > 1.0) / timed if timed else math.nan,
        best_right=geomean([_best_right(row, against) for row in rows]),
        fast={f"{p:g}": fast_share(won, p, timed) for p in FAST},
        timed=timed,
    )


def of_roofline(row: ResultRow) -> float:
    """Floor over the time of what the user ends with: the kernel, or the better baseline; NaN where there is no time."""
    return _share(row.floor_us, row.candidate_us or min(row.baselines_us.values(), default=0.0))


def groups_of(rows: Sequence[ResultRow]) -> list[tuple[str, list[ResultRow]]]:
    """Split rows into the groups a report shows: levels, development and held-out problems, those that admission marked."""
    levels = sorted({row.level for row in rows})
    tests: list[tuple[str, Callable[[ResultRow], bool]]] = []
    for level in levels if levels != [0] else []:
        tests += [
            (f"level {level}", lambda row, level=level: row.level == level),  # type: ignore[misc]
            (f"level {level}, development", lambda row, level=level: row.level == level and row.development),  # type: ignore[misc]
            (f"level {level}, held out", lambda row, level=level: row.level == level and not row.development),  # type: ignore[misc]
        ]
    if len(levels) != 1 or levels == [0]:
        tests.append(("all", lambda row: True))
    if any(row.marks for row in rows):
        tests += [("not marked by admission", lambda row: not row.marks), ("marked by admission", lambda row: bool(row.marks))]
    split = [(title, [row for row in rows if test(row)]) for title, test in tests]
    return [(title, kept) for title, kept in split if kept]


def _best_right(row: ResultRow, against: str) -> float:
    if against.startswith(FLAGS_OF):
        return math.nan
    found = min(row.best_right.values(), default=1.0) if against == "better" else row.best_right.get(against, 1.0)
    return found if row.best_right else 1.0


def _share(floor_us: float, time_us: float) -> float:
    return floor_us / time_us if floor_us > 0 and time_us > 0 else math.nan
