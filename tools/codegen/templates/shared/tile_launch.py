"""What the launch of tiles does whose elements are long sums of products: of matrix products, implicit GEMMs and attention."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.shared.knob import ROUNDED, Settings
from tools.codegen.templates.shared.split_float import SINGLE, SPLIT_FLOATS
from tools.codegen.templates.shared.split_on_the_way import Tile, split_on_the_way
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

HALVES = ("float16", "bfloat16")
WARP = 32
WARPGROUP = 4
"""Warps that issue one asynchronous tensor instruction on Hopper."""
GROUP_ROWS = 64
"""Rows of its tile."""
STEP = 8.0
"""Summed elements whose products cost as much time as one step's own work; fitted on matmul_bias_gelu of the H200 landscape."""
SPLIT_WORK = 6.0
"""Instructions by which a lane splits one float32 into two shorter numbers; counted in the machine code, rounded."""
PARTS = {"tf32x3": 3, **{precision: split_float.products for precision, split_float in SPLIT_FLOATS.items()}}
"""Products on tensor cores behind one of float32, by precision."""
SPLIT_FLOAT_SHARE = 1.6
"""Rate of products of parts that were split before, over `TRITON_TENSOR_SHARE` of the peak. Fitted with the next two on 74 schedules of
`fp16x3` and `bf16x6` on an H200 (2026-11-21: docs/results/generated-kernels.md, and what whole search runs measured of matmul_bias_gelu);
the root mean square of ln(modelled / measured) is 0.12 there. 1.55 until the passes that split operands were counted one by one."""
SPLIT_FLOAT_WAIT = 1.0
"""Time by which such products wait for their operands with a single stage; a quarter of it with each stage more."""
SPLIT_FLOAT_STEP = 14.0
"""`STEP` of the three products of `fp16x3`; a step's own work is the same for more products. A single product of halves has no partial
sums to add and takes `STEP`: at 4096³ that gives 233 µs, where one of float16 took 210 on an H200 (docs/results/generated-kernels.md)."""
TF32_SHARE = 1.9
"""The same of single products of TF32 on Hopper from an operand that lies along the sum: two on an H200, less the copy that turned it
(docs/results/generated-kernels.md). Convolutions of that kind have not been measured and go without."""
DESCRIBED_GAIN = 1.045
"""Rate of products of halves whose tiles come by descriptor, over that by pointers: so that a call at 4096³ with tiles of 128 by 128 by 64,
passes and all, takes 854 / 880 of the time, as measured on an H200 (docs/results/generated-kernels.md). Of other precisions it is taken to
be none."""
HALF_SHARE = 0.86
"""Share of the peak that plain products of halves reach on Hopper with tiles of 256 by 128 by descriptor, before what `_tile_rate` takes
off for stages and steps. Fitted with the next three on 336 settings of six products of bfloat16 on an H100
(docs/results/generated-kernels.md); the root mean square of ln(modelled / measured) of the four large ones is 0.11 to 0.16."""
HALF_REUSE = (256 * 128 / (256 + 128), 0.68)
"""Products for each element of such a tile's operands at that share, and the power by which the rate falls with fewer."""
POINTED_HALVES = 0.90
"""Rate of such products whose tiles come by pointers, over that by descriptors."""
WIDE_HALVES = 0.89
"""Rate of such tiles that are wider than tall, one a program; programs that walk tiles lose nothing by it."""


@dataclass(frozen=True)
class TiledSum:
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
    exchanged: bool = False
    """Whether the transpose of the product is made."""
    plain: bool = False
    """Whether both operands go from memory to the tensor cores as they are, tile by tile."""


