"""The alignment of a loop's steps: what each argument of the repeated operators is, as seen over all steps.

An argument is the same at every step, or a constant of the same numbers, grows by the same number, was made in the same step or in one
before, or is a part of a value from outside that moves on by one element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.codegen.ir.constant_tensors import MAKES_NUMBERS
from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.loop import StepNumber

LONGEST = 3
"""Steps before which a step may read what was made: so many values are carried of it."""


class UnevenError(ValueError):
    """The steps differ by more than a loop's may; says how."""


@dataclass(frozen=True)
class Here:
    """What operator number `place` of the same step made."""

    place: int
    index: int


@dataclass(frozen=True)
class Before:
    """What operator number `place` of the step before made; at the first step a value from outside."""

    place: int
    index: int
    initial: Ref


@dataclass(frozen=True)
class Earlier:
    """What operator number `place` made several steps before; at as many first steps the values from outside, in their order."""

    place: int
    index: int
    initials: tuple[Ref, ...]


@dataclass(frozen=True)
class Part:
    """One element along a dimension of a value from outside."""

    source: Ref
    dim: int
    number: StepNumber


@dataclass(frozen=True)
class Run:
    """Operators that repeat: `count` steps of `period` nodes from `first` on."""

    first: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """Position of the first node after it."""
        return self.first + self.period * self.count

    def step_of(self, position: int) -> tuple[int, int]:
        """Tell a node's step and its place in it."""
        return divmod(position - self.first, self.period)

    def holds(self, position: int | None) -> bool:
        """Whether a node is among them."""
        return position is not None and self.first <= position < self.end


class Aligner:
    """Compares the steps of one run."""

    def __init__(self, nodes: Sequence[Node], inputs: Mapping[str, TensorMeta], places: Mapping[str, int], run: Run) -> None:
        """Take the nodes of the whole graph, and where each is among them."""
        self.nodes, self.inputs, self.places, self.run = nodes, inputs, places, run

    def body(self) -> tuple[Node, ...]:
        """Write the first step's nodes with arguments as seen over all steps; raises UnevenError."""
        return tuple(self._node(place) for place in range(self.run.period))

    def meta(self, ref: Ref) -> TensorMeta:
        """Shape of a value of the graph."""
        place = self.places.get(ref.name)
        return self.inputs[ref.name] if place is None else self.nodes[place].outputs[ref.index]

    def _node(self, place: int) -> Node:
        run = self.run
        steps = [self.nodes[run.first + step * run.period + place] for step in range(run.count)]
        one = steps[0]
        if any(step.outputs != one.outputs for step in steps):
            shapes = {tuple((each.shape, each.dtype) for each in step.outputs) for step in steps}
            raise UnevenError(f"{one.target} gives another {'layout' if len(shapes) == 1 else 'shape'} at each step")
        args = self._tree([step.args for step in steps])
        kwargs = {key: self._tree([step.kwargs[key] for step in steps]) for key in one.kwargs}
        return Node(one.name, one.target, args, kwargs, one.outputs)

    def _tree(self, trees: Sequence[Any]) -> Any:
        one = trees[0]
        if isinstance(one, tuple | list):
            if any(len(tree) != len(one) for tree in trees):
                raise UnevenError("a list grows from step to step")
            return type(one)(self._tree(items) for items in zip(*trees, strict=True))
        if isinstance(one, Ref):
            return self._ref(trees)
        if all(repr(tree) == repr(one) for tree in trees):
            return one
        return even(trees)

    def _ref(self, refs: Sequence[Ref]) -> Any:
        positions = [self.places.get(ref.name) for ref in refs]
        inside = [self.run.holds(position) for position in positions]
        if not any(inside):
            return refs[0] if len(set(refs)) == 1 or self._are_one_constant(refs) else self._part(refs)
        outside = inside.index(True)
        if not all(inside[outside:]):
            raise UnevenError("a step reads what only some steps make")
        found = [self.run.step_of(position) for position in positions[outside:] if position is not None]
        if len({(place, ref.index) for (_, place), ref in zip(found, refs[outside:], strict=True)}) > 1:
            raise UnevenError("the steps read values of different operators")
        lags = {step - at for step, (at, _) in enumerate(found, start=outside)}
        place, index = found[0][1], refs[outside].index
        if lags != {outside} or outside > LONGEST:
            raise UnevenError(f"a step reads what was made more than {LONGEST} steps before, or not always as many steps before")
        initials, made = [self.meta(ref) for ref in refs[:outside]], self.meta(refs[outside])
        if any((meta.shape, meta.dtype) != (made.shape, made.dtype) for meta in initials):
            raise UnevenError("the first steps carry another shape than the others")
        if outside > 1:
            return Earlier(place, index, tuple(refs[:outside]))
        return Before(place, index, refs[0]) if outside else Here(place, index)

    def _are_one_constant(self, refs: Sequence[Ref]) -> bool:
        """Whether all are constants with the same numbers, as a helper makes one at every step."""
        places = [place for place in map(self.places.get, [ref.name for ref in refs]) if place is not None]
        made = [self.nodes[place] for place in places if self.nodes[place].target.startswith((*MAKES_NUMBERS, "aten.scalar_tensor."))]
        return len(made) == len(refs) and len({(node.target, repr((node.args, node.kwargs)), node.outputs) for node in made}) == 1

    def _part(self, refs: Sequence[Ref]) -> Part:
        parts = [self.part_of(ref) for ref in refs]
        if None in parts or len({part[:2] for part in parts if part}) != 1:
            raise UnevenError("each step reads another value")
        source, dim, _ = parts[0] or (refs[0], 0, 0)
        return Part(source, dim, even([part[2] for part in parts if part]))

    def part_of(self, ref: Ref) -> tuple[Ref, int, int] | None:
        """Tell of which value's element along which dimension a value is; None where it is none."""
        position = self.places.get(ref.name)
        node = self.nodes[position] if position is not None else None
        if node is None or node.op not in ("select", "unbind") or not isinstance(node.args[0], Ref):
            return None
        rank = len(self.meta(node.args[0]).shape)
        dim = node.argument(1, "dim", 0) % rank
        if node.op == "unbind":
            return node.args[0], dim, ref.index
        size = self.meta(node.args[0]).shape[dim][0]
        return node.args[0], dim, node.args[2] % size


def even(numbers: Sequence[Any]) -> StepNumber:
    """Tell by how much numbers grow from step to step; raises UnevenError."""
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        raise UnevenError("a number changes from step to step otherwise than by a whole number each time")
    by = numbers[1] - numbers[0]
    if any(number != numbers[0] + by * step for step, number in enumerate(numbers)):
        raise UnevenError("a number changes from step to step otherwise than by the same amount each time")
    return StepNumber(numbers[0], by)
