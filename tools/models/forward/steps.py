"""Joins traces of one call at two numbers of steps: which whole numbers follow from how many there are, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import fx

from tools.models.forward.lines import Body, Item, Line, Linear, Loop, Part, Spread

STEPS = "steps0"
"""The constant of a problem's file that says how many."""
CUT = (6, 9)
"""Numbers of steps at which a long loop is traced."""
SHORT = (5, 3)
"""Numbers at which a kernel is tried."""
_NUMBER = re.compile(r"\b\d+\b")


class OtherStepsError(Exception):
    """Traces at two numbers of steps differ in more than whole numbers that follow from these."""


class Sized(NamedTuple):
    """A whole number that is `per` times the number of steps, and `base` more."""

    per: int
    base: int

    def text(self, steps: str) -> str:
        """Write it by a name of the number of steps, as a term of a sum."""
        scaled = steps if self.per == 1 else f"{self.per} * {steps}"
        return f"{scaled} {'+' if self.base > 0 else '-'} {abs(self.base)}" if self.base else scaled


class Place(NamedTuple):
    """A dimension of one of a call's tensors."""

    leaf: int
    dim: int


@dataclass(frozen=True)
class Cut:
    """How a call is made shorter."""

    steps: int
    """How many it has."""
    places: tuple[Place, ...]
    """What is cut."""
    size: Sized
    """How long these are."""

    def at(self, leaves: Sequence[torch.Tensor], steps: int) -> list[torch.Tensor]:
        """Cut a call's tensors to a number of steps."""
        size = self.size.per * steps + self.size.base
        made = list(leaves)
        for leaf, dim in self.places:
            made[leaf] = made[leaf].narrow(dim, 0, size).contiguous()
        return made

    def cuts(self, leaves: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
        """Cut a call's tensors to the numbers of steps at which it is traced."""
        return [self.at(leaves, steps) for steps in CUT]


class Joining:
    """Lays the traces over each other."""

    def __init__(self, one: Any, two: Any) -> None:
        """Begin with two programs' placeholders."""
        self._known: dict[fx.Node, fx.Node] = {}
        for mine, theirs in zip(_placeholders(one), _placeholders(two), strict=False):
            if mine.name != theirs.name:
                raise OtherStepsError(theirs.name)
            self._known[theirs] = mine

    def body(self, one: Body, two: Body) -> Body:
        """Join the operators; raises OtherStepsError."""
        if len(one) != len(two):
            raise OtherStepsError("one has more operators")
        return [self._entry(mine, theirs) for mine, theirs in zip(one, two, strict=True)]

    def _entry(self, mine: Line | Loop, theirs: Line | Loop) -> Line | Loop:
        if isinstance(mine, Line) and isinstance(theirs, Line):
            return self._line(mine, theirs)
        if not isinstance(mine, Loop) or not isinstance(theirs, Loop):
            raise OtherStepsError("a loop is none")
        if (mine.period, mine.listed, list(mine.carried)) != (theirs.period, theirs.listed, list(theirs.carried)):
            raise OtherStepsError("a loop is another")
        for step in (0, 1, -1):
            self._known.update(zip(theirs.step(step), mine.step(step), strict=True))
        for place, node in mine.carried.items():
            self.value(node, theirs.carried[place])
        lines = tuple(self._line(a, b) for a, b in zip(mine.lines, theirs.lines, strict=True))
        return replace(mine, steps=self.value(mine.steps, theirs.steps), lines=lines)

    def _line(self, mine: Line, theirs: Line) -> Line:
        if mine.node.target is not theirs.node.target:
            raise OtherStepsError(f"{theirs.node.target} in the place of {mine.node.target}")
        self._known[theirs.node] = mine.node
        return Line(mine.node, self.value(mine.args, theirs.args), self._keywords(mine.kwargs, theirs.kwargs))

    def _keywords(self, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
        if list(mine) != list(theirs):
            raise OtherStepsError("keywords differ")
        return {key: self.value(value, theirs[key]) for key, value in mine.items()}

    def value(self, mine: Any, theirs: Any) -> Any:
        """Join arguments."""
        if isinstance(mine, fx.Node):
            if self._known.get(theirs) is not mine:
                raise OtherStepsError(str(mine))
            return mine
        if type(mine) is not type(theirs):
            raise OtherStepsError(f"{theirs} in the place of {mine}")
        if isinstance(mine, Linear | Item | Part | Spread):
            return type(mine)(*map(self.value, mine, theirs))
        if isinstance(mine, tuple | list):
            if len(mine) != len(theirs):
                raise OtherStepsError("a list is longer")
            return [self.value(a, b) for a, b in zip(mine, theirs, strict=True)]
        if type(mine) is int:
            return sized(mine, theirs)
        if repr(mine) != repr(theirs):
            raise OtherStepsError(f"{theirs} in the place of {mine}")
        return mine


def sized(mine: int, theirs: int) -> int | Sized:
    """Say how a whole number follows from the number of steps, by its values at CUT; one that does not change stays."""
    if mine == theirs:
        return mine
    per, rest = divmod(theirs - mine, CUT[1] - CUT[0])
    if rest:
        raise OtherStepsError(f"{theirs} in the place of {mine}")
    return Sized(per, mine - per * CUT[0])


def sized_text(mine: str, theirs: str) -> str:
    """Join sizes that are written, e.g. `6*s0` and `9*s0`, by STEPS."""
    if mine == theirs:
        return mine
    if _NUMBER.split(mine) != _NUMBER.split(theirs):
        raise OtherStepsError(f"{theirs} in the place of {mine}")
    numbers = [sized(int(a), int(b)) for a, b in zip(_NUMBER.findall(mine), _NUMBER.findall(theirs), strict=True)]
    if mine.isdigit():
        return numbers[0].text(STEPS) if isinstance(numbers[0], Sized) else mine
    made = iter(f"({number.text(STEPS)})" if isinstance(number, Sized) else str(number) for number in numbers)
    return _NUMBER.sub(lambda _: next(made), mine)


def _placeholders(program: Any) -> list[fx.Node]:
    return [node for node in program.graph.nodes if node.op == "placeholder"]
