"""First values of the compute-bound templates, products and attention, and what is worth trying."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.templates.attention.layout import attention_layout_of
from tools.codegen.templates.convolution.layout import convolution_layout_of
from tools.codegen.templates.convolution.split_float import ConvolutionParts
from tools.codegen.templates.depthwise.layout import UNROLLED, rows_a_lane, walks
from tools.codegen.templates.matmul.layout import product_layout_of
from tools.codegen.templates.matmul.legality import (
    OPERAND_STATIONARY,
    loads_fit,
    packable_operands,
    programs_fit,
    stationary_fits,
)
from tools.codegen.templates.shared.knob import Parameters, Value
from tools.codegen.templates.shared.prepack import WEIGHTS
from tools.codegen.templates.shared.split_float import WAYS
from tools.records import ITEM_BYTES, HardwareSheet

LONGEST = 400
"""Multiplications of a lane up to which a depthwise convolution's loops, all of them unrolled, compile within some seconds."""


def product_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose first parameters of a product from its shapes as written and the number of multiprocessors."""
    layout = product_layout_of(kernel)
    block_m = min(128, max(16, power_of_two(layout.n_rows)))
    block_n = min(128, max(16, power_of_two(layout.n_cols)))
    while max(block_m, block_n) > 32 and layout.n_batch * -(-layout.n_rows // block_m) * -(-layout.n_cols // block_n) < sms:
        block_m, block_n = (block_m // 2, block_n) if block_m >= block_n else (block_m, block_n // 2)
    half = layout.dtype in ("float16", "bfloat16")
    tiles = layout.n_batch * -(-layout.n_rows // block_m) * -(-layout.n_cols // block_n)
    splits = 1
    # few tiles and a long sum: several programs a tile, with at least 16 steps each
    while splits < 64 and 2 * tiles * splits <= sms and layout.n_inner >= 32 * splits * 32:
        splits *= 2
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": 64 if half else 32,
        "SPLIT_K": splits,
        "GROUP_M": 8,
        "precision": "ieee" if half else "tf32x3",
        "accumulate": "direct" if half else "chunked",
        "right": "as_is",
        "num_warps": 8 if block_m * block_n >= 128 * 128 else 4,
        "num_stages": 3,
        "programs": "data_parallel",
        "loads": "pointers",
    }


def convolution_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Choose first parameters of a dense convolution: as many channels a tile as there are, up to 128, and positions for the rest."""
    layout = convolution_layout_of(kernel)
    half = layout.dtype in ("float16", "bfloat16")
    block_n = min(128, max(16, power_of_two(layout.n_channels)))
    block_m = min(128, max(16, power_of_two(layout.n_positions)))
    fixed = layout.n_images * layout.n_groups * layout.n_phases * -(-layout.n_channels // block_n)
    while block_m > 32 and fixed * -(-layout.n_positions // block_m) < sms:
        block_m //= 2
    summed = layout.n_inputs if layout.n_inputs >= 16 else layout.n_inputs * layout.n_taps
    return {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": min(64 if half else 32, max(16, power_of_two(summed))),
        "precision": "ieee" if half else "tf32x3",
        "accumulate": "direct" if half else "chunked",
        "num_warps": 8 if block_m * block_n >= 128 * 128 else 4,
        "num_stages": 3,
    }


def convolution_fits(kernel: Kernel, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes a convolution's kernel and can run on the device."""
    layout = convolution_layout_of(kernel)
    way = WAYS.get(str(parameters["precision"]))
    idle = {"precision": layout.dtype != "float32", "accumulate": way is not None, WEIGHTS: not layout.weight.fixed}
    if idle.get(knob):
        return False
    block_m, block_n, block_k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    if block_m > max(16, power_of_two(layout.n_positions)) or block_n > max(16, power_of_two(layout.n_channels)):
        return False
    assert kernel.convolution is not None
    parts = ConvolutionParts(kernel.convolution, layout)
    if block_k > max(16, power_of_two(parts.n_channels if way else layout.n_inputs * layout.n_taps)):
        return False
    each = way.nbytes if way else ITEM_BYTES[layout.dtype]
    shared = (block_m + block_n) * block_k * each * int(parameters["num_stages"])
    a_thread = block_m * block_n // (32 * int(parameters["num_warps"]))
    return shared <= sheet.shared_kib_per_block * 1024 and 8 <= a_thread <= 128


def depthwise_defaults(kernel: Kernel) -> Parameters:
    """Choose first parameters of a depthwise convolution: lanes as wide as leave few idle, many rows a lane that walks, else four.

    On an H200 (2026-11-21) sixteen rows a lane took 0.88 to 1.01 of the time of eight, over five layers of 112 to 510 rows.
    """
    assert kernel.depthwise is not None
    rows, cols = _plane(kernel)
    width = min((32, 64, 128), key=lambda each: (-(-cols // each) * each, -each)) if cols > 16 else max(8, power_of_two(cols))
    many = 16 if rows >= 64 and 16 * math.prod(kernel.depthwise.size) <= LONGEST else 8
    a_lane = many if walks(kernel.depthwise) else 4
    height = min(power_of_two(rows), max(1, a_lane * 128 // width))
    return {"BLOCK_M": height, "BLOCK_N": width, "num_warps": max(1, width // 32, width * height // (32 * a_lane))}


def _plane(kernel: Kernel) -> tuple[int, int]:
    """Rows and columns that a depthwise convolution's tiles cover, at the sizes as written: of lines, each is a row."""
    assert kernel.depthwise is not None
    atoms = kernel.builder.atoms
    batch, channel, *spatial = (product((atoms.size(atom) for atom in atoms.leaves(dim)), atoms.traces)[0] for dim in kernel.depthwise.dims)
    return (batch * channel, spatial[0]) if len(spatial) == 1 else (spatial[-2], spatial[-1])


def depthwise_fits(kernel: Kernel, parameters: Mapping[str, Value]) -> bool:
    """Whether a depthwise convolution's tile lies in its plane, with a lane for each column and not too many rows a lane."""
    assert kernel.depthwise is not None
    rows, cols = _plane(kernel)
    block_m, block_n, lanes = int(parameters["BLOCK_M"]), int(parameters["BLOCK_N"]), 32 * int(parameters["num_warps"])
    inside = block_m <= power_of_two(rows) and block_n <= max(8, power_of_two(cols))
    count = math.prod(kernel.depthwise.size)
    short = count > UNROLLED or rows_a_lane(parameters) * count <= LONGEST
    return inside and short and block_n <= lanes <= block_m * block_n <= 16 * lanes


def attention_defaults(kernel: Kernel) -> Parameters:
    """Choose first parameters of an attention from its shapes as written."""
    layout = attention_layout_of(kernel)
    half = layout.dtype in ("float16", "bfloat16")
    head, value = max(16, power_of_two(layout.n_inner)), max(16, power_of_two(layout.n_wide))
    # a head held whole lies in registers or shared memory all through the walk: 64 KiB of queries at most
    widest = 256 if half else 128
    block_m = min(128 if half else 64, max(16, power_of_two(layout.n_rows)))
    return {
        "BLOCK_M": block_m,
        # float32 heads of 64 and less: 64 keys a step took 1660 µs on an H200 where 32 took 1821 µs (data/operators/attention.py)
        "BLOCK_N": min(64 if value <= (128 if half else 64) else 32, max(16, power_of_two(layout.n_cols))),
        "BLOCK_D": head if head <= widest else 64,
        "BLOCK_V": min(value, widest),
        "precision": "ieee" if half else "tf32x3",
        "num_warps": 8 if block_m * min(value, widest) >= 128 * 128 else 4,
        "num_stages": 2,
    }


def product_fits(kernel: Kernel, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes a product's kernel and can run on the device."""
    layout = product_layout_of(kernel)
    way = WAYS.get(str(parameters["precision"]))
    idle = {
        "precision": layout.dtype != "float32",
        "accumulate": way is not None,
        "right": layout.right_is_k_major,
        "SPLIT_K": layout.n_inner < 64 * int(parameters.get("SPLIT_K", 1)),
        WEIGHTS: not packable_operands(layout, parameters),
    }
    if idle.get(knob) or (way and not (layout.left.meta.contiguous and layout.right.meta.contiguous)):
        return False
    if parameters.get("programs") == OPERAND_STATIONARY:
        triangle = kernel.contraction is not None and kernel.contraction.triangle
        return knob != "GROUP_M" and not triangle and stationary_fits(layout, parameters, sheet)
    block_m, block_n, block_k = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    if block_m > max(16, power_of_two(layout.n_rows)) or block_n > max(16, power_of_two(layout.n_cols)):
        return False
    if block_k > max(16, power_of_two(layout.n_inner)):
        return False
    warps, each = int(parameters["num_warps"]), way.nbytes if way else ITEM_BYTES[layout.dtype]
    shared = (block_m + block_n) * block_k * each * int(parameters["num_stages"])
    fits = shared <= sheet.shared_kib_per_block * 1024 and 8 <= block_m * block_n // (32 * warps) <= 128
    return fits and programs_fit(layout, parameters, sheet.sms) and loads_fit(layout, parameters, sheet)


def attention_fits(kernel: Kernel, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
    """Whether changing `knob` to what `parameters` say changes an attention's kernel and can run on the device."""
    layout = attention_layout_of(kernel)
    if knob == "precision" and layout.dtype != "float32":
        return False
    block_m, block_n, block_d, block_v = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_D", "BLOCK_V"))
    head, value = max(16, power_of_two(layout.n_inner)), max(16, power_of_two(layout.n_wide))
    longest = {"BLOCK_M": layout.n_rows, "BLOCK_N": layout.n_cols, "BLOCK_D": head, "BLOCK_V": value}
    if knob in longest and int(parameters[knob]) > max(16, power_of_two(longest[knob])):
        return False
    stages, bytes_each, warps = int(parameters["num_stages"]), ITEM_BYTES[layout.dtype], int(parameters["num_warps"])
    # seen on an H200 with Triton 3.6: 16 warps on 64 rows read outside of their memory
    if warps > max(4, block_m // 8):
        return False
    shared = (block_m * min(block_d, head) + stages * block_n * (min(block_d, head) + min(block_v, value))) * bytes_each
    a_thread = block_m * (min(block_v, value) + block_n) // (32 * warps)
    return shared <= sheet.shared_kib_per_block * 1024 and 8 <= a_thread <= 192
