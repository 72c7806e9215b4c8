"""Describes a problem and its profile as a situation: the query of a recall and the head of a new strategy."""

from __future__ import annotations

from math import isfinite, prod

from knowledge.records import Situation
from tools.records import HardwareSheet, Problem, Profile, content_hash

FEW, MANY = 512, 16384
"""Rows: below the first few, from the second on many. About four and over a hundred programs for each of a large GPU's multiprocessors."""
SHORT, LONG = 1024, 16384
"""Row lengths: up to the first a row fits into one warp's registers, from the second on into no program's."""


def describe_situation(problem: Problem, profile: Profile, sheet: HardwareSheet) -> Situation:
    """Say where `problem` stands: its families and operators, its shapes, what limits it, on what hardware, under what policy."""
    families = problem.work.families
    operators = tuple(dict.fromkeys(problem.work.operators))
    dtypes = tuple(dict.fromkeys(t.dtype for t in (*problem.abi.inputs, *problem.abi.parameters)))
    short = ", ".join(name.removeprefix("aten.").split(".")[0] for name in operators[:12])
    shapes = "; ".join("x".join(map(str, t.shape)) for t in problem.abi.inputs[:4])
    summary = f"{', '.join(families)} operator ({short}) on {', '.join(dtypes)} inputs of shape {shapes}"
    return Situation(
        families=families,
        operators=operators,
        bottleneck=profile.bottleneck,
        generation=sheet.generation,
        dtypes=dtypes,
        summary=f"{summary}, limited by {profile.bottleneck}.",
        graph=content_hash(*problem.work.operators) if problem.work.operators else "",
        shapes=shape_class(problem),
        policy=problem.policy.name,
        device=sheet.name,
        figures={figure.name: figure.value for figure in profile.figures if isfinite(figure.value)},
    )


def shape_class(problem: Problem) -> str:
    """Say how many rows the largest input has and how long they are, e.g. `many-short`; empty without a tensor input."""
    largest = max((t.shape for t in problem.abi.inputs), key=prod, default=())
    if not largest:
        return ""
    rows, length = prod(largest[:-1]), largest[-1]
    count = "few" if rows < FEW else "many" if rows >= MANY else "some"
    extent = "short" if length <= SHORT else "huge" if length > LONG else "long"
    return f"{count}-{extent}"
