"""What of a model is worth the work, by Amdahl's law: its share of the time, and how far from the roofline it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tools.cost.estimate import estimate_reference
from tools.cost.roofline import floor_us, roofline
from tools.hardware import rates
from tools.models.choosing.chosen import Chosen, gain_of, overlap, saved
from tools.models.choosing.covering import covering
from tools.models.records import Capture, Group, Trace
from tools.records import HardwareSheet, PrecisionPolicy, Problem, ProblemForm

LEAST_GAIN = 1.01
"""Expected speed-up of the whole model below which an operator is not worth a run."""
LEAST_MODELLED = 1.005
"""The same where no run is made of it: then it costs a part of the proof, which tells a few thousandths of a replayed CUDA graph apart."""
LEAST_BUDGET = 2
"""Evaluations that a chosen operator gets at least."""
MARGIN = 1.15
"""How many times as much a module has to promise as the modules inside of it together: those are the surer work."""
FALLBACKS = 3
"""Groups that take the place of one for which nothing was delivered, at most."""


def problem_of(name: str, trace: Trace, policy: PrecisionPolicy) -> Problem:
    """Make the record of a traced call, without running it: enough for the roofline and the cost model."""
    return Problem(
        name=name,
        form=ProblemForm.KERNELBENCH,
        entry="Model",
        source=trace.source,
        abi=trace.abi,
        work=trace.work,
        policy=policy,
        shapes=trace.shapes,
    )


def choose(
    found: Capture,
    sheet: HardwareSheet,
    policy: PrecisionPolicy,
    *,
    budget: int,
    most: int,
    measured: bool,
    modelled: Mapping[str, float] | None = None,
) -> tuple[Chosen, ...]:
    """Rank what could be replaced and give each of at most `most` chosen its part of `budget` evaluations an operator.

    `measured`: the capture's times are of the target. A module that holds others is chosen where it promises clearly more than they do;
    they are what is worked on where nothing comes of it. `modelled`: microseconds that a call of each group's own kernel would take, where
    that is what will be delivered; then modules are replaced by what saves most of them.
    """
    rows = ranked(found, sheet, policy, measured=measured, modelled=modelled)
    groups = {group.name: group for group in found.groups}
    single = {row.group: row for row in (apart(rows, groups) if modelled is None else covering(rows, groups))}
    least = LEAST_GAIN if modelled is None else LEAST_MODELLED
    taken: list[Chosen] = []
    rest: list[Chosen] = []
    for row in sorted((single.get(row.group, row) for row in rows), key=lambda row: -row.gain):
        over = [name for name in single if name != row.group and overlap(groups[name], groups[row.group])]
        if over and (row.group not in single or row.gain < least):
            rest.append(row.model_copy(update={"why_not": f"in or around {over[0]}"}))
        elif row.gain < least:
            rest.append(row.model_copy(update={"why_not": "too little to gain"}))
        elif len(taken) == most:
            rest.append(row.model_copy(update={"why_not": f"not among the first {most}"}))
        else:
            taken.append(row.model_copy(update={"instead": _instead(row, rows, groups)}))
    return (*_spread(taken, budget), *rest)


def ranked(
    found: Capture, sheet: HardwareSheet, policy: PrecisionPolicy, *, measured: bool, modelled: Mapping[str, float] | None = None
) -> list[Chosen]:
    """Make a row of each group that was traced, those first that promise most."""
    rows = (_row(group, group.trace, sheet, policy, measured, modelled) for group in found.groups if group.trace)
    return sorted(rows, key=lambda row: -row.gain)


def apart(rows: Sequence[Chosen], groups: Mapping[str, Group], margin: float = MARGIN) -> list[Chosen]:
    """Take of groups that lie in one another the inner ones, or the outer one where that promises clearly more, from the inside out."""
    taken: list[Chosen] = []
    for row in sorted(rows, key=lambda row: -min(path.count(".") + bool(path) for path in groups[row.group].paths)):
        inside = [one for one in taken if overlap(groups[one.group], groups[row.group])]
        if saved(row) > margin * sum(map(saved, inside)):
            taken = [one for one in taken if one not in inside]
            taken.append(row)
    return taken


def _instead(row: Chosen, rows: Sequence[Chosen], groups: Mapping[str, Group]) -> tuple[str, ...]:
    """Name what could be worked on in a group's place: the best of what lies in it or around it, none of them in another."""
    found: list[str] = []
    for one in rows:
        beside = one.group != row.group and overlap(groups[one.group], groups[row.group]) and one.gain >= LEAST_GAIN
        if beside and not any(overlap(groups[one.group], groups[other]) for other in found):
            found.append(one.group)
    return tuple(found[:FALLBACKS])


def choose_instead(
    rows: Sequence[Chosen], groups: Sequence[Group], *, gone: Collection[str], kept: Collection[str], tried: Collection[str]
) -> tuple[Chosen, ...]:
    """Choose what takes the place of groups that are `gone`, with the evaluations that each had.

    Nothing is chosen that was tried, or that lies in or around what is kept.
    """
    by_name = {group.name: group for group in groups}
    known = {row.group: row for row in rows}
    found: list[Chosen] = []
    for row in (known[name] for name in gone if name in known):
        taken = [*kept, *(one.group for one in found)]
        free = [name for name in row.instead if name not in (*tried, *taken)]
        free = [name for name in free if not any(overlap(by_name[name], by_name[other]) for other in taken)]
        found += [known[name].model_copy(update={"budget": max(1, row.budget // len(free)), "why_not": ""}) for name in free]
    return tuple(found)


def _row(
    group: Group, trace: Trace | None, sheet: HardwareSheet, policy: PrecisionPolicy, measured: bool, modelled: Mapping[str, float] | None
) -> Chosen:
    assert trace is not None
    problem = problem_of(group.name, trace, policy)
    floor = floor_us(problem, sheet)
    eager = 0.0 if measured else estimate_reference(problem, sheet).eager_us
    reach = _reach_us(problem, sheet)
    hoped = reach if modelled is None else modelled.get(group.name, float("inf"))
    left = min(1.0, hoped / (eager or group.us)) if eager or group.us else 1.0
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
        gain=gain_of(group.share * (1.0 - left)),
        budget=0,
        why_not="",
        apart=bool(group.apart),
    )


def _reach_us(problem: Problem, sheet: HardwareSheet) -> float:
    """Estimate a launch for each product and one more, which move the compulsory bytes at a copy's rate and multiply at a library's."""
    parts = roofline(problem, sheet)
    moving = parts.bandwidth_us * sheet.memory_gbps / rates.copy_gbps(sheet)
    multiplying = parts.matmul_us / rates.library_share(None, tensor_cores=True)
    launches = 1 + sum(rates.operator_family(name) in rates.PRODUCTS for name in problem.work.operators)
    least = launches * max(sheet.launch_us, rates.KERNEL_US)
    return rates.CALL_US + max(least, rates.KERNEL_US + max(moving, multiplying, parts.pointwise_us))


def _spread(taken: Sequence[Chosen], budget: int) -> list[Chosen]:
    """Give each its part of the whole budget by the time it could save."""
    shares = [saved(row) for row in taken]
    pot = budget * len(taken)
    return [
        row.model_copy(update={"budget": max(min(LEAST_BUDGET, budget), round(pot * own / sum(shares)))})
        for row, own in zip(taken, shares, strict=True)
    ]
