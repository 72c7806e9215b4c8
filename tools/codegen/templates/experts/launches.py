"""What the launches of experts do: the sorting, each stage's grouped products, and the sum over places."""

from __future__ import annotations

import math

from tools.codegen.ir.grouped import Grouped, Rows, Stage
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.experts.knobs import SORT_BLOCK, grouped_of, pairs_of, rows_of_expert
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.tile_launch import TiledSum, pass_launch, tiles_launch
from tools.codegen.templates.shared.work import ops_of
from tools.records import ITEM_BYTES, HardwareSheet

SORT_WORK = 30.0
"""Instructions of a lane for a pair in both of its passes: loads, comparisons and a running sum; an assumption."""
FOUND = 4.0
"""Instructions by which a lane finds an element of the left operand; an assumption."""


def flops_of(grouped: Grouped) -> float:
    """Count multiplications and additions of all stages."""
    each = sum(len(stage.products) * stage.summed[0] * stage.width[0] for stage in grouped.stages)
    return 2.0 * pairs_of(grouped) * each


def busy_experts(grouped: Grouped) -> float:
    """Experts that get any row, where rows go to any of them alike."""
    return grouped.experts * (1.0 - (1.0 - 1.0 / grouped.experts) ** pairs_of(grouped))


def tiles_of_rows(grouped: Grouped, block_m: int) -> int:
    """Tiles of rows: each expert's last one is half empty on average, and no expert without rows has one."""
    busy, pairs = busy_experts(grouped), pairs_of(grouped)
    each = pairs / busy
    return round(busy * (math.ceil(each / block_m) if each <= block_m else each / block_m + 0.5))


def experts_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch for the sorting, one a stage, one for the sum."""
    grouped = grouped_of(kernel)
    stages = [_stage(grouped, stage, parameters, sheet) for stage in grouped.stages]
    return (_sorting(grouped), *stages, _sum(grouped, sheet))


def _sorting(grouped: Grouped) -> LaunchWork:
    pairs = pairs_of(grouped)
    every = float(grouped.experts * pairs)
    return LaunchWork(
        programs=grouped.experts,
        warps=8,
        dram_bytes=pairs * (ITEM_BYTES[grouped.chosen_meta.dtype] + 4.0),
        l2_bytes=2.0 * every * ITEM_BYTES[grouped.chosen_meta.dtype],
        flight_bytes=float(SORT_BLOCK * ITEM_BYTES[grouped.chosen_meta.dtype]),
        steps=2.0 * math.ceil(pairs / SORT_BLOCK),
        lane_work=every * SORT_WORK,
        barriers=3.0,
    )


def _stage(grouped: Grouped, stage: Stage, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """Weights of the experts that have rows come once, rows of the left operand once, and results go once."""
    block_m, block_n, block_k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    pairs, summed, width, several = pairs_of(grouped), stage.summed[0], stage.width[0], len(stage.products)
    each = ITEM_BYTES[stage.left.meta.dtype]
    weights = busy_experts(grouped) * several * summed * width * each
    left = (grouped.chosen_meta.written[0] if stage.left.rows is Rows.ROW else pairs) * summed * each
    written = sum(pairs * result.width[0] * ITEM_BYTES[result.meta.dtype] for result in stage.results)
    work = TiledSum(
        tiles=tiles_of_rows(grouped, block_m) * math.ceil(width / block_n),
        splits=1,
        steps=math.ceil(summed / block_k),
        moved=float(weights + left + written),
        dtype=stage.left.meta.dtype,
        straight=stage.products[0].along,
        gathered=FOUND,
        plain=rows_of_expert(grouped) >= block_m / 2,
    )
    ops = ops_of(stage.epilogue) if stage.epilogue is not None else 1.0
    one = tiles_launch(work, parameters, ops, sheet)
    if several == 1:
        return one
    # products of one operand share its loads: what they multiply and hold is theirs alone
    return one._replace(
        product_flops=one.product_flops * several,
        registers=one.registers + (several - 1) * block_m * block_n / (32 * int(parameters["num_warps"])),
        shared_bytes=one.shared_bytes * (block_m + several * block_n) / (block_m + block_n),
        flight_bytes=one.flight_bytes * (block_m + several * block_n) / (block_m + block_n),
    )


def _sum(grouped: Grouped, sheet: HardwareSheet) -> LaunchWork:
    read = pairs_of(grouped) * grouped.value.width[0] * ITEM_BYTES[grouped.value.meta.dtype]
    written = grouped.result.numel * ITEM_BYTES[grouped.result.dtype] * (2 if grouped.base else 1)
    return pass_launch(float(read + written), sheet)


__all__ = ["busy_experts", "experts_launches", "flops_of", "rows_of_expert", "tiles_of_rows"]
