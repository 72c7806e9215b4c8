"""Writes a list of nodes as a forward's body: loops as such, with what all their steps gave as lists."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from tools.models.forward.lines import Body, Item, Line, Linear, Loop, Part, Spread, items_of, nodes_of
from tools.models.forward.rolling import loops_of, split


def rolled(nodes: Sequence[fx.Node], results: Sequence[fx.Node]) -> Body:
    """Write a list of nodes with its loops as such, without what nobody needs then."""
    # whether loops read from one another is seen when all are found
    chained = _body(nodes, loops_of(nodes, chained=True), results)
    return chained if _hangs_together(chained) else _body(nodes, loops_of(nodes, chained=False), results)


def _body(nodes: Sequence[fx.Node], loops: Sequence[Loop], results: Sequence[fx.Node]) -> Body:
    if not loops:
        return [Line(node, node.args, node.kwargs) for node in nodes]
    families = [loop.family(place) for loop in loops for place in loop.listed]
    body: Body = []
    place = 0
    for loop in [*loops, None]:
        body += [_line(node, families) for node in nodes[place : loop.first if loop else None]]
        if loop:
            other = [family for family in families if family[0] not in loop.step(0)]
            lines = tuple(line._replace(args=_listed_as(line.args, other)) for line in loop.lines)
            body.append(replace(loop, lines=lines, carried={at: _listed_as(node, other) for at, node in loop.carried.items()}))
            place = loop.end
    return _needed(body, results)


def _listed_as(value: Any, families: Sequence[Sequence[fx.Node]]) -> Any:
    """Put what all steps of a loop gave into an argument's lists as one."""
    if isinstance(value, fx.Node):
        number = next(((family[0], family.index(value)) for family in families if value in family[:-1]), None)
        return Item([Spread(number[0], backwards=False)], number[1]) if number else value
    if isinstance(value, Item) and _is_unbound(value.sequence):
        whole, *dim = value.sequence.args
        return Part(_listed_as(whole, families), dim[0] if dim else 0, value.place)
    if isinstance(value, Item):
        return value._replace(sequence=_listed_as(value.sequence, families))
    if isinstance(value, Linear) or not isinstance(value, tuple | list):
        return value
    for family in families:
        for backwards in (False, True):
            if len(parts := split(value, family[::-1] if backwards else family)) == 3:
                before, after = (_listed_as(list(part), families) for part in (parts[0], parts[2]))
                return [*before, Spread(family[0], backwards), *after]
    return [_listed_as(each, families) for each in value]


def _line(node: fx.Node, families: Sequence[Sequence[fx.Node]]) -> Line:
    args: Any = node.args
    if node.target is operator.getitem and _is_unbound(args[0]):
        return Line(node, (_listed_as(Item(*args), families),), {})
    return Line(node, _listed_as(node.args, families), node.kwargs)


def _is_unbound(value: Any) -> bool:
    return isinstance(value, fx.Node) and value.target is torch.ops.aten.unbind.int


def _hangs_together(body: Body) -> bool:
    """Whether no loop's step is read by itself elsewhere, unless it is the last."""
    home = {node: loop for loop in body if isinstance(loop, Loop) for node in loop.nodes[loop.first : loop.end - loop.period]}
    for each in body:
        lines = each.lines if isinstance(each, Loop) else (each,)
        begun = nodes_of(list(each.carried.values()) if isinstance(each, Loop) else [])
        read = [*begun, *nodes_of([(line.args, line.kwargs) for line in lines])]
        if any(home.get(node, each) is not each for node in read) or any(map(_takes_singly, lines)):
            return False
    return True


def _takes_singly(line: Line) -> bool:
    """Whether it takes turns with values that no loop listed."""
    taken = [value.sequence for value in items_of(line.args) if isinstance(value.sequence, list)]
    return not all(any(isinstance(value, Spread) for value in each) for each in taken)


def _needed(body: Body, results: Sequence[fx.Node]) -> Body:
    """Leave out items of sequences that steps of loops take by their place."""
    needed = set(results)
    kept: Body = []
    for each in reversed(body):
        if isinstance(each, Loop):
            needed.update(nodes_of(list(each.carried.values())))
        elif each.node.target in (operator.getitem, torch.ops.aten.unbind.int) and each.node not in needed:
            continue
        for line in each.lines if isinstance(each, Loop) else (each,):
            needed.update(nodes_of((line.args, line.kwargs)))
        kept.append(each)
    return kept[::-1]
