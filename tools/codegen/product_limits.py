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


def tiles_of(layout: ProductLayout, parameters: Mapping[str, Value]) -> int:
    """Count the tiles of a product at the sizes as written."""
    rows, cols = (math.ceil(size / int(parameters[name])) for size, name in ((layout.n_rows, "BLOCK_M"), (layout.n_cols, "BLOCK_N")))
    return layout.n_batch * rows * cols


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
    """Whether tiles can be fetched by descriptor.

    Not by a program that walks them: with both in one loop that lost 40 % on an H200, and as two loops it has not been timed.
    """
    if parameters.get("loads") != "descriptors":
        return True
    walks = parameters.get("programs") == "persistent"
    return sheet.generation in DESCRIBING and not walks and _describable(layout, str(parameters["precision"]))


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
