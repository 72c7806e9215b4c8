"""Rows sent to experts, as one operator of the graph: which expert each place of a row goes to, what every expert does, what is made of it.

A pair is a row and one of its places: `chosen` has a number for each. An expert does the same as the others, with weights of its own, to
the rows whose number is its; what it gives is added to a tensor at these rows, or written there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.graph import Node, OperatorGraph, Ref

EXPERTS = "dispatch.experts.default"
"""Target of such a node."""
CHOSEN, BASE = 0, 1
"""Places among its arguments: the experts' numbers, and what results are added to or written over; the latter may be None, for zeros."""


@dataclass(frozen=True)
class Picked:
    """A value of which each pair has its own row of elements."""

    name: str
    """The body's input, of pairs by elements."""
    place: int
    """Which of the node's arguments it is taken of."""
    pair: bool
    """Whether that has elements for each pair; else for each row."""


@dataclass(frozen=True)
class OfExpert:
    """A value that each expert has for itself: in one tensor, or in one for each."""

    name: str
    places: tuple[int, ...]
    turned: bool
    """Whether the body has its last two dimensions the other way round."""

    @property
    def is_stacked(self) -> bool:
        """Whether one tensor holds those of all experts along its first dimension."""
        return len(self.places) == 1


@dataclass(frozen=True)
class Common:
    """A value that is the same for all."""

    name: str
    place: int


@dataclass(frozen=True)
class Dispatch(Node):
    """The operator: its arguments are the values that the body's inputs are made of."""

    body: OperatorGraph
    """What an expert does to pairs, of which there are as many as `chosen` has elements."""
    experts: int
    first: int
    """Number of the first expert; the others follow."""
    picked: tuple[Picked, ...]
    of_expert: tuple[OfExpert, ...]
    common: tuple[Common, ...]
    value: Ref
    """Of the body: what is added or written."""
    adds: bool
    """Whether it is added; else it takes the place of what was there."""
