"""Parameters of a matrix product: legal values, first values from the shapes as written, and what is worth trying."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.matmul.layout import MatmulLayout, matmul_layout_of
from tools.codegen.templates.matmul.legality import (
    EXCHANGED,
    ON_THE_WAY,
    OPERAND_STATIONARY,
    holds_columns,
    loads_fit,
    packable_operands,
    programs_fit,
    stationary_fits,
    stationary_settings,
)
from tools.codegen.templates.shared.knob import ROUNDED, Knob, Parameters, Settings, Value
from tools.codegen.templates.shared.prepack import CHOICES, WEIGHTS
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS, accumulated
from tools.records import ITEM_BYTES, ActionKind, HardwareSheet

KNOBS: Mapping[str, Knob] = {
    "BLOCK_M": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "BLOCK_N": Knob(ActionKind.TILING, (16, 32, 64, 128, 256)),
    "BLOCK_K": Knob(ActionKind.TILING, (16, 32, 64, 128)),
    "SPLIT_K": Knob(ActionKind.ALGORITHM, (1, 2, 4, 8, 16, 32, 64)),
    "GROUP_M": Knob(ActionKind.REORDERING, (1, 4, 8, 16), modelled=False),
    "precision": Knob(ActionKind.PRECISION, ("ieee", ROUNDED, "tf32x3", "fp16x3", "fp16x1", "bf16x3", "bf16x6")),
    "accumulate": Knob(ActionKind.PRECISION, ("direct", "chunked"), modelled=False),
    "right": Knob(ActionKind.LAYOUT, ("as_is", "k_major", EXCHANGED)),
    "num_warps": Knob(ActionKind.LAUNCH, (2, 4, 8, 16)),
    "num_stages": Knob(ActionKind.PIPELINE, (1, 2, 3, 4, 5)),
    "programs": Knob(ActionKind.LAUNCH, ("data_parallel", "persistent", "stream_k", "operand_stationary")),
    "loads": Knob(ActionKind.PIPELINE, ("pointers", "descriptors")),
    WEIGHTS: Knob(ActionKind.LAYOUT, CHOICES),
}


def matmul_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose first parameters of a product from its shapes as written and the number of multiprocessors."""
    layout = matmul_layout_of(kernel)
    block_m = min(128, max(16, power_of_two(layout.n_rows)))
    block_n = min(128, max(16, power_of_two(layout.n_cols)))
    while max(block_m, block_n) > 32 and layout.n_batch * -(-layout.n_rows // block_m) * -(-layout.n_cols // block_n) < sms:
        block_m, block_n = (block_m // 2, block_n) if block_m >= block_n else (block_m, block_n // 2)
    if layout.folds:
        block_n = max(16, power_of_two(layout.n_cols))
        block_m = min(block_m, 128 * 128 // block_n)
    whole = layout.dtype in ("float16", "bfloat16") or kernel.cancels
    tiles = layout.n_batch * -(-layout.n_rows // block_m) * -(-layout.n_cols // block_n)
    splits = 1
    # few tiles and a long sum: several programs a tile, with at least 16 steps each
    while splits < 64 and not layout.folds and 2 * tiles * splits <= sms and layout.n_inner >= 32 * splits * 32:
        splits *= 2
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": 64 if layout.dtype != "float32" else 32,
        "SPLIT_K": splits,
        "GROUP_M": 8,
        "precision": "ieee" if whole else "tf32x3",
        "accumulate": "direct" if whole else "chunked",
        "right": "as_is",
        "num_warps": 8 if block_m * block_n >= 128 * 128 else 4,
        "num_stages": 3,
        "programs": "data_parallel",
        "loads": "pointers",
    }


def settled_matmul(parameters: Settings, start: Settings) -> Parameters:
    """Give settings of the same kernel the same parameters: sums are added as the digits need, short parts are read in either order."""
    precision, as_first = parameters["precision"], parameters["right"] == EXCHANGED and parameters["precision"] not in ON_THE_WAY
    right = {"right": start["right"]} if precision in SPLIT_FLOATS or as_first else {}
    return {**parameters, **right, **accumulated(str(parameters["precision"]))}


def steps_of_matmul(kernel: Kernel, parameters: Settings, start: Settings, name: str, value: Value) -> tuple[Parameters, ...]:
    """Change one parameter; operand-stationary programs settle all others at once, which few steps of one would reach."""
    if (name, value) == ("programs", OPERAND_STATIONARY):
        return tuple({**start, **each} for each in stationary_settings(matmul_layout_of(kernel)) if parameters == start)
    return ({**parameters, name: value},)


def _may_turn(layout: MatmulLayout, parameters: Settings) -> bool:
    """Whether there is something to gain by how the right operand is read: it lies across the sum, and can be brought to lie along it."""
    if parameters["right"] == EXCHANGED:
        return parameters["precision"] in ON_THE_WAY and layout.left_is_k_major and not layout.right_is_k_major
    return layout.right_turns and not layout.right_is_k_major


def matmul_fits(kernel: Kernel, parameters: Settings, knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes a product's kernel and can run on the device."""
    layout = matmul_layout_of(kernel)
    split_float = SPLIT_FLOATS.get(str(parameters["precision"]))
    idle = {
        "precision": layout.dtype != "float32",
        "accumulate": split_float is not None,
        "right": not _may_turn(layout, parameters),
        "SPLIT_K": layout.n_inner < 64 * int(parameters.get("SPLIT_K", 1)),
        WEIGHTS: not packable_operands(layout, parameters),
    }
    if idle.get(knob) or (split_float and not (layout.left.meta.contiguous and layout.right.meta.contiguous)):
        return False
    if (kernel.cancels and parameters["precision"] != "ieee") or not holds_columns(layout, parameters):
        return False
    if parameters.get("programs") == OPERAND_STATIONARY:
        triangle = kernel.contraction is not None and kernel.contraction.triangle
        return knob != "GROUP_M" and not triangle and stationary_fits(layout, parameters, sheet)
    block_m, block_n, block_k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    if block_m > max(16, power_of_two(layout.n_rows)) or block_n > max(16, power_of_two(layout.n_cols)):
        return False
    if block_k > max(16, power_of_two(layout.n_inner)):
        return False
    warps, each = int(parameters["num_warps"]), split_float.nbytes if split_float else ITEM_BYTES[layout.dtype]
    shared = (block_m + block_n) * block_k * each * int(parameters["num_stages"])
    fits = shared <= sheet.shared_kib_per_block * 1024 and 8 <= block_m * block_n // (32 * warps) <= 128
    return fits and programs_fit(layout, parameters, sheet.sms) and loads_fit(layout, parameters, sheet)
