"""Which calls a candidate must get right: sizes, seeds and distributions."""

from __future__ import annotations

import secrets
from typing import Literal

from tools.evaluation.distributions import AS_MADE, BATTERY, HARD, NON_FINITE, allowed
from tools.evaluation.numerics import is_float
from tools.evaluation.tape import CallSpec, Sitting
from tools.problems import takes_views
from tools.records import Problem

FRESH_CALLS = {"search": 3, "confirm": 5}
"""Calls with inputs as the problem makes them, each with its own seed, at each size."""

FOLLOWING_CALLS = {"search": 1, "confirm": 2}
"""Calls after them whose inputs differ from those of the call before in a few elements: an answer kept by samples of them is wrong."""

BATTERY_CALLS = {"search": (7, 2), "confirm": (len(BATTERY), 6)}
"""Distributions tried on the first variant, and on each other one: the hard ones as far as they go, then others by chance."""

WRITTEN_CALLS = {"search": 2, "confirm": 5}
"""The same for the problem as written on a GPU, where inputs of `MIDDLE_BYTES` or more pass through the host's memory."""

MIDDLE_BYTES = 128 << 20
"""Below this size a confirmation tries every distribution on the problem as written too."""

LARGE_BYTES = 1 << 30
"""From this size on a problem gets one fresh call (run twice): its inputs and outputs pass through the host's memory."""


def new_seed() -> int:
    """Draw a seed that nobody can know before."""
    return secrets.randbits(62)


def sitting(problem: Problem, place: int, stage: Literal["search", "confirm"], *, battery: bool, shaken: bool = False) -> Sitting:
    """Plan the calls of one runner; `place` counts the sizes, so that different ones meet different distributions.

    Without `battery` the problem is large: only a few of the hard distributions are tried. Parameters are shaken at every size but
    the first, and where that is asked for. Where the problem declares `INPUT_VIEWS` the inputs of one call are misaligned.
    """
    large = problem.abi.compulsory_bytes >= LARGE_BYTES
    count = 1 if large else FRESH_CALLS[stage]
    calls = [CallSpec(seed=new_seed(), distribution=AS_MADE, group=AS_MADE, slots=2 if number == 0 else 1) for number in range(count)]
    if not large and takes_views(problem):
        calls[-1] = calls[-1].model_copy(update={"shifted": True})
    following = CallSpec(seed=0, distribution=AS_MADE, group=AS_MADE, follows=True)
    calls += [following.model_copy(update={"seed": new_seed()}) for _ in range(0 if large else FOLLOWING_CALLS[stage])]
    tries = BATTERY_CALLS[stage][min(place, 1)] if battery else _written_calls(problem, stage)
    calls += [CallSpec(seed=new_seed(), distribution=name, group=name) for name in distributions(problem, tries, place)]
    return Sitting(problem=problem.model_dump_json(), shake=new_seed() if place or shaken else None, calls=tuple(calls))


def _written_calls(problem: Problem, stage: Literal["search", "confirm"]) -> int:
    if problem.abi.compulsory_bytes >= LARGE_BYTES:
        return 0
    return len(BATTERY) if stage == "confirm" and problem.abi.compulsory_bytes < MIDDLE_BYTES else WRITTEN_CALLS[stage]


def distributions(problem: Problem, tries: int, place: int = 0) -> tuple[str, ...]:
    """Choose which distributions to try: hard ones first, others by chance that no candidate can foresee."""
    if not tries or not any(is_float(spec) for spec in problem.abi.inputs):
        return ()
    names = allowed(problem.work.operators, integers_out=not all(is_float(spec) for spec in problem.abi.outputs))
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
