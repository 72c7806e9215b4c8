"""A loop as one operator of the graph: the graph of one step, what it carries from step to step, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes

RECURRENCE = "loop.recurrence.default"
"""Target of a loop's node."""


@dataclass(frozen=True)
class StepNumber:
    """A number of a loop's body that grows by the same amount at each step."""

    first: int
    by: int


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

    def part(self, each: Sliced, meta: TensorMeta) -> TensorMeta:
        """Shape of one step's part of a value."""
        return without(meta, each.dim)


def without(meta: TensorMeta, dim: int) -> TensorMeta:
    """Shape of one element along a dimension."""
    shape = (*meta.shape[:dim], *meta.shape[dim + 1 :])
    last = dim == len(meta.shape) - 1
    return TensorMeta(shape, meta.dtype, contiguous=meta.contiguous and dim == 0, unit_last=meta.unit_last and not last)
