"""What the launches of a dense convolution do: an implicit GEMM, and the passes that bring its operands to channels last."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.convolution.layout import convolution_layout_of
from tools.codegen.templates.convolution.split_float import LEAST_CHANNELS, SplitConvolution
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.prepack import PREPACKED, WEIGHTS
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS
from tools.codegen.templates.shared.tile_launch import TiledSum, pass_launch, tiles_launch
from tools.codegen.templates.shared.work import nbytes_of, ops_of
from tools.records import HardwareSheet

GATHER_WORK = 50.0
"""Instructions by which a lane of a convolution finds and reads one element of its input, splitting it included. Fitted on 255 schedules of
25 modules with a convolution of 16 to 128 channels on an H200, by the lab (2026-11-21): the root mean square of ln(modelled / measured) is
0.36 there."""
SCATTERED_WORK = 300.0
"""The same where a step takes elements of several kernel positions, each found by itself: fitted on 46 schedules of eight modules with
3 or 8 channels, 0.47 there."""
HELD_BYTES = 1 << 24
"""Bytes of an image up to which its second reading finds it in the L2 (`image_halves` in tools/codegen/templates/device)."""
SPLIT_GATHER_WORK = 20.0
"""The same of parts that lie side by side: fitted there on 186 schedules of `fp16x3` of thirteen convolutions, 0.28; the schedule that
is modelled to be the fastest took at most 1.11 times as long as the fastest measured (docs/results/generated-kernels.md)."""


def convolution_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """A dense convolution as the product it is, its left operand gathered; before it both operands are brought to channels last."""
    plan = convolution_layout_of(kernel)
    assert kernel.convolution is not None
    block_k, split_float = int(parameters["BLOCK_K"]), SPLIT_FLOATS.get(str(parameters["precision"]))
    parts = SplitConvolution(kernel.convolution, plan)
    channels, taps = (parts.n_channels, parts.n_taps) if split_float else (plan.n_inputs, plan.n_taps)
    # a step takes channels of one element of the kernel, or elements of several where channels are few
    each_tap = channels >= LEAST_CHANNELS
    steps = taps * math.ceil(channels / block_k) if each_tap else math.ceil(taps * channels / block_k)
    rows, cols = math.ceil(plan.n_positions / int(parameters["BLOCK_M"])), math.ceil(plan.n_channels / int(parameters["BLOCK_N"]))
    work = TiledSum(
        tiles=plan.n_images * plan.n_groups * plan.n_phases * rows * cols,
        splits=1,
        steps=steps,
        moved=float(sum(nbytes_of(a) for a in plan.accesses)),
        dtype=plan.dtype,
        straight=False,
        gathered=(SPLIT_GATHER_WORK if split_float else GATHER_WORK) if each_tap else SCATTERED_WORK,
    )
    image, weights = float(nbytes_of(plan.source)), float(nbytes_of(plan.weight))
    packed = parameters.get(WEIGHTS) == PREPACKED and plan.weight.fixed
    moved = [2.0 * image, 2.0 * weights]
    if split_float:
        # an image is read for its largest element, and again to be written: from the L2, unless that is too small for it
        growths = (parts.weight_growth, parts.growth)
        weights, image_parts = (
            nbytes * (1 + split_float.nbytes / 4 * growth) for nbytes, growth in zip((weights, image), growths, strict=True)
        )
        once = image / plan.n_images <= HELD_BYTES
        moved = [image_parts + (0.0 if once else image) + (0.0 if packed else weights)]
    elif packed:
        moved = moved[:1]
    copies = tuple(pass_launch(nbytes, sheet) for nbytes in moved)
    return (tiles_launch(work, parameters, ops_of(kernel), sheet), *copies)
