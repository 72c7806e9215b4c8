"""Parameters of an attention: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.attention.layout import AttentionLayout, attention_layout_of
from tools.codegen.templates.shared.knob import ROUNDED, Knob, Parameters, Settings
from tools.records import ITEM_BYTES, ActionKind, HardwareSheet

KNOBS: Mapping[str, Knob] = {
    "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    "BLOCK_D": Knob(ActionKind.TILING, (32, 64, 128, 256, 512)),
    "BLOCK_V": Knob(ActionKind.TILING, (32, 64, 128, 256, 512)),
    "SPLIT_KEYS": Knob(ActionKind.ALGORITHM, (1, 2, 4, 8, 16, 32, 64)),
    "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3")),
    "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4)),
}


WIDEST = 512
"""Elements of a latent that keys and values are: what `BLOCK_D` and `BLOCK_V` can hold."""


def splits_of(parameters: Settings) -> int:
    """Programs that share the keys of one tile of queries."""
    return int(parameters.get("SPLIT_KEYS", 1))


def attention_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose first parameters of an attention from its shapes as written; keys are split where tiles of queries are few."""
    layout = attention_layout_of(kernel)
    half = layout.dtype in ("float16", "bfloat16")
    head, value = max(map(block_of, layout.heads.values())), block_of(layout.n_wide)
    # a head held whole lies in registers or shared memory all through the walk: 64 KiB of queries at most
    widest = 256 if half else 128
    block_m = min(128 if half else 64, block_of(layout.n_rows))
    if half and layout.keys_are_values and widest < value <= WIDEST:
        # read once for both products: 64 rows of 512 sums are 128 registers of a thread in eight warps
        widest, block_m = value, min(64, block_m)
    # float32 heads of 64 and less: 64 keys a step took 1660 µs on an H200 where 32 took 1821 µs (data/operators/attention.py)
    block_n = min(64 if value <= (128 if half else 64) else 32, block_of(layout.n_cols))
    tiles, splits, softmax = layout.n_outer * math.ceil(layout.n_rows / block_m), 1, kernel.attention and kernel.attention.softmax
    while softmax and splits < 64 and 2 * tiles * splits <= 2 * sms and layout.n_cols >= 2 * splits * 4 * block_n:
        splits *= 2
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "SPLIT_KEYS": splits,
        "BLOCK_D": head if head <= max(256 if layout.computed else 0, widest) else 64,
        "BLOCK_V": min(value, widest),
        "precision": "ieee" if half else "tf32x3",
        "num_warps": 8 if block_m * min(value, widest) >= 128 * 128 else 4,
        "num_stages": 2,
    }


def reuses_keys(layout: AttentionLayout, parameters: Settings) -> str:
    """Name the keys whose tile is the values' as well: the same tensor, held whole."""
    whole = min(int(parameters["BLOCK_D"]), int(parameters["BLOCK_V"])) >= layout.n_wide
    return layout.keys_are_values if whole else ""


def head_blocks(layout: AttentionLayout, parameters: Settings) -> dict[str, int]:
    """Elements that a tile of queries or keys has of a head, by axis."""
    return {axis: min(int(parameters["BLOCK_D"]), block_of(size)) for axis, size in layout.heads.items()}


def block_of(size: int) -> int:
    """Give the tile that holds so many elements."""
    return max(16, power_of_two(size))


def refusal(kernel: Kernel, parameters: Settings) -> str:
    """Say why an attention cannot be written so: nothing is rescaled without a softmax, and what is computed is computed whole."""
    layout = attention_layout_of(kernel)
    if splits_of(parameters) > 1 and not (kernel.attention and kernel.attention.softmax):
        return "without a softmax keys are not split"
    computed = [each.n_inner for each in layout.products if each.query.is_computed or each.key.is_computed]
    if int(parameters["BLOCK_D"]) < max(computed, default=0):
        return "queries and keys that are computed are held whole"
    return ""


def attention_fits(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes an attention's kernel and can run on the device."""
    layout = attention_layout_of(kernel)
    if knob == "precision" and layout.dtype != "float32":
        return False
    if splits_of(parameters) > 1 and (refusal(kernel, parameters) or layout.n_cols < splits_of(parameters) * int(parameters["BLOCK_N"])):
        return False
    block_m, block_n, block_v = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_V"))
    head, value = max(map(block_of, layout.heads.values())), block_of(layout.n_wide)
    longest = {"BLOCK_M": layout.n_rows, "BLOCK_N": layout.n_cols, "BLOCK_D": head, "BLOCK_V": value}
    if knob in longest and int(parameters[knob]) > block_of(longest[knob]):
        return False
    stages, bytes_each, warps = int(parameters["num_stages"]), ITEM_BYTES[layout.dtype], int(parameters["num_warps"])
    # seen on an H200 with Triton 3.6: 16 warps on 64 rows read outside of their memory
    if warps > max(4, block_m // 8):
        return False
    blocks = head_blocks(layout, parameters)
    queries, keys = (sum(blocks[each.axis] for each in sides) for sides in (layout.queries, layout.keys))
    values = 0 if reuses_keys(layout, parameters) else min(block_v, value)
    shared = (block_m * queries + stages * block_n * (keys + values)) * bytes_each
    a_thread = block_m * (min(block_v, value) + block_n) // (32 * warps)
    return shared <= sheet.shared_kib_per_block * 1024 and 8 <= a_thread <= 192
