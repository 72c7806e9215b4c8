"""Broadcasts written out where an operand has its full size at some sizes of the problem and one element at others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.sizes import Sizes, Varying, is_one
from tools.codegen.rewrite.rewriter import Rewriter


def write_out_broadcast(rewriter: Rewriter, node: Node) -> Sequence[Node]:
    """Broadcast, before a pointwise operator, what broadcasts at some sizes only: kernels then read it by its strides."""
    if (node.op not in ARITHMETIC and node.op not in LOGIC) or sum(isinstance(arg, Ref) for arg in node.args) < 2:
        return (node,)
    out, changed, views = node.outputs[0], list(node.args), list[Node]()
    for place, arg in enumerate(node.args):
        meta = rewriter.metas.get(arg.name) if isinstance(arg, Ref) and arg.index == 0 else None
        if meta is None or not _broadcasts_at_times(meta.shape, out.shape):
            continue
        sizes = [size[0] if len(set(size)) == 1 else Varying(size) for size in out.shape]
        view = Node(f"{arg.name}_spread_{node.name}", "aten.broadcast_to.default", (arg, sizes), {}, (_strided(meta, out.shape),))
        views.append(view)
        changed[place] = Ref(view.name)
    return (*views, replace(node, args=tuple(changed)))


def _broadcasts_at_times(shape: Sequence[Sizes], out: Sequence[Sizes]) -> bool:
    """Whether a shape broadcasts to `out` along a dimension that has its full size in some traces and one element in others."""
    pairs = list(zip(shape[::-1], out[::-1], strict=False))
    fits = all(size in (1, whole) for sizes, wholes in pairs for size, whole in zip(sizes, wholes, strict=True))
    return fits and any(sizes != wholes and not is_one(sizes) for sizes, wholes in pairs)


def _strided(meta: TensorMeta, shape: tuple[Sizes, ...]) -> TensorMeta:
    return replace(meta, shape=shape, contiguous=False, unit_last=False)
