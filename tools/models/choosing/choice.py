"""What of a model is worth the work, by Amdahl's law: its share of the time, and how far from the roofline it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from tools.cost.compiled import Compiled, compiled_reference
from tools.cost.estimate import estimate_reference
from tools.cost.roofline import floor_us, roofline
from tools.hardware import rates
from tools.models.choosing.chosen import MODEL_ERROR, Chosen, gain_of, inside, overlap, saved
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


def compiled_calls(found: Capture, sheet: HardwareSheet, policy: PrecisionPolicy) -> dict[str, Compiled]:
    """Estimate what a call of each group would take by a compiler's kernels, but no less than what can be hoped for."""
    problems = [problem_of(group.name, group.trace, policy) for group in found.groups if group.trace]
    known = ((one, compiled_reference(one, sheet)) for one in problems)
    return {one.name: each._replace(compiled_us=max(each.compiled_us, _reach_us(one, sheet))) for one, each in known}


def choose(
    found: Capture,
    sheet: HardwareSheet,
    policy: PrecisionPolicy,
    *,
    budget: int,
    most: int,
    measured: bool,
    modelled: Mapping[str, float] | None = None,
    compiled: Mapping[str, Compiled] | None = None,
) -> tuple[Chosen, ...]:
    """Rank what could be replaced and give each of at most `most` chosen its part of `budget` evaluations an operator.

    `measured`: the capture's times are of the target. A module that holds others is chosen where it promises clearly more than they do;
    they are what is worked on where nothing comes of it. `modelled`: microseconds that a call of each group's own kernel would take, where
    that is what will be delivered; then modules are replaced by what saves most of them. `compiled`: what a call would take by a compiler's
    kernels, of the same model, where the user may have those; what they save an operator does not promise.
    """
    rows = ranked(found, sheet, policy, measured=measured, modelled=modelled, compiled=compiled)
    groups = {group.name: group for group in found.groups}
    single = {row.group: row for row in (apart(rows, groups) if modelled is None else covering(rows, groups, found.weights))}
    least = LEAST_GAIN if modelled is None else LEAST_MODELLED
    taken: list[Chosen] = []
    rest: list[Chosen] = []
    for row in sorted((single.get(row.group, row) for row in rows), key=lambda row: -row.gain):
        over = [name for name in single if name != row.group and overlap(groups[name], groups[row.group])]
        if over and (row.group not in single or row.gain < least):
            rest.append(row.model_copy(update={"why_not": f"in or around {over[0]}"}))
        elif row.gain < least:
            rest.append(row.model_copy(update={"why_not": _too_little(row, least, modelled)}))
        elif len(taken) == most:
            rest.append(row.model_copy(update={"why_not": f"not among the first {most}"}))
        else:
            taken.append(row.model_copy(update={"instead": _instead(row, rows, groups)}))
    return (*_spread(taken, budget), *rest)


class _Known(NamedTuple):
    """What is known of times: are they the target's, and what a call would take by our kernels and by a compiler's."""

    measured: bool
    modelled: Mapping[str, float] | None
    compiled: Mapping[str, Compiled] | None


def _too_little(row: Chosen, least: float, modelled: Mapping[str, float] | None) -> str:
    alone = gain_of(row.model_copy(update={"compiled_us": 0.0}).saving(_hoped(row, modelled)))
    return "too little to gain" if alone < least else "torch.compile would gain as much, estimated"


def ranked(
    found: Capture,
    sheet: HardwareSheet,
    policy: PrecisionPolicy,
    *,
    measured: bool,
    modelled: Mapping[str, float] | None = None,
    compiled: Mapping[str, Compiled] | None = None,
) -> list[Chosen]:
    """Make a row of each group that was traced, those first that promise most."""
    known = _Known(measured, modelled, compiled)
    products = [group for group in found.groups if group.trace and set(group.trace.work.families) <= rates.PRODUCTS] if measured else []
    rows = (
        _row(group, problem_of(group.name, group.trace, policy), sheet, known, _left_us(group, products))
        for group in found.groups
        if group.trace
    )
    return sorted(rows, key=lambda row: -row.gain)


def _left_us(group: Group, products: Sequence[Group]) -> float:
    """Microseconds of a call that are in modules which are one product each: a compiler leaves these to the library."""
    inner = [one for one in products if all(any(inside(path, around) for around in group.nested) for path in one.nested)]
    return group.us * min(1.0, sum(one.share for one in inner) / group.share) if group.share else 0.0


def apart(rows: Sequence[Chosen], groups: Mapping[str, Group], margin: float = MARGIN) -> list[Chosen]:
    """Take of groups that lie in one another the inner ones, or the outer one where that promises clearly more, from the inside out."""
    taken: list[Chosen] = []
    for row in sorted(rows, key=lambda row: -min(path.count(".") + bool(path) for path in groups[row.group].nested)):
        within = [one for one in taken if overlap(groups[one.group], groups[row.group])]
        if saved(row) > margin * sum(map(saved, within)):
            taken = [one for one in taken if one not in within]
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


def _row(group: Group, problem: Problem, sheet: HardwareSheet, known: _Known, left_us: float) -> Chosen:
    eager = 0.0 if known.measured else estimate_reference(problem, sheet).eager_us
    row = Chosen(
        group=group.name,
        title=group.title,
        modules=len(group.paths),
        calls=sum(group.calls.values()),
        share=group.share,
        us=group.us,
        eager_us=eager,
        floor_us=floor_us(problem, sheet),
        reach_us=_reach_us(problem, sheet),
        gain=1.0,
        budget=0,
        why_not="",
        apart=bool(group.apart),
    )
    if known.compiled is not None and group.name in known.compiled:
        row = _beside_compiled(row, known.compiled[group.name], left_us)
    return row.model_copy(update={"gain": gain_of(row.saving(_hoped(row, known.modelled)))})


def _beside_compiled(row: Chosen, modelled: Compiled, left_us: float) -> Chosen:
    """Say how much of a call's time a compiler would leave: by the model's ratio of its kernels to eager's, no less than `left_us`."""
    scale = min(MODEL_ERROR, max(1.0 / MODEL_ERROR, row.now_us / modelled.eager_us))
    compiled_us = max(left_us, row.now_us * min(1.0, modelled.compiled_us / modelled.eager_us))
    return row.model_copy(update={"compiled_us": compiled_us, "scale": scale})


def _hoped(row: Chosen, modelled: Mapping[str, float] | None) -> float:
    return row.reach_us if modelled is None else modelled.get(row.group, float("inf"))


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
