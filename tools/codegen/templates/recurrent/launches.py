"""What the launches of recurrent layers do: products of all inputs of a layer by the library, and a wave of steps at a time."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.recurrent import Recurrent
from tools.codegen.templates.recurrent.knobs import (
    DIAGONAL,
    HELD,
    NOTHING,
    lanes_of,
    products_of,
    programs_of,
    recurrent_of,
    shared_bytes,
    summed_of,
    sums_of,
)
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.tile_launch import PARTS, SPLIT_WORK, pass_launch
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

CELL_WORK = 80.0
"""Instructions of a lane for one unit of one sequence, when its sums are there; an assumption."""
SHARED_BYTES = 128.0
"""Bytes that a multiprocessor's shared memory gives in a clock."""
IEEE_SHARE = 0.11
"""Share of the float32 rate of such small products on the ordinary cores: six layers of an LSTM of 256 units with 10 sequences of 512 steps
took 11.6 ms on an H100 (2026-11-26), 22 µs a wave, where TF32 took 2.75 ms."""
EARLY_US = 0.4
"""What a wave gains by beginning beside the launch ahead: 0.3 µs of that LSTM, 0.5 of a GRU, where tiles were so large that few could.
Small ones piled up, many launches at once, until each began the next only after its own wait; since then nothing was measured."""


def waves_of(recurrent: Recurrent, waves: str) -> int:
    """Count the launches of steps."""
    steps, layers = recurrent.steps[0], len(recurrent.layers)
    return steps + layers - 1 if waves == DIAGONAL else steps * layers


def flops_of(recurrent: Recurrent) -> float:
    """Count multiplications and additions of all layers and steps."""
    return sum(_inputs_flops(recurrent, place) for place in range(len(recurrent.layers))) + _hidden_flops(recurrent)


def _hidden_flops(recurrent: Recurrent) -> float:
    rows = recurrent.batch[0] * recurrent.steps[0]
    return 2.0 * rows * recurrent.hidden[0] ** 2 * recurrent.cell.gates * len(recurrent.every)


def _inputs_flops(recurrent: Recurrent, layer: int) -> float:
    rows = recurrent.batch[0] * recurrent.steps[0] * recurrent.directions
    width = recurrent.hidden[0] * recurrent.directions if layer else recurrent.meta.shape[2][0]
    return 2.0 * rows * recurrent.hidden[0] * width * recurrent.cell.gates


def recurrent_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """Weights laid one after the other, the library's products, and the waves, which are all alike."""
    recurrent = recurrent_of(kernel)
    slanted = parameters["waves"] == DIAGONAL
    each = ITEM_BYTES[recurrent.meta.dtype]
    weights = recurrent.hidden[0] ** 2 * recurrent.cell.gates * len(recurrent.every) * (2 if slanted else 1) * each
    stacked = (pass_launch(2.0 * weights, sheet),) if len(recurrent.every) > 1 else ()
    products = tuple(_projection(recurrent, layer, sheet) for layer in range(1 if slanted else len(recurrent.layers)))
    waves = waves_of(recurrent, str(parameters["waves"]))
    return (*stacked, *products, *(_wave(recurrent, parameters, sheet),) * waves)


def _projection(recurrent: Recurrent, layer: int, sheet: HardwareSheet) -> LaunchWork:
    """The library's product of a layer's inputs at all steps, in tiles of 128 by 128."""
    rows, columns = recurrent.batch[0] * recurrent.steps[0], recurrent.hidden[0] * recurrent.cell.gates * recurrent.directions
    width = recurrent.hidden[0] * recurrent.directions if layer else recurrent.meta.shape[2][0]
    each = ITEM_BYTES[recurrent.meta.dtype]
    moved = float((rows * (width + columns) + width * columns) * each)
    half = recurrent.meta.dtype != "float32"
    peak = (sheet.bf16_tflops if recurrent.meta.dtype == "bfloat16" else sheet.fp16_tflops) if half else None
    return LaunchWork(
        programs=math.ceil(rows / 128) * math.ceil(columns / 128),
        warps=8,
        dram_bytes=moved,
        l2_bytes=moved,
        flight_bytes=32768.0,
        steps=math.ceil(width / 32),
        lane_work=0.0,
        product_flops=_inputs_flops(recurrent, layer),
        product_tflops=float(peak or sheet.fp32_tflops) * rates.LIBRARY_MATMUL_SHARE,
    )


def _wave(recurrent: Recurrent, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """One step of each layer, or of each direction: each program's weights come from the L2, at once where they are held."""
    block_b, block_h, warps, stages = (int(parameters[name]) for name in ("BLOCK_B", "BLOCK_H", "num_warps", "num_stages"))
    programs, summed, products = programs_of(recurrent, parameters), summed_of(recurrent, parameters), products_of(parameters)
    lanes, each, held = block_h * lanes_of(recurrent.cell), ITEM_BYTES[recurrent.meta.dtype], parameters["ahead"] == HELD
    steps, precision = math.ceil(recurrent.hidden[0] / summed), str(parameters["precision"])
    half = recurrent.meta.dtype != "float32"
    loaded = (block_b + lanes) * summed * products * each
    # each warp takes the states for itself
    fragments = (block_b * warps + lanes) * summed * products
    split = SPLIT_WORK if precision == "tf32x3" and not half else 0.0
    places = len(recurrent.layers) if parameters["waves"] == DIAGONAL else recurrent.directions
    peak = float((sheet.fp16_tflops if half else sheet.tf32_tflops) or sheet.fp32_tflops)
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=float(2 * places * recurrent.batch[0] * recurrent.hidden[0] * each),
        l2_bytes=float(programs * steps * loaded),
        flight_bytes=float(loaded * max(1, stages - 1)),
        steps=float(steps),
        lane_work=float(programs * (block_b * (block_h * CELL_WORK + lanes * 8) + steps * fragments * split)),
        exchange_cycles=fragments * each / SHARED_BYTES,
        registers=40 + (block_b * lanes * (sums_of(recurrent) + 1) + (lanes * summed * products * each / 4 if held else 0)) / (32 * warps),
        shared_bytes=float(shared_bytes(recurrent, parameters)),
        barriers=1.0 if stages > 1 else 3.0,
        product_flops=2.0 * programs * block_b * lanes * summed * products * steps * PARTS.get(precision, 1),
        product_tflops=sheet.fp32_tflops * IEEE_SHARE if precision == "ieee" and not half else peak * rates.TRITON_TENSOR_SHARE,
        serial=True,
        early_us=0.0 if parameters["ahead"] == NOTHING else EARLY_US,
    )
