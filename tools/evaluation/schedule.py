"""Which calls a candidate must get right: sizes, seeds and distributions."""

from __future__ import annotations

import secrets
from typing import Literal

from tools.evaluation.distributions import AS_MADE, BATTERY, TIES
from tools.evaluation.numerics import is_float
from tools.evaluation.tape import CallSpec, Sitting
from tools.records import Problem

FRESH_CALLS = {"search": 3, "confirm": 5}
"""Calls with inputs as the problem makes them, each with its own seed, at each size."""

BATTERY_CALLS = {"search": (6, 2), "confirm": (len(BATTERY), 5)}
"""Distributions tried on the first variant, and on each other one."""

LARGE_BYTES = 1 << 30
"""From this size on a problem gets one fresh call (run twice): its inputs and outputs pass through the host's memory."""


def new_seed() -> int:
    """Draw a seed that nobody can know before."""
    return secrets.randbits(62)


def sitting(problem: Problem, place: int, stage: Literal["search", "confirm"], *, battery: bool) -> Sitting:
    """Plan the calls of one runner; `place` counts the sizes, so that different ones meet different distributions."""
    count = FRESH_CALLS[stage] if problem.abi.compulsory_bytes < LARGE_BYTES else 1
    fresh = tuple(CallSpec(seed=new_seed(), distribution=AS_MADE, group=AS_MADE, slots=2 if number == 0 else 1) for number in range(count))
    names = [name for name in BATTERY if name not in TIES or all(is_float(spec) for spec in problem.abi.outputs)]
    if not any(is_float(spec) for spec in problem.abi.inputs) or not battery:
        names = []
    first, others = BATTERY_CALLS[stage]
    tries = min(first if place == 0 else others, len(names))
    # every size starts elsewhere in the list, so that together they cover it
    chosen = [names[(place * others + step) % len(names)] for step in range(tries)]
    tried = tuple(CallSpec(seed=new_seed(), distribution=name, group=name) for name in chosen)
    return Sitting(problem=problem.model_dump_json(), shake=new_seed() if place else None, calls=fresh + tried)
