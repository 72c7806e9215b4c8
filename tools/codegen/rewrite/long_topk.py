"""The largest elements of a row too long for one program, in two steps: of each chunk the largest, then the chunks that can hold any.

An element among the k largest lies in one of the k chunks whose own largest come first: each chunk before its own holds one that is larger.
So k chunks are read again, and no more. Where the k-th largest element then decides which elements stay and the others become a number, as
before the softmax of a sampler, the chunks' largest tell which of them have none that stays. A softmax of what stays is zero elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.sizes import Varying, is_one, power_of_two
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.rewriter import Rewriter

LONGEST = 8192
"""Elements of a row from which on it is done in two steps, and those of which the second may choose."""
MOST_CHUNKS = 4096
SHORTEST = 64
"""Elements of a chunk, at least."""
KEPT = "order.kept_of_chunks.default"
LEAST_CHUNKS = 4
"""Chunks of a row for each element that is selected, at least: of fewer most hold some."""
LESS, REACHES = {("lt", 0), ("gt", 1)}, {("ge", 0), ("le", 1)}
"""Comparisons by the place of the row among their operands: whether an element is less than another, and whether it reaches that."""


def chunked_topk(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a selection from long rows as the largest of chunks and a selection from some of them."""
    source, given = node.args[0], node.args[1]
    meta = rewriter.metas.get(source.name) if source.index == 0 else None
    dim, largest = node.argument(2, "dim", -1), node.argument(3, "largest", True)
    if meta is None or not meta.shape or largest is not True or dim % len(meta.shape) != len(meta.shape) - 1:
        return None
    length, count = meta.written[-1], int(max(given.values)) if isinstance(given, Varying) else int(given)
    chunk = max(SHORTEST, power_of_two(-(-length // MOST_CHUNKS)))
    if not is_floating(meta.dtype) or meta.dtype == "float64" or length <= LONGEST or count < 1 or power_of_two(count) * chunk > LONGEST:
        return None
    found = replace(meta, shape=(*meta.shape[:-1], tuple(-(-size // chunk) for size in meta.shape[-1])))
    best = Node(f"{node.name}_chunks", "order.chunk_maxima.default", (source, chunk), {}, (found,))
    return best, Node(node.name, "order.topk_of_chunks.default", (source, Ref(best.name), given, chunk), {}, node.outputs)


def kept(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a choice between a long row's elements and a number, by one of those selected from it, as one that reads few chunks."""
    if node.op == "masked_fill" and isinstance(node.args[1], Ref):
        mask, source, number, filled = node.args[1], node.args[0], node.args[2], True
    elif node.op == "where" and len(node.args) == 3:
        mask, filled = node.args[0], not isinstance(node.args[1], Ref)
        number, source = (node.args[1], node.args[2]) if filled else (node.args[2], node.args[1])
    else:
        return None
    known = {each.name: each for each in rewriter.nodes}
    compared = known.get(mask.name)
    if compared is None or compared.op not in ("lt", "gt", "ge", "le") or isinstance(number, bool) or not isinstance(number, int | float):
        return None
    place = next((place for place, arg in enumerate(compared.args[:2]) if arg == source), -1)
    if (compared.op, place) not in (LESS if filled else REACHES):
        return None
    least = compared.args[1 - place]
    selection = _selection(known, least) if isinstance(least, Ref) else None
    if selection is None or selection.args[0] != source or node.outputs[0] != rewriter.metas.get(source.name):
        return None
    shape, chunks = rewriter.metas[least.name].shape, rewriter.metas[selection.args[1].name]
    count = selection.outputs[0].written[-1]
    if len(shape) != len(chunks.shape) or not is_one(shape[-1]) or LEAST_CHUNKS * count > chunks.written[-1]:
        return None
    given = (source, source, selection.args[1], least, number, selection.args[3], count / chunks.written[-1], filled)
    return (Node(node.name, KEPT, given, {}, node.outputs),)


def softmax_of_kept(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a softmax of what is kept by its largest element, which was selected, and by the weights that are kept."""
    source, dim = node.args[0], node.args[1]
    known = {each.name: each for each in rewriter.nodes}
    kept_of = known.get(source.name)
    out = node.outputs[0]
    if kept_of is None or kept_of.target != KEPT or kept_of.args[4] != -math.inf or not kept_of.args[7] or kept_of.outputs[0] != out:
        return None
    if dim % len(out.shape) != len(out.shape) - 1 or out.dtype != "float32" or node.argument(2, "dtype") is not None:
        return None
    _, row, chunks, least, *others = kept_of.args
    selection = _selection(known, least)
    assert selection is not None
    narrow = replace(out, shape=(*out.shape[:-1], (1,) * len(out.shape[-1])))
    names = {what: f"{node.name}_{what}" for what in ("largest", "shifted", "weights", "kept", "total")}
    largest = Node(names["largest"], "aten.slice.Tensor", (Ref(selection.name), -1, 0, 1), {}, (replace(narrow, contiguous=False),))
    shifted = Node(names["shifted"], "aten.sub.Tensor", (row, Ref(largest.name)), {}, (out,))
    weights = Node(names["weights"], "aten.exp.default", (Ref(shifted.name),), {}, (out,))
    kept_weights = Node(names["kept"], KEPT, (Ref(weights.name), row, chunks, least, 0.0, *others[1:]), {}, (out,))
    total = Node(names["total"], "aten.sum.dim_IntList", (Ref(kept_weights.name), [-1], True), {}, (narrow,))
    last = Node(node.name, "aten.div.Tensor", (Ref(kept_weights.name), Ref(total.name)), {}, (out,))
    return largest, shifted, weights, kept_weights, total, last


def _selection(known: dict[str, Node], ref: Ref) -> Node | None:
    """Find the selection from a long row of which this is a view; none where it is another value."""
    node = known.get(ref.name)
    while node is not None and node.op != "topk_of_chunks":
        if ref.index or not (is_view(node) or node.op in ("slice", "select", "narrow")):
            return None
        ref = node.args[0]
        node = known.get(ref.name)
    return node if ref.index == 0 else None
