"""Harder uses of a recorded landscape: the same places and times, with fewer of the recorded steps between them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from graphs.search.landscape import Landscape, Step
from tools.records import ROOT

Value = bool | int | float | str
Settings = dict[tuple[str, str], Value]
"""What a place is known to have, by region and parameter."""


def near(landscape: Landscape) -> Landscape:
    """Only steps that move a number by one rung: a factor of two, or one stage.

    A step says what it sets, not what was there before; that follows from the steps that lead to the place. Steps from a place whose
    value is not known, steps that set words, and the steps from the reference stay. Places that can no longer be reached are left out.
    """
    known = _settings(landscape)
    kept = [step for step in landscape.steps if step.start == ROOT or _is_near(step, known.get(step.start, {}))]
    return _reachable(landscape, kept)


def from_slowest(landscape: Landscape) -> Landscape:
    """Begin at the slowest place from which the fastest can be reached: the reference's one step leads there."""
    timed = [place for place in landscape.places if place.time_us]
    best = min(timed, key=lambda place: place.time_us).id
    others = [step for step in landscape.steps if step.start != ROOT]
    for place in sorted(timed, key=lambda place: -place.time_us):
        view = _reachable(landscape, [Step(start=ROOT, action=landscape.from_place[ROOT][0].action, end=place.id), *others])
        if best in view.by_id:
            return view
    return landscape


def first_place(landscape: Landscape) -> str:
    """Where the reference's first recorded step leads: the coder's own first schedule."""
    return landscape.from_place[ROOT][0].end


def _settings(landscape: Landscape) -> dict[str, Settings]:
    """Values by place, from the steps that lead there; one that two steps disagree about is not known."""
    found: dict[str, dict[tuple[str, str], set[Value]]] = {}
    for step in landscape.steps:
        for name, value in step.action.parameters.items():
            found.setdefault(step.end, {}).setdefault((step.action.region, name), set()).add(value)
    return {place: {key: next(iter(values)) for key, values in given.items() if len(values) == 1} for place, given in found.items()}


def _is_near(step: Step, before: Settings) -> bool:
    return all(_rungs(before.get((step.action.region, name)), value) <= 1 for name, value in step.action.parameters.items())


def _rungs(before: Value | None, after: Value) -> float:
    """How many rungs apart two values are; 0 where that cannot be told, or where they are words."""
    if not _is_number(before) or not _is_number(after):
        return 0.0
    old, new = float(before or 0), float(after)
    if old <= 0 or new <= 0:
        return 0.0
    # stages and the like are counted one by one
    return min(abs(math.log2(new / old)), abs(new - old))


def _is_number(value: Value | None) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reachable(landscape: Landscape, steps: Iterable[Step]) -> Landscape:
    by_start: dict[str, list[Step]] = {}
    for step in steps:
        by_start.setdefault(step.start, []).append(step)
    seen, queue = {ROOT}, [ROOT]
    for place in queue:
        for step in by_start.get(place, ()):
            if step.end not in seen:
                seen.add(step.end)
                queue.append(step.end)
    places = tuple(place for place in landscape.places if place.id in seen)
    kept = tuple(step for start in by_start if start in seen for step in by_start[start])
    # made anew, as a copy would keep what was worked out of the steps before
    fields = {name: getattr(landscape, name) for name in type(landscape).model_fields}
    return Landscape(**{**fields, "places": places, "steps": kept})
