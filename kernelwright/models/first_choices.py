"""Operators without evaluations: the kernels that the cost model chooses first, which the proof of the whole model judges.

What each of them would take is known before anything is chosen, so modules are replaced by what saves most.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from agents.coder.modelled import choices_of
from agents.coder.traced import traced_graph
from kernelwright.models.operators import read_operator
from kernelwright.models.records import ModelSettings, OperatorOutcome
from kernelwright.models.side_by_side import Made, jobs_of
from tools.codegen import Emission, LoweringError, Schedule, emit
from tools.cost.compiled import Compiled, compiled_call
from tools.errors import KernelwrightError
from tools.hardware import load_sheet
from tools.models.choosing.choice import LEAST_MODELLED, ranked
from tools.models.choosing.chosen import Chosen
from tools.models.packaging.delivered import Delivered, contract_for
from tools.models.records import Capture, Group
from tools.records import Problem, Tier
from tools.scratch import PREFIX, scratch

LOOKED_AT = 3
"""Groups whose kernels are modelled, over those that may be chosen: a layer, a module of it and a part of that."""


def first_choices(rows: Sequence[Chosen], settings: ModelSettings, groups: Mapping[str, Group], folder: Path) -> tuple[Made, ...]:
    """Write a kernel for each row that has a budget, where the model expects that to be faster; problem files go to `folder`."""
    wanted = [row for row in rows if row.budget]
    with ThreadPoolExecutor(jobs_of(settings)) as threads:
        return tuple(threads.map(lambda row: _made(row, groups[row.group], settings, folder), wanted))


class Modelled(NamedTuple):
    """What the cost model says of a call, microseconds."""

    us: float
    """By our kernels."""
    compiled: Compiled | None
    """In eager mode and by a compiler's; None where torch.compile is not looked at."""


def modelled(found: Capture, settings: ModelSettings, *, measured: bool) -> dict[str, Modelled]:
    """Tell what a call of a group's kernel would take: of a few that promise most, by far more than will be chosen."""
    rows = ranked(found, load_sheet(settings.run.target), settings.run.policy, measured=measured)
    hopeful = [row.group for row in rows if row.gain >= LEAST_MODELLED][: LOOKED_AT * settings.most]
    wanted = [group for group in found.groups if group.name in hopeful]
    with scratch(f"{PREFIX}modelled-") as folder, ThreadPoolExecutor(jobs_of(settings)) as threads:
        times = threads.map(lambda group: _modelled(group, settings, folder, measured=measured), wanted)
        return {group.name: times_of for group, times_of in zip(wanted, times, strict=True) if times_of is not None}


def _modelled(group: Group, settings: ModelSettings, folder: Path, *, measured: bool) -> Modelled | None:
    assert group.trace is not None
    sheet = load_sheet(settings.run.target)
    try:
        read, _ = read_operator(folder / f"{group.name}.py", group.trace, settings.run, measured=measured)
        choices = choices_of(read.problem, sheet)
        wanted = choices and settings.compiled
        beside = compiled_call(read.problem, traced_graph(read.problem), sheet, settings.run.policy) if wanted else None
    except (KernelwrightError, LoweringError):
        # those that are chosen all the same say why
        return None
    return Modelled(choices[0].us, beside) if choices else None


def _made(row: Chosen, group: Group, settings: ModelSettings, folder: Path) -> Made:
    trace, sheet = group.trace, load_sheet(settings.run.target)
    assert trace is not None
    try:
        read, source = read_operator(folder / f"{row.group}.py", trace, settings.run, measured=not row.eager_us)
        choices = choices_of(read.problem, sheet)
        if not choices:
            return _not_made(row, "Nothing of it can be generated.")
        emission = _emitted(read.problem, choices[0].schedule, [one.name for one in trace.inputs if one.in_rows])
    except KernelwrightError as error:
        return _not_made(row, f"{error.what} {error.mend}")
    except LoweringError as error:
        return _not_made(row, f"It cannot be generated: {error}.")
    now, then = row.baseline_us, choices[0].us
    taken = f"{now:,.0f}" if now == row.now_us else f"{row.now_us:,.0f}, or about {now:,.0f} by torch.compile"
    if then >= now:
        return _not_made(row, f"The cost model's first choice would take about {then:,.0f} µs, the module takes {taken}.")
    outcome = OperatorOutcome(
        name=row.group,
        run="",
        reason=f"Not judged by itself: the cost model's first choice, about {then:,.0f} µs a call in the place of {taken}.",
        delivered=True,
        speedup=now / then,
        tier=str(Tier.ESTIMATED),
    )
    made_for = contract_for(read.problem, read.variants, trace)
    written = trace.model_copy(update={"source": source})
    return outcome, Delivered(group=group, trace=written, contract=made_for, kernel=emission.source, evidence=None)


def _emitted(problem: Problem, schedule: Schedule, in_rows: Sequence[str]) -> Emission:
    """Write a schedule's kernel, which reads inputs that are parts of wider tensors where they lie, where that can be generated."""
    graph = traced_graph(problem)
    if in_rows:
        apart = {name: replace(graph.inputs[name], contiguous=False) for name in in_rows if name in graph.inputs}
        with contextlib.suppress(LoweringError):
            return emit(problem, replace(graph, inputs=graph.inputs | apart), schedule)
    return emit(problem, graph, schedule)


def _not_made(row: Chosen, reason: str) -> Made:
    return OperatorOutcome(name=row.group, run="", reason=reason, delivered=False), None
