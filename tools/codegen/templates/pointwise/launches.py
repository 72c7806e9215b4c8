"""What the launch of a pointwise chain does."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.pointwise.layout import PointwiseLayout, pointwise_layout_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.sectors import axis_steps, wasted
from tools.codegen.templates.shared.work import (
    INSTRUCTION_BYTES,
    OVERHEAD,
    WARP,
    WIDEST,
    converted,
    crowding,
    divisions,
    item,
    nbytes_of,
    ops_of,
    share_of_loads,
)
from tools.hardware import rates

TURNED = 2.0
"""Instructions of an element that is turned: it is stored to shared memory, and read again. With its loads by themselves clamped gates and
values side by side run 40 instructions an element, counted, where 28 were modelled (sm_90, Triton 3.6)."""
PIECES = 16
"""Pieces of a concatenation that are counted each: smaller ones come from the L2, as what is broadcast does. 452 MB took 738 µs where
the neighbours of half of it lay 128 bytes apart, and 150 where none did (an H100, 2026-11-26), which were modelled alike."""


def pointwise_launches(kernel: Kernel, parameters: Settings) -> tuple[LaunchWork, ...]:
    """One launch, each element once."""
    plan = pointwise_layout_of(kernel)
    warps, a_thread = int(parameters["num_warps"]), int(parameters["ELEMENTS"])
    tile, total = a_thread * WARP * warps, max(nbytes_of(a) // item(a) for a in plan.accesses if a.is_output)
    programs, lanes = math.ceil(total / tile), float(total)
    tiled = parameters["algorithm"] == "tile" and plan.tiles
    if tiled:
        wide = min(power_of_two(plan.n_cols), tile)
        rows, cols = math.ceil(total / plan.n_cols / (tile // wide)), math.ceil(plan.n_cols / wide)
        programs, lanes = rows * cols, float(rows * cols * tile)
    whole = [a for a in plan.accesses if nbytes_of(a) // item(a) >= total]
    # no piece of a concatenation is as large as what they make: the largest stands for all
    reads = [a for a in whole if not a.is_output] or [max((a for a in plan.accesses if not a.is_output), key=nbytes_of)]
    moved = float(sum(nbytes_of(a) for a in plan.accesses))
    vector = min(WIDEST // max(item(a) for a in whole), a_thread)
    work = ops_of(kernel) + sum(map(converted, whole)) + _asked(plan, vector)
    work += divisions(plan.groups, parameters["algorithm"] == "tile")
    return (
        LaunchWork(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=moved + _beside(plan, tile, tiled),
            flight_bytes=tile * sum(item(a) for a in reads) * share_of_loads(moved, reads),
            steps=1,
            lane_work=lanes * work * crowding(INSTRUCTION_BYTES * a_thread * work) + programs * warps * WARP * rates.PROGRAM_WORK,
            registers=20 + a_thread * (len(reads) + 1),
        ),
    )


def _asked(plan: PointwiseLayout, vector: int) -> float:
    """Instructions of an element for its accesses: what does not lie side by side is asked for by itself, and turned in shared memory."""
    apart = sum(bool(access.strides.get(atom)) for atom in plan.order[-1:] for access in plan.accesses)
    return OVERHEAD * (len(plan.accesses) - apart) / vector + (OVERHEAD + TURNED) * apart


def _beside(plan: PointwiseLayout, tile: int, tiled: bool) -> float:
    """Bytes of sectors that come along with wanted ones: of operands whose neighbours do not lie side by side in a tile."""
    wide = min(power_of_two(plan.n_cols), tile)
    axes = ((plan.groups[:-1], tile // wide), (plan.groups[-1:], wide)) if tiled else ((plan.groups, tile),)
    sizes = dict(zip(plan.groups, plan.sizes, strict=True))
    total = 0.0
    for access, flow in zip(plan.accesses, plan.flows, strict=True):
        steps = [step for groups, extent in axes for step in axis_steps(groups, extent, sizes.__getitem__, flow.stride)]
        if nbytes_of(access) // item(access) >= math.prod(plan.sizes) / PIECES:
            total += wasted(steps, item(access)) * nbytes_of(access)
    return total
