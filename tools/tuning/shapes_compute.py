"""What the launches of compute-bound regions do: matrix products and attention."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tools.codegen.attention_space import attention_layout
from tools.codegen.lowering import Kernel
from tools.codegen.product_space import product_layout
from tools.codegen.sizes import power_of_two
from tools.profiling import rates
from tools.profiling.shape import LaunchShape
from tools.records import ITEM_BYTES, HardwareSheet
from tools.tuning.shapes_memory import Value, item, nbytes_of, ops_of

WARP = 32
WARPGROUP = 4
"""Warps that issue one asynchronous tensor instruction on Hopper."""
GROUP_ROWS = 64
"""Rows of its tile."""
STEP = 8.0
"""Summed elements whose products cost as much time as one step's own work; fitted on matmul_bias_gelu of the H200 landscape."""
SPLIT_WORK = 6.0
"""Instructions by which a lane splits one float32 into two shorter numbers; counted in the machine code, rounded."""
PARTS = {"tf32x3": 3, "fp16x3": 3}


def product_shapes(kernel: Kernel, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """The product, before it the copy of a right operand and after it the sum of split tiles, where there are any."""
    plan = product_layout(kernel)
    block_m, block_n, block_k, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"))
    splits, stages, each = int(parameters.get("SPLIT_K", 1)), int(parameters["num_stages"]), ITEM_BYTES[plan.dtype]
    rows, cols = math.ceil(plan.n_rows / block_m), math.ceil(plan.n_cols / block_n)
    programs = plan.n_batch * rows * cols * splits
    steps = math.ceil(plan.n_inner / block_k / splits)
    moved = float(sum(nbytes_of(a) for a in plan.accesses))
    threads = warps * WARP
    loaded = (block_m + block_n) * block_k
    chunked = parameters.get("accumulate") == "chunked"
    split = parameters["precision"] in PARTS
    accumulators = block_m * block_n * (2 if chunked else 1) / threads
    fragments = loaded * 2 / threads if split else 0.0
    lanes = steps * (loaded * ((SPLIT_WORK if split else 0.0) + 1.0) + (block_m * block_n if chunked else 0))
    shape = LaunchShape(
        programs=programs,
        warps=warps,
        dram_bytes=moved + (2.0 * plan.n_batch * plan.n_rows * plan.n_cols * 4 * splits if splits > 1 else 0.0),
        l2_bytes=float(programs * steps * loaded * each),
        flight_bytes=float(loaded * each * max(1, stages - 1)),
        steps=steps,
        lane_work=float(programs * (lanes + block_m * block_n * ops_of(kernel))),
        registers=40 + accumulators + fragments,
        shared_bytes=float(loaded * each * max(1, stages - 1)),
        barriers=1.0 if stages > 1 else 3.0,
        product_flops=2.0 * programs * block_m * block_n * block_k * steps * PARTS.get(str(parameters["precision"]), 1),
        product_tflops=tile_tflops(plan.dtype, str(parameters["precision"]), block_m, block_n, warps, sheet)
        / (1 + 0.5 / 2 ** (stages - 1))
        / (1 + STEP / block_k),
    )
    extra = []
    if parameters.get("right") == "k_major" and not plan.right_is_k_major:
        extra.append(_pass(2.0 * nbytes_of(plan.right), sheet))
    if splits > 1:
        extra.append(_pass(float(plan.n_batch * plan.n_rows * plan.n_cols * 4 * (splits + 1)), sheet))
    if parameters["precision"] == "fp16x3":
        extra.append(_pass(2.0 * (nbytes_of(plan.left) + nbytes_of(plan.right)), sheet))
    return (shape, *extra)


def attention_shapes(kernel: Kernel, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """One launch: a block of queries a program, walking the keys."""
    plan, attention = attention_layout(kernel), kernel.attention
    assert attention is not None
    block_m, block_n, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "num_warps"))
    stages, each, threads = int(parameters["num_stages"]), item(plan.query), warps * WARP
    head, value = max(16, power_of_two(plan.n_inner)), max(16, power_of_two(plan.n_wide))
    block_d, block_v = min(int(parameters["BLOCK_D"]), head), min(int(parameters["BLOCK_V"]), value)
    slices = math.ceil(plan.n_wide / block_v)
    programs = plan.n_outer * math.ceil(plan.n_rows / block_m) * slices
    steps = math.ceil(plan.n_cols / block_n) * (0.5 if attention.causal else 1.0) + 0.5
    parts = PARTS.get(str(parameters["precision"]), 1)
    tile, loaded = block_m * block_n, block_n * (plan.n_inner + block_v)
    # what is split into shorter numbers in every step: keys, values, weights, and queries where they are not held
    converted = (loaded + tile + block_m * plan.n_inner) if parts > 1 else 0
    lanes = steps * (tile * 12.0 + block_m * block_v * 2.0 + converted * SPLIT_WORK)
    across = warps * 16 / block_m
    moved = float(sum(nbytes_of(a) for a in plan.accesses))
    return (
        LaunchShape(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=float(programs * steps * loaded * each * (1 if block_d == head else 1.5)),
            flight_bytes=float(loaded * each * max(1, stages - 1)),
            steps=steps * (1 if block_d == head else math.ceil(head / block_d) * 0.75),
            lane_work=float(programs * lanes * (1 if block_d == head else 1.2)),
            registers=40 + (block_m * block_v + tile * (3 if parts > 1 else 1.5)) / threads,
            shared_bytes=float((block_m * block_d + stages * loaded) * each),
            # rows shared by warps: maxima, sums and the weights themselves go through shared memory
            exchange_cycles=tile / WARP * 8.0 * across if across > 1 else 0.0,
            barriers=4.0 * max(1.0, across),
            product_flops=2.0 * programs * steps * tile * (head + block_v) * parts,
            product_tflops=tile_tflops(plan.query.meta.dtype, str(parameters["precision"]), block_m, block_n, warps, sheet)
            * rates.ATTENTION_SHARE,
        ),
    )


def tile_tflops(dtype: str, precision: str, block_m: int, block_n: int, warps: int, sheet: HardwareSheet) -> float:
    """Rate of the units that a tile's shape lets a product use, TFLOP/s."""
    if dtype in ("float16", "bfloat16") or precision == "fp16x3":
        peak = sheet.fp16_tflops or sheet.fp32_tflops
    elif precision == "tf32x3":
        peak = sheet.tf32_tflops or sheet.fp32_tflops
    else:
        return sheet.fp32_tflops * rates.TILE_FMA_SHARE
    share = rates.TRITON_TENSOR_SHARE
    if sheet.generation == "hopper" and block_m >= GROUP_ROWS and warps >= WARPGROUP:
        # groups of warps that share rows each prepare the same left operand
        share /= max(1.0, warps // WARPGROUP * GROUP_ROWS / block_m)
    elif sheet.generation == "hopper" and precision not in PARTS:
        # operands that are split into parts come through registers either way
        share *= rates.OLD_TENSOR_SHARE
    # a tile too thin to reuse what it read from shared memory
    thin = min(1.0, 2 * block_m * block_n / (block_m + block_n) / 64)
    return float(peak * share * thin**0.5)


def _pass(nbytes: float, sheet: HardwareSheet) -> LaunchShape:
    """A simple kernel that moves bytes."""
    programs = max(1, int(nbytes // 16384))
    return LaunchShape(
        programs=programs, warps=4, dram_bytes=nbytes, l2_bytes=nbytes, flight_bytes=8192.0, steps=1, lane_work=nbytes, registers=32
    )
