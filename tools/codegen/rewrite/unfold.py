"""Patches of images that do not overlap, as views and one copy: both sides cut into patches, and the dimensions put in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, Varying
from tools.codegen.rewrite.rewriter import Rewriter


def patches(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `im2col` of whole patches side by side as views; None where they overlap, leave gaps, or reach beyond the image.

    Patches are rows, which is what a product wants of them: its result is that view turned. PyTorch's copy into that order took longer than
    the product (an H100): it is an operator by itself, so that a kernel of ours does it.
    """
    source, (size, dilation, padding, stride) = node.args[0], node.args[1:5]
    meta = rewriter.metas.get(source.name) if isinstance(source, Ref) and source.index == 0 else None
    if meta is None or len(meta.shape) != 4 or list(size) != list(stride) or set(dilation) != {1} or set(padding) != {0}:
        return None
    images, channels, *sides = meta.shape
    if not all(isinstance(each, int) for each in size) or any(s % each for side, each in zip(sides, size, strict=True) for s in side):
        return None
    traces = len(images)
    (rows, cols) = (tuple(s // each for s in side) for side, each in zip(sides, size, strict=True))
    high, wide = ((each,) * traces for each in size)
    shape = (images, channels, rows, high, cols, wide)
    _, elements, places = node.outputs[0].shape
    cut, turned, copied, each = (f"{node.name}_{word}" for word in ("cut", "turned", "copied", "patches"))
    return (
        Node(
            cut, "aten.reshape.default", (source, list(map(_written, shape))), {},
            (TensorMeta(shape, meta.dtype, contiguous=meta.contiguous, unit_last=meta.unit_last),),
        ),
        Node(
            turned, "aten.permute.default", (Ref(cut), [0, 2, 4, 1, 3, 5]), {},
            (TensorMeta((images, rows, cols, channels, high, wide), meta.dtype, contiguous=False, unit_last=False),),
        ),
        Node(
            copied, "aten.contiguous.default", (Ref(turned),), {},
            (TensorMeta((images, rows, cols, channels, high, wide), meta.dtype),),
        ),
        Node(each, "aten.reshape.default", (Ref(copied), list(map(_written, (images, places, elements)))), {},
            (TensorMeta((images, places, elements), meta.dtype),)),
        Node(node.name, "aten.transpose.int", (Ref(each), 1, 2), {}, (replace(node.outputs[0], contiguous=False, unit_last=False),)),
    )  # fmt: skip


def _written(sizes: Sizes) -> int | Varying:
    return sizes[0] if len(set(sizes)) == 1 else Varying(sizes)
