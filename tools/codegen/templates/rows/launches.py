"""What the launches of row reductions and scans do."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.templates.rows.l2_two_pass import AHEAD
from tools.codegen.templates.rows.layout import row_layout_of
from tools.codegen.templates.rows.partial_results import ending_rows
from tools.codegen.templates.rows.region import RowRegion
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.work import DIVISION, INSTRUCTION_BYTES, OVERHEAD, SECTOR, WARP, WIDEST, crowding
from tools.hardware import rates
from tools.records import HardwareSheet

EXCHANGED = 2.0
"""Instructions of one step in which lanes that share a row add up: an exchange and a sum."""
SUMMED, SUMMED_MORE = 40.0, 10.0
"""Instructions of a lane by which its warp, and then all warps of a program, add up what they have of a row each, and the same of a further
row: sums, softmaxes and norms of one row of 2,048 in 1 to 8 warps have 80, 110 and 105 beside their elements' (sm_90, Triton 3.6)."""
BANKS = 32
"""Of shared memory, four bytes wide."""
LEAST_BEFORE = 3.0
"""Instructions an element before a merged reduction from which on they cost more than others."""
SECOND_PASS = 0.35
"""Time of the second reading of `l2_two_pass` over that of one from memory, where the L2 holds what lies between the two: fitted with the
model's other constants on four norms on an H200 (4504, 4857, 3906 and 5378 µs; copying in another sitting 3521, 3521, 3020 and 4002)."""
BEFORE_REGISTERS = 2.5
"""Registers that each element of a lane takes beyond its own where that many instructions or more stand before a merged reduction: read off
the machine code of two group norms on sm_90 (95 and 102 registers for 16 elements, 64 for the norm alone)."""
ACROSS_AGAIN = 1.5
"""Time of walking split rows again to write them, over that of their bytes, where rows lie across memory: batch norms and an instance norm
with channels last took 1.46, 1.63, 1.85 and 1.24 times as long as their bytes on an H100 (2026-11-26; level 3, problem 8, and level 2,
problems 73 and 17 of KernelBench), the walk that sums them up 1.1, 1.1, 0.9 and 1.4 times."""


def row_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch, or where rows are split one a level and one that combines."""
    plan = row_layout_of(kernel)
    row = RowRegion.read(kernel, plan, parameters)
    if parameters["algorithm"] not in ("split", "l2_two_pass"):
        return (_row_launch(row, row.programs, row.n_cols, row.passes, sheet),)
    splits = min(int(parameters["SPLITS"]), math.ceil(row.n_cols / row.block))
    chunk = math.ceil(row.n_cols / splits)
    if parameters["algorithm"] == "l2_two_pass":
        return (_COUNTERS, _l2_two_pass(row, splits, chunk, sheet))
    if row.scans:
        return _split_scan(row, splits, chunk, sheet)
    summed = row._replace(partial=True, other_bytes=0) if row.again else row._replace(partial=True)
    partial = _row_launch(summed, row.programs * splits, chunk, 1, sheet)
    moved = (row.wide_bytes + row.other_bytes) * row.shared_sectors * (1.0 if row.inner else ACROSS_AGAIN) + row.partly_bytes
    ending = row if row.again else row._replace(rows=ending_rows(row.rows, splits))
    programs = row.programs * splits if row.again else row.programs * math.ceil(row.rows / ending.rows)
    combine = LaunchWork(
        programs=programs,
        warps=row.warps,
        dram_bytes=float(moved if row.again else 0) + 1.0,
        l2_bytes=programs * ending.parts_bytes(splits),
        flight_bytes=partial.flight_bytes,
        steps=1,
        lane_work=programs * (ending.parts_work(splits) + row.warps * WARP * rates.PROGRAM_WORK)
        + (row.programs * row.rows * row.n_cols * row.work(2) if row.again else 0.0),
        registers=ending.parts_registers(splits),
        barriers=2.0,
    )
    return (partial,) * max(1, row.levels - row.merged) + (combine,)


_COUNTERS = LaunchWork(programs=1, warps=4, dram_bytes=1.0, l2_bytes=1.0, flight_bytes=512.0, steps=1, lane_work=128.0)
"""The launch that sets the counters of `l2_two_pass` to zero."""


def _l2_two_pass(row: RowRegion, splits: int, chunk: int, sheet: HardwareSheet) -> LaunchWork:
    """One launch with a program a chunk; what lies between two readings of a row is in the L2 as far as that holds it."""
    launch = _row_launch(row, row.programs * splits, chunk, row.passes, sheet)
    between = 2 * (math.ceil(AHEAD / splits) + 1) * row.n_cols * row.item
    again = (row.passes - 1) * min(1.0, max(SECOND_PASS, between / (sheet.l2_mib * 2**20)))
    return launch._replace(
        dram_bytes=row.wide_bytes * (1 + again) + row.other_bytes + _parts_of_sectors(row),
        l2_bytes=launch.l2_bytes + float(row.programs * splits * splits * 8),
    )


def _split_scan(row: RowRegion, splits: int, chunk: int, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch that adds up each chunk, and one that scans it: what it reads again comes from the L2 as far as that holds it."""
    programs = row.programs * splits
    partial = _row_launch(row._replace(scans=False, is_wide=False, other_bytes=0), programs, chunk, 1, sheet)
    scan = _row_launch(row, programs, chunk, 1, sheet)
    again = min(1.0, max(0.0, row.wide_bytes / (sheet.l2_mib * 2**20) - rates.L2_RESIDENT))
    return partial, scan._replace(
        dram_bytes=scan.dram_bytes - (1 - again) * partial.dram_bytes,
        l2_bytes=scan.l2_bytes + programs * row.parts_bytes(splits),
        lane_work=scan.lane_work + programs * row.parts_work(splits),
        registers=max(scan.registers, row.parts_registers(splits)),
    )


