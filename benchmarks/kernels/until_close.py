"""How many evaluations a way to the best schedule takes until it saw a time close to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tools.codegen import Schedule
from tools.tuning import Point, Search

CLOSE = 1.05
"""Over the fastest recorded time: from here on a time counts as the best."""
WAVE = 8
"""Trials that the tuner asks for at once."""
STARTS = 8
"""Schedules that each way to the best starts from in turn."""
WORD = 2.0
"""Distance between two words of one parameter, in powers of two."""


@dataclass
class Measured:
    """One schedule with its time."""

    schedule: Schedule
    us: float
    coarse_us: float = math.nan
    fine_us: float = math.nan
    registers: float = 0.0
    """Of its heaviest kernel, as the machine that timed it had compiled it; 0 where that was not recorded."""
    shared_bytes: float = 0.0


def starts_of(times: Sequence[float]) -> list[int]:
    """Choose where to start: schedules spread evenly over the ranks of those that are not close to the best."""
    away = sorted((place for place, us in enumerate(times) if us > CLOSE * min(times)), key=lambda place: times[place])
    return [away[len(away) * index // STARTS] for index in range(STARTS)]


def tuner_evaluations(found: Sequence[Measured], start: int, seed: int) -> int:
    """Count the tuner's trials until it saw a time close to the best; the start's is known."""
    search = Search(points_of(found), seed=seed)
    goal = CLOSE * min(one.us for one in found)
    search.tell(str(start), found[start].us)
    spent = 0
    while wave := search.ask(WAVE):
        for name in wave:
            spent += 1
            if found[int(name)].us <= goal:
                return spent
        for name in wave:
            search.tell(name, found[int(name)].us)
    return spent


def points_of(found: Sequence[Measured]) -> list[Point]:
    """Make points of schedules: numbers in powers of two, words as places of their own."""
    flat = [{f"{r.id}.{name}": value for r in one.schedule.regions for name, value in r.parameters.items()} for one in found]
    names = sorted({name for each in flat for name in each})
    words = sorted({(name, value) for each in flat for name, value in each.items() if isinstance(value, str)})
    points = []
    for index, (one, each) in enumerate(zip(found, flat, strict=True)):
        numbers = [math.log2(max(1, value)) if isinstance(value := each.get(name, 1), int) else 0.0 for name in names]
        points.append(Point(str(index), (*numbers, *(WORD * (each.get(name) == word) for name, word in words)), one.coarse_us))
    return points


def greedy_evaluations(times: Sequence[float], steps: dict[int, list[int]], start: int) -> int:
    """Count evaluations of steps of one knob, in the coder's order, always from the fastest schedule seen that has one left.

    Where the recorded steps lead no further, all schedules count as evaluated.
    """
    seen, goal = [start], CLOSE * min(times)
    while min(times[place] for place in seen) > goal:
        fresh = ((here, [place for place in steps.get(here, ()) if place not in seen]) for here in sorted(seen, key=lambda p: times[p]))
        following = next((places for _, places in fresh if places), None)
        if following is None:
            return len(times)
        seen.append(following[0])
    return len(seen) - 1
