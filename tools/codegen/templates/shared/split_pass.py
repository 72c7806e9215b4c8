"""What the passes do that write float32 operands as shorter parts before a product."""

from __future__ import annotations

import math

from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.split_float import SplitFloat
from tools.codegen.templates.shared.tile_launch import pass_launch
from tools.records import HardwareSheet

ELEMENTS = 2048
"""Of a program's step, in `halves` of tools/codegen/templates/device/gemm_split.py, like the next two."""
PROGRAMS = 256
"""So many programs at least, as long as each reads whole sectors."""
SECTOR_VECTORS = 8
"""Vectors that lie side by side in one sector."""


def split_pass(split_float: SplitFloat, vectors: int, summed: int, sheet: HardwareSheet, *, across: bool) -> LaunchWork:
    """One pass over `vectors` of `summed` elements; `across` where neighbours in memory belong to different vectors.

    With an exponent of its own for each vector a program walks its vectors twice: the second time they come from the L2.
    """
    moved = 4.0 * vectors * summed * (1 + split_float.nbytes / 4)
    launch = pass_launch(moved, sheet)
    if not split_float.scaled:
        return launch
    whole = power_of_two(summed)
    held = ELEMENTS // min(64 if across else 512, whole)
    while held > (SECTOR_VECTORS if across else 1) and math.ceil(vectors / held) < PROGRAMS:
        held //= 2
    length = min(ELEMENTS // held, whole)
    steps = 2 * math.ceil(summed / length)
    programs = math.ceil(vectors / held)
    # a step's loads are asked for when those before it have come
    flight = moved / programs / steps
    return launch._replace(programs=programs, steps=steps, flight_bytes=flight, l2_bytes=moved + 4.0 * vectors * summed, registers=64)
