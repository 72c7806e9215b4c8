"""Parameters of a depthwise convolution: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.templates.depthwise.layout import UNROLLED, rows_a_lane, walks
from tools.codegen.templates.depthwise.quads import OWN, by_quads
from tools.codegen.templates.shared.knob import WARPS, Knob, Parameters, Settings
from tools.records import ActionKind

LONGEST = 400
"""Multiplications of a lane up to which a depthwise convolution's loops, all of them unrolled, compile within some seconds."""

WASTED = 1.05
"""Rows that taller tiles reach over the end, by those of a lane's height: beyond it a lane's height is taken."""

KNOBS: Mapping[str, Knob] = {
    "BLOCK_M": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64)),
    "BLOCK_N": Knob(ActionKind.TILING, (8, 16, 32, 64, 128, 256, 512)),
    "num_warps": WARPS,
}


def depthwise_defaults(kernel: Kernel) -> Parameters:
    """Choose first parameters of a depthwise convolution: lanes as wide as leave few idle, many rows a lane that walks, else four.

    On an H200 (2026-11-21) sixteen rows a lane took 0.88 to 1.01 of the time of eight, over five layers of 112 to 510 rows.
    """
    assert kernel.depthwise is not None
    rows, cols = _plane(kernel)
    if by_quads(kernel):
        width = min(512, power_of_two(cols))
        height = max(1, min(power_of_two(rows), 512 // width))
        return {"BLOCK_M": height, "BLOCK_N": width, "num_warps": max(1, height * width // (32 * OWN))}
    width = min((32, 64, 128), key=lambda each: (-(-cols // each) * each, -each)) if cols > 16 else max(8, power_of_two(cols))
    many = 16 if rows >= 64 and 16 * math.prod(kernel.depthwise.size) <= LONGEST else 8
    a_lane = many if walks(kernel.depthwise) else 4
    height = min(power_of_two(rows), max(1, a_lane * 128 // width))
    if height > a_lane and WASTED * -(-rows // a_lane) * a_lane < -(-rows // height) * height:
        height = a_lane
    return {"BLOCK_M": height, "BLOCK_N": width, "num_warps": max(1, width // 32, width * height // (32 * a_lane))}


def _plane(kernel: Kernel) -> tuple[int, int]:
    """Rows and columns that a depthwise convolution's tiles cover, at the sizes as written: of lines, each is a row."""
    assert kernel.depthwise is not None
    atoms = kernel.builder.atoms
    batch, channel, *spatial = (product((atoms.size(atom) for atom in atoms.leaves(dim)), atoms.traces)[0] for dim in kernel.depthwise.dims)
    return (batch * channel, spatial[0]) if len(spatial) == 1 else (spatial[-2], spatial[-1])


def depthwise_fits(kernel: Kernel, parameters: Settings) -> bool:
    """Whether a depthwise convolution's tile lies in its plane, with a lane for each column and not too many rows a lane."""
    assert kernel.depthwise is not None
    rows, cols = _plane(kernel)
    block_m, block_n, lanes = int(parameters["BLOCK_M"]), int(parameters["BLOCK_N"]), 32 * int(parameters["num_warps"])
    inside = block_m <= power_of_two(rows) and block_n <= max(8, power_of_two(cols))
    count, own = math.prod(kernel.depthwise.size), OWN if by_quads(kernel) else 1
    if own > 1:
        # each lane's sums are text, row by row
        return inside and block_n <= OWN * lanes <= block_m * block_n <= 4 * OWN * lanes
    short = count > UNROLLED or rows_a_lane(parameters) * count <= LONGEST
    return inside and short and block_n <= lanes <= block_m * block_n <= 16 * lanes