def _row_launch(row: RowRegion, programs: int, columns: int, passes: int, sheet: HardwareSheet) -> LaunchWork:
    threads = row.warps * WARP
    a_thread = row.tile / threads
    vector = max(1, min(WIDEST // row.item, row.tile // threads, row.aligned))
    steps = 1 if row.whole else math.ceil(columns / (row.block * row.unroll * row.filled))
    waste = SECTOR / min(SECTOR, row.rows * row.item) if row.piece else 1.0
    held = min(32, sheet.max_threads_per_sm // (WARP * row.warps))
    live = min(programs, held * sheet.sms) * row.rows * columns * row.item
    again = (passes - 1) * min(1.0, max(0.0, live / (sheet.l2_mib * 2**20) - rates.L2_RESIDENT))
    wide_bytes = row.wide_bytes / min(row.seen, row.rows)
    l2_bytes = (
        wide_bytes * passes * waste * max(1.0, SECTOR / (row.short * row.item)) + row.other_bytes + row.narrow_bytes * programs * passes
    )
    lanes = float(max(steps * row.tile, threads) * programs * passes)
    exchange, barriers = _exchange_across(row, vector, steps * passes) if row.lies_across else _exchange(row, vector)
    values = max(1.0, a_thread) * (row.wide_reads + (1 if row.whole or row.merged or row.scans else 0.5))
    if row.merged and row.before >= LEAST_BEFORE:
        values += BEFORE_REGISTERS * a_thread
    work = row.work(passes) + row.converted + _accesses(row, vector)
    loads = row.wide_bytes + row.other_bytes if row.is_wide else row.wide_bytes
    return LaunchWork(
        programs=programs,
        warps=row.warps,
        dram_bytes=row.wide_bytes / row.seen * waste * (1 + again) + row.other_bytes + _parts_of_sectors(row),
        l2_bytes=float(l2_bytes),
        flight_bytes=max(row.tile, threads / 4) * row.item * row.wide_reads * (loads / max(row.wide_bytes, 1)),
        steps=steps * passes,
        lane_work=lanes * work * crowding(INSTRUCTION_BYTES * a_thread * work) + programs * threads * (rates.PROGRAM_WORK + _of_rows(row)),
        registers=24 + values,
        exchange_cycles=exchange,
        barriers=barriers + (2.0 / steps if row.warps > 1 else 0.0),
    )


def _parts_of_sectors(row: RowRegion) -> float:
    """Bytes that move besides what is wanted, since sectors are written in part."""
    if row.partial:
        return 0.0
    return row.partly_bytes + (row.wide_bytes + row.other_bytes) * (row.shared_sectors - 1 if row.again else 0)


def _of_rows(row: RowRegion) -> float:
    """Instructions of a lane for its rows' sums and what is made of them."""
    if not row.inner or row.block <= WARP:
        return 0.0
    rows = max(1.0, row.rows / row.warps)
    return row.sums * (SUMMED + SUMMED_MORE * (rows - 1.0)) + row.row_ops * rows


def _accesses(row: RowRegion, vector: int) -> float:
    """Instructions an element besides its formulas: addresses, the number of its row taken apart, and its row's sums in narrow ones.

    Lanes that share a row each take its number apart, and have its sums of one another: a lane holds `vector` neighbours of a row.
    """
    if row.lies_across:
        lanes, held = WARP // _lanes_of_rows(row, vector), row.tile / (row.warps * WARP)
        summed = row.sums * EXCHANGED * math.log2(lanes) * vector / held / (1 if row.whole else math.ceil(row.n_cols / row.block))
    else:
        lanes = min(WARP, max(1, row.block // vector))
        summed = row.sums * EXCHANGED * math.log2(lanes) * lanes / row.block if row.whole and row.block <= WARP else 0.0
    return (OVERHEAD * (row.wide_reads + row.narrow_reads) + DIVISION * (row.parts - 1)) / vector + summed


def _lanes_of_rows(row: RowRegion, vector: int) -> int:
    """Lanes of a warp that lie along rows of which each reads `vector` that are neighbours in memory; the others lie along the columns."""
    return min(WARP, max(1, row.rows // vector))


def _exchange_across(row: RowRegion, vector: int, steps: int) -> tuple[float, float]:
    """Cycles of shared memory and barriers of each of `steps`: warps that lie along the columns reduce their rows together, once a walk.

    Triton's scratch has what those warps hold of a row side by side. A lane stores `vector` rows as far apart as all that takes,
    in banks that collide. Softmaxes of 16 elements, half precision, 537,600 rows side by side in memory: by 128 in 1, 2, 4 and 8 warps they
    took 18, 25, 65 and 121 µs (an H200, 2026-11-29), of which this is 0, 12, 50 and 99.
    """
    lanes = _lanes_of_rows(row, vector)
    beside = row.warps // min(row.warps, max(1, row.rows // (vector * WARP)))
    beside = min(beside, max(1, row.block * lanes // WARP))
    if beside == 1:
        return 0.0, 0.0
    collide = max(1.0, lanes * math.gcd(vector * beside, BANKS) / BANKS)
    return 2 * row.sums * vector * collide * row.warps / steps, 2.0 * row.sums / steps


def _exchange(row: RowRegion, vector: int) -> tuple[float, float]:
    """Cycles of shared memory and barriers of one step: what its warps reduce together."""
    reductions = 2 if row.merged else 1
    across = row.block * row.rows / (WARP * vector)
    if row.scans:
        # each warp adds up what the warps before it hold
        return 2.0 * row.tile / WARP, 2.0 + min(row.warps, max(across / row.rows, 1.0)) if row.warps > 1 else 0.0
    if row.unroll > 1:
        # blocks of one step that do not lie below one another in one thread are reduced across warps
        spread = min(row.unroll, row.warps / max(across, 1.0))
        if spread <= 1:
            return 0.0, 0.0
        # Triton's scratch puts the values of one lane `vector` apart and of one column `spread` apart: banks collide
        return 2 * reductions * vector * min(WARP, vector * spread) * min(row.warps, max(across, 1.0) * spread), 2.0 * reductions
    if row.whole or not row.merged:
        return 0.0, 0.0
    return (0.0, 2.0) if row.warps > 1 and row.inner else (0.0, 0.0)
