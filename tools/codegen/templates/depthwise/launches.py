"""What the launch of a depthwise convolution does: bytes, lines that its loads look up in the L1, and instructions.

Measured on an NVIDIA H200 on 2026-11-21 (torch 2.11, triton 3.6), and gone since: two kernels of an earlier template, whose neighbouring
lanes did not ask for neighbouring elements. At one line a clock of 1980 MHz, the lines of their loads take by `warp_lines`:

* 5x5 elements, stride 2, 16 rows of two columns a warp: 4300 µs of 4196 measured;
* 3x7 elements, lanes 16 bytes apart: 1700 µs of 1464 measured.

So this term is right, or too long by a sixth, where it decides.
Derived: instructions and loads on their way, counted in the machine code of the present kernels for sm_90 (triton 3.6). Held against the
present kernels afterwards and not fitted to them, modelled over measured is 1.05 to 1.29 for 30 settings of four layers, and 1.54 to 1.73
for seven of 3x7 elements (docs/results/generated-kernels.md).
"""

from __future__ import annotations

import math

from tools.codegen.ir.geometry import Depthwise
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.depthwise.layout import PAIRED, pairs, reach, rows_a_lane, walks
from tools.codegen.templates.depthwise.quads import OWN, blocks, by_quads
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.tile_launch import pass_launch
from tools.codegen.templates.shared.work import OVERHEAD, WARP, ops_of
from tools.hardware import rates
from tools.records import ITEM_BYTES, HardwareSheet

LINE = 128
"""Bytes of a line of the L1 (CUDA Programming Guide, device memory accesses)."""
HEAD = 150.0
"""Instructions of a lane before its first load and after its last: counted 120 to 190."""
ROW = 6.0
"""For a row's address and tests: counted 5 to 6, for the input's rows that a lane walks over and for those that it stores."""
LOAD = 1.1
"""Beside a load whose lane is tested once a row: counted."""
TESTED = 3.0
"""Beside a load that is tested by itself, since the kernel reaches beyond the row's ends: counted 2.5 to 3, and 4 for a pair."""
GATHERED, GATHERED_OF_LINES = 5.0, 13.0
"""Beside an element that a result gathers by itself: counted 3 for a transpose with a stride of 2, whose rows share some loads, and 13 for
lines, each of which has a kernel of its own."""
QUAD = 12.0
"""Beside a block of four elements: its tests and conversions, counted."""
ON_THEIR_WAY = 7.0
"""Loads of a lane that wait for memory at once: counted 7 to 20 from a load's place in the machine code to its first use."""


