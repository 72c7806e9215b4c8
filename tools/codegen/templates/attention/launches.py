"""What the launch of an attention does."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.attention.bounds import bounds_of, walked_share, written_number
from tools.codegen.templates.attention.knobs import block_of, head_blocks, reuses_keys, splits_of
from tools.codegen.templates.attention.layout import attention_layout_of
from tools.codegen.templates.attention.scores import scores_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.tile_launch import GROUP_ROWS, HALVES, PARTS, SPLIT_WORK, WARP, pass_launch, tile_tflops
from tools.codegen.templates.shared.work import item, nbytes_of
from tools.hardware import rates
from tools.records import HardwareSheet

ENDED = 0.75
"""Part of the keys that is looked at where sequences end at lengths that are data: an assumption."""


def attention_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """A block of queries a program, walking the keys; where these are split, the sum of the parts."""
    plan, attention = attention_layout_of(kernel), kernel.attention
    assert attention is not None
    block_m, block_n, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "num_warps"))
    stages, each, threads = int(parameters["num_stages"]), item(plan.products[0].query.access), warps * WARP
    blocks, block_v = head_blocks(plan, parameters), min(int(parameters["BLOCK_V"]), block_of(plan.n_wide))
    head = sum(block_of(product.n_inner) for product in plan.products)
    # how often a step goes along heads that are not held whole
    turns = sum(math.ceil(size / blocks[axis]) for axis, size in plan.heads.items() if blocks[axis] < size)
    queries, keys = (sum(plan.heads[side.axis] for side in sides) for sides in (plan.queries, plan.keys))
    held_queries, held_keys = (sum(blocks[side.axis] for side in sides) for sides in (plan.queries, plan.keys))
    values = 0 if reuses_keys(plan, parameters) else block_v
    slices = math.ceil(plan.n_wide / block_v)
    splits = splits_of(parameters)
    tiles = plan.n_outer * math.ceil(plan.n_rows / block_m) * slices
    programs = tiles * splits
    looked_at = ENDED if any(bound.above and written_number(kernel, bound.rest) is None for bound in bounds_of(kernel)) else 1.0
    share = walked_share(kernel, plan.n_rows, plan.n_cols, block_m) * looked_at
    steps = math.ceil(plan.n_cols / block_n / splits) * share + 0.5
    parts = PARTS.get(str(parameters["precision"]), 1)
    tile, loaded = block_m * block_n, block_n * (keys + values)
    # what is split into shorter numbers in every step: keys, values, weights, and queries where they are not held
    converted = (block_n * (keys + block_v) + tile + block_m * queries) if parts > 1 else 0
    scores = scores_of(kernel)
    lanes = steps * (tile * (12.0 + scores.work) + block_m * block_v * 2.0 + converted * SPLIT_WORK)
    operands = _operands(block_m, block_n, held_keys + block_v) if plan.dtype in HALVES else 0.0
    across = warps * 16 / block_m
    # what is on its way lies in shared memory; with one stage keys, then values, which come through registers
    held = stages * loaded * each + (stages - 1) * tile * scores.nbytes if stages > 1 else block_n * max(keys, values) * each
    parts_bytes = 4.0 * plan.n_outer * plan.n_rows * (plan.n_wide + 2) * splits if splits > 1 else 0.0
    walked_over = {side.access.name for side in (*plan.keys, plan.value)}
    read = {a.name: plan.paged[a.name] * item(a) if a.name in plan.paged else nbytes_of(a) for a in plan.accesses}
    if plan.keys_are_values:
        # in the cache since it was read as keys
        del read[plan.value.access.name]
    moved = float(sum(size * (looked_at if name in walked_over else 1.0) for name, size in read.items())) + parts_bytes
    walked = (
        LaunchWork(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=float(programs * steps * (loaded * each * (1.5 if turns else 1) + tile * scores.nbytes)),
            flight_bytes=float((loaded * each + tile * scores.nbytes) * max(1, stages - 1)),
            steps=steps * (turns * 0.75 if turns else 1),
            lane_work=float(programs * lanes * (1.2 if turns else 1)),
            registers=40 + (block_m * block_v + tile * (3 if parts > 1 else 1.5) + operands) / threads,
            shared_bytes=float(block_m * held_queries * each + held),
            # rows shared by warps: maxima, sums and the weights themselves go through shared memory
            exchange_cycles=tile / WARP * 8.0 * across if across > 1 else 0.0,
            barriers=4.0 * max(1.0, across),
            product_flops=2.0 * programs * steps * tile * (head + block_v) * parts,
            product_tflops=tile_tflops(plan.dtype, str(parameters["precision"]), block_m, block_n, warps, sheet) * rates.ATTENTION_SHARE,
            ahead=stages > 1 and not plan.computed,
        ),
    )
    return (*walked, pass_launch(parts_bytes, sheet)) if splits > 1 else walked


def _operands(block_m: int, block_n: int, wide: int) -> float:
    """Registers of all threads that hold halves for tensor cores: Hopper's asynchronous products find all but the weights in shared memory.

    Kernels of 16 rows with 64 keys of 128 and 128 elements have 136 registers in four warps and 246 in two; with 128 keys of 64, 247 in
    two; of 64 and 128 rows with 64 keys, 137 and 223 in four (counted, sm_90, Triton 3.6).
    """
    return block_n * (block_m if block_m >= GROUP_ROWS else wide) / 2
