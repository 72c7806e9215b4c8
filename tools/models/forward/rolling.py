"""Finds loops over time that a trace has written out, step by step: each step does the same with what the one before it left."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import fx

from tools.models.forward.lines import Item, Line, Linear, Loop

LEAST_STEPS = 4
"""Fewer are left written out."""
LONGEST = 256
"""Operators of a step, at most."""


class Period(NamedTuple):
    """Tokens that repeat: `length` of them from `first` on, each equal to the one a `period` before it."""

    first: int
    period: int
    length: int


def longest_period(tokens: Sequence[Hashable]) -> Period | None:
    """Find the longest part of a list that repeats with one period, the shortest of its periods."""
    numbers = dict[Hashable, int]()
    line = np.array([numbers.setdefault(token, len(numbers)) for token in tokens])
    best: Period | None = None
    for period in range(1, min(LONGEST, len(line) // LEAST_STEPS) + 1):
        first, same = _longest_run(line[:-period] == line[period:])
        if same + period >= LEAST_STEPS * period and (best is None or same + period > best.length):
            best = Period(first, period, same + period)
    return best


def _longest_run(same: Any) -> tuple[int, int]:
    """Find where the longest run of what holds begins, and how long it is."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    if not len(edges):
        return 0, 0
    begins, ends = edges[::2], edges[1::2]
    place = int(np.argmax(ends - begins))
    return int(begins[place]), int(ends[place] - begins[place])


def loops_of(nodes: Sequence[fx.Node], *, chained: bool) -> list[Loop]:
    """Find the loops of a list of nodes in the order of their execution, none in another.

    Where they are `chained`, a loop's results may be read one by one behind it, and each step of one may read one.
    """
    place = {node: number for number, node in enumerate(nodes)}
    found: list[Loop] = []
    waiting = [(0, len(nodes))]
    tokens = [_token(node) for node in nodes]
    while waiting:
        begin, end = waiting.pop()
        period = longest_period(tokens[begin:end])
        if period is None:
            continue
        first = begin + period.first
        # where the first step is given something else than others are, they are a loop without it
        shifts = range(min(2 * period.period, period.length))
        loop = next(filter(None, (_loop(nodes, place, first + shift, period, first, chained) for shift in shifts)), None)
        if loop is None:
            waiting += [(begin, first), (first + period.length, end)]
        else:
            found.append(loop)
            waiting += [(begin, loop.first), (loop.end, end)]
    return sorted(found, key=lambda loop: loop.first)


def _token(node: fx.Node) -> Hashable:
    """Write what equal steps have in common: the operator, and its arguments without nodes and whole numbers."""
    return str(node.target), _shape(node.args), _shape(tuple(node.kwargs.items()))


def _shape(value: Any) -> Hashable:
    if isinstance(value, fx.Node):
        return "node"
    if type(value) is int:
        return "int"
    if isinstance(value, tuple | list):
        return tuple(map(_shape, value))
    return repr(value)


def _loop(nodes: Sequence[fx.Node], place: Mapping[fx.Node, int], first: int, period: Period, begin: int, chained: bool) -> Loop | None:
    """Make the loop that begins at `first`, as many steps as hang together; None where that is no loop."""
    steps = (begin + period.length - first) // period.period
    if steps < LEAST_STEPS:
        return None
    end = first + steps * period.period
    loop = Loop(first, period.period, steps, nodes, end=end)
    carried: dict[int, fx.Node] = {}
    lines: list[Line] = []
    for offset in range(period.period):
        family = loop.family(offset)
        if any(node.kwargs != family[0].kwargs for node in family):
            return None
        made = _Changing(loop, place, carried, chained=chained)
        try:
            lines.append(Line(family[1], made.joined([node.args for node in family]), family[1].kwargs))
        except _UnlikeError:
            return None
    listed = _listed(loop, place, chained=chained)
    return None if listed is None else Loop(first, period.period, steps, nodes, tuple(lines), carried, listed, end)


