"""Bags of embeddings that are all equally long: rows of a table, weighted, and their sum, mean or maximum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, Varying, as_number
from tools.codegen.rewrite.rewriter import Rewriter

MODES = ("aten.sum.dim_IntList", "aten.mean.dim", "aten.amax.default")


def bag(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `embedding_bag` as rows and a reduction of them; None where bags differ in length, or more than its first result is read."""
    table, indices, offsets = node.args[:3]
    mode, weights = int(node.argument(4, "mode", 0)), node.argument(6, "per_sample_weights")
    asked = {ref.index for other in rewriter.graph.nodes for ref in other.refs if ref.name == node.name}
    asked |= {ref.index for ref in rewriter.graph.returned if ref.name == node.name}
    known = all(isinstance(each, Ref) and each.name in rewriter.metas for each in (table, indices, offsets))
    if not known or asked - {0} or node.argument(7, "include_last_offset", False) or node.argument(8, "padding_idx") not in (None, -1):
        return None
    out, total = node.outputs[0], rewriter.metas[indices.name].shape
    bags = out.shape[0]
    if len(total) != 1 or any(all_ % each for all_, each in zip(total[0], bags, strict=True)):
        return None
    length = tuple(all_ // each for all_, each in zip(total[0], bags, strict=True))
    if not _counts(rewriter, offsets, length) or (weights is not None and out.dtype != "float32"):
        return None
    index, rows, each, scaled = (f"{node.name}_{word}" for word in ("index", "rows", "weights", "scaled"))
    many = TensorMeta((bags, length, out.shape[1]), out.dtype)
    kind = rewriter.metas[indices.name].dtype
    shape = [as_number(bags), as_number(length)]
    nodes = [
        Node(index, "aten.reshape.default", (indices, shape), {}, (TensorMeta((bags, length), kind),)),
        Node(rows, "aten.embedding.default", (table, Ref(index)), {}, (many,)),
    ]
    if weights is not None:
        one = TensorMeta((bags, length, (1,) * len(bags)), out.dtype)
        nodes += [
            Node(each, "aten.reshape.default", (weights, [*shape, 1]), {}, (one,)),
            Node(scaled, "aten.mul.Tensor", (Ref(rows), Ref(each)), {}, (many,)),
        ]
    last = Node(node.name, MODES[mode], (Ref(nodes[-1].name), [1]), {}, (replace(out, contiguous=True, unit_last=True),))
    return *nodes, last


def _counts(rewriter: Rewriter, offsets: Ref, length: Sizes) -> bool:
    """Whether bags begin one length after the other, from 0 on."""
    made = rewriter.graph.by_name.get(offsets.name)
    if made is None or made.op != "arange" or len(made.args) < 3:
        return False
    start, step = made.args[0], made.args[2]
    return bool(start == 0) and (step.values if isinstance(step, Varying) else (step,) * len(length)) == length
