"""The iteration space of a depthwise convolution: planes, rows and columns, and how many rows of the result one lane makes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.geometry import Depthwise
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.access import Access, accesses_of
from tools.codegen.templates.shared.iteration_space import Axis
from tools.codegen.templates.shared.naming import Names, access_names

WARP = 32
UNROLLED = 49
"""Elements of a kernel up to which its loops are unrolled."""
OPEN = 7
"""Rows of the result that a lane sums at once at most: those that one row of the input counts in."""
PAIRED = 16
"""Rows of a multiple of this many elements are read in pairs: Triton knows then that a pair lies as one load needs it."""
OWN_NAMES = (
    "above", "at_d", "four", "at_h", "at_w", "base", "done", "end", "even", "first", "here", "image", "in_c", "in_d", "in_h", "in_row",
    "in_w", "inside", "lane", "line", "odd", "off_d", "off_h", "out_d", "from_d", "from_h", "from_w", "out_h", "out_w", "pair", "place",
    "plane", "row", "step", "step_d", "step_h", "step_w", "tap", "taps", "turn", *(f"acc_{age}" for age in range(OPEN)),
)  # fmt: skip
"""Variables of the template, which no tensor may be called."""


def depthwise_layout(kernel: Kernel) -> tuple[tuple[Access, ...], tuple[Axis, ...]]:
    """Check the region and make its axes: planes (batch, channel, depth of a volume), rows, columns; lines are rows themselves."""
    depthwise = kernel.depthwise
    if depthwise is None:
        raise LoweringError("there is no depthwise convolution")
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    batch, channel, *spatial = (kernel.builder.atoms.leaves(dim) for dim in depthwise.dims)
    order = (*batch, *channel, *(atom for dim in spatial for atom in dim))
    own = (depthwise.source, depthwise.weight)
    others = [access for place, access in enumerate(accesses) if place not in own]
    if any(access.is_output and set(access.strides) != set(order) for access in others) or any(
        not set(access.strides) <= set(order) for access in others
    ):
        raise LoweringError("a tensor of the convolution's region differs in shape from its result")
    if any(len(dim) != 1 for dim in spatial) or max(len(batch), len(channel)) > 1 or not (*batch, *channel):
        raise LoweringError("the result of the convolution is cut into parts")
    planes = tuple(dim for dim in (batch, channel) if dim) + tuple(spatial[:-2])
    outer = tuple(atom for group in planes for atom in group)
    cols = Axis("cols", "off_n", spatial[-1], (spatial[-1],))
    if len(spatial) == 1:
        return accesses, (Axis("rows", "plane", outer, planes), cols)
    return accesses, (Axis("outer", "plane", outer, planes), Axis("rows", "off_h", spatial[-2], (spatial[-2],)), cols)


def reach(depthwise: Depthwise, place: int) -> int:
    """Count the elements from the first to the last that a result looks at along a dimension."""
    return depthwise.dilation[place] * (depthwise.size[place] - 1) + 1


def open_rows(depthwise: Depthwise) -> int:
    """Count the rows of the result that one row of the input counts in, those between dilated rows included."""
    return math.ceil(reach(depthwise, -2) / depthwise.stride[-2])


def walks(depthwise: Depthwise) -> bool:
    """Whether a lane walks down the input, reads each row once and adds it to all the rows of the result that it counts in.

    A transpose does so where its stride is 1: it is then a convolution with the kernel turned round.
    """
    if len(depthwise.size) == 1 or (depthwise.transposed and any(stride != 1 for stride in depthwise.stride)):
        return False
    return math.prod(depthwise.size) <= UNROLLED and open_rows(depthwise) <= OPEN


def pairs(depthwise: Depthwise) -> int:
    """Count the pairs of neighbours in which a lane can read a row of its kernel: of those two columns apart that it walks down; else 0."""
    if not walks(depthwise) or (depthwise.stride[-1], depthwise.dilation[-1]) != (2, 1) or depthwise.size[-1] == 1:
        return 0
    return math.ceil((depthwise.padding[-1] % 2 + depthwise.size[-1]) / 2)


def rows_a_lane(parameters: Mapping[str, bool | int | float | str], own: int = 1) -> int:
    """Count the rows of the result that one lane makes: a tile's elements over its threads, so that neighbours lie beside each other.

    Along a row it makes `own` neighbours.
    """
    block_m, block_n, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "num_warps"))
    return max(1, min(block_m, block_m * block_n // (WARP * warps * own)))


def sum_text(text: str, number: int) -> str:
    """Write a sum with a number, or what is left of it where the number is 0."""
    return f"{text} {'+' if number > 0 else '-'} {abs(number)}" if number else text
