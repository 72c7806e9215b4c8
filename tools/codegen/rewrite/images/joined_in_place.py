"""Concatenations of channels whose pieces are written where they belong: each convolution writes its part of the whole, nothing is copied.

The first piece's kernel allocates the whole, the others are given it. In the graph that is a padding and assignments to slices, which hold
for whoever makes the pieces; a convolution of ours takes its own into its kernel (`Placed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tools.codegen.ir.graph import Node, OperatorGraph, Place, Placed, Ref
from tools.codegen.ir.graph_builder import GraphBuilder
from tools.codegen.ir.operators.families import CONVOLUTIONS
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC
from tools.codegen.ir.sizes import Fact, Sizes, Varying, express, with_constants
from tools.codegen.ir.views import is_view

CHANNELS = 1
MOST_PIECES = 8


def joinable_in_place(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the concatenations that can be written so."""
    return tuple(node.name for node in graph.nodes if _is_joinable(graph, node))


def with_joined_in_place(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Write the pieces of the named concatenations into their places, where that has not been done yet."""
    wanted = frozenset(names)
    able = (node.name for node in graph.nodes if node.name in wanted and _is_joinable(graph, node))
    found = frozenset(able)
    written = (_placed(graph, node) if node.name in found else [node] for node in graph.nodes)
    return replace(graph, nodes=tuple(node for each in written for node in each))


def made_by(graph: OperatorGraph, ref: Ref) -> tuple[str, ...]:
    """Name a convolution and the pointwise operators after it that make a piece, which nobody else reads; nothing where others do."""
    names: list[str] = []
    while True:
        node = graph.by_name.get(ref.name)
        if node is None or ref.index or ref in graph.returned or len(graph.users.get(node.name, ())) != 1:
            return ()
        names.insert(0, node.name)
        rank, _ = CONVOLUTIONS.get(node.op, (0, False))
        if rank:
            dense = node.argument(6, "groups", 1) == 1 and len(node.outputs[0].shape) == rank + 2
            return tuple(names) if dense and rank > 1 else ()
        if node.op not in ARITHMETIC or not all(_is_given(graph, other) for other in node.refs if other != node.args[0]):
            return ()
        if not isinstance(node.args[0], Ref) or graph.meta(node.args[0]).shape != node.outputs[0].shape:
            return ()
        ref = node.args[0]


def _is_given(graph: OperatorGraph, ref: Ref) -> bool:
    """Whether a value is one of the forward's inputs or parameters, seen through views."""
    node = graph.by_name.get(ref.name)
    return node is None or (is_view(node) and all(_is_given(graph, each) for each in node.refs))


def _is_joinable(graph: OperatorGraph, node: Node) -> bool:
    if node.op != "cat" or node.outputs[0].dtype != "float32" or len(node.outputs[0].shape) < 4:
        return False
    refs, dim = node.args[0], node.argument(1, "dim", 0) % len(node.outputs[0].shape)
    if dim != CHANNELS or not 1 < len(refs) <= MOST_PIECES or len(set(refs)) < len(refs):
        return False
    return all(made_by(graph, ref) for ref in refs) and all(_is_told(graph, sizes) for sizes in _starts(graph, node))


def _starts(graph: OperatorGraph, node: Node) -> Iterator[Sizes]:
    """Go through where pieces begin, and where the last one ends."""
    each = [graph.meta(ref).shape[CHANNELS] for ref in node.args[0]]
    yield from (tuple(map(sum, zip(*each[:count], strict=True))) for count in range(1, len(each) + 1))


def _is_told(graph: OperatorGraph, sizes: Sizes) -> bool:
    """Whether a host function can be told a size: it is the same everywhere, or follows from the shapes of what forward reads."""
    read = [Fact("", shape) for shape in dict.fromkeys(shape for meta in graph.inputs.values() for shape in meta.shape)]
    return len(set(sizes)) == 1 or express(sizes, with_constants(read, graph.constants)) is not None


def _placed(graph: OperatorGraph, node: Node) -> list[Node]:
    builder = GraphBuilder(graph, node.name)
    total, whole = node.outputs[0].shape[CHANNELS], None
    start = (0,) * graph.traces
    nodes: list[Node] = []
    for count, ref in enumerate(node.args[0], 1):
        stop = tuple(map(sum, zip(start, graph.meta(ref).shape[CHANNELS], strict=True)))
        after = tuple(all_ - end for all_, end in zip(total, stop, strict=True))
        name = f"{node.name}_of_{count}"
        while name in builder.taken:
            name += "_"
        rest = [0, 0] * (len(node.outputs[0].shape) - 2)
        padded = ("constant_pad_nd.default", (ref, [*rest, number(start), number(after)], 0.0))
        target, args = padded if whole is None else ("slice_scatter.default", (whole, ref, CHANNELS, number(start), number(stop)))
        place = Place(piece=ref, base=whole, dim=CHANNELS, start=start, total=total)
        nodes.append(Placed(name, f"aten.{target}", args, {}, node.outputs, place))
        whole, start = Ref(name), stop
    assert whole is not None
    return [*nodes[:-1], replace(nodes[-1], name=node.name)]


def number(sizes: tuple[int, ...]) -> int | Varying:
    """Write a size that may differ between the traces."""
    return sizes[0] if len(set(sizes)) == 1 else Varying(sizes)
