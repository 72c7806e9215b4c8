"""What of a model is worth the work, by Amdahl's law: its share of the time, and how far from the roofline it is."""

from __future__ import annotations

from collections.abc import Sequence

from tools.cost.estimate import estimate_reference
from tools.cost.roofline import floor_us, roofline
from tools.hardware import rates
from tools.models.records import Capture, Group, Trace
from tools.records import HardwareSheet, PrecisionPolicy, Problem, ProblemForm, Record

LEAST_GAIN = 1.01
"""Expected speed-up of the whole model below which an operator is not worth a run."""
LEAST_BUDGET = 2
"""Evaluations that a chosen operator gets at least."""


class Chosen(Record):
    """One row of the table: a group that could be replaced, with what that might bring."""

    group: str
    title: str
    modules: int
    calls: int
    """Of all workloads in one run each."""
    share: float
    us: float
    """A call's time, microseconds, measured in the capture."""
    eager_us: float
    """A call's time on the target as the cost model expects it, microseconds; 0 where the capture measured on the target itself."""
    floor_us: float
    """Roofline floor on the target, microseconds."""
    reach_us: float
    """What one launch would take at the rates that copies and libraries reach, microseconds, estimated: what can be hoped for."""
    gain: float
    """Speed-up of the whole model if its calls took that."""
    budget: int
    """Evaluations; 0 where it is not chosen."""
    why_not: str
    """Empty for what is chosen."""

    @property
    def over(self) -> float:
        """Its time as a multiple of the roofline floor."""
        return (self.eager_us or self.us) / self.floor_us if self.floor_us else float("inf")


def problem_of(name: str, trace: Trace, policy: PrecisionPolicy) -> Problem:
    """Make the record of a traced call, without running it: enough for the roofline and the cost model."""
    return Problem(
        name=name, form=ProblemForm.KERNELBENCH, entry="Model", source=trace.source, abi=trace.abi, work=trace.work, policy=policy
    )


def choose(found: Capture, sheet: HardwareSheet, policy: PrecisionPolicy, *, budget: int, most: int, measured: bool) -> tuple[Chosen, ...]:
    """Rank what could be replaced and give each of at most `most` chosen its part of `budget` evaluations an operator.

    `measured`: the capture's times are of the target. Of groups that lie in one another the one with the larger gain is chosen.
    """
    rows = sorted((_row(group, group.trace, sheet, policy, measured) for group in found.groups if group.trace), key=lambda row: -row.gain)
    groups = {group.name: group for group in found.groups}
    taken: list[Chosen] = []
    rest: list[Chosen] = []
    for row in rows:
        over = next((one for one in taken if _overlap(groups[one.group], groups[row.group])), None)
        if over is not None:
            rest.append(row.model_copy(update={"why_not": f"in or around {over.group}"}))
        elif row.gain < LEAST_GAIN:
            rest.append(row.model_copy(update={"why_not": "too little to gain"}))
        elif len(taken) == most:
            rest.append(row.model_copy(update={"why_not": f"not among the first {most}"}))
        else:
            taken.append(row)
    return (*_spread(taken, budget), *rest)


def _row(group: Group, trace: Trace | None, sheet: HardwareSheet, policy: PrecisionPolicy, measured: bool) -> Chosen:
    assert trace is not None
    problem = problem_of(group.name, trace, policy)
    floor = floor_us(problem, sheet)
    eager = 0.0 if measured else estimate_reference(problem, sheet).eager_us
    reach = _reach_us(problem, sheet)
    left = min(1.0, reach / (eager or group.us)) if eager or group.us else 1.0
    return Chosen(
        group=group.name,
        title=group.title,
        modules=len(group.paths),
        calls=sum(group.calls.values()),
        share=group.share,
        us=group.us,
        eager_us=eager,
        floor_us=floor,
        reach_us=reach,
        gain=1.0 / max(1e-3, 1.0 - group.share * (1.0 - left)),
        budget=0,
        why_not="",
    )


def _reach_us(problem: Problem, sheet: HardwareSheet) -> float:
    """Estimate one launch that moves the compulsory bytes at a copy's rate and does the products at a library's."""
    parts = roofline(problem, sheet)
    moving = parts.bandwidth_us * sheet.memory_gbps / rates.copy_gbps(sheet)
    multiplying = parts.matmul_us / rates.library_share(None, tensor_cores=True)
    return rates.CALL_US + max(sheet.launch_us, rates.KERNEL_US + max(moving, multiplying, parts.pointwise_us))


def _overlap(one: Group, other: Group) -> bool:
    """Whether, in one workload, a module of one lies in a module of the other; other shapes of one module are other calls."""
    if one.calls.keys().isdisjoint(other.calls):
        return False
    return any(_inside(a, b) or _inside(b, a) for a in one.paths for b in other.paths)


def _inside(path: str, around: str) -> bool:
    return path != around and (not around or path.startswith(f"{around}."))


def _spread(taken: Sequence[Chosen], budget: int) -> list[Chosen]:
    """Give each its part of the whole budget by the time it could save."""
    saved = [1.0 - 1.0 / row.gain for row in taken]
    pot = budget * len(taken)
    return [
        row.model_copy(update={"budget": max(min(LEAST_BUDGET, budget), round(pot * own / sum(saved)))})
        for row, own in zip(taken, saved, strict=True)
    ]
