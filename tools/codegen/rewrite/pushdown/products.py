"""Reduction push-down: a product whose result is summed needs one summed operand only, so the sum is taken before the product.

`sum(x @ w)` over the columns of `w` is `x @ sum(w)`, and a convolution's sum over positions is a product of sums of its input and of its
weights. Scalings and additions between the two move behind the sum. Both are the same sum in another order; the rewrite assumes that
no partial result leaves the range of its dtype and that values are finite: an infinity times a zero weight is NaN in the product, and may
be something else in the sum. Windowed means, average poolings, are taken before convolutions that only mix channels
(`images/pooling_pushdown.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.graph_builder import GraphBuilder
from tools.codegen.ir.sizes import Varying, product
from tools.codegen.rewrite.images.pooling_pushdown import AVERAGES, pays, pooled_convolution, with_pooling_first
from tools.codegen.rewrite.pushdown.convolutions import convolution_sum, is_summable

PRODUCTS = ("linear", "matmul", "mm", "bmm")
REDUCTIONS = ("sum", "mean", *AVERAGES)
SCALINGS, SHIFTS = ("mul", "div"), ("add", "sub")


@dataclass(frozen=True)
class ReductionPushdown:
    """A reduction that can be taken before the product it reads."""

    reduction: Node
    product: Node
    between: tuple[Node, ...]
    """Scalings and additions between the two, in order."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all the nodes it takes the place of."""
        return (self.product.name, *(node.name for node in self.between), self.reduction.name)


def reduction_pushdowns(graph: OperatorGraph) -> tuple[ReductionPushdown, ...]:
    """Find every sum, mean or average pooling that can be taken before its product."""
    found = (_find(graph, node) for node in graph.nodes if node.op in REDUCTIONS)
    return tuple(each for each in found if each is not None)


