"""Where a product's programs and loads can be other than one tile a program by pointers, and where that is worth trying."""

from __future__ import annotations

import math

from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.matmul.layout import MatmulLayout, matrix_order
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.knob import ROUNDED, Settings, Value
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS
from tools.codegen.templates.shared.tile_launch import HALVES
from tools.records import ITEM_BYTES, HardwareSheet

DESCRIBING = ("hopper", "blackwell")
"""Generations whose hardware fetches tiles by descriptor; elsewhere Triton turns them into pointers again, and nothing is gained."""
DESCRIBED_ROWS = 64
"""Rows of a tile from which on it is worth fetching by descriptor: those of Hopper's asynchronous tensor instructions."""
ALIGNED = 16
"""Bytes at whose multiples every row of such a matrix begins."""
WHOLE_TILES = ("data_parallel", "persistent")
"""Values of `programs` by which each tile is one program's, with all that follows its sums."""
OPERAND_STATIONARY = "operand_stationary"
"""Value of `programs`: a program holds a tile of one operand and walks the other (`operand_stationary`)."""
EXCHANGED = "exchanged"
"""Value of `right`: the transpose of the product is made, so that what lies along the sum is its right operand."""
ON_THE_WAY = ("tf32x3", ROUNDED)
"""Precisions whose right operand Hopper's asynchronous products want along the sum; the left one comes through registers either way."""
LONGEST_STATIONARY_SUM = 128
"""Summed elements up to which a tile lies in a program's registers and shared memory: with 256 none that was tried fitted (H200)."""
STATIONARY_TILES = ((64, 128, 4), (64, 64, 4), (128, 64, 4), (128, 128, 8))
"""Vectors of a tile that are walked, those that are held, and warps: what is tried, of sixteen that a prototype was measured with on an
H200 (2026-11-21). The first was the fastest of each of five products."""
STATIONARY_STAGES = (3, 2)
"""Stages that are tried; two where three do not fit."""
ROUNDS = 8
"""Tiles a multiprocessor from which on a last round that is not full costs an eighth of the time or less."""


def holds_columns(layout: MatmulLayout, parameters: Settings) -> bool:
    """Whether one program makes all columns of its rows, and their whole sums, where something looks along them."""
    if not layout.folds:
        return True
    whole = int(parameters.get("SPLIT_K", 1)) == 1 and parameters.get("programs", WHOLE_TILES[0]) in WHOLE_TILES
    return whole and int(parameters["BLOCK_N"]) >= layout.n_cols


def tiles_of(layout: MatmulLayout, parameters: Settings) -> int:
    """Count the tiles of a product at the sizes as written."""
    rows, cols = (math.ceil(size / int(parameters[name])) for size, name in ((layout.n_rows, "BLOCK_M"), (layout.n_cols, "BLOCK_N")))
    return layout.n_batch * rows * cols


def programs_fit(layout: MatmulLayout, parameters: Settings, sms: int) -> bool:
    """Whether what a program does differs from one tile each, and shares are worth their sums."""
    programs = parameters.get("programs", "data_parallel")
    if programs == "data_parallel":
        return True
    if int(parameters.get("SPLIT_K", 1)) > 1:
        return False
    tiles = tiles_of(layout, parameters)
    if programs == "persistent":
        return tiles > sms
    # a share of fewer than four steps costs more to add than it saves
    steps = math.ceil(layout.n_inner / int(parameters["BLOCK_K"]))
    return tiles % sms > 0 and tiles < ROUNDS * sms and tiles % sms * steps >= 4 * sms


def left_is_stationary(layout: MatmulLayout) -> bool:
    """Whether the left operand is the stationary one: that with more elements, since what is kept is read once and needs no pass."""
    return layout.left.meta.numel > layout.right.meta.numel


def stationary_settings(layout: MatmulLayout) -> tuple[dict[str, Value], ...]:
    """List what `programs=operand_stationary` is tried with: everything that it settles; nothing where it cannot be."""
    fixed, names = _settled(layout), _sides(layout)
    return tuple(
        {**fixed, names[0]: walked, names[1]: stationary, "num_warps": warps, "num_stages": stages}
        for walked, stationary, warps in STATIONARY_TILES
        for stages in STATIONARY_STAGES
        if fixed
    )


