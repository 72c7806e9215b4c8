"""Where a product's programs and loads can be other than one tile a program by pointers, and where that is worth trying."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.codegen.product_parts import WAYS
from tools.codegen.product_space import ProductLayout, matrix_order
from tools.records import ITEM_BYTES, HardwareSheet

Value = bool | int | float | str

DESCRIBING = ("hopper", "blackwell")
"""Generations whose hardware fetches tiles by descriptor; elsewhere Triton turns them into pointers again, and nothing is gained."""
ALIGNED = 16
"""Bytes at whose multiples every row of such a matrix begins."""
ROUNDS = 8
"""Tiles a multiprocessor from which on a last round that is not full costs an eighth of the time or less."""
SPECIALISED_WARPS = 4
"""Warps with which Triton 3.6 and 3.9 give the loads of a loop warps of their own on Hopper; with eight they leave the loop as it is."""
SPECIALISED_ROWS = {"hopper": 64, "blackwell": 256}
"""Rows of the largest tile with which they do so: on Hopper 3.6 takes 128, but 3.9 stops at them with an error."""
SPECIALISED_COLS = {"hopper": 128, "blackwell": 256}
"""The same for columns: on Hopper both stop at 256."""


SPECIALISED_BYTES = {"hopper": 8, "blackwell": 12}
"""Shared memory that such a loop takes beside its operands, bytes an element of the tile: read off kernels of 3.6, rounded up."""


def tiles_of(layout: ProductLayout, parameters: Mapping[str, Value]) -> int:
    """Count the tiles of a product at the sizes as written."""
    rows, cols = (math.ceil(size / int(parameters[name])) for size, name in ((layout.n_rows, "BLOCK_M"), (layout.n_cols, "BLOCK_N")))
    return layout.n_batch * rows * cols


def buffers(parameters: Mapping[str, Value]) -> int:
    """Count the steps whose operands lie in shared memory at once; a walk of tiles by descriptors begins the next one early."""
    walks = parameters.get("programs") == "persistent" and parameters.get("loads") == "descriptors"
    return int(parameters["num_stages"]) + walks


def beside(parameters: Mapping[str, Value], sheet: HardwareSheet) -> int:
    """Bytes of shared memory that are not operands'."""
    each = SPECIALISED_BYTES.get(sheet.generation, 0) if parameters.get("specialise") == "warps" else 0
    return each * int(parameters["BLOCK_M"]) * int(parameters["BLOCK_N"])


def programs_fit(layout: ProductLayout, parameters: Mapping[str, Value], sms: int) -> bool:
    """Whether what a program does differs from one tile each, and shares are worth their sums."""
    programs = parameters.get("programs", "a_tile")
    if programs == "a_tile":
        return True
    if int(parameters.get("SPLIT_K", 1)) > 1:
        return False
    tiles = tiles_of(layout, parameters)
    if programs == "persistent":
        return tiles > sms
    # a share of fewer than four steps costs more to add than it saves
    steps = math.ceil(layout.n_inner / int(parameters["BLOCK_K"]))
    return tiles % sms > 0 and tiles < ROUNDS * sms and tiles % sms * steps >= 4 * sms


def loads_fit(layout: ProductLayout, parameters: Mapping[str, Value], sheet: HardwareSheet) -> bool:
    """Whether tiles can be fetched by descriptor, and, where loads have warps of their own, whether Triton makes such a kernel."""
    described, specialised = parameters.get("loads") == "descriptors", parameters.get("specialise") == "warps"
    if not described:
        return not specialised
    if sheet.generation not in DESCRIBING or not _describable(layout, str(parameters["precision"])):
        return False
    if not specialised:
        return True
    tile = (
        int(parameters["BLOCK_M"]) <= SPECIALISED_ROWS[sheet.generation]
        and int(parameters["BLOCK_N"]) <= SPECIALISED_COLS[sheet.generation]
    )
    return tile and int(parameters["num_warps"]) == SPECIALISED_WARPS and parameters.get("programs", "a_tile") == "a_tile"


def _describable(layout: ProductLayout, precision: str) -> bool:
    """Whether both operands are matrices in memory whose rows begin at multiples of 16 bytes."""
    way = WAYS.get(precision)
    each = way.nbytes // len(way.parts) if way else ITEM_BYTES[layout.dtype]
    sizes = {"rows": layout.n_rows, "cols": layout.n_cols, "inner": layout.n_inner}
    for access in (layout.left, layout.right):
        order = matrix_order(layout, access)
        if order is None or sizes[order[1]] * each % ALIGNED:
            return False
    return True
