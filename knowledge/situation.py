"""Describes a problem and its profile as a situation: the query of a recall and the head of a new strategy."""

from __future__ import annotations

from knowledge.records import Situation
from tools.records import HardwareSheet, Problem, Profile


def describe_situation(problem: Problem, profile: Profile, sheet: HardwareSheet) -> Situation:
    """Say where `problem` stands: its families and operators, what limits it, on what hardware."""
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
    )
