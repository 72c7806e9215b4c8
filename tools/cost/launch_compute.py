"""What the launches of compute-bound regions do: matrix products, dense convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.schedule.knobs import ROUNDED
from tools.codegen.schedule.knobs_compute import packable_operands
from tools.codegen.templates.convolution.split_float import LEAST_CHANNELS, ConvolutionParts
from tools.codegen.templates.layout_cache import attention_layout_of, convolution_layout_of, product_layout_of
from tools.codegen.templates.matmul.legality import OPERAND_STATIONARY, tiles_of
from tools.codegen.templates.matmul.split_float import WAYS
from tools.codegen.templates.prepack import PREPACKED, WEIGHTS
from tools.cost.launch import LaunchShape
from tools.cost.launch_memory import Value, item, nbytes_of, ops_of
from tools.cost.launch_operand_stationary import stationary_launch, walked_bytes
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

WARP = 32
WARPGROUP = 4
"""Warps that issue one asynchronous tensor instruction on Hopper."""
GROUP_ROWS = 64
"""Rows of its tile."""
STEP = 8.0
"""Summed elements whose products cost as much time as one step's own work; fitted on matmul_bias_gelu of the H200 landscape."""
SPLIT_WORK = 6.0
"""Instructions by which a lane splits one float32 into two shorter numbers; counted in the machine code, rounded."""
PARTS = {"tf32x3": 3, **{precision: way.products for precision, way in WAYS.items()}}
"""Products on tensor cores behind one of float32, by precision."""
HALVES_SHARE = 1.55
"""Rate of products of parts that were split before, over `TRITON_TENSOR_SHARE` of the peak. Fitted with the next two on 74 schedules of
`fp16x3` and `bf16x6` on an H200 (2026-11-21: docs/results/generated-kernels.md, and what whole search runs measured of matmul_bias_gelu);
the root mean square of ln(modelled / measured) is 0.12 there."""
HALVES_WAIT = 1.0
"""Time by which such products wait for their operands with a single stage; a quarter of it with each stage more."""
HALVES_STEP = 14.0
"""`STEP` of the three products of `fp16x3`; a step's own work is the same for more products."""
TF32_SHARE = 1.4
"""The same of products of TF32 on Hopper, one or three: modelled over measured on an H200 (1.3 to 1.5 without it, from an operand that lies
along the sum: docs/results/generated-kernels.md). Convolutions of that kind have not been measured and go without."""
DESCRIBED_GAIN = 1.045
"""Rate of products of halves whose tiles come by descriptor, over that by pointers: so that a call at 4096³ with tiles of 128 by 128 by 64,
passes and all, takes 854 / 880 of the time, as measured on an H200 (docs/results/generated-kernels.md). Of other precisions it is taken to
be none."""
SHARE_COST = 1.18
"""Time of a launch of equal shares over what its steps take elsewhere: fitted there on `stream_k`, which gained nothing
(882 µs against 880)."""
RESULT_CYCLES = 0.72
"""Cycles of a multiprocessor in which one result leaves the tile of a program that makes no other or walks tiles one after the other:
what short sums wait for, and long ones do not notice. Fitted on five calls with sums of 32 to 112 elements on an NVIDIA H200 (2026-11-21),
among them 16384 by 64 by 16384 (docs/results/generated-kernels.md); of one of them, 112 to 672 channels at 224 by 224, kernel and pass by
the profiler, 1176 and 125 µs. Modelled over measured is 0.88 to 1.21."""
GATHER_WORK = 50.0
"""Instructions by which a lane of a convolution finds and reads one element of its input, splitting it included. Fitted on 255 schedules of
25 modules with a convolution of 16 to 128 channels on an H200, by the lab (2026-11-21): the root mean square of ln(modelled / measured) is
0.36 there."""
SCATTERED_WORK = 300.0
"""The same where a step takes elements of several kernel positions, each found by itself: fitted on 46 schedules of eight modules with
3 or 8 channels, 0.47 there."""
SPLIT_GATHER_WORK = 20.0
"""The same of parts that lie side by side: fitted there on 186 schedules of `fp16x3` of thirteen convolutions, 0.28; the schedule that
is modelled to be the fastest took at most 1.11 times as long as the fastest measured (docs/results/generated-kernels.md)."""


