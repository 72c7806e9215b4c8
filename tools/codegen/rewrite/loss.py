"""Losses with a mean or a sum as the loss by row and a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.codegen.ir.dtypes import is_signed
from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, product
from tools.codegen.rewrite.rewriter import Rewriter

REDUCTION_NONE, REDUCTION_MEAN = 0, 1
"""ATen's numbers for what a loss does with its elements."""


def row_loss(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Split a mean or sum of cross entropy or NLL into the loss by row and its reduction; rows with the ignored class count for nothing.

    A mean is over the weights of the rows' classes where there are weights.
    """
    logits, target, weight, reduction, ignored, smoothing = _loss_arguments(node)
    if reduction == REDUCTION_NONE or not isinstance(logits, Ref):
        return None
    target_meta = rewriter.metas.get(target.name)
    if target_meta is None or not is_signed(target_meta.dtype) or not isinstance(ignored, int):
        return None
    scalar = node.outputs[0]
    tail = (smoothing,) if node.op == "cross_entropy_loss" else ()
    rows_meta = TensorMeta(target_meta.shape, scalar.dtype)
    rows = Node(f"{node.name}_rows", node.target, (logits, target, weight, REDUCTION_NONE, ignored, *tail), {}, (rows_meta,))
    if reduction != REDUCTION_MEAN:
        return rows, Node(node.name, "aten.sum.default", (Ref(rows.name),), {}, (scalar,))
    total = Node(f"{node.name}_total", "aten.sum.default", (Ref(rows.name),), {}, (scalar,))
    counted = _counted(rewriter, node, target, target_meta, weight, ignored)
    kind = "int64" if weight is None else scalar.dtype
    nothing: tuple[Sizes, ...] = ()
    count = Node(f"{node.name}_count", "aten.sum.default", (Ref(counted[-1].name),), {}, (TensorMeta(nothing, kind),))
    return rows, total, *counted, count, Node(node.name, "aten.div.Tensor", (Ref(total.name), Ref(count.name)), {}, (scalar,))


def _counted(rewriter: Rewriter, node: Node, target: Ref, meta: TensorMeta, weight: Ref | None, ignored: int) -> tuple[Node, ...]:
    """Say what each row counts in a mean: one, or its class's weight; nothing where its class is ignored."""
    valid = Node(f"{node.name}_valid", "aten.ne.Scalar", (target, ignored), {}, (TensorMeta(meta.shape, "bool"),))
    if weight is None:
        return (valid,)
    dtype = rewriter.metas[weight.name].dtype
    many: Sizes = product(meta.shape, len(meta.shape[0]))
    # an ignored class may be no class: it is looked up as the first
    known = Node(f"{node.name}_known", "aten.mul.Tensor", (target, Ref(valid.name)), {}, (meta,))
    flat = Node(f"{node.name}_flat", "aten.flatten.using_ints", (Ref(known.name), 0, -1), {}, (TensorMeta((many,), meta.dtype),))
    taken = Node(f"{node.name}_taken", "aten.index_select.default", (weight, 0, Ref(flat.name)), {}, (TensorMeta((many,), dtype),))
    back = Node(f"{node.name}_weights", "aten.view_as.default", (Ref(taken.name), target), {}, (TensorMeta(meta.shape, dtype),))
    return (
        valid,
        known,
        flat,
        taken,
        back,
        Node(f"{node.name}_counted", "aten.mul.Tensor", (Ref(back.name), Ref(valid.name)), {}, (TensorMeta(meta.shape, dtype),)),
    )


def triplet_loss(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Split a mean or sum of triplet losses into the loss by row and its reduction."""
    usual = ((3, "margin", 1.0), (4, "p", 2.0), (5, "eps", 1e-6), (6, "swap", False), (7, "reduction", REDUCTION_MEAN))
    *numbers, reduction = (node.argument(place, name, default) for place, name, default in usual)
    shapes = {rewriter.metas[ref.name].shape for ref in node.args[:3] if ref.name in rewriter.metas}
    if reduction == REDUCTION_NONE or len(shapes) != 1 or node.outputs[0].dtype != "float32":
        return None
    (shape,) = shapes
    rows = Node(f"{node.name}_rows", node.target, (*node.args[:3], *numbers, REDUCTION_NONE), {}, (TensorMeta(shape[:-1], "float32"),))
    kind = "mean" if reduction == REDUCTION_MEAN else "sum"
    return rows, Node(node.name, f"aten.{kind}.default", (Ref(rows.name),), {}, node.outputs)


def _loss_arguments(node: Node) -> tuple[Any, Any, Any, Any, Any, Any]:
    names = ("self", "target", "weight", "reduction", "ignore_index", "label_smoothing")
    defaults = (None, None, None, REDUCTION_MEAN, -100, 0.0)
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    logits, target, weight, reduction, ignored, smoothing = (given.get(n, d) for n, d in zip(names, defaults, strict=True))
    return logits, target, weight, reduction, ignored, smoothing
