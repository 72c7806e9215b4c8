"""A loop as one operator of the graph: the graph of one step, what it carries from step to step, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes

RECURRENCE = "loop.recurrence.default"
"""Target of a loop's node."""


@dataclass(frozen=True)
class StepNumber:
    """A number of a loop's body that grows by the same amount at each step."""

    first: int
    by: int


def has_step_number(tree: Any) -> bool:
    """Whether nested arguments hold such a number."""
    if isinstance(tree, tuple | list):
        return any(has_step_number(item) for item in tree)
    if isinstance(tree, dict):
        return has_step_number(tuple(tree.values()))
    return isinstance(tree, StepNumber)


@dataclass(frozen=True)
class Whole:
    """A value of the loop's surroundings that every step reads as it is."""

    name: str
    """The body's input."""
    place: int
    """Which of the node's arguments it is."""


@dataclass(frozen=True)
class Sliced:
    """A value of the loop's surroundings of which each step reads its own part, one element along a dimension."""

    name: str
    """The body's input; it lacks the dimension."""
    place: int
    dim: int


@dataclass(frozen=True)
class Carried:
    """A value that a step hands to the next one."""

    name: str
    """The body's input."""
    place: int
    """Which argument holds the value of the first step."""
    after: Ref
    """The body's value that the next step gets."""


@dataclass(frozen=True)
class Left:
    """A result of the loop."""

    ref: Ref
    """Of the body."""
    dim: int | None
    """Dimension along which the values of all steps lie one after the other; None where only the last step's is left."""


@dataclass(frozen=True)
class Loop(Node):
    """A loop: its arguments are the values that the body's inputs are made of."""

    body: OperatorGraph
    steps: Sizes
    backwards: bool
    """Whether the first step reads and writes the last part along the dimensions of steps."""
    whole: tuple[Whole, ...]
    sliced: tuple[Sliced, ...]
    carried: tuple[Carried, ...]
    left: tuple[Left, ...]

    def body_in(self, graph: OperatorGraph) -> OperatorGraph:
        """Give the body as regions see it, which know the parameters around it; kept with the loop, as plans are with graphs."""
        given = {one.name: self.args[one.place].name for one in self.whole}
        parameters = {name: graph.parameters[outer] for name, outer in given.items() if outer in graph.parameters}
        fixed = frozenset(name for name in parameters if given[name] in graph.fixed)
        known: dict[frozenset[str], OperatorGraph] = self.__dict__.setdefault("_bodies", {})
        if fixed not in known:
            body = replace(self.body, parameters=parameters, fixed=fixed, traces=graph.traces)
            known[fixed] = replace(body, constants=graph.constants, attributes=graph.attributes)
        return known[fixed]

    def part(self, each: Sliced, meta: TensorMeta) -> TensorMeta:
        """Shape of one step's part of a value."""
        return without(meta, each.dim)


def without(meta: TensorMeta, dim: int) -> TensorMeta:
    """Shape of one element along a dimension."""
    shape = (*meta.shape[:dim], *meta.shape[dim + 1 :])
    last = dim == len(meta.shape) - 1
    return TensorMeta(shape, meta.dtype, contiguous=meta.contiguous and dim == 0, unit_last=meta.unit_last and not last)