def product_shapes(kernel: Kernel, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """The product, before it the copy of a right operand and the passes that write parts, after it the sum of split tiles.

    Passes over weights that are packed are in no call.
    """
    plan = product_layout_of(kernel)
    packed = packable_operands(plan, parameters) if parameters.get(WEIGHTS) == PREPACKED else ()
    if parameters.get("programs") == OPERAND_STATIONARY:
        passes = (_pass(nbytes, sheet) for nbytes in (() if packed else walked_bytes(plan)))
        return stationary_launch(plan, parameters, ops_of(kernel), sheet), *passes
    splits, outputs = int(parameters.get("SPLIT_K", 1)), plan.n_batch * plan.n_rows * plan.n_cols
    turned = parameters.get("right") == "k_major" and not plan.right_is_k_major
    work = _Sum(
        tiles=tiles_of(plan, parameters),
        splits=splits,
        steps=math.ceil(plan.n_inner / int(parameters["BLOCK_K"]) / splits),
        moved=float(sum(nbytes_of(a) for a in plan.accesses)) + (2.0 * outputs * 4 * splits if splits > 1 else 0.0),
        dtype=plan.dtype,
        straight=turned or plan.right_is_k_major,
    )
    extra = []
    if turned and plan.right not in packed:
        extra.append(_pass(2.0 * nbytes_of(plan.right), sheet))
    if splits > 1:
        extra.append(_pass(float(outputs * 4 * (splits + 1)), sheet))
    way = WAYS.get(str(parameters["precision"]))
    passed = sum(nbytes_of(operand) for operand in (plan.left, plan.right) if operand not in packed)
    if way and passed:
        extra.append(_pass((1 + way.nbytes / 4) * passed, sheet))
    tiles = _tiles(work, parameters, ops_of(kernel), sheet)
    results = RESULT_CYCLES * int(parameters["BLOCK_M"]) * int(parameters["BLOCK_N"]) / max(1, work.steps)
    return (*_dealt(replace(tiles, exchange_cycles=results), work, parameters, sheet), *extra)


def _dealt(one: LaunchShape, work: _Sum, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """Deal tiles out to programs as `programs` says; `one` has a program for each."""
    programs, tile = parameters.get("programs", "data_parallel"), 4.0 * int(parameters["BLOCK_M"]) * int(parameters["BLOCK_N"])
    rest = work.tiles % sheet.sms
    if programs == "persistent" and work.tiles > sheet.sms:
        each = math.ceil(work.tiles / sheet.sms)
        return (_share(one, 1.0, sheet.sms, one.steps * each, uneven=each * sheet.sms / work.tiles),)
    if programs == "stream_k" and rest:
        written = (sheet.sms + rest) * tile
        shared = _share(one, rest / work.tiles, sheet.sms, rest * one.steps / sheet.sms)
        shared = replace(shared, dram_bytes=shared.dram_bytes + written, product_tflops=one.product_tflops / SHARE_COST)
        whole = (_share(one, 1 - rest / work.tiles, work.tiles - rest, one.steps),) if work.tiles > rest else ()
        return (*whole, shared, _pass(written + rest * tile, sheet))
    return (one,)


def _share(one: LaunchShape, part: float, programs: int, steps: float, uneven: float = 1.0) -> LaunchShape:
    """Give `part` of a launch's work to `programs`, of which the busiest has `uneven` times as much as they have on average."""
    return replace(
        one,
        programs=programs,
        steps=steps,
        dram_bytes=one.dram_bytes * part,
        l2_bytes=one.l2_bytes * part,
        lane_work=one.lane_work * part * uneven,
        product_flops=one.product_flops * part * uneven,
    )


def convolution_shapes(kernel: Kernel, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """A dense convolution as the product it is, its left operand gathered; before it both operands are brought to channels last."""
    plan = convolution_layout_of(kernel)
    assert kernel.convolution is not None
    block_k, way = int(parameters["BLOCK_K"]), WAYS.get(str(parameters["precision"]))
    parts = ConvolutionParts(kernel.convolution, plan)
    channels, taps = (parts.n_channels, parts.n_taps) if way else (plan.n_inputs, plan.n_taps)
    # a step takes channels of one element of the kernel, or elements of several where channels are few
    each_tap = channels >= LEAST_CHANNELS
    steps = taps * math.ceil(channels / block_k) if each_tap else math.ceil(taps * channels / block_k)
    rows, cols = math.ceil(plan.n_positions / int(parameters["BLOCK_M"])), math.ceil(plan.n_channels / int(parameters["BLOCK_N"]))
    work = _Sum(
        tiles=plan.n_images * plan.n_groups * plan.n_phases * rows * cols,
        splits=1,
        steps=steps,
        moved=float(sum(nbytes_of(a) for a in plan.accesses)),
        dtype=plan.dtype,
        straight=False,
        gathered=(SPLIT_GATHER_WORK if way else GATHER_WORK) if each_tap else SCATTERED_WORK,
    )
    image, weights = float(nbytes_of(plan.source)), float(nbytes_of(plan.weight))
    packed = parameters.get(WEIGHTS) == PREPACKED and plan.weight.fixed
    moved = [2.0 * image, 2.0 * weights]
    if way:
        # the first pass writes the weights and reads the images for their largest elements, the second writes the images
        growths = (parts.weight_growth, parts.growth)
        weights, image_parts = (nbytes * (1 + way.nbytes / 4 * growth) for nbytes, growth in zip((weights, image), growths, strict=True))
        moved = [image + weights, image_parts]
        if packed:
            moved[0] = image
    elif packed:
        moved = moved[:1]
    copies = tuple(_pass(nbytes, sheet) for nbytes in moved)
    return (_tiles(work, parameters, ops_of(kernel), sheet), *copies)


@dataclass(frozen=True)
class _Sum:
    """Tiles whose elements are long sums of products."""

    tiles: int
    splits: int
    """Programs that share the sum of one tile."""
    steps: int
    """Of one program."""
    moved: float
    """Compulsory bytes, and partial sums."""
    dtype: str
    straight: bool
    """Whether the right operand lies along the sum, as Hopper's TF32 instructions read it."""
    gathered: float = 0.0
    """Instructions by which a lane finds one element of the left operand."""


def _tiles(work: _Sum, parameters: Mapping[str, Value], ops: float, sheet: HardwareSheet) -> LaunchShape:
    """One launch: a tile a program, step by step along the sum."""
    block_m, block_n, block_k, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"))
    precision, stages = str(parameters["precision"]), int(parameters["num_stages"])
    programs, threads, loaded = work.tiles * work.splits, warps * WARP, (block_m + block_n) * block_k
    way = WAYS.get(precision)
    each = way.nbytes if way else ITEM_BYTES[work.dtype]
    chunked = parameters.get("accumulate") == "chunked" or way is not None
    # parts are split before the product and read from shared memory as they lie
    split = precision in PARTS and way is None
    issued = 0.0 if parameters.get("loads") == "descriptors" else 1.0
    fragments = loaded * 2 / threads if split else 0.0
    gathered = block_m * block_k * work.gathered
    lanes = work.steps * (loaded * ((SPLIT_WORK if split else 0.0) + issued) + gathered + (block_m * block_n if chunked else 0))
    return LaunchShape(
        programs=programs,
        warps=warps,
        dram_bytes=work.moved,
        l2_bytes=float(programs * work.steps * loaded * each),
        flight_bytes=float(loaded * each * max(1, stages - 1)),
        steps=work.steps,
        lane_work=float(programs * (lanes + block_m * block_n * ops)),
        registers=40 + block_m * block_n * (3 if way else 2 if chunked else 1) / threads + fragments,
        # parts lie in shared memory in every stage; what is split in the kernel is one stage ahead in registers
        shared_bytes=float(loaded * each * (stages if way else max(1, stages - 1))),
        barriers=1.0 if stages > 1 else 3.0,
        product_flops=2.0 * programs * block_m * block_n * block_k * work.steps * PARTS.get(precision, 1),
        product_tflops=_tile_rate(work, parameters, sheet),
    )


def _tile_rate(work: _Sum, parameters: Mapping[str, Value], sheet: HardwareSheet) -> float:
    """Rate of a tile's products, TFLOP/s, by the units it can use, its stages and the length of its steps."""
    block_m, block_n, block_k, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"))
    stages, precision = int(parameters["num_stages"]), str(parameters["precision"])
    rate = tile_tflops(work.dtype, precision, block_m, block_n, warps, sheet)
    if precision in WAYS:
        if precision == "fp16x3" and parameters.get("loads") == "descriptors" and sheet.generation == "hopper":
            rate *= DESCRIBED_GAIN
        own_work = HALVES_STEP * PARTS["fp16x3"] / PARTS[precision]
        return float(rate * HALVES_SHARE / (1 + HALVES_WAIT / 4 ** (stages - 1)) / (1 + own_work / block_k))
    if precision == ROUNDED and not work.straight and sheet.generation == "hopper":
        rate *= rates.OLD_TENSOR_SHARE
    elif precision in ("tf32x3", ROUNDED) and not work.gathered and sheet.generation == "hopper":
        rate *= TF32_SHARE
    return float(rate / (1 + 0.5 / 2 ** (stages - 1)) / (1 + STEP / block_k))


def attention_shapes(kernel: Kernel, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchShape, ...]:
    """One launch: a block of queries a program, walking the keys."""
    plan, attention = attention_layout_of(kernel), kernel.attention
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
    if dtype in ("float16", "bfloat16") or precision in WAYS:
        brain = dtype == "bfloat16" or precision.startswith("bf16")
        peak = (sheet.bf16_tflops if brain else sheet.fp16_tflops) or sheet.fp32_tflops
    elif precision in ("tf32x3", ROUNDED):
        peak = sheet.tf32_tflops or sheet.fp32_tflops
    else:
        return sheet.fp32_tflops * rates.TILE_FMA_SHARE
    share = rates.TRITON_TENSOR_SHARE
    if sheet.generation == "hopper" and block_m >= GROUP_ROWS and warps >= WARPGROUP:
        # groups of warps that share rows each prepare the same left operand
        share /= max(1.0, warps // WARPGROUP * GROUP_ROWS / block_m)
    elif sheet.generation == "hopper" and precision != "tf32x3":
        # operands that are split in the kernel come through registers either way
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
