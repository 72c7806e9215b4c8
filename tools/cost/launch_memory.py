"""What the launches of pointwise chains and poolings do, and what memory-bound kernels move and work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tools.codegen.ir.geometry import Window
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.templates.iteration_space import Access
from tools.codegen.templates.layout_cache import pointwise_layout_of
from tools.codegen.templates.pooling.layout import is_aligned, pooling_layout
from tools.codegen.templates.pooling.vec4 import blocks_along
from tools.cost.launch import LaunchShape
from tools.hardware import rates
from tools.records import ITEM_BYTES

Value = bool | int | float | str
WARP = 32
WIDEST = 16
"""Bytes of the widest access of a thread."""
LINE = 128
"""Bytes of a line of the L1."""
SECTOR = 32
"""Bytes that move between L1 and L2 at least."""
OVERHEAD = 4.0
"""Instructions of a lane for the address and the mask of one access; an assumption."""
SLOW_OPS = {"exp": 4, "exp_fast": 4, "log": 6, "tanh": 12, "erf": 34, "div": 6, "sqrt": 6, "rsqrt": 4, "pow": 16, "sin": 12, "cos": 12}
"""Instructions behind one such operation; others count 1. Read off the machine code of our own kernels on sm_90, rounded."""


def pointwise_shapes(kernel: Kernel, parameters: Mapping[str, Value]) -> tuple[LaunchShape, ...]:
    """One launch, each element once."""
    plan = pointwise_layout_of(kernel)
    warps, a_thread = int(parameters["num_warps"]), int(parameters["ELEMENTS"])
    tile, total = a_thread * WARP * warps, max(nbytes_of(a) // item(a) for a in plan.accesses if a.is_output)
    programs, lanes = math.ceil(total / tile), float(total)
    if parameters["algorithm"] == "tile" and plan.tiles:
        wide = min(power_of_two(plan.n_cols), tile)
        rows, cols = math.ceil(total / plan.n_cols / (tile // wide)), math.ceil(plan.n_cols / wide)
        programs, lanes = rows * cols, float(rows * cols * tile)
    whole = [a for a in plan.accesses if nbytes_of(a) // item(a) >= total]
    # no piece of a concatenation is as large as what they make: the largest stands for all
    reads = [a for a in whole if not a.is_output] or [max((a for a in plan.accesses if not a.is_output), key=nbytes_of)]
    moved = float(sum(nbytes_of(a) for a in plan.accesses))
    vector = min(WIDEST // max(item(a) for a in whole), a_thread)
    work = ops_of(kernel) + OVERHEAD * len(plan.accesses) / vector + divisions(plan.groups, parameters["algorithm"] == "tile")
    return (
        LaunchShape(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=moved,
            flight_bytes=tile * sum(item(a) for a in reads) * share_of_loads(moved, reads),
            steps=1,
            lane_work=lanes * work + programs * warps * WARP * rates.PROGRAM_WORK,
            registers=20 + a_thread * (len(reads) + 1),
        ),
    )


def pooling_shapes(kernel: Kernel, parameters: Mapping[str, Value]) -> tuple[LaunchShape, ...]:
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
    tiled = algorithm in ("tile", "pairs", "vec4")
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
    shape = LaunchShape(
        programs=programs,
        warps=warps,
        dram_bytes=moved,
        l2_bytes=moved + lanes * places * sector * missed,
        flight_bytes=tile * window.stride[-1] * item(source) * 2,
        steps=1,
        lane_work=lanes * (places * (2 * OVERHEAD) + flat + ops_of(kernel)) + programs * warps * WARP * rates.PROGRAM_WORK,
        registers=24 + a_thread * 6,
    )
    return (_vec4(shape, kernel, window, tile, item(source)) if algorithm == "vec4" else shape,)


def _vec4(shape: LaunchShape, kernel: Kernel, window: Window, tile: int, size: int) -> LaunchShape:
    """Count the loads of blocks of four elements; where Triton cannot tell that they are aligned, it loads one at a time.

    Those go through shared memory, since a thread gets its four from others, with a barrier before and one after. Three kernels of
    aligned rows run 23, 29 and 52 instructions a result (8 elements of a row, the same with a dilation of 3, 4 x 4; read off the
    machine code of sm_90, 8 results a thread) and are counted as 19, 27 and 45.
    """
    blocks = len(blocks_along(window)) * math.prod(window.size[:-1])
    aligned = is_aligned(kernel)
    loads = blocks / 4 if aligned else float(blocks)
    lanes, outside = float(shape.programs * tile), shape.programs * shape.warps * WARP * rates.PROGRAM_WORK
    lines = tile * size / LINE * blocks
    return replace(
        shape,
        dram_bytes=shape.dram_bytes / rates.VEC4_SHARE,
        lane_work=lanes * (loads * (2 * OVERHEAD) + math.prod(window.size) + ops_of(kernel)) + outside,
        # a load of 128 bytes that is not aligned is of two lines, and shared memory is written and read
        exchange_cycles=lines * (1 if aligned else 4) / rates.L1_LINES_PER_CLOCK,
        barriers=0 if aligned else 2 * blocks,
        registers=24 + tile / (shape.warps * WARP) * 3,
    )


def item(access: Access) -> int:
    """Bytes of one element."""
    return ITEM_BYTES[access.meta.dtype]


def nbytes_of(access: Access) -> int:
    """Bytes of a tensor at the sizes as written."""
    return access.meta.numel * item(access)


def ops_of(kernel: Kernel) -> float:
    """Instructions an element, by the operations of a region."""
    return work_of(kernel.builder.exprs[place].op for place in emitted(kernel))


def work_of(ops: Iterable[str]) -> float:
    """Instructions behind operations."""
    free = ("load", "const", "size", "argument", "index")
    return sum(SLOW_OPS.get(op, 1) for op in ops if op not in free)


def emitted(kernel: Kernel) -> list[int]:
    """Number the operations that an output needs: the positions of a maximum that nobody reads are not computed."""
    stack, needed = [output.expr for output in kernel.outputs], set[int]()
    while stack:
        place = stack.pop()
        if place not in needed:
            needed.add(place)
            stack += kernel.builder.exprs[place].args
    return sorted(needed)


def divisions(groups: tuple[tuple[int, ...], ...], tiled: bool) -> float:
    """Instructions by which a lane takes its number apart."""
    return 8.0 * max(0, len(groups) - (2 if tiled else 1))


def share_of_loads(moved: float, reads: list[Access]) -> float:
    """All traffic over what loads bring: stores wait for nothing, so loads in flight carry their part too."""
    loaded = sum(nbytes_of(a) for a in reads)
    return moved / loaded if loaded else 1.0
