"""Matrix products over a few elements: rotations of points, distances, layers on coordinates. Each is a sum that is written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.rewrite.rewriter import Rewriter

MOST_SUMMED = 4
"""Elements of such a sum: coordinates, and one more."""
DTYPES = frozenset({"float32", "float16", "bfloat16"})


def small_product(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a product of two matrices, or of many, over a few elements as one that no tensor core makes."""
    return _product(rewriter, node, node.args[0], node.args[1]) if len(node.args) == 2 and not node.kwargs else None


def small_linear(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write a linear layer of a few features so, and its bias as an addition."""
    x, weight, bias = node.args[0], node.args[1], node.argument(2, "bias")
    meta = rewriter.metas.get(weight.name)
    if meta is None or len(meta.shape) != 2:
        return None
    turned = Node(
        f"{node.name}_turned",
        "aten.t.default",
        (weight,),
        {},
        (TensorMeta(meta.shape[::-1], meta.dtype, contiguous=False, unit_last=False),),
    )
    rewriter.metas[turned.name] = turned.outputs[0]
    made = node if bias is None else replace(node, name=f"{node.name}_product")
    product = _product(rewriter, made, x, Ref(turned.name))
    if product is None:
        return None
    added = () if bias is None else (Node(node.name, "aten.add.Tensor", (Ref(made.name), bias), {}, node.outputs),)
    return turned, *product, *added


def _product(rewriter: Rewriter, node: Node, left: Any, right: Any) -> Sequence[Node] | None:
    metas = [rewriter.metas.get(ref.name) if isinstance(ref, Ref) and ref.index == 0 else None for ref in (left, right)]
    if any(meta is None or len(meta.shape) < 2 or meta.dtype not in DTYPES for meta in metas):
        return None
    summed = metas[0].shape[-1]  # type: ignore[union-attr]
    if not 1 < summed[0] <= MOST_SUMMED or len(set(summed)) > 1:
        return None
    return (Node(node.name, "kernelwright.small_product.default", (left, right), {}, node.outputs),)
