"""Where an option lies among those with the same parameters: block sizes, warps and stages form ladders."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from agents.planner.similar import Values, is_number

GAP = 2.5
"""Neighbouring rungs are a factor of two apart, or one stage; a wider step is where the parent itself stands."""


def magnitude(values: Values) -> float:
    """Product of the positive numbers among `values`."""
    return math.prod(float(v) for v in values.values() if is_number(v) and v > 0)


def ladder_place(own: float, rungs: Sequence[float], direction: int) -> float:
    """From 0 to 1: how well a rung lies for a step in `direction` (-1 down, 1 up, 0 either way).

    The parent's own rung is no option, so it shows as a gap; the next rung in the direction is then the best, as a large step
    leaves what is known to work. Without a gap it is the rung a third from the end.
    """
    ladder = sorted(set(rungs))
    if len(ladder) < 2:
        return 0.0
    parent = next((math.sqrt(a * b) for a, b in itertools.pairwise(ladder) if b / a > GAP), None)
    if parent is None:
        place = ladder.index(own) / (len(ladder) - 1)
        return 1.0 - abs(place - (0.5 + direction / 6))
    steps = math.log2(own / parent)
    away = abs(steps - direction) if direction else abs(abs(steps) - 1.0)
    return 1.0 / (1.0 + away)
