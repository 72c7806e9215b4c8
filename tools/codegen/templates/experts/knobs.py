"""Parameters of grouped products: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.grouped import Grouped
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.knob import ROUNDED, Knob, Parameters, Settings
from tools.records import ITEM_BYTES, ActionKind, HardwareSheet

KNOBS: Mapping[str, Knob] = {
    "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3")),
    "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4, 5)),
}
SORT_BLOCK = 4096
"""Pairs that a program of the sorting looks at in a step, at most."""
ACCUMULATORS = 160
"""Sums that a thread can hold beside what it loads."""


def grouped_of(kernel: Kernel) -> Grouped:
    """Return the stages of a region."""
    if kernel.grouped is None:
        raise LoweringError("there are no experts")
    return kernel.grouped


def pairs_of(grouped: Grouped) -> int:
    """Count the pairs of a row and one of its places, at the sizes as written."""
    return grouped.chosen_meta.numel


def rows_of_expert(grouped: Grouped) -> float:
    """Rows that an expert gets on average."""
    return pairs_of(grouped) / grouped.experts


def experts_defaults(kernel: Kernel) -> Parameters:
    """Tiles as tall as the rows of an expert are many, and wide where they are few: then weights are all that moves."""
    grouped = grouped_of(kernel)
    half = grouped.value.meta.dtype != "float32"
    block_m = min(128 if half else 64, max(16, power_of_two(int(rows_of_expert(grouped)))))
    width = min(max(16, power_of_two(stage.width[0])) for stage in grouped.stages)
    summed = min(max(16, power_of_two(stage.summed[0])) for stage in grouped.stages)
    few = block_m <= 32
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": min(64 if few or not half else 128, width),
        "BLOCK_K": min(128 if few and half else 64 if half else 32, summed),
        "precision": "ieee" if half else "tf32x3",
        "num_warps": 8 if block_m >= 128 else 4,
        "num_stages": 4 if few else 3,
    }


def experts_fit(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes the kernels and can run on the device."""
    grouped = grouped_of(kernel)
    dtype = grouped.value.meta.dtype
    if knob == "precision" and dtype != "float32":
        return False
    block_m, block_n, block_k, warps, stages = (
        int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
    )
    longest = {
        "BLOCK_M": int(4 * rows_of_expert(grouped)),
        "BLOCK_N": max(stage.width[0] for stage in grouped.stages),
        "BLOCK_K": max(stage.summed[0] for stage in grouped.stages),
    }
    if knob in longest and int(parameters[knob]) > max(16, power_of_two(longest[knob])):
        return False
    several = max(len(stage.products) for stage in grouped.stages)
    shared = (block_m + several * block_n) * block_k * ITEM_BYTES[dtype] * max(1, stages)
    a_thread = block_m * block_n * several / (32 * warps)
    return shared <= sheet.shared_kib_per_block * 1024 and a_thread <= ACCUMULATORS and warps <= max(4, block_m // 8)
