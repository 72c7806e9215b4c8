"""A forward's operators as they are written: lines, loops, and the arguments that change with a loop's steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import fx


class Linear(NamedTuple):
    """A whole number that is `start` in the first step and grows by `by` in each."""

    start: Any
    by: Any


class Item(NamedTuple):
    """What a sequence, or a list of what steps before gave, holds at a place that changes with the steps."""

    sequence: Any
    place: Linear | int


class Part(NamedTuple):
    """What `unbind` gives of a tensor at one place, without all else that it gives."""

    whole: Any
    dim: int
    place: Linear | int


class Spread(NamedTuple):
    """Part of a list: what all steps of a loop gave at one place of theirs."""

    first: fx.Node
    """What the first step gave."""
    backwards: bool


class Line(NamedTuple):
    """An operator of a body."""

    node: fx.Node
    args: Any
    """Its arguments, with Linear and Item for what changes with the steps of its loop, and Spread in lists."""
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class Loop:
    """Steps that follow one another in a list of nodes."""

    first: int
    period: int
    steps: Any
    nodes: Sequence[fx.Node]
    """All of the list."""
    lines: tuple[Line, ...] = ()
    """The second step; nodes of the first step are what is carried over."""
    carried: Mapping[int, Any] = field(default_factory=dict)
    """By place in a step: what the first step gets where others get what that node of the step before gave."""
    listed: tuple[int, ...] = ()
    """Places in a step whose results are put into a list."""
    end: int = 0
    """Where the list goes on behind it."""

    def step(self, number: int) -> Sequence[fx.Node]:
        """List the nodes of a step; -1 is the last."""
        begin = self.first + number * self.period if number >= 0 else self.end + number * self.period
        return self.nodes[begin : begin + self.period]

    def family(self, place: int) -> list[fx.Node]:
        """List what stands at a place of each step."""
        return list(self.nodes[self.first + place : self.end : self.period])


Body = list[Line | Loop]
"""A forward's operators in order."""


def nodes_of(value: Any) -> Iterator[fx.Node]:
    """List what an argument reads, but for what steps of loops put into lists."""
    if isinstance(value, fx.Node):
        yield value
    elif isinstance(value, tuple | list | dict) and not isinstance(value, Spread):
        for each in value.values() if isinstance(value, dict) else value:
            yield from nodes_of(each)


def items_of(value: Any) -> Iterator[Item]:
    """List the items in an argument."""
    if isinstance(value, Item):
        yield value
    elif isinstance(value, tuple | list | dict) and not isinstance(value, Spread | Linear):
        for each in value.values() if isinstance(value, dict) else value:
            yield from items_of(each)
