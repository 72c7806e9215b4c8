"""What the launch of a pooling does: neighbours share what they read where their windows stay in the L1."""

from __future__ import annotations

import math

from tools.codegen.ir.geometry import Window
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.templates.pooling.layout import is_aligned, pooling_layout
from tools.codegen.templates.pooling.vec4 import blocks_along
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.work import OVERHEAD, SECTOR, WARP, WIDEST, item, nbytes_of, ops_of, work_of
from tools.hardware import rates

LINE = 128
"""Bytes of a line of the L1."""
SHUFFLES = 5
"""Exchanges by which a warp's lanes become one."""


def pooling_launches(kernel: Kernel, parameters: Settings) -> tuple[LaunchWork, ...]:
    """One launch; neighbours share what they read where their windows stay in the L1."""
    accesses, axis = pooling_layout(kernel)
    window = kernel.window
    assert window is not None
    atoms = kernel.builder.atoms
    sizes = [product((atoms.size(atom) for atom in group), atoms.traces)[0] for group in axis.groups]
    warps, a_thread = int(parameters["num_warps"]), int(parameters["ELEMENTS"])
    tile, total = a_thread * WARP * warps, math.prod(sizes)
    programs, height, width = math.ceil(total / tile), max(1, tile // sizes[-1]), min(tile, sizes[-1])
    algorithm = parameters.get("algorithm")
    tiled = algorithm in ("tile", "pairs", "vec4", "across")
    wide = power_of_two(window.size[-1]) if algorithm == "across" else 1
    tile = max(1, tile // wide)
    if tiled and len(sizes) > 1:
        width = min(power_of_two(sizes[-1]), tile)
        height = tile // width
        programs = math.prod(sizes[:-2]) * math.ceil(sizes[-2] / height) * math.ceil(sizes[-1] / width)
        height = min(height, sizes[-2])
    # the input is the largest tensor read: its windows overlap, or are at least as many elements as the result
    places, source = math.prod(window.size), max((a for a in accesses if not a.is_output), key=nbytes_of)
    footprint = height * window.stride[-2 if len(window.stride) > 1 else -1] * width * window.stride[-1] * item(source)
    missed = min(1.0, footprint / rates.POOLING_L1_BYTES)
    vector = min(WIDEST // item(source), a_thread)
    sector = min(SECTOR, vector * window.stride[-1] * item(source))
    moved = float(sum(nbytes_of(a) for a in accesses))
    lanes = float(programs * tile)
    flat = 0.0 if tiled else 8.0 * len(sizes)
    if algorithm in ("pairs", "vec4"):
        # neighbours are loaded together and shared: along a row nothing is asked for twice
        sector, places = item(source), math.prod(window.size[:-1])
    if algorithm == "across":
        return (_across(kernel, window, programs, warps, tile * wide, item(source)),)
    launch = LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=moved,
        l2_bytes=moved + lanes * places * sector * missed,
        flight_bytes=tile * window.stride[-1] * item(source) * 2,
        steps=1,
        lane_work=lanes * (places * (2 * OVERHEAD) + flat + ops_of(kernel)) + programs * warps * WARP * rates.PROGRAM_WORK,
        registers=24 + a_thread * 6,
    )
    return (_vec4(launch, kernel, window, tile) if algorithm == "vec4" else launch,)


def _across(kernel: Kernel, window: Window, programs: int, warps: int, held: int, size: int) -> LaunchWork:
    """Count lanes along the windows: each loads some neighbours at a time, and what is brought together passes five shuffles a warp."""
    accesses, _ = pooling_layout(kernel)
    moved, rows = float(sum(nbytes_of(access) for access in accesses)), math.prod(window.size[:-1])
    looked = float(programs * held)
    vector = min(WIDEST // size, held // (warps * WARP) or 1)
    outside = programs * warps * WARP * (rates.PROGRAM_WORK + 2 * SHUFFLES)
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=moved,
        l2_bytes=moved * max(1.0, window.size[-1] / window.stride[-1]),
        flight_bytes=held * size,
        steps=rows,
        lane_work=looked * rows * (2 * OVERHEAD / vector + 1 + ops_of(kernel)) + outside,
        registers=24 + held / (warps * WARP) * 2,
    )


def _vec4(launch: LaunchWork, kernel: Kernel, window: Window, tile: int) -> LaunchWork:
    """Count the loads of blocks of four elements; where Triton cannot tell that they are aligned, it loads one at a time.

    Those go through shared memory, since a thread gets its four from others, with a barrier before and one after. Three kernels of
    aligned rows run 23, 29 and 52 instructions a result (8 elements of a row, the same with a dilation of 3, 4 x 4; read off the
    machine code of sm_90, 8 results a thread) and are counted as 19, 27 and 45.
    """
    blocks = len(blocks_along(window)) * math.prod(window.size[:-1])
    aligned = is_aligned(kernel)
    loads = blocks / 4 if aligned else float(blocks)
    lanes, outside = float(launch.programs * tile), launch.programs * launch.warps * WARP * rates.PROGRAM_WORK
    inside = set(kernel.builder.atoms.leaves(window.inside))
    looked = [item(access) for access in pooling_layout(kernel)[0] if not access.is_output and set(access.strides) & inside]
    lines = tile * sum(looked) / LINE * blocks
    # what is made of an element is made again for each block that it is in
    before = work_of(kernel.builder.exprs[place].op for place in kernel.builder.behind([window.source]))
    again = before * (blocks - 1)
    return launch._replace(
        dram_bytes=launch.dram_bytes / rates.VEC4_SHARE,
        lane_work=lanes * (loads * (2 * OVERHEAD) * len(looked) + math.prod(window.size) + ops_of(kernel) + again) + outside,
        # a load of 128 bytes that is not aligned is of two lines, and shared memory is written and read
        exchange_cycles=lines * (1 if aligned else 4) / rates.L1_LINES_PER_CLOCK,
        barriers=0 if aligned else 2 * blocks,
        registers=24 + tile / (launch.warps * WARP) * 3,
    )
