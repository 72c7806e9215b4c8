"""The report: everything the pages show, as one record that `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from kernelwright.bench.comparison import Comparison, compare
from kernelwright.bench.figures import GroupFigures, against_names, figures_of, groups_of, of_roofline
from kernelwright.bench.header import Header
from kernelwright.bench.merging import Gathered
from kernelwright.bench.row import ResultRow, Status
from kernelwright.bench.settings import BenchSettings
from kernelwright.bench.statistics import gain_share, geomean
from tools.records import Record, Tier

Basis = Literal["measured", "estimated"]
BASES: tuple[Basis, ...] = ("measured", "estimated")


class ProblemLine(Record):
    """One problem under one arm, over its seeds."""

    problem: str
    level: int
    number: int
    development: bool
    marks: tuple[str, ...]
    family: str
    status: str
    """Of its seeds, the most frequent."""
    speedups: dict[str, float]
    """By baseline, `better` included: geometric mean over the seeds, 1.0 where the reference is kept."""
    interval: tuple[float, float] | None
    """95 % interval against the better baseline, of the one seed's confirming session; over several seeds the least and the most."""
    candidate_us: float | None
    baselines_us: dict[str, float]
    floor_us: float
    of_roofline: float
    """Floor over the time of what the user ends with."""
    relative_l2: float | None
    reference_relative_l2: float | None
    evaluations: float
    gpu_s: float
    tier: str
    reason: str
    run: str
    """Of the first seed."""


class PackedLine(Record):
    """A delivered kernel that packs its weights in a step of its own."""

    problem: str
    candidate_us: float
    packing_us: float
    pays_after: int | None
    """Calls, against the better baseline."""


class ShapeLine(Record):
    """A delivered kernel at one of its problem's shapes."""

    problem: str
    shape: str
    candidate_us: float
    speedup: float
    """Against the better baseline."""


class ArmReport(Record):
    """One arm: its groups of problems and its problems."""

    arm: str
    groups: tuple[GroupFigures, ...]
    problems: tuple[ProblemLine, ...]
    curve: tuple[float, ...]
    """Share of the gain reached after 1, 2, … evaluations; empty where nothing gained."""


class Section(Record):
    """Measured figures, or estimated ones: never both."""

    basis: Basis
    against: tuple[str, ...]
    arms: tuple[ArmReport, ...]
    comparison: Comparison | None
    """None with a single arm and seed."""
    devices: tuple[str, ...]
    tiers: dict[str, int]
    """Delivered kernels by the tier of their time."""
    throttled: int
    """Confirming sessions in which the device reported that it was slowed down."""
    packed: tuple[PackedLine, ...] = ()
    shapes: tuple[ShapeLine, ...] = ()
    """Of problems with several shapes."""


class Report(Record):
    """All of it."""

    settings: BenchSettings
    headers: tuple[Header, ...]
    sections: tuple[Section, ...]
    without: dict[str, tuple[tuple[str, str], ...]]
    """Problems that brought no figure or no win, by how they ended: name (and arm) and reason."""
    versions: dict[str, str]
    """What the evaluations ran with, as they say."""
    notes: tuple[str, ...]
    files: tuple[str, ...] = ()


def make_report(gathered: Gathered) -> Report:
    """Work the rows out."""
    rows = gathered.rows
    counts = {basis: sum(row.basis == basis for row in rows) for basis in BASES}
    # a problem without any time belongs to the means of what was done with the others
    most = max(BASES, key=lambda basis: counts[basis])
    split = {basis: [row for row in rows if row.basis == basis or (row.basis == "none" and basis == most)] for basis in BASES}
    sections = [_section(basis, split[basis], gathered.settings) for basis in BASES]
    return Report(
        settings=gathered.settings,
        headers=gathered.headers,
        sections=tuple(section for section in sections if section is not None),
        without={status.value: _without(rows, status) for status in Status if status is not Status.KERNEL and _without(rows, status)},
        versions=next((dict(row.versions) for row in rows if row.versions), {}),
        notes=gathered.notes,
    )