def _settled(layout: MatmulLayout) -> dict[str, Value]:
    """List what `programs=operand_stationary` settles besides its tile; nothing where it cannot be."""
    if layout.dtype != "float32" or layout.n_inner > LONGEST_STATIONARY_SUM:
        return {}
    words: dict[str, Value] = {
        "programs": OPERAND_STATIONARY,
        "precision": "fp16x3",
        "accumulate": "chunked",
        "loads": "pointers",
        "right": "as_is",
    }
    return {**words, "SPLIT_K": 1, "BLOCK_K": max(16, power_of_two(layout.n_inner))}


def _sides(layout: MatmulLayout) -> tuple[str, str]:
    """Name the sizes of a tile along what is walked and along what is held."""
    return ("BLOCK_N", "BLOCK_M") if left_is_stationary(layout) else ("BLOCK_M", "BLOCK_N")


def stationary_bytes(layout: MatmulLayout, parameters: Settings) -> int:
    """Shared memory of a program: parts of what is held, those of a walked tile in each stage, and results on their way to memory.

    The last are sixteen vectors a warp: what Triton 3.6 asked for on an H200, less the others.
    """
    walked, stationary, inner, warps, stages = (int(parameters[name]) for name in (*_sides(layout), "BLOCK_K", "num_warps", "num_stages"))
    return 4 * (inner * (stationary + walked * stages) + 16 * warps * stationary)


def stationary_fits(layout: MatmulLayout, parameters: Settings, sheet: HardwareSheet) -> bool:
    """Whether these are parameters that `programs=operand_stationary` is tried with, and can run on the device."""
    fixed = _settled(layout)
    tile = tuple(parameters[name] for name in (*_sides(layout), "num_warps"))
    known = fixed and tile in STATIONARY_TILES and parameters["num_stages"] in STATIONARY_STAGES
    if not known or any(parameters.get(name) != value for name, value in fixed.items()):
        return False
    # a tile may be larger than the result where there is no smaller one
    sizes = ((layout.n_rows, "BLOCK_M"), (layout.n_cols, "BLOCK_N"))
    fills = all(int(parameters[name]) <= max(64, power_of_two(size)) for size, name in sizes)
    return fills and stationary_bytes(layout, parameters) <= sheet.shared_kib_per_block * 1024


def loads_fit(layout: MatmulLayout, parameters: Settings, sheet: HardwareSheet) -> bool:
    """Whether tiles can be fetched by descriptor.

    Of parts of float32 not by a program that walks them: with both in one loop that lost 40 % on an H200, and as two loops it has not been
    timed. Of halves it was the fastest of two large products of four on an H100. Tiles of few rows gain 2 to 4 % (an H200): not worth what
    describing costs the host at every call, which torch.compile does not see through.
    """
    if parameters.get("loads") != "descriptors":
        return True
    if int(parameters["BLOCK_M"]) < DESCRIBED_ROWS:
        return False
    walks = parameters.get("programs") == "persistent" and layout.dtype not in HALVES
    return sheet.generation in DESCRIBING and not walks and _describable(layout, str(parameters["precision"]))


def _describable(layout: MatmulLayout, precision: str) -> bool:
    """Whether both operands are matrices in memory whose rows begin at multiples of 16 bytes."""
    split_float = SPLIT_FLOATS.get(precision)
    each = split_float.nbytes // len(split_float.parts) if split_float else ITEM_BYTES[layout.dtype]
    sizes = {"rows": layout.n_rows, "cols": layout.n_cols, "inner": layout.n_inner}
    for access in (layout.left, layout.right):
        order = matrix_order(layout, access)
        if order is None or sizes[order[1]] * each % ALIGNED:
            return False
    return True


def packable_operands(layout: MatmulLayout, parameters: Settings) -> tuple[Access, ...]:
    """Name the operands of a product that are fixed parameters and that a pass writes anew before the kernel."""
    copied = parameters.get("right") == "k_major" and not layout.right_is_k_major
    if parameters.get("precision") not in SPLIT_FLOATS:
        passed = [layout.right] if copied else []
    elif parameters.get("programs") == OPERAND_STATIONARY:
        passed = [layout.right if left_is_stationary(layout) else layout.left]
    else:
        passed = [layout.left, *([] if copied else [layout.right])]
    return tuple(operand for operand in passed if operand.fixed)
