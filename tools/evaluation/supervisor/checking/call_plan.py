"""Which calls a candidate must get right: sizes, seeds and distributions."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Literal, NamedTuple

from tools.evaluation.wire.calls import CallPlan, CallSpec
from tools.evaluation.wire.distributions import AS_MADE, HARD, NAMES, NON_FINITE, allowed
from tools.evaluation.wire.size_classes import LARGE_BYTES, MIDDLE_BYTES
from tools.problems import takes_views
from tools.records import Problem

Stage = Literal["search", "confirm"]


class Calls(NamedTuple):
    """How many calls a size gets."""

    fresh: int
    """With inputs as the problem makes them, each with its own seed; the first is run twice."""
    following: int
    """Whose inputs differ from those of the call before in a few elements: an answer kept by samples of them is wrong.

    One alone falls on a sample in one of twelve runs where eight of five hundred elements are known.
    """
    battery: int
    """Distributions tried on the problem as written on a GPU."""


SMALL = {"search": Calls(3, 2, 2), "confirm": Calls(5, 3, len(NAMES))}
MIDDLE = {"search": Calls(1, 1, 1), "confirm": Calls(2, 1, 3)}
LARGE = {"search": Calls(1, 0, 0), "confirm": Calls(1, 0, 0)}

BATTERY_CALLS = {"search": (7, 2), "confirm": (len(NAMES), 6)}
"""Distributions tried on the first variant, and on each other one: the hard ones as far as they go, then others by chance."""


def calls_at(problem: Problem, stage: Stage) -> Calls:
    """Say how many calls a problem of this size gets."""
    nbytes = problem.abi.nbytes
    return (LARGE if nbytes >= LARGE_BYTES else MIDDLE if nbytes >= MIDDLE_BYTES else SMALL)[stage]


def new_seed() -> int:
    """Draw a seed that nobody can know before."""
    return secrets.randbits(62)


def plan_calls(problem: Problem, place: int, stage: Stage, *, battery: bool, shaken: bool = False) -> CallPlan:
    """Plan the calls of one runner; `place` counts the sizes, so that different ones meet different distributions.

    Without `battery` the problem is large: only a few of the hard distributions are tried. Parameters are shaken at every size but
    the first, and where that is asked for. Where the problem declares `INPUT_VIEWS` the inputs of one call are misaligned.
    """
    planned = calls_at(problem, stage)
    as_made = partial(CallSpec, distribution=AS_MADE, group=AS_MADE)
    calls = [as_made(seed=new_seed(), slots=2 if number == 0 else 1) for number in range(planned.fresh)]
    if planned.following and takes_views(problem):
        calls.append(as_made(seed=new_seed(), shifted=True))
    calls += [as_made(seed=new_seed(), follows=True) for _ in range(planned.following)]
    tries = BATTERY_CALLS[stage][min(place, 1)] if battery else planned.battery
    calls += [CallSpec(seed=new_seed(), distribution=name, group=name) for name in distributions(problem, tries, place)]
    return CallPlan(problem=problem.model_dump_json(), shake=new_seed() if place or shaken else None, calls=tuple(calls))


def distributions(problem: Problem, tries: int, place: int = 0) -> tuple[str, ...]:
    """Choose which distributions to try: hard ones first, others by chance that no candidate can foresee."""
    if not tries or not any(spec.is_float for spec in problem.abi.inputs):
        return ()
    names = allowed(problem.work.operators, integers_out=not all(spec.is_float for spec in problem.abi.outputs))
    hard = [name for name in HARD if name in names]
    if tries < len(hard) + 2:
        # where there is no room for all of them the first stays and the others take turns
        hard = hard[:1] + _turned(hard[1:], place)[: max(0, tries // 2 - 1)]
    others = [name for name in names if name not in hard]
    chosen = [*hard, *secrets.SystemRandom().sample(others, max(0, min(tries - len(hard), len(others))))][:tries]
    return (*chosen, NON_FINITE) if problem.policy.non_finite else tuple(chosen)


def _turned(names: list[str], place: int) -> list[str]:
    start = place % len(names) if names else 0
    return names[start:] + names[:start]
