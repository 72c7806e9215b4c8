"""Which idioms fit a problem: by its families, operators, dtypes and what limits it."""

from __future__ import annotations

from tools.idioms.idiom import Idiom, all_idioms
from tools.records import Bottleneck, Problem

LEAST = 3
"""Points from which on an idiom fits: one sign alone, such as a product somewhere, is not enough."""
MANY = 32
"""Operators of a reference from which on it does the same in many steps."""
CHARACTERS_A_TOKEN = 3


def fitting(problem: Problem, bottleneck: Bottleneck | None = None) -> tuple[Idiom, ...]:
    """List the idioms that fit, the best first."""
    rated = [(points(one, problem, bottleneck), one) for one in all_idioms()]
    return tuple(one for count, one in sorted(rated, key=lambda pair: (-pair[0], pair[1].name)) if count >= LEAST)


def within(idioms: tuple[Idiom, ...], tokens: int) -> tuple[Idiom, ...]:
    """Keep the first ones whose texts together have no more than so many tokens, by an estimate."""
    kept: list[Idiom] = []
    for one in idioms:
        tokens -= len(one.text) // CHARACTERS_A_TOKEN + 1
        if tokens < 0:
            break
        kept.append(one)
    return tuple(kept)


def points(idiom: Idiom, problem: Problem, bottleneck: Bottleneck | None) -> int:
    """Rate how well an idiom fits; 0 where something that it needs is not there."""
    work = problem.work
    dtypes = {tensor.dtype for tensor in (*problem.abi.inputs, *problem.abi.parameters)}
    if not set(idiom.needs) <= set(work.families) or (idiom.dtypes and dtypes.isdisjoint(idiom.dtypes)):
        return 0
    named = any(part in name for name in work.operators for part in idiom.operators)
    many = idiom.repeats and len(work.operators) >= MANY
    leads = bool(work.families) and work.families[0] in idiom.families
    beside = not leads and not set(idiom.families).isdisjoint(work.families)
    # what needs more is the more telling where it is there
    return 2 * leads + beside + 2 * named + 3 * many + (bottleneck in idiom.bottlenecks) + bool(idiom.needs)
