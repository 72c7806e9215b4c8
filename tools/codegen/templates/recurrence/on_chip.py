"""Shared memory that a loop's kernel takes: operands of products, and what is loaded some steps ahead."""

from __future__ import annotations

import math

from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.recurrence.layout import LEAST, RecurrenceLayout
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.tile_launch import PARTS
from tools.codegen.templates.shared.work import item

SPARE = 1 << 10
"""Bytes kept for what else passes through it: numbers that are sent ahead, too, and sums across warps."""


def shared_bytes(plan: RecurrenceLayout, parameters: Settings) -> int:
    """Count the bytes of a block: no less than Triton 3.6 takes for sm_90, and at most about twice that."""
    return _operands(plan, parameters) + _sent_ahead(plan, parameters) + SPARE


def _operands(plan: RecurrenceLayout, parameters: Settings) -> int:
    """Operands of products meet in shared memory; those of split floats twice, as two parts."""
    if parameters["algorithm"] != "chunked":
        return 0
    chunk, rows, inner = int(parameters["CHUNK"]), tile_rows(parameters), max(LEAST, power_of_two(plan.size("held_0")))
    if str(parameters["precision"]) in PARTS:
        # so many to the byte in 21 settings, with 64 and with 128 summed elements
        return 8 * max(2 * chunk * inner, chunk * inner + inner * rows + chunk * rows)
    return 4 * (chunk * (2 * inner + rows + chunk) + inner * rows)


def _sent_ahead(plan: RecurrenceLayout, parameters: Settings) -> int:
    """Count what a step loads, once for each stage but the one at work."""
    steps = 1 if parameters["algorithm"] == "sequential" else int(parameters["CHUNK"])
    loads = [each for each in plan.accesses if plan.step in each.strides and not each.is_output]
    loaded = sum(_tile(plan, each, tile_rows(parameters)) * item(each) for each in loads)
    return (int(parameters["num_stages"]) - 1) * steps * loaded


def tile_rows(parameters: Settings) -> int:
    """Rows of a tile: a product needs some at least."""
    rows = int(parameters["ROWS"])
    return max(LEAST, rows) if parameters["algorithm"] == "chunked" else rows


def _tile(plan: RecurrenceLayout, each: Access, rows: int) -> int:
    """Elements that a program takes of a tensor in one step."""
    axes = [axis for axis in plan.tile if set(axis.atoms) & set(each.strides)]
    return math.prod(rows if axis.name == "rows" else power_of_two(plan.size(axis.name)) for axis in axes)
