"""The action `tune` on a source without a schedule: a model's kernel, the user's, or a compiler's, whose numbers stand in its text."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from agents.coder.protocol import Draft
from agents.sources.cuda import cuda_kernels
from agents.sources.triton import kernel_names
from tools.records import Action, ActionKind, Candidate, Problem
from tools.tuning.neighbours import neighbours, point_name, values_of
from tools.tuning.search import Point
from tools.tuning.written import Number, text_around, with_numbers, written_numbers

NUMERIC = (ActionKind.TILING, ActionKind.LAUNCH, ActionKind.PIPELINE)
"""Kinds of actions that are nothing but their numbers."""


class WrittenSpace:
    """The points of one source, each of which is the same source with other numbers."""

    def __init__(self, problem: Problem, source: str) -> None:
        """Read the numbers."""
        tensors = (*problem.abi.inputs, *problem.abi.parameters, *problem.abi.outputs)
        self.numbers: tuple[Number, ...] = written_numbers(source, {size for one in tensors for size in one.shape})
        self._source = source
        self.own = point_name({number.name: number.value for number in self.numbers})

    @property
    def structure(self) -> str:
        """Sign what of the source a tuning leaves as it is."""
        return text_around(self._source, self.numbers)

    def moves(self) -> tuple[str, ...]:
        """Points that change one number by one step."""
        own = {number.name: number.value for number in self.numbers}
        return tuple(point_name(own | {number.name: value}) for number in self.numbers for value in _next_to(number))

    def points(self, own_us: float, ratios: Mapping[str, float], fixed: Collection[str] = ()) -> tuple[Point, ...]:
        """List the points by what is expected of them: `own_us` times the ratio of each move they make, where that is known.

        Left out are points that make a move which does not build (an infinite ratio), or that change one of the `fixed` numbers.
        """
        free = [number for number in self.numbers if number.name not in fixed]
        found = []
        for point in neighbours(self.numbers, own_us):
            values = values_of(point.name)
            if all(values[number.name] == number.value for number in self.numbers if number not in free):
                expected = point.predicted_us
                for number in free:
                    expected *= self._ratio(number, values[number.name], ratios)
                found.append(Point(point.name, point.vector, expected))
        return tuple(found)

    def draft(self, point: str) -> Draft:
        """Write a point as a source, with a note of what was changed."""
        values = values_of(point)
        changed = [f"{one.name} {one.value} to {values[one.name]}" for one in self.numbers if values[one.name] != one.value]
        note = f"Numbers changed in the text, no model was asked: {', '.join(changed)}."
        return Draft(source=with_numbers(self._source, self.numbers, values), notes=(note,))

    def changed(self, point: str) -> frozenset[str]:
        """Names of the numbers that a point changes."""
        values = values_of(point)
        return frozenset(number.name for number in self.numbers if values[number.name] != number.value)

    def _ratio(self, number: Number, value: int, ratios: Mapping[str, float]) -> float:
        """What the move towards a value costs, once a step."""
        steps = number.values.index(value) - number.values.index(number.value)
        if not steps:
            return 1.0
        next_value = number.values[number.values.index(number.value) + (1 if steps > 0 else -1)]
        own = {one.name: one.value for one in self.numbers}
        return float(ratios.get(point_name(own | {number.name: next_value}), 1.0) ** abs(steps))


def by_numbers(problem: Problem, parent: Candidate | None, action: Action) -> Draft | None:
    """Carry out an action that only sets numbers which stand in its parent's text; None where it is more than that."""
    if parent is None or parent.schedule is not None or action.kind not in NUMERIC or not action.parameters:
        return None
    space = WrittenSpace(problem, parent.source)
    named = [_meant(space.numbers, name, action.region.split("+")) for name in action.parameters]
    values = list(action.parameters.values())
    if not all(named) or not all(isinstance(value, int) and not isinstance(value, bool) and value > 0 for value in values):
        return None
    wanted = {number.name: int(value) for numbers, value in zip(named, values, strict=True) for number in numbers}
    return space.draft(point_name({number.name: number.value for number in space.numbers} | wanted)) if wanted else None


def numbers_region(source: str) -> str:
    """Name the kernels of a source as the region of an action that tunes them all."""
    return "+".join((*kernel_names(source), *cuda_kernels(source)))


def _meant(numbers: tuple[Number, ...], name: str, kernels: list[str]) -> tuple[Number, ...]:
    """The numbers that a parameter of an action on these kernels means: theirs by that name, or a constant's."""
    names = {name, *(f"{kernel}.{name}" for kernel in kernels)}
    return tuple(number for number in numbers if number.name.partition("@")[0] in names)


def _next_to(number: Number) -> tuple[int, ...]:
    place = number.values.index(number.value)
    return tuple(number.values[at] for at in (place - 1, place + 1) if 0 <= at < len(number.values))
