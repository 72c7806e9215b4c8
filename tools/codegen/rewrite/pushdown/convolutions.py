"""A convolution's sum over positions, as a smaller convolution of summed inputs with summed weights.

Along a summed dimension each element of the kernel meets every element of the input once, but for those that padding or the end of the
result cuts off. Elements of the kernel that meet the same stretch of the input are summed together; stretches become channels.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, NamedTuple

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.graph_builder import GraphBuilder
from tools.codegen.ir.operators.families import CONVOLUTIONS


class Stretch(NamedTuple):
    """Elements of the kernel along one dimension, and the part of the input that each of them meets."""

    start: int
    """Of the kernel's elements."""
    stop: int
    low: int
    """Elements of the input left out at its beginning."""
    high: int
    """Elements of the input left out at its end."""


class _Numbers(NamedTuple):
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    extra: tuple[int, ...]


def is_summable(graph: OperatorGraph, node: Node, dims: tuple[int, ...]) -> bool:
    """Whether a node is a convolution whose sum over `dims` needs none of its positions."""
    rank, transposed = CONVOLUTIONS.get(node.op, (0, False))
    numbers = _numbers(node) if rank else None
    if numbers is None or len(node.outputs[0].shape) != rank + 2 or not dims or dims[0] < 2 or node.argument(6, "groups", 1) != 1:
        return False
    if len(node.outputs) != 1 or node.outputs[0].dtype != "float32" or not all(isinstance(ref, Ref) for ref in node.args[:2]):
        return False
    if not transposed and any(numbers.stride[dim - 2] != 1 for dim in dims):
        return False
    shape, kernel = graph.meta(node.args[0]).shape, graph.meta(node.args[1]).shape
    if any(len(set(sizes)) > 1 for sizes in kernel[2:]):
        return False
    # where the kernel is as large as the input, a stretch could be empty
    return all(min(shape[dim]) > part.low + part.high for dim in dims for part in _stretches(node, numbers, kernel[dim][0], dim - 2))


def convolution_sum(builder: GraphBuilder, node: Node, dims: tuple[int, ...]) -> Ref:
    """Write a convolution's sum over `dims`, which stay with one element, without its bias."""
    rank, transposed = CONVOLUTIONS[node.op]
    numbers = _numbers(node)
    assert numbers is not None
    parts: list[tuple[Ref, Ref]] = [(node.args[0], node.args[1])]
    for dim in dims:
        stretches = _stretches(node, numbers, builder.meta(node.args[1]).shape[dim][0], dim - 2)
        parts = [pair for source, weight in parts for pair in _summed(builder, source, weight, dim, stretches)]
    source = _joined(builder, [part for part, _ in parts], 1)
    weight = _joined(builder, [part for _, part in parts], 0 if transposed else 1)
    if len(dims) == rank:
        flat = builder.call("squeeze.dims", source, list(dims))
        taps = builder.call("squeeze.dims", weight, list(dims))
        value = builder.call("matmul.default" if transposed else "linear.default", flat, taps)
        for dim in dims:
            value = builder.call("unsqueeze.default", value, dim)
        return value
    kept = [place for place in range(rank) if place + 2 not in dims]
    stride, padding, dilation, extra = (
        [numbers[kind][place] if place in kept else usual for place in range(rank)] for kind, usual in enumerate((1, 0, 1, 0))
    )
    tail: tuple[Any, ...] = (stride, padding, extra, 1, dilation) if transposed else (stride, padding, dilation, 1)
    one = (1,) * builder.graph.traces
    shape = tuple(one if place in dims else sizes for place, sizes in enumerate(node.outputs[0].shape))
    return builder.add(node.call, (source, weight, None, *tail), shape)


def _summed(builder: GraphBuilder, source: Ref, weight: Ref, dim: int, stretches: list[Stretch]) -> list[tuple[Ref, Ref]]:
    found = []
    for part in stretches:
        seen = builder.reduce("sum", builder.cut(source, dim, part.low, 0, part.high), dim)
        taps = builder.cut(weight, dim, part.start, part.stop, 0)
        found.append((seen, builder.reduce("sum", taps, dim) if part.stop - part.start > 1 else taps))
    return found


def _joined(builder: GraphBuilder, parts: list[Ref], dim: int) -> Ref:
    return parts[0] if len(parts) == 1 else builder.call("cat.default", parts, dim)


def _stretches(node: Node, numbers: _Numbers, size: int, place: int) -> list[Stretch]:
    """Group the kernel's elements along one dimension by the part of the input they meet."""
    stride, padding, dilation, extra = (kind[place] for kind in numbers)
    transposed = CONVOLUTIONS[node.op][1]

    def cut(tap: int) -> tuple[int, int]:
        before, after = tap * dilation, (size - 1 - tap) * dilation
        if transposed:
            return max(0, -(-(padding - before) // stride)), max(0, -(-(padding - extra - after) // stride))
        return max(0, before - padding), max(0, after - padding)

    found = []
    for (low, high), taps in groupby(range(size), key=cut):
        members = list(taps)
        found.append(Stretch(members[0], members[-1] + 1, low, high))
    return found


def _numbers(node: Node) -> _Numbers | None:
    """Read a convolution's numbers for each dimension; none where one is a name or varies with the sizes."""
    rank, transposed = CONVOLUTIONS[node.op]
    dilation, extra = (7, node.argument(5, "output_padding", 0)) if transposed else (5, 0)
    given = (node.argument(3, "stride", 1), node.argument(4, "padding", 0), node.argument(dilation, "dilation", 1), extra)
    found = []
    for value in given:
        values = [value] if isinstance(value, int) else list(value) if isinstance(value, list | tuple) else []
        values = values * rank if len(values) == 1 else values
        if len(values) != rank or not all(isinstance(each, int) for each in values):
            return None
        found.append(tuple(values))
    return _Numbers(*found)
