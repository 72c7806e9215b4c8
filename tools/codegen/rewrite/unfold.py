"""Patches of images that do not overlap as views and one copy; transforms of short times as windows, a taper and a transform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, Varying, as_number
from tools.codegen.rewrite.complex_parts import COMPLEX, REAL, parts_of_steps
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


SIZE, HOP, WIDTH, TAPER, NORMALIZED, ONE_SIDED = 1, 2, 3, 4, 5, 6
NAMES = {HOP: "hop_length", WIDTH: "win_length", TAPER: "window", NORMALIZED: "normalized", ONE_SIDED: "onesided"}


def short_times(rewriter: Rewriter, node: Node) -> Sequence[Node] | None:
    """Write `stft` of real samples, one half of each spectrum and tapers of a transform's length, by its windows."""
    source = node.args[0]
    given: dict[int, Any] = {place: node.argument(place, name) for place, name in NAMES.items()}
    if not isinstance(source, Ref) or source.index or node.outputs[0].dtype != COMPLEX or given[ONE_SIDED] not in (None, True):
        return None
    meta, taper, shape = rewriter.metas[source.name], given[TAPER], node.outputs[0].shape
    traces = len(shape[0])
    size = _numbers(node.args[SIZE], traces)
    if meta.dtype != REAL or not meta.shape or (given[WIDTH] is not None and _numbers(given[WIDTH], traces) != size):
        return None
    if taper is not None and (taper.index or rewriter.metas[taper.name] != TensorMeta((size,), REAL)):
        return None
    hop = as_number(tuple(each // 4 for each in size)) if given[HOP] is None else given[HOP]
    rows = (*shape[:-2], shape[-1])
    steps = [
        Node(
            f"{node.name}_windows", "aten.unfold.default", (source, -1, node.args[SIZE], hop), {},
            (TensorMeta((*rows, size), REAL, contiguous=False, unit_last=meta.unit_last),),
        )
    ]  # fmt: skip
    if taper is not None:
        steps.append(Node(f"{node.name}_tapered", "aten.mul.Tensor", (Ref(steps[-1].name), taper), {}, (TensorMeta((*rows, size), REAL),)))
    norm = "ortho" if given[NORMALIZED] else None
    spectra = TensorMeta((*rows, shape[-2]), COMPLEX)
    steps.append(Node(f"{node.name}_spectra", "aten.fft_rfft.default", (Ref(steps[-1].name), None, -1, norm), {}, (spectra,)))
    turned = replace(node.outputs[0], contiguous=False, unit_last=False)
    steps.append(Node(node.name, "aten.transpose.int", (Ref(steps[-1].name), -2, -1), {}, (turned,)))
    return parts_of_steps(rewriter, steps)


def _numbers(number: Any, traces: int) -> Sizes:
    return (number,) * traces if isinstance(number, int) else tuple(number.values)