def tiles_launch(work: TiledSum, parameters: Settings, ops: float, sheet: HardwareSheet) -> LaunchWork:
    """One launch: a tile a program, step by step along the sum."""
    block_m, block_n, block_k, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"))
    precision, stages = str(parameters["precision"]), int(parameters["num_stages"])
    programs, threads, loaded = work.tiles * work.splits, warps * WARP, (block_m + block_n) * block_k
    split_float = SPLIT_FLOATS.get(precision)
    each = split_float.nbytes if split_float else ITEM_BYTES[work.dtype]
    several = split_float is not None and precision != SINGLE
    chunked = parameters.get("accumulate") == "chunked" or several
    # parts are split before the product and read from shared memory as they lie
    split = precision in PARTS and split_float is None
    issued = 0.0 if parameters.get("loads") == "descriptors" else 1.0
    on_the_way = split and not work.gathered
    fragments = loaded * 2 / threads if split else 0.0
    gathered = block_m * block_k * work.gathered
    prepared = 0.0 if on_the_way else loaded * (SPLIT_WORK if split else 0.0) + (block_m * block_n if chunked else 0)
    lanes = work.steps * (loaded * issued + gathered + prepared)
    launch = LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=work.moved,
        # the fitted rate of halves has what the L2 takes in it
        l2_bytes=work.moved if _is_fitted_half(work, parameters, sheet) else float(programs * work.steps * loaded * each),
        flight_bytes=float(loaded * each * max(1, stages - 1)),
        steps=work.steps,
        lane_work=float(programs * (lanes + block_m * block_n * ops)),
        tail_work=float(programs * block_m * block_n * ops),
        registers=40 + block_m * block_n * (3 if several else 2 if chunked else 1) / threads + fragments,
        # parts lie in shared memory in every stage; what is split in the kernel is one stage ahead in registers
        shared_bytes=float(loaded * each * (stages if split_float else max(1, stages - 1))),
        barriers=1.0 if stages > 1 else 3.0,
        product_flops=2.0 * programs * block_m * block_n * block_k * work.steps * PARTS.get(precision, 1),
        product_tflops=_tile_rate(work, parameters, sheet),
    )
    if not on_the_way:
        return launch
    rows, cols = (block_n, block_m) if work.exchanged else (block_m, block_n)
    grouped = sheet.generation == "hopper" and rows >= GROUP_ROWS and warps >= WARPGROUP
    tile = Tile(rows, cols, block_k, threads, grouped, work.straight, singly=work.exchanged and issued > 0)
    whole = tile_tflops(work.dtype, precision, rows, cols, warps, sheet) / rates.TRITON_TENSOR_SHARE
    return split_on_the_way(launch, tile, stages, whole, sheet)


def _tile_rate(work: TiledSum, parameters: Settings, sheet: HardwareSheet) -> float:
    """Rate of a tile's products, TFLOP/s, by the units it can use, its stages and the length of its steps."""
    block_m, block_n, block_k, warps = (int(parameters[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps"))
    stages, precision = int(parameters["num_stages"]), str(parameters["precision"])
    rate = tile_tflops(work.dtype, precision, block_m, block_n, warps, sheet)
    if _is_fitted_half(work, parameters, sheet):
        rate = _half_tflops(work.dtype, parameters, sheet)
    elif precision in SPLIT_FLOATS:
        if precision in ("fp16x3", SINGLE) and parameters.get("loads") == "descriptors" and sheet.generation == "hopper":
            rate *= DESCRIBED_GAIN
        own_work = STEP if precision == SINGLE else SPLIT_FLOAT_STEP * PARTS["fp16x3"] / PARTS[precision]
        return float(rate * SPLIT_FLOAT_SHARE / (1 + SPLIT_FLOAT_WAIT / 4 ** (stages - 1)) / (1 + own_work / block_k))
    if precision == ROUNDED and sheet.generation == "hopper" and not (work.straight and work.gathered):
        rate *= TF32_SHARE if work.straight else rates.OLD_TENSOR_SHARE
    return float(rate / (1 + 0.5 / 2 ** (stages - 1)) / (1 + STEP / block_k))


def _is_fitted_half(work: TiledSum, parameters: Settings, sheet: HardwareSheet) -> bool:
    """Whether `HALF_SHARE` holds for the tile."""
    grouped = int(parameters["BLOCK_M"]) >= GROUP_ROWS and int(parameters["num_warps"]) >= WARPGROUP
    return work.plain and work.dtype in HALVES and sheet.generation == "hopper" and grouped


def _half_tflops(dtype: str, parameters: Settings, sheet: HardwareSheet) -> float:
    """Rate of plain products of halves on Hopper, TFLOP/s."""
    block_m, block_n = int(parameters["BLOCK_M"]), int(parameters["BLOCK_N"])
    peak = (sheet.bf16_tflops if dtype == "bfloat16" else sheet.fp16_tflops) or sheet.fp32_tflops
    reuse, power = HALF_REUSE
    rate = peak * HALF_SHARE * (block_m * block_n / (block_m + block_n) / reuse) ** power
    wide = WIDE_HALVES if block_n > block_m and parameters.get("programs") != "persistent" else 1.0
    return float(rate * wide * (1.0 if parameters.get("loads") == "descriptors" else POINTED_HALVES))


def tile_tflops(dtype: str, precision: str, block_m: int, block_n: int, warps: int, sheet: HardwareSheet) -> float:
    """Rate of the units that a tile's shape lets a product use, TFLOP/s."""
    if dtype in HALVES or precision in SPLIT_FLOATS:
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


def pass_launch(nbytes: float, sheet: HardwareSheet) -> LaunchWork:
    """A simple kernel that moves bytes."""
    programs = max(1, int(nbytes // 16384))
    return LaunchWork(
        programs=programs, warps=4, dram_bytes=nbytes, l2_bytes=nbytes, flight_bytes=8192.0, steps=1, lane_work=nbytes, registers=32
    )