def _section(basis: Basis, rows: Sequence[ResultRow], settings: BenchSettings) -> Section | None:
    if not rows:
        return None
    found = {row.arm for row in rows}
    ordered = [arm.name for arm in settings.arms() if arm.name in found]
    arms = [*ordered, *sorted(found - set(ordered))]
    against = against_names(rows)
    several = len(arms) > 1 or len({row.seed for row in rows}) > 1
    kernels = [row for row in rows if row.status is Status.KERNEL]
    return Section(
        basis=basis,
        against=against,
        arms=tuple(_arm(arm, [row for row in rows if row.arm == arm], against) for arm in arms),
        comparison=compare(rows, arms, settings.run.budget.evaluations) if several else None,
        devices=tuple(dict.fromkeys(row.device for row in rows if row.device)),
        tiers={tier: sum(row.tier == tier for row in kernels) for tier in dict.fromkeys(row.tier for row in kernels)},
        throttled=sum(row.throttled is True for row in kernels),
        packed=tuple(
            PackedLine(problem=row.problem, candidate_us=row.candidate_us, packing_us=row.packing_us, pays_after=row.packing_pays_after)
            for row in kernels
            if row.packing_us is not None and row.candidate_us is not None
        ),
        shapes=tuple(
            ShapeLine(problem=row.problem, shape=shape, candidate_us=us, speedup=speedup)
            for row in kernels
            for shape, (us, speedup) in row.shapes.items()
        ),
    )


def _arm(arm: str, rows: Sequence[ResultRow], against: Sequence[str]) -> ArmReport:
    curves = [[step.speedup for step in row.curve] for row in rows]
    longest = max((len(curve) for curve in curves), default=0)
    shares = [gain_share(curves, n) for n in range(1, longest + 1)]
    return ArmReport(
        arm=arm,
        groups=tuple(figures_of(title, kept, against) for title, kept in groups_of(rows)),
        problems=tuple(_line([row for row in rows if row.problem == name], against) for name in dict.fromkeys(r.problem for r in rows)),
        curve=tuple(shares) if shares and not math.isnan(shares[-1]) else (),
    )


def _line(rows: Sequence[ResultRow], against: Sequence[str]) -> ProblemLine:
    first = next((row for row in rows if row.status is Status.KERNEL), rows[0])
    statuses = [row.status.value for row in rows]
    kernels = [row.speedup("better") for row in rows]
    interval = (min(kernels), max(kernels)) if len(rows) > 1 else None
    if len(rows) == 1 and first.speedups and first.tier != Tier.ESTIMATED:
        interval = min(first.speedups.values(), key=lambda one: one[0])[1:]
    return ProblemLine(
        problem=first.problem,
        level=first.level,
        number=first.number,
        development=first.development,
        marks=first.marks,
        family=first.families[0] if first.families else "",
        status=max(dict.fromkeys(statuses), key=statuses.count),
        speedups={name: geomean([row.speedup(name) for row in rows]) for name in against},
        interval=interval,
        candidate_us=first.candidate_us,
        baselines_us=first.baselines_us,
        floor_us=first.floor_us,
        of_roofline=geomean([of_roofline(row) for row in rows]),
        relative_l2=first.relative_l2,
        reference_relative_l2=first.reference_relative_l2,
        evaluations=sum(row.spent.evaluations for row in rows) / len(rows),
        gpu_s=sum(row.spent.gpu_s for row in rows) / len(rows),
        tier=first.tier if first.status is Status.KERNEL else "",
        reason=first.reason,
        run=rows[0].run,
    )


def _without(rows: Sequence[ResultRow], status: Status) -> tuple[tuple[str, str], ...]:
    several = len({(row.arm, row.seed) for row in rows}) > 1
    return tuple(
        (f"{row.problem} ({row.arm}, seed {row.seed})" if several else row.problem, row.reason) for row in rows if row.status is status
    )
