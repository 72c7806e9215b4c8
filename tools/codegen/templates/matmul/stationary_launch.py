"""What an operand-stationary launch does: products with a short sum, whose programs keep a tile of one operand and walk the other."""

from __future__ import annotations

import math

from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.matmul.layout import MatmulLayout
from tools.codegen.templates.matmul.legality import left_is_stationary, stationary_bytes
from tools.codegen.templates.matmul.operand_stationary import PROGRAMS
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.split_float import SPLIT_FLOATS
from tools.codegen.templates.shared.work import nbytes_of
from tools.records import HardwareSheet

STEP_WAIT = 5.5
"""Time, in barriers, by which a program waits in a step for its walked tile, its products and its results. Fitted, with the next four, on
18 measurements of a prototype on an NVIDIA H200 (2026-11-21): six products with sums of 6 to 128 elements, up to four tiles each, and the
pass over what is walked. It has what is emitted here as its kernel, but for its grid, which deals no rows out. Modelled over measured is
0.93 to 1.09 for the fastest tile of each, 64 by 128 with four warps, and 0.79 to 1.18 for the others."""
ELEMENT_WAIT = 0.55
"""The same for each element of a tile that a thread has."""
WARP_WAIT = 6.7
"""The same for each warp beyond four."""
SPLIT_WAIT = 0.65
"""The same, once a program, for each element that a thread splits."""
STAGES = 3
"""What was measured; fewer leave room for another program, which is not taken to gain anything."""
STEP_CYCLES = 2100.0
"""Cycles of a multiprocessor that a step takes however many programs are held: with smaller tiles more of them gain nothing."""
SPLIT_WORK = 10.0
"""Instructions by which a lane splits one float32 into two fp16 parts; counted in the source, as the next."""
ELEMENT_WORK = 8.0
"""Instructions by which a lane adds, scales and stores one result."""


def walked_bytes(plan: MatmulLayout) -> tuple[float, ...]:
    """Bytes that each pass over what is walked moves: its parts are written, and before that it may be filled up."""
    walked = plan.right if left_is_stationary(plan) else plan.left
    nbytes = float(nbytes_of(walked))
    # zeros, then a copy: as `wide_halves` does where vectors lie in one piece each
    inner = next(axis.atoms for axis in plan.axes if axis.name == "inner")
    filled = plan.n_inner % 16 and walked.strides[inner[-1]] == ()
    return (nbytes * 2, *((nbytes, nbytes * 2) if filled else ()))


def stationary_launch(plan: MatmulLayout, parameters: Settings, ops: float, sheet: HardwareSheet) -> LaunchWork:
    """One launch: a program reads a tile of one operand once, and for each tile of the other waits, multiplies and stores."""
    rows, cols, inner, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"))
    tiles_m, tiles_n = math.ceil(plan.n_rows / rows), math.ceil(plan.n_cols / cols)
    walked, stationary, walks, holds = (cols, rows, tiles_n, tiles_m) if left_is_stationary(plan) else (rows, cols, tiles_m, tiles_n)
    shares = min(walks, math.ceil(PROGRAMS * sheet.sms / (plan.n_batch * holds)))
    programs, steps, threads = plan.n_batch * holds * shares, math.ceil(walks / shares), warps * sheet.warp_size
    split_float = SPLIT_FLOATS["fp16x3"]
    elements = walked * stationary / threads
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=float(sum(nbytes_of(access) for access in plan.accesses)),
        l2_bytes=float(
            programs * inner * (stationary * 4 + steps * walked * split_float.nbytes) + 4 * plan.n_batch * plan.n_rows * plan.n_cols
        ),
        flight_bytes=float(4 * inner * stationary + 4 * rows * cols * (steps + 1)),
        steps=steps,
        lane_work=float(programs * (stationary * inner * SPLIT_WORK + steps * rows * cols * (ELEMENT_WORK + ops))),
        registers=40 + 2 * elements + 16,
        shared_bytes=float(min(stationary_bytes(plan, {**parameters, "num_stages": STAGES}), sheet.shared_kib_per_block * 1024)),
        barriers=STEP_WAIT + ELEMENT_WAIT * elements + WARP_WAIT * max(0, warps - 4) + SPLIT_WAIT * inner * stationary / threads / steps,
        exchange_cycles=STEP_CYCLES,
        product_flops=2.0 * programs * steps * rows * cols * inner * split_float.products,
        product_tflops=sheet.fp16_tflops or sheet.fp32_tflops,
    )
