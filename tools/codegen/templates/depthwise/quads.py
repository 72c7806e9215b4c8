"""Lines by fours: a lane makes four neighbouring results of blocks of four elements, each loaded once and taken apart in registers."""

from __future__ import annotations

from tools.codegen.ir.geometry import Depthwise
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.depthwise.layout import PAIRED, sum_text

OWN = 4
"""Neighbouring results that a lane makes; blocks are as many elements."""
LONGEST_LINE = 64
"""Elements of a kernel up to which they are held in registers."""


def by_quads(kernel: Kernel) -> bool:
    """Whether results are one element apart along lines, whose length lets Triton see that four neighbours are one load."""
    depthwise = kernel.depthwise
    if depthwise is None or len(depthwise.size) != 1 or depthwise.transposed or (depthwise.stride, depthwise.dilation) != ((1,), (1,)):
        return False
    length = kernel.builder.loads[depthwise.source].meta.written[-1]
    return 1 < depthwise.size[0] <= LONGEST_LINE and length % PAIRED == 0 and length >= 2 * PAIRED


def blocks(depthwise: Depthwise) -> tuple[int, int]:
    """Say which block is the first that four neighbours look at, counted from their own, and how many there are."""
    first = -depthwise.padding[0] // OWN
    last = (depthwise.size[0] - 1 - depthwise.padding[0] + OWN - 1) // OWN
    return first, last - first + 1


def quad_lines(depthwise: Depthwise, lanes: str, to_float: str, tap_to_float: str) -> list[str]:
    """Write the sums of a lane's four results in one line; each takes its elements in ascending order."""
    first, count = blocks(depthwise)
    size, before = depthwise.size[0], OWN * first + depthwise.padding[0]
    lines = ["taps = ()", f"for place in tl.static_range({size}):"]
    lines.append(f"    taps = taps + (tl.load(above + place, mask=mask_m, other=0.0){tap_to_float},)")
    lines += [f"acc_{own} = tl.zeros([{lanes}, 1], tl.float32)" for own in range(OWN)]
    lines += [
        f"for step in tl.static_range({count}):",
        f"    at_w = off_n + {sum_text('step * 4', OWN * first)}",
        "    inside = mask_m & (at_w >= 0) & (at_w < in_w)",
        "    here = tl.load(base + at_w, mask=inside, other=0.0)",
        f"    even, odd = tl.split(tl.reshape(here{to_float}, [{lanes}, 1, 2, 2]))",
        "    four = tl.split(even) + tl.split(odd)",
        "    for place in tl.static_range(4):",
        "        # elements 0 and 2 come first",
    ]
    for own in range(OWN):
        turn = sum_text("step * 4 + place", before - own)
        lines.append(f"        if {turn} >= 0 and {turn} < {size}:")
        lines.append(f"            acc_{own} = tl.fma(four[place % 2 * 2 + place // 2], taps[{turn}], acc_{own})")
    lines.append(f"acc = tl.reshape(tl.join(tl.join(acc_0, acc_2), tl.join(acc_1, acc_3)), [{lanes}, 4])")
    return lines