def with_reduction_pushdown(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Rewrite the reductions that are named, where that has not been done yet."""
    for name in names:
        node = graph.by_name.get(name)
        found = _find(graph, node) if node is not None and node.op in REDUCTIONS else None
        if found is not None:
            pooled = found.reduction.op in AVERAGES
            graph = with_pooling_first(graph, found.reduction, found.product) if pooled else _rewrite(graph, found)
    return graph


def reduced_dims(graph: OperatorGraph, node: Node) -> tuple[int, ...]:
    """List the dimensions that a sum or a mean runs over; all of them where it names none."""
    rank = len(graph.meta(node.args[0]).shape)
    dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    dims = list(range(rank)) if not dims and dims != 0 else [dims] if isinstance(dims, int) else list(dims)
    return tuple(sorted(dim % rank for dim in dims))


def _find(graph: OperatorGraph, node: Node) -> ReductionPushdown | None:
    if node.op in AVERAGES:
        convolution = pooled_convolution(graph, node)
        return ReductionPushdown(node, convolution, ()) if convolution and pays(graph, node, convolution) else None
    if not node.args or not isinstance(node.args[0], Ref) or not set(node.kwargs) <= {"dim", "keepdim"}:
        return None
    dims, ref = reduced_dims(graph, node), node.args[0]
    between: list[Node] = []
    while ref.name in graph.by_name:
        source = graph.by_name[ref.name]
        if len(graph.users[source.name]) != 1 or ref in graph.returned or source.outputs[0].dtype != node.outputs[0].dtype:
            return None
        if source.op in PRODUCTS or is_summable(graph, source, dims):
            able = source.op not in PRODUCTS or _is_product(graph, source, dims)
            return ReductionPushdown(node, source, tuple(reversed(between))) if able else None
        if source.op not in (*SCALINGS, *SHIFTS) or not _moves(graph, source):
            return None
        between.append(source)
        ref = source.args[0]
    return None


def _is_product(graph: OperatorGraph, source: Node, dims: tuple[int, ...]) -> bool:
    """Whether a product is summed over its last dimension or the one before, and is more than a product with a vector."""
    rank = len(source.outputs[0].shape)
    left, right = (graph.meta(ref) for ref in source.args[:2])
    if dims not in ((rank - 1,), (rank - 2,)) or rank < 2 or len(left.shape) < 2 or len(right.shape) < 2:
        return False
    return source.outputs[0].dtype == "float32" and source.outputs[0].shape[dims[0]][0] > 1


def _moves(graph: OperatorGraph, node: Node) -> bool:
    """Whether an operator may come after the sum: a scaling by a number, or an addition of a number or of what broadcasts."""
    other = node.args[1] if len(node.args) == 2 and not node.kwargs and isinstance(node.args[0], Ref) else None
    shape = node.outputs[0].shape
    if other is None or isinstance(other, bool) or graph.meta(node.args[0]).shape != shape:
        return False
    if not isinstance(other, Ref):
        return isinstance(other, int | float | Varying)
    return node.op in SHIFTS and graph.meta(other).dtype == node.outputs[0].dtype


def _rewrite(graph: OperatorGraph, found: ReductionPushdown) -> OperatorGraph:
    """Put the nodes of a sum that is pushed down in the reduction's place."""
    builder = GraphBuilder(graph, found.reduction.name)
    dims = reduced_dims(graph, found.reduction)
    shape = found.product.outputs[0].shape
    value = _summed(builder, found, dims)
    bias = _bias(builder, found.product, len(shape))
    if bias is not None:
        value = builder.call("add.Tensor", value, _shift(builder, found, bias, dims))
    for node in found.between:
        other = node.args[1]
        if node.op in SHIFTS:
            other = _shift(builder, found, other, dims)
        value = builder.call(node.call, value, other)
    out = found.reduction.outputs[0]
    if len(out.shape) < len(shape):
        value = builder.call("squeeze.dims", value, list(dims))
    last = builder.nodes.pop()
    new = [*builder.nodes, replace(last, name=found.reduction.name, outputs=(out,))]
    gone = {found.product.name, *(node.name for node in found.between)}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name == found.reduction.name:
            nodes += new
        elif node.name not in gone:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _summed(builder: GraphBuilder, found: ReductionPushdown, dims: tuple[int, ...]) -> Ref:
    """Write the product with one operand summed; its reduced dimensions have one element."""
    source, kind = found.product, found.reduction.op
    if source.op not in PRODUCTS:
        value = convolution_sum(builder, source, dims)
        for count in _counts(builder.graph, source, dims) if kind == "mean" else ():
            value = builder.call("div.Tensor", value, count)
        return value
    left, right = source.args[:2]
    if dims[0] == len(source.outputs[0].shape) - 2:
        rows = builder.reduce(kind, left, len(builder.meta(left).shape) - 2)
        return builder.call("linear.default" if source.op == "linear" else "matmul.default", rows, right)
    if source.op == "linear":
        weights = builder.reduce(kind, right, 0)
        return builder.call("matmul.default", left, builder.call("t.default", weights))
    return builder.call("matmul.default", left, builder.reduce(kind, right, len(builder.meta(right).shape) - 1))


def _bias(builder: GraphBuilder, source: Node, rank: int) -> Ref | None:
    """Find what a product adds, aligned with its result."""
    bias = source.args[2] if len(source.args) > 2 else source.kwargs.get("bias")
    if not isinstance(bias, Ref) or source.op in PRODUCTS:
        return bias if isinstance(bias, Ref) else None
    for _ in range(rank - 2):
        bias = builder.call("unsqueeze.default", bias, -1)
    return bias


def _shift(builder: GraphBuilder, found: ReductionPushdown, other: Any, dims: tuple[int, ...]) -> Any:
    """Write what an addition adds to the sum or mean: its own mean, or its sum times how often it is repeated."""
    shape, kind = found.product.outputs[0].shape, found.reduction.op
    traces = range(builder.graph.traces)
    repeated = dims
    if isinstance(other, Ref):
        own = builder.meta(other).shape
        places = {dim: dim - len(shape) + len(own) for dim in dims}
        varies = [dim for dim in dims if places[dim] >= 0 and own[places[dim]] == shape[dim]]
        repeated = tuple(dim for dim in dims if dim not in varies)
        for dim in varies:
            other = builder.reduce(kind, other, places[dim])
    if kind == "mean" or not repeated:
        return other
    count = product((shape[dim] for dim in repeated), len(traces))
    if isinstance(other, Ref):
        return builder.call("mul.Tensor", other, number(count))
    values = other.values if isinstance(other, Varying) else (other,) * len(traces)
    return number(tuple(value * times for value, times in zip(values, count, strict=True)))


def _counts(graph: OperatorGraph, source: Node, dims: tuple[int, ...]) -> list[Any]:
    """List what a sum over `dims` is divided by: their product, or where that varies each of them, which shapes tell more easily."""
    sizes = [source.outputs[0].shape[dim] for dim in dims]
    count = number(product(sizes, graph.traces))
    return [number(size) for size in sizes] if isinstance(count, Varying) else [count]


def number(values: tuple[Any, ...]) -> Any:
    """Write a number that may differ between the traces."""
    return values[0] if len(set(values)) == 1 else Varying(values)
