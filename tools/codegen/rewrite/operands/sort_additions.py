"""Additions and maxima by index that make more memory than a cache holds: in the order of their targets, a program makes a row by itself.

As they come, every one of them reads a row from memory and writes it back. A sort of the index costs a pass over that alone; then each row
is made of a run of elements, which are read, or made, at the sorted places, and it is written once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tools.codegen.ir.graph import DType, Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.ir.graph_builder import with_others
from tools.codegen.ir.sizes import Varying, is_one

LEAST_BYTES = 2**24
"""Of a result below which nothing is sorted: caches hold it."""
LEAST_ROW = 16
"""Elements of what one position names, at least: below that the sort moves as much as the additions."""
ITEM = 4
"""Bytes of float32, and of the whole numbers that stand for it where the largest is looked for."""
REDUCED = {"index_add": "float32", "scatter_add": "float32", "scatter_reduce": "int32"}
EXPANDS = frozenset({"expand", "expand_as", "broadcast_to"})
LIFTS = frozenset({"unsqueeze", "view", "reshape"})
"""Views that give an index dimensions of one element."""


def unsorted_additions(graph: OperatorGraph) -> tuple[str, ...]:
    """Name the additions by index that may be worth a sort: of rows that are large to a tensor that is."""
    return tuple(node.name for node in graph.nodes if is_unsorted(graph, node) and _is_large(graph, node))


def is_unsorted(graph: OperatorGraph, node: Node) -> bool:
    """Whether a node adds rows by an index, or takes the largest of their whole numbers, in any order."""
    dtype = REDUCED.get(node.op)
    if (
        dtype is None
        or (node.op == "scatter_reduce" and not _is_largest(node))
        or node.outputs[0].dtype != dtype
        or not node.outputs[0].shape
        or not all(isinstance(node.args[place], Ref) for place in (2, 3))
    ):
        return False
    index, source = _row_index(graph, node), graph.meta(node.args[3])
    if index is None or source.dtype != dtype or graph.meta(node.args[2]).shape not in (source.shape, graph.meta(index).shape):
        return False
    return graph.meta(index).shape[0] == source.shape[int(node.args[1]) % len(source.shape)]


def _is_largest(node: Node) -> bool:
    return node.op == "scatter_reduce" and node.args[4] == "amax" and bool(node.kwargs.get("include_self", True))


def _row_index(graph: OperatorGraph, node: Node) -> Ref | None:
    """Find the index of one dimension by which whole rows go to their places; one with a dimension for each of theirs was expanded."""
    ref, place = node.args[2], int(node.args[1]) % len(node.outputs[0].shape)
    if len(graph.meta(ref).shape) == 1 and node.op == "index_add":
        return ref if isinstance(ref, Ref) else None
    expanded = graph.by_name.get(ref.name)
    if expanded is None or expanded.op not in EXPANDS or not isinstance(expanded.args[0], Ref):
        return None
    narrow = graph.meta(expanded.args[0]).shape
    before = len(node.outputs[0].shape) - len(narrow)
    if any(not is_one(size) for at, size in enumerate(narrow) if at + before != place):
        return None
    ref = expanded.args[0]
    while (made := graph.by_name.get(ref.name)) is not None and made.op in LIFTS and isinstance(made.args[0], Ref):
        ref = made.args[0]
    return ref if len(graph.meta(ref).shape) == 1 else None


def _is_large(graph: OperatorGraph, node: Node) -> bool:
    index, out = _row_index(graph, node), node.outputs[0]
    assert index is not None
    count = graph.meta(index).numel
    row = graph.meta(node.args[3]).numel // max(1, count)
    return out.numel * ITEM >= LEAST_BYTES and row >= LEAST_ROW and count > out.numel // row


def with_sorted_additions(graph: OperatorGraph, names: Iterable[str]) -> OperatorGraph:
    """Have the named additions come in the order of their targets, where that has not been done yet."""
    return with_others(graph, names, partial(is_unsorted, graph), partial(_sorted, graph))


def _sorted(graph: OperatorGraph, node: Node) -> list[Node]:
    base, dim, _, source = node.args[:4]
    place, index = int(dim) % len(node.outputs[0].shape), _row_index(graph, node)
    assert index is not None
    known, meta = graph.meta(index), TensorMeta(graph.meta(source).shape, graph.meta(source).dtype)
    names = {word: _free(graph, f"{node.name}_{word}") for word in ("short", "sort", "source", "scaled", "runs")}
    keys, order, picked = Ref(names["sort"]), Ref(names["sort"], 1), Ref(names["source"])
    pair = (TensorMeta(known.shape, "int32", ordered=True), TensorMeta(known.shape, "int64"))
    made = [
        # half of the bits to sort by
        Node(names["short"], "aten._to_copy.default", (index,), {"dtype": DType("int32")}, (TensorMeta(known.shape, "int32"),)),
        Node(keys.name, "aten.sort.default", (Ref(names["short"]),), {}, pair),
        Node(picked.name, "aten.index.Tensor", (source, [*[None] * place, order]), {}, (meta,)),
    ]
    if node.op == "index_add" and (factor := node.argument(4, "alpha", 1)) != 1:
        made.append(Node(names["scaled"], "aten.mul.Tensor", (picked, factor), {}, (meta,)))
        picked = Ref(names["scaled"])
    count = node.outputs[0].shape[place]
    number = count[0] if len(set(count)) == 1 else Varying(count)
    made.append(Node(names["runs"], "kernelwright.segments.default", (keys, number), {}, (TensorMeta((count,), "int32"),) * 2))
    last = (base, place, keys, picked, "amax" if _is_largest(node) else "sum", Ref(names["runs"]), Ref(names["runs"], 1))
    return [*made, Node(node.name, "kernelwright.by_segment.default", last, {}, node.outputs)]


def _free(graph: OperatorGraph, name: str) -> str:
    while name in graph.by_name or name in graph.inputs:
        name += "_"
    return name