class _UnlikeError(Exception):
    """Steps that differ in more than a loop's do."""


class _Changing:
    """Joins an argument's values of all steps to what one step of a loop says."""

    def __init__(self, loop: Loop, place: Mapping[fx.Node, int], carried: dict[int, fx.Node], *, chained: bool) -> None:
        self._loop, self._place, self._carried, self._chained = loop, place, carried, chained

    def joined(self, values: Sequence[Any]) -> Any:
        """Write the second step's value; raises _UnlikeError where there is no rule."""
        kinds = {type(value) for value in values}
        if len(kinds) > 1:
            raise _UnlikeError
        if isinstance(values[0], tuple | list):
            if len({len(value) for value in values}) > 1:
                raise _UnlikeError
            return [self.joined(each) for each in zip(*values, strict=True)]
        if isinstance(values[0], fx.Node):
            return self._node(values)
        if kinds == {int}:
            rule = _linear(values)
            return rule if rule.by else rule.start
        if any(repr(value) != repr(values[0]) for value in values):
            raise _UnlikeError
        return values[0]

    def _node(self, values: Sequence[fx.Node]) -> Any:
        loop = self._loop
        where = [self._place.get(node, -1) - loop.first for node in values]
        if all(node is values[0] for node in values) and where[0] < 0:
            return values[0]
        offset = where[1] - loop.period
        if 0 <= offset < loop.period and all(at == offset + step * loop.period for step, at in enumerate(where)):
            return values[1]
        if 0 <= where[1] < loop.period and where[0] < 0:
            if all(at == where[1] + (step - 1) * loop.period for step, at in enumerate(where) if step):
                if self._carried.setdefault(where[1], values[0]) is not values[0]:
                    raise _UnlikeError
                return values[1]
        elif max(where) < 0 and all(node.target is operator.getitem for node in values):
            sequence = values[0].args[0]
            if isinstance(sequence, fx.Node) and all(node.args[0] is sequence for node in values):
                return Item(sequence, _linear([node.args[1] for node in values]))
        if self._chained and max(where) < 0 and _linear(where).by:
            return Item(tuple(values), Linear(0, 1))
        raise _UnlikeError


def _linear(values: Sequence[Any]) -> Linear:
    if not all(type(value) is int for value in values):
        raise _UnlikeError
    by = values[1] - values[0]
    if any(value != values[0] + by * step for step, value in enumerate(values)):
        raise _UnlikeError
    return Linear(values[0], by)


def _listed(loop: Loop, place: Mapping[fx.Node, int], *, chained: bool) -> tuple[int, ...] | None:
    """Find which results are listed; None where something behind the loop reads a single one of a step that is not the last."""
    listed = []
    for offset in range(loop.period):
        family = loop.family(offset)
        users = {user for node in family[:-1] for user in node.users}
        readers = {user for user in users if user in place and not loop.first <= place[user] < loop.end}
        loose = chained and family[0].target is not operator.getitem
        if any(user.op == "output" for user in users) or not (loose or all(_reads_all(user, family) for user in readers)):
            return None
        listed += [offset] if readers else []
    return tuple(listed)


def _reads_all(user: fx.Node, family: list[fx.Node]) -> bool:
    """Whether it reads a family as a part of a list, in order or backwards, and by no other way."""
    lists = [value for value in user.args if isinstance(value, tuple | list)]
    single = any(node in user.args for node in family[:-1])
    return not single and any(len(split(each, one)) == 3 for each in lists for one in (family, family[::-1]))


def split(values: Sequence[Any], family: Sequence[fx.Node]) -> tuple[Sequence[Any], ...]:
    """Part a list around a family: what stands before it, the family, and what stands behind; the whole list where it is not in it."""
    for begin in range(len(values) - len(family) + 1):
        if values[begin] is family[0] and list(values[begin : begin + len(family)]) == list(family):
            return values[:begin], family, values[begin + len(family) :]
    return (values,)
