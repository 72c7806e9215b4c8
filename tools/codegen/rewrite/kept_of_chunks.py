"""What is kept of a long row by one of its largest elements: only the chunks that can hold any are read again.

Where a row's k-th largest element decides which elements stay and the others become a number, as before the softmax of a sampler, the
maxima of chunks that the selection made tell which chunks have none that stays. A softmax of what stays is zero elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.sizes import is_one
from tools.codegen.ir.views import is_view
from tools.codegen.rewrite.rewriter import Rewriter

KEPT = "order.kept_of_chunks.default"
LEAST_CHUNKS = 4
"""Chunks of a row for each element that is selected, at least: of fewer most hold some."""
LESS, REACHES = {("lt", 0), ("gt", 1)}, {("ge", 0), ("le", 1)}
"""Comparisons by the place of the row among their operands: whether an element is less than another, and whether it reaches that."""


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
