"""A Fourier transform of short times as what it is: windows that overlap, times a taper, and a transform of each.

PyTorch writes the windows out and multiplies them in passes of its own. Written so, what comes before and the taper are one kernel, and the
library is left the transforms alone, whose rows lie as they are transformed: whoever reads them knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import Node, Ref, TensorMeta
from tools.codegen.ir.sizes import Sizes, as_number
from tools.codegen.rewrite.complex_parts import COMPLEX, REAL, parts_of_steps
from tools.codegen.rewrite.rewriter import Rewriter

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
    size = _sizes(node.args[SIZE], traces)
    if meta.dtype != REAL or not meta.shape or (given[WIDTH] is not None and _sizes(given[WIDTH], traces) != size):
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


def _sizes(number: Any, traces: int) -> Sizes:
    return (number,) * traces if isinstance(number, int) else tuple(number.values)
