"""Attention with wide heads as what it is made of: a product, a scale, a softmax and a product, regions of their own.

A kernel that keeps the scores of its queries to itself walks heads of more than `WIDEST_HEAD` elements piece by piece, and works the
scores out again for every piece of a value. Written apart, the scores go to memory once, and both products run at a product's rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Varying
from tools.codegen.ir.turned import is_turned
from tools.codegen.rewrite.rewriter import Rewriter

WIDEST_HEAD = 256
"""Elements of a head that one kernel keeps: what `BLOCK_D` and `BLOCK_V` can hold of it at once."""
PLAIN = {"scale"}
"""Arguments of the operator, besides its tensors, that the steps have."""


def prepared_attention(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write attention with wide heads as its steps, and give any other a mask that lies as it is read."""
    return decompose_attention(rewriter, node) or _with_straight_mask(rewriter, node)


def _with_straight_mask(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Copy a mask whose columns do not lie side by side: no fused kernel of the library takes it, and ours would read a sector of each.

    The library's steps took about 1830 µs for 67 million scores (an H100, 2026-11-26; protein/pair_biased_attention of the wild suite).
    """
    mask = node.argument(3, "attn_mask")
    nodes = {each.name: each for each in rewriter.nodes}
    if not isinstance(mask, Ref) or not is_turned(mask, nodes, rewriter.metas, rewriter.graph.traces):
        return None
    meta, name = rewriter.metas[mask.name], f"{node.name}_mask"
    straight = Node(name, "aten.contiguous.default", (mask,), {}, (replace(meta, contiguous=True, unit_last=True),))
    if len(node.args) > 3:
        return straight, replace(node, args=(*node.args[:3], Ref(name), *node.args[4:]))
    return straight, replace(node, kwargs={**node.kwargs, "attn_mask": Ref(name)})


def decompose_attention(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write attention in float32 with wide heads and without a mask as its steps; None where it stays as it is."""
    given = {**dict(zip(("attn_mask", "dropout_p", "is_causal"), node.args[3:], strict=False)), **node.kwargs}
    if any(value for name, value in given.items() if name not in PLAIN) or not all(isinstance(arg, Ref) for arg in node.args[:3]):
        return None
    query, key, value = node.args[:3]
    metas = [rewriter.metas.get(ref.name) if ref.index == 0 else None for ref in (query, key, value)]
    shapes = [meta.shape for meta in metas if meta is not None]
    dtype = node.outputs[0].dtype
    # the scores of half-precision queries would be rounded to half precision
    if dtype != "float32" or len(shapes) < 3 or shapes[0][-1][0] <= WIDEST_HEAD or len({shape[:-2] for shape in shapes}) > 1:
        return None
    heads, rows, cols, width = shapes[0][:-2], shapes[0][-2], shapes[1][-2], shapes[0][-1]
    scales = tuple(float(size) ** -0.5 for size in width)
    usual = scales[0] if len(set(scales)) == 1 else Varying(scales)
    scale = usual if given.get("scale") is None else given["scale"]
    transposed, scores, scaled, weights = (f"{node.name}_{word}" for word in ("keys", "scores", "scaled", "weights"))
    square, across = TensorMeta((*heads, rows, cols), dtype), TensorMeta((*heads, width, cols), dtype, contiguous=False, unit_last=False)
    return (
        Node(transposed, "aten.transpose.int", (key, -2, -1), {}, (across,)),
        Node(scores, "aten.matmul.default", (query, Ref(transposed)), {}, (square,)),
        Node(scaled, "aten.mul.Tensor", (Ref(scores), scale), {}, (square,)),
        Node(weights, "aten.softmax.int", (Ref(scaled), -1), {}, (square,)),
        Node(node.name, "aten.matmul.default", (Ref(weights), value), {}, node.outputs),
    )
