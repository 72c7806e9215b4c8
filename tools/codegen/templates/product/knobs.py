"""Parameters of products with computed operands: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.product.layout import ProductLayout, product_layout_of
from tools.codegen.templates.product.shared_memory import shared_bytes
from tools.codegen.templates.shared.knob import ROUNDED, Knob, Parameters, Settings
from tools.records import ActionKind, HardwareSheet

KNOBS: Mapping[str, Knob] = {
    "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    "SPLIT_K": Knob(ActionKind.ALGORITHM, (1, 2, 4, 8, 16)),
    "GROUP_M": Knob(ActionKind.REORDERING, (1, 4, 8, 16), modelled=False),
    "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3")),
    "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8)),
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4)),
}


def tiles_of(layout: ProductLayout, parameters: Settings) -> int:
    """Count the tiles of the result at the sizes as written."""
    rows, cols = (math.ceil(size / int(parameters[name])) for size, name in ((layout.n_rows, "BLOCK_M"), (layout.n_cols, "BLOCK_N")))
    return layout.n_batch * rows * cols


def product_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose tiles as large as leave no multiprocessor idle and as registers hold; several programs a tile where those are few."""
    layout = product_layout_of(kernel)
    several = len(layout.products) > 1
    block_m = min(64 if several else 128, max(16, power_of_two(layout.n_rows)))
    block_n = min(128, max(16, power_of_two(layout.n_cols)))
    start: Parameters = {"BLOCK_M": block_m, "BLOCK_N": block_n}
    while max(block_m, block_n) > 32 and tiles_of(layout, start) < sms:
        block_m, block_n = (block_m // 2, block_n) if block_m >= block_n else (block_m, block_n // 2)
        start = {"BLOCK_M": block_m, "BLOCK_N": block_n}
    splits = 1
    while splits < 16 and 2 * tiles_of(layout, start) * splits <= sms and min(layout.n_inner) >= 16 * 64 * splits:
        splits *= 2
    longest = max(layout.n_inner)
    return {
        **start,
        "BLOCK_K": min(32 if layout.in_float32 else 64, max(16, power_of_two(longest))),
        "SPLIT_K": splits,
        "GROUP_M": 8,
        "precision": "tf32x3" if layout.in_float32 and not kernel.cancels else "ieee",
        "num_warps": 8 if block_m * block_n * len(layout.products) >= 128 * 128 else 4,
        "num_stages": 3,
    }


def product_fits(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes the kernel and can run on the device."""
    layout = product_layout_of(kernel)
    if kernel.cancels and parameters["precision"] != "ieee":
        return False
    block_m, block_n = int(parameters["BLOCK_M"]), int(parameters["BLOCK_N"])
    longest = {"BLOCK_M": layout.n_rows, "BLOCK_N": layout.n_cols, "BLOCK_K": max(layout.n_inner)}
    if knob in longest and int(parameters[knob]) > max(16, power_of_two(longest[knob])):
        return False
    if (knob == "precision" and not layout.in_float32) or (
        int(parameters["SPLIT_K"]) > 1 and min(layout.n_inner) < 64 * int(parameters["SPLIT_K"])
    ):
        return False
    a_thread = block_m * block_n * len(layout.products) // (32 * int(parameters["num_warps"]))
    return shared_bytes(kernel, parameters, sheet) <= sheet.shared_kib_per_block * 1024 and 4 <= a_thread <= 128
