"""A graph that was traced at few steps of its loops, as it is at their full length: sizes that grow with the length are carried on."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tools.codegen.ir.constant_tensors import Tables
from tools.codegen.ir.graph import Node, OperatorGraph, TensorMeta
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.sizes import Attribute, Length, Number, Sizes, Varying


class OtherGrowthError(ValueError):
    """Something grows with the length of a loop otherwise than a size does; says what."""


def lengthened(graph: OperatorGraph, lengths: Sequence[int], whole: int) -> OperatorGraph:
    """Put a first trace before a graph's: the one whose first traces are of loops of some `lengths`, at their `whole` length.

    Raises OtherGrowthError.
    """

    def on(values: Sequence[Number]) -> Number:
        return _carried_on(values[: len(lengths)], lengths, whole)

    longer: OperatorGraph = _longer(graph, on)
    for node in longer.nodes:
        _check(longer, node)
    return longer


def _longer(tree: Any, on: Callable[[Sequence[Number]], Number]) -> Any:
    found = tree
    match tree:
        case TensorMeta():
            found = replace(tree, shape=tuple(_sizes(sizes, on) for sizes in tree.shape))
        case Varying():
            found = Varying((on(tree.values), *tree.values))
        case OperatorGraph():
            constants = tuple(_longer_constant(each, on) for each in tree.constants)
            attributes = tuple(_longer_attributes(tree.attributes, on))
            found = replace(
                tree,
                inputs=_longer(tree.inputs, on),
                nodes=_longer(tree.nodes, on),
                traces=tree.traces + 1,
                constants=constants,
                attributes=attributes,
            )
        case Node():
            changed = {name: _longer(getattr(tree, name), on) for name in ("args", "kwargs", "outputs")}
            more = {"body": _longer(tree.body, on), "steps": _sizes(tree.steps, on)} if isinstance(tree, Loop) else {}
            found = replace(tree, **changed, **more)
        case Tables():
            raise OtherGrowthError("a table of numbers has a size")
        case tuple() | list():
            found = type(tree)(_longer(item, on) for item in tree)
        case dict():
            found = {key: _longer(item, on) for key, item in tree.items()}
    return found


def _longer_constant(constant: Sizes | Length, on: Callable[[Sequence[Number]], Number]) -> Sizes | Length:
    if not isinstance(constant, Length):
        return _sizes(constant, on)
    values = _sizes(constant.values, on)
    return replace(constant, values=values, own=(values[0], *constant.own))


def _longer_attributes(attributes: Sequence[Attribute], on: Callable[[Sequence[Number]], Number]) -> Iterator[Attribute]:
    """Carry on what can be: what grows otherwise is a number that nobody may need."""
    for each in attributes:
        with contextlib.suppress(OtherGrowthError):
            yield replace(each, values=(on(each.values), *each.values))


def _sizes(sizes: Sizes, on: Callable[[Sequence[Number]], Number]) -> Sizes:
    return (int(on(sizes)), *sizes)


def _carried_on(values: Sequence[Number], lengths: Sequence[int], whole: int) -> Number:
    """Carry a number on: one that stays, grows by the same amount a step, or is such a one's inverse, root or product with the length."""
    if all(value == values[0] for value in values):
        return values[0]
    forms: list[tuple[Callable[[float], float], Callable[[float], float]]] = [
        (float, float), (lambda v: 1 / v, lambda v: 1 / v), (lambda v: v * v, math.sqrt), (lambda v: v**-2, lambda v: v**-0.5),
    ]  # fmt: skip
    for there, back in forms if all(value > 0 for value in values) else forms[:1]:
        points = [there(value) for value in values]
        by = (points[1] - points[0]) / (lengths[1] - lengths[0])
        fits = (math.isclose(point, points[0] + by * (at - lengths[0]), rel_tol=1e-9) for point, at in zip(points, lengths, strict=True))
        if all(fits):
            found = back(points[0] + by * (whole - lengths[0]))
            return round(found) if isinstance(values[0], int) else found
    if all(isinstance(value, int) for value in values):
        # so many elements in each of so many parts: a multiple of the length that itself grows by the same amount a step
        each = [Fraction(int(value), at) for value, at in zip(values, lengths, strict=True)]
        step = (each[1] - each[0]) / (lengths[1] - lengths[0])
        total = Fraction(whole) * (each[0] + step * (whole - lengths[0]))
        if total.denominator == 1 and all(one == each[0] + step * (at - lengths[0]) for one, at in zip(each, lengths, strict=True)):
            return int(total)
    raise OtherGrowthError(f"a number grows otherwise than the length of the loop: {', '.join(map(str, values))} at {lengths}")


def _check(graph: OperatorGraph, node: Node) -> None:
    """Make sure that a part of a tensor is still in it at full length."""
    if node.op in ("slice", "select") and node.args[0].name in {*graph.inputs, *graph.by_name}:
        size = graph.meta(node.args[0]).shape[node.args[1]][0]
        last = node.args[3] if node.op == "slice" and len(node.args) > 3 else node.args[2]
        last = last.values[0] if isinstance(last, Varying) else size if last == 2**63 - 1 else last
        if not -size <= last <= size - (node.op == "select"):
            raise OtherGrowthError(f"step {size} reads beyond the end of a tensor: where steps read is no longer their number")
