"""Additions by index to more memory than a cache holds: in the order of their targets, each row is in the cache until it is complete.

As they come, every addition reads a row from memory and writes it back. A sort of the index costs a pass over that alone; what is added is
read, or made, at the sorted places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from tools.codegen.ir.graph import DType, Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.graph_builder import with_others

LEAST_BYTES = 2**24
"""Of a result below which nothing is sorted: caches hold it."""
LEAST_ROW = 16
"""Elements of what one position names, at least: below that the sort moves as much as the additions."""
ITEM = 4
"""Bytes of float32, the only dtype that is added to in memory and rounds."""


def unsorted_additions(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the additions by index that may be worth a sort: of rows that are large to a tensor that is."""
    return tuple(node.name for node in graph.nodes if is_unsorted(graph, node) and _is_large(graph, node))


def is_unsorted(graph: OperatorGraph, node: Node) -> bool:
    """Whether a node adds rows by an index that no sort has made."""
    if node.op != "index_add" or node.outputs[0].dtype != "float32" or not all(isinstance(node.args[place], Ref) for place in (2, 3)):
        return False
    index, source = graph.meta(node.args[2]), graph.meta(node.args[3])
    return len(index.shape) == 1 and not index.ordered and source.dtype == "float32"


def _is_large(graph: OperatorGraph, node: Node) -> bool:
    count, out = graph.meta(node.args[2]).numel, node.outputs[0]
    row = graph.meta(node.args[3]).numel // max(1, count)
    return out.numel * ITEM >= LEAST_BYTES and row >= LEAST_ROW and count > out.numel // row


def with_sorted_additions(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Have the named additions come in the order of their targets, where that has not been done yet."""
    return with_others(graph, names, partial(is_unsorted, graph), partial(_sorted, graph))


def _sorted(graph: OperatorGraph, node: Node) -> list[Node]:
    base, dim, index, source = node.args[:4]
    place = int(dim) % len(node.outputs[0].shape)
    known = graph.meta(index)
    short = _free(graph, f"{node.name}_short")
    # half of the bits to sort by
    cast = Node(short, "aten._to_copy.default", (index,), {"dtype": DType("int32")}, (TensorMeta(known.shape, "int32"),))
    keys, order = TensorMeta(known.shape, "int32", ordered=True), TensorMeta(known.shape, "int64")
    name = _free(graph, f"{node.name}_sort")
    sort = Node(name, "aten.sort.default", (Ref(short),), {}, (keys, order))
    picked = _free(graph, f"{node.name}_source")
    at = [None] * place + [Ref(name, 1)]
    rows = Node(picked, "aten.index.Tensor", (source, at), {}, (TensorMeta(graph.meta(source).shape, graph.meta(source).dtype),))
    return [cast, sort, rows, replace(node, args=(base, dim, Ref(name), Ref(picked), *node.args[4:]))]


def _free(graph: OperatorGraph, name: str) -> str:
    while name in graph.by_name or name in graph.inputs:
        name += "_"
    return name
