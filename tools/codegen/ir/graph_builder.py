"""New nodes beside a graph's own: names that are free, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta, find_refs
from tools.codegen.ir.sizes import Sizes, is_one


class GraphBuilder:
    """Collects the nodes that will take another's place."""

    def __init__(self, graph: OperatorGraph, stem: str) -> None:
        """Take what names begin with."""
        self.graph, self.stem = graph, stem
        self.nodes: list[Node] = []
        self.metas: dict[str, TensorMeta] = {}
        self.results: dict[Ref, TensorMeta] = {}
        """Of nodes that are made elsewhere and have several."""
        self.taken = {*graph.inputs, *graph.by_name}

    def meta(self, ref: Ref) -> TensorMeta:
        """Shape and dtype of a value, new or the graph's own."""
        known = self.results.get(ref) or self.metas.get(ref.name)
        return known or self.graph.meta(ref)

    def call(self, target: str, *args: Any) -> Ref:
        """Add a node and tell the shape of its result."""
        op = target.partition(".")[0]
        return self.add(target, args, SHAPES[op](self, *args) if op in SHAPES else self._broadcast(args))

    def add(self, target: str, args: tuple[Any, ...], shape: tuple[Sizes, ...], kwargs: dict[str, Any] | None = None) -> Ref:
        """Add a node whose shape is known."""
        op = target.partition(".")[0]
        source = self.meta(next(find_refs(args)))
        view = op in ("slice", "t")
        meta = TensorMeta(shape, source.dtype, contiguous=not view and source.contiguous, unit_last=op != "t" and source.unit_last)
        if op not in ("slice", "t", "squeeze", "unsqueeze"):
            meta = TensorMeta(shape, source.dtype)
        name = f"{self.stem}_{op}"
        count = 1
        while name in self.taken:
            count += 1
            name = f"{self.stem}_{op}_{count}"
        self.taken.add(name)
        self.metas[name] = meta
        self.nodes.append(Node(name, f"aten.{target}", args, kwargs or {}, (meta,)))
        return Ref(name)

    def reduce(self, kind: str, ref: Ref, dim: int) -> Ref:
        """Sum or average along one dimension, which stays with one element."""
        shape = list(self.meta(ref).shape)
        shape[dim] = (1,) * self.graph.traces
        return self.add(f"{kind}.dim_IntList" if kind == "sum" else f"{kind}.dim", (ref, [dim], True), tuple(shape))

    def cut(self, ref: Ref, dim: int, start: int, stop: int, back: int) -> Ref:
        """Take a part of a dimension, up to `stop`, or up to `back` from its end where that is not zero; the whole is itself."""
        shape = list(self.meta(ref).shape)
        size = tuple((min(stop, full) if stop else full) - start - back for full in shape[dim])
        if size == shape[dim]:
            return ref
        shape[dim] = size
        end = -back if back else stop or 2**63 - 1
        return self.add("slice.Tensor", (ref, dim, start, end), tuple(shape))

    def _broadcast(self, args: tuple[Any, ...]) -> tuple[Sizes, ...]:
        shapes = [self.meta(arg).shape for arg in args if isinstance(arg, Ref)]
        rank = max(len(shape) for shape in shapes)
        one = (1,) * self.graph.traces
        padded = [(one,) * (rank - len(shape)) + shape for shape in shapes]
        return tuple(next((size for size in sizes if not is_one(size)), one) for sizes in zip(*padded, strict=True))


def _matmul(builder: GraphBuilder, left: Ref, right: Ref) -> tuple[Sizes, ...]:
    one, two = builder.meta(left).shape, builder.meta(right).shape
    longer = one if len(one) >= len(two) else two
    return (*longer[:-2], one[-2], two[-1])


def _linear(builder: GraphBuilder, left: Ref, right: Ref) -> tuple[Sizes, ...]:
    return (*builder.meta(left).shape[:-1], builder.meta(right).shape[0])


def _squeeze(builder: GraphBuilder, ref: Ref, dims: list[int]) -> tuple[Sizes, ...]:
    return tuple(size for place, size in enumerate(builder.meta(ref).shape) if place not in dims)


def _unsqueeze(builder: GraphBuilder, ref: Ref, dim: int) -> tuple[Sizes, ...]:
    shape = list(builder.meta(ref).shape)
    shape.insert(dim % (len(shape) + 1), (1,) * builder.graph.traces)
    return tuple(shape)


def _t(builder: GraphBuilder, ref: Ref) -> tuple[Sizes, ...]:
    return tuple(reversed(builder.meta(ref).shape))


def _cat(builder: GraphBuilder, refs: list[Ref], dim: int) -> tuple[Sizes, ...]:
    shape = list(builder.meta(refs[0]).shape)
    shape[dim] = tuple(sum(sizes) for sizes in zip(*(builder.meta(ref).shape[dim] for ref in refs), strict=True))
    return tuple(shape)


SHAPES: dict[str, Callable[..., tuple[Sizes, ...]]] = {
    "matmul": _matmul,
    "linear": _linear,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "t": _t,
    "cat": _cat,
}
"""Shapes of results that are not what their operands broadcast to."""


def with_others(
    graph: OperatorGraph, names: Iterable[str], is_able: Callable[[Node], bool], others: Callable[[Node], list[Node]]
) -> OperatorGraph:
    """Put `others` in the place of the named nodes that are still able to be written so."""
    wanted = frozenset(names)
    written = (others(node) if node.name in wanted and is_able(node) else [node] for node in graph.nodes)
    return replace(graph, nodes=tuple(node for each in written for node in each))