def depthwise_launches(kernel: Kernel, parameters: Settings) -> tuple[LaunchWork, ...]:
    """One launch; a tile of one plane a program, or of several lines."""
    depthwise = kernel.depthwise
    assert depthwise is not None
    sizes = [kernel.builder.atoms.size(atom)[0] for dim in kernel.builder.atoms.resolve(depthwise.dims) for atom in dim]
    if len(depthwise.size) == 1:
        sizes = [math.prod(sizes[:-1]), sizes[-1]]
    block_m, block_n, warps = int(parameters["BLOCK_M"]), int(parameters["BLOCK_N"]), int(parameters["num_warps"])
    programs = math.prod(sizes[:-2]) * math.ceil(sizes[-2] / block_m) * math.ceil(sizes[-1] / block_n)
    source = kernel.builder.loads[depthwise.source].meta
    metas = [load.meta for load in kernel.builder.loads] + [output.meta for output in kernel.outputs]
    moved, item = float(sum(meta.numel * ITEM_BYTES[meta.dtype] for meta in metas)), ITEM_BYTES[source.dtype]
    own = OWN if by_quads(kernel) else 1
    rows, stride = rows_a_lane(parameters, own), own * _stride(depthwise, -1)
    loads, taps, work = _quad_counts(depthwise, rows)
    if own == 1:
        loads, taps, work = lane_counts(depthwise, rows, paired=source.written[-1] % PAIRED == 0)
    others = len(metas) - 2
    lanes = max(WARP * warps, block_m // rows * block_n // own)
    columns = min(WARP, block_n // own)
    lines = loads * warp_lines(columns, stride * item) + taps + rows * others * warp_lines(columns, own * item)
    on_their_way = min(loads, ON_THEIR_WAY) / depthwise.size[-1]
    return (
        LaunchWork(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=moved * _again(depthwise, block_m, block_n),
            flight_bytes=lanes * stride * item * max(1.0, on_their_way) * moved / (source.numel * item),
            steps=1,
            lane_work=float(programs * lanes) * (HEAD + work + rows * (own * ops_of(kernel) + OVERHEAD * (others - 1))),
            registers=32.0 + own * rows + min(taps, 16),
            exchange_cycles=lanes / WARP * lines / rates.L1_LINES_PER_CLOCK,
        ),
    )


def turning_launches(kernel: Kernel, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """PyTorch's copy of an input that does not lie as planes or lines, which the host function asks for; nothing of another."""
    assert kernel.depthwise is not None
    source = kernel.builder.loads[kernel.depthwise.source].meta
    moved = 2.0 * source.numel * ITEM_BYTES[source.dtype] / rates.TURNED_SHARE
    return () if source.contiguous else (pass_launch(moved, sheet),)


def warp_lines(columns: int, apart: int) -> float:
    """Count the lines that a warp's access touches, on average over where it may begin.

    `columns` lanes are neighbours, with `apart` bytes from one to the next; the other lanes are in other rows.
    """
    return WARP / columns * min(columns, 1 + (columns - 1) * apart / LINE)


def _stride(depthwise: Depthwise, place: int) -> int:
    """Elements of the input from one result to the next; a transpose's lanes are counted as if each found one of its own."""
    return 1 if depthwise.transposed else depthwise.stride[place]


def lane_counts(depthwise: Depthwise, rows: int, paired: bool = False) -> tuple[float, float, float]:
    """Count a lane's loads of the input, its loads of the kernel and its instructions."""
    elements = math.prod(depthwise.size)
    if not walks(depthwise):
        taps = float(elements if len(depthwise.size) > 1 else elements * rows)
        beside = GATHERED if len(depthwise.size) > 1 else GATHERED_OF_LINES
        return float(elements * rows), taps, taps + rows * (elements * (2 + beside) + ROW)
    walked = (rows - 1) * depthwise.stride[-2] + reach(depthwise, -2)
    loads = float(walked * elements // depthwise.size[-2])
    if paired and pairs(depthwise):
        loads *= pairs(depthwise) / depthwise.size[-1]
    beside = TESTED if depthwise.padding[-1] or depthwise.transposed else LOAD
    return (
        loads,
        float(elements),
        elements * (rows + 1) + loads * (1 + beside) + ROW * (walked * elements / math.prod(depthwise.size[-2:]) + rows),
    )


def _quad_counts(depthwise: Depthwise, rows: int) -> tuple[float, float, float]:
    """Count the same of a lane that makes four neighbours of each of its lines."""
    size, (_, number) = depthwise.size[-1], blocks(depthwise)
    each = OWN * size + size * (1 + LOAD) + number * (OWN + QUAD)
    return float(rows * number), float(rows * size), rows * (each + ROW)


def _again(depthwise: Depthwise, block_m: int, block_n: int) -> float:
    """How often what is moved is read on average: neighbouring tiles share what the kernel reaches of both, in a volume whole planes."""
    found = 1.0
    tile = {1: (block_n,), 2: (block_m, block_n), 3: (1, block_m, block_n)}[len(depthwise.size)]
    for place, length in enumerate(tile):
        stride = _stride(depthwise, place)
        found *= max(1.0, (length * stride + reach(depthwise, place) - stride) / (length * stride))
    return found
