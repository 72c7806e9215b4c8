"""What the launches of row reductions and scans do."""

from __future__ import annotations

import math
from typing import NamedTuple

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.templates.rows.l2_two_pass import AHEAD
from tools.codegen.templates.rows.layout import RowLayout, row_layout_of
from tools.codegen.templates.rows.online_pairs import online_pairs
from tools.codegen.templates.rows.partial_results import ending_rows
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.flow import flow_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.sectors import axis_steps, sectors
from tools.codegen.templates.shared.work import DIVISION, OVERHEAD, SECTOR, WARP, WIDEST, emitted, item, nbytes_of, ops_of, work_of
from tools.hardware import rates
from tools.records import HardwareSheet

ALIGNED = 16
"""Multiples of which Triton knows that a number is one."""
EXCHANGED = 2.0
"""Instructions of one step in which lanes that share a row add up: an exchange and a sum."""
LEAST_BEFORE = 3.0
"""Instructions an element before a merged reduction from which on they cost more than others."""
BEFORE_COST = 4.0
"""Time of such instructions over that of others: few programs fit with their registers, and each waits for its own walk. Fitted on two
group norms by `online` over long rows on an H200 (2026-11-21, 6347 and 1452 µs); of other ways to walk a row twice it is assumed."""
SECOND_PASS = 0.35
"""Time of the second reading of `l2_two_pass` over that of one from memory, where the L2 holds what lies between the two: fitted with the
model's other constants on four norms on an H200 (4504, 4857, 3906 and 5378 µs; copying in another sitting 3521, 3521, 3020 and 4002)."""
BEFORE_REGISTERS = 2.5
"""Registers that each element of a lane takes beyond its own where that many instructions or more stand before a merged reduction: read off
the machine code of two group norms on sm_90 (95 and 102 registers for 16 elements, 64 for the norm alone)."""


PARTLY_WRITTEN = 2.625
"""Sectors that a run of neighbours costs more where it begins anywhere: seven times in eight it has two that it fills in part, and these
are read before they are written. A softmax over 128 channels laid last whose 16641 results a channel are written side by side, 8, 16, 32
and 64 by a program, took 1862, 1365, 1254 and 970 µs on an H100 (2026-11-26; level 2, problem 91 of KernelBench); by this 1.9 ms, 1.4, 1.1
and 1.0."""
PART_BYTES = 8
"""Bytes of a partial result, at most."""
PART_WORK = 4.0
"""Instructions by which a lane reads a partial result and adds it: an address, a mask, a load, a sum."""

ACROSS_AGAIN = 1.5
"""Time of walking split rows again to write them, over that of their bytes, where rows lie across memory: batch norms and an instance norm
with channels last took 1.46, 1.63, 1.85 and 1.24 times as long as their bytes on an H100 (2026-11-26; level 3, problem 8, and level 2,
problems 73 and 17 of KernelBench), the walk that sums them up 1.1, 1.1, 0.9 and 1.4 times."""


def row_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch, or where rows are split one a level and one that combines."""
    plan = row_layout_of(kernel)
    row = _Row.read(kernel, plan, parameters)
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


def _l2_two_pass(row: _Row, splits: int, chunk: int, sheet: HardwareSheet) -> LaunchWork:
    """One launch with a program a chunk; what lies between two readings of a row is in the L2 as far as that holds it."""
    launch = _row_launch(row, row.programs * splits, chunk, row.passes, sheet)
    between = 2 * (math.ceil(AHEAD / splits) + 1) * row.n_cols * row.item
    again = (row.passes - 1) * min(1.0, max(SECOND_PASS, between / (sheet.l2_mib * 2**20)))
    return launch._replace(
        dram_bytes=row.wide_bytes * (1 + again) + row.other_bytes,
        l2_bytes=launch.l2_bytes + float(row.programs * splits * splits * 8),
    )


def _split_scan(row: _Row, splits: int, chunk: int, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
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


class _Row(NamedTuple):
    """A row region with its parameters."""

    rows: int
    block: int
    unroll: int
    warps: int
    programs: int
    n_cols: int
    passes: int
    levels: int
    is_wide: bool
    again: bool
    """Whether rows are read once more to be written."""
    inner: bool
    merged: bool
    scans: bool
    whole: bool
    item: int
    wide_reads: int
    wide_bytes: int
    other_bytes: int
    ops: float
    before: float
    """Instructions an element before anything is reduced: every walk of a row takes them again."""
    piece: int
    narrow_reads: int
    """Reads of what several rows share, which varies from row to row all the same."""
    narrow_bytes: float
    """Sectors that a program touches of them, in one walk of its rows."""
    parts: int
    """Dimensions that the number of a row is taken apart into."""
    short: int
    """Columns that lie side by side, where a row is walked piece by piece; otherwise all."""
    beside: int
    """Columns that lie side by side, however the row is walked."""
    filled: float
    """Share of the lanes along the columns that have one: blocks end with their piece."""
    aligned: int
    """Elements to a multiple of which every row begins, as far as wide accesses ask: Triton is told of even lengths alone."""

    seen: float = 1.0
    """Times that each element in memory is read by rows that overlap, as windows do."""
    partly_bytes: float = 0.0
    """Bytes that more sectors have than what is written, where a program's rows lie side by side in the result and begin anywhere."""
    sums: int = 1
    """Reductions, each of which lanes that share a row exchange by itself."""
    partial: bool = False
    """Whether partial results alone are written."""

    @classmethod
    def read(cls, kernel: Kernel, plan: RowLayout, parameters: Settings) -> _Row:
        algorithm, rows = parameters["algorithm"], int(parameters["ROWS"])
        reduced = set(plan.cols)
        wide = [a for a in plan.accesses if set(a.strides) & reduced and nbytes_of(a) // item(a) >= plan.n_cols]
        reads = [a for a in wide if not a.is_output and nbytes_of(a) // item(a) >= plan.n_rows * plan.n_cols // 2] or wide[:1]
        outputs = [a for a in wide if a.is_output]
        shared = [a for a in wide if not a.is_output and set(a.strides) & set(plan.rows) and a.meta.numel < plan.n_rows * plan.n_cols // 2]
        levels = _levels(kernel)
        merged = algorithm in ("online", "split", "l2_two_pass") and bool(_pairs(kernel))
        passes = 1 if algorithm == "registers" else max(1, levels - merged) + (bool(outputs) and not plan.early)
        if plan.scans:
            passes = 1
        columns = power_of_two(plan.n_cols)
        whole = algorithm == "registers"
        piece = plan.n_inner if not plan.inner_reduction else 0
        apart = plan.in_pieces(rows > 1, not whole)
        seen = sum(nbytes_of(a) for a in reads) / max(1.0, sum(nbytes_of(a) / a.meta.seen for a in reads))
        short = plan.n_piece if apart else plan.n_cols
        across = max(1, min(int(parameters.get("BLOCK_N", 1)), power_of_two(short)))
        programs = math.ceil(plan.n_rows / rows) if plan.inner_reduction or not plan.n_inner else (
            plan.n_rows // plan.n_inner * math.ceil(plan.n_inner / rows)
        )  # fmt: skip
        return cls(
            rows=rows, block=columns if whole else min(int(parameters["BLOCK_N"]), columns),
            unroll=int(parameters.get("UNROLL", 1)) if rows == 1 and not plan.scans and not whole else 1,
            warps=int(parameters["num_warps"]), programs=max(1, programs), n_cols=plan.n_cols, passes=passes, levels=levels,
            is_wide=bool(outputs), again=bool(outputs) and not plan.early, inner=plan.inner_reduction, merged=merged,
            scans=plan.scans, whole=whole, item=max((item(a) for a in reads), default=4), wide_reads=len(reads),
            wide_bytes=sum(nbytes_of(a) for a in reads), other_bytes=sum(nbytes_of(a) for a in plan.accesses if a not in reads),
            ops=ops_of(kernel), before=_before(kernel), piece=piece,
            narrow_reads=sum(a not in reads for a in shared), parts=len(plan.row_groups) if rows > 1 else 1,
            narrow_bytes=sum(_touched(kernel, plan, a, rows, columns) for a in shared),
            short=short, beside=plan.n_piece if len(plan.col_groups) > 1 and plan.inner_reduction else ALIGNED,
            filled=short / (math.ceil(short / across) * across) if apart else 1.0,
            aligned=1 if seen > 1 else math.gcd(short if apart else plan.n_cols, ALIGNED) if plan.inner_reduction else ALIGNED,
            seen=max(1.0, seen), sums=sum(kernel.builder.exprs[place].reduces() for place in emitted(kernel)),
            partly_bytes=sum(_partly_written(plan, a, rows) for a in outputs),
        )  # fmt: skip

    def parts_bytes(self, splits: int) -> float:
        """Bytes of the partial results that one program combines."""
        return float(self.rows * splits * PART_BYTES)

    def parts_work(self, splits: int) -> float:
        """Instructions by which a program's lanes combine them."""
        return PART_WORK * max(self.rows * power_of_two(splits), self.warps * WARP)

    def parts_registers(self, splits: int) -> float:
        """Registers of a thread that combines them: it holds its part of them all."""
        return 24 + self.rows * power_of_two(splits) / (self.warps * WARP) * PART_BYTES / 4

    def work(self, passes: int) -> float:
        """Instructions an element in each of `passes` walks."""
        return (self.ops - self.before) / max(passes, 1) + self.before * (BEFORE_COST if passes > 1 or self.merged else 1.0)

    @property
    def shared_sectors(self) -> float:
        """Rows that have part of one sector: each has it read whole, and written in part, which memory does no faster than whole.

        Group norms of 3 and 4 channels laid last took 671 and about 1,100 µs to be written on an H100 (2026-11-26), modelled 86 and 539.
        """
        return max(1.0, SECTOR / (self.beside * self.item))

    @property
    def tile(self) -> int:
        """Elements of one step."""
        return self.rows * self.block * self.unroll


def _lies_across(plan: RowLayout, access: Access) -> bool:
    """Whether rows that are read one behind the other are written side by side."""
    return plan.inner_reduction and bool(plan.rows) and access.strides.get(plan.rows[-1]) == () and access.strides[plan.cols[-1]] != ()


def _partly_written(plan: RowLayout, access: Access, rows: int) -> float:
    """Bytes of sectors that the runs of some rows fill in part; none where rows lie apart in the result, or sectors begin with them."""
    if not _lies_across(plan, access) or math.gcd(plan.n_inner, rows) * item(access) % SECTOR == 0:
        return 0.0
    return nbytes_of(access) * PARTLY_WRITTEN * SECTOR / (rows * item(access))


def _row_launch(row: _Row, programs: int, columns: int, passes: int, sheet: HardwareSheet) -> LaunchWork:
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
    exchange, barriers = _exchange(row, vector)
    values = max(1.0, a_thread) * (row.wide_reads + (1 if row.whole or row.merged or row.scans else 0.5))
    if row.merged and row.before >= LEAST_BEFORE:
        values += BEFORE_REGISTERS * a_thread
    loads = row.wide_bytes + row.other_bytes if row.is_wide else row.wide_bytes
    return LaunchWork(
        programs=programs,
        warps=row.warps,
        dram_bytes=row.wide_bytes / row.seen * waste * (1 + again)
        + row.other_bytes
        + (0.0 if row.partial else row.partly_bytes)
        + (row.wide_bytes + row.other_bytes) * (row.shared_sectors - 1 if row.again and not row.partial else 0),
        l2_bytes=float(l2_bytes),
        flight_bytes=max(row.tile, threads / 4) * row.item * row.wide_reads * (loads / max(row.wide_bytes, 1)),
        steps=steps * passes,
        lane_work=lanes * (row.work(passes) + _accesses(row, vector)) + programs * threads * rates.PROGRAM_WORK,
        registers=24 + values,
        exchange_cycles=exchange,
        barriers=barriers + (2.0 / steps if row.warps > 1 else 0.0),
    )


def _accesses(row: _Row, vector: int) -> float:
    """Instructions an element besides its formulas: addresses, the number of its row taken apart, and its row's sums in narrow ones.

    Lanes that share a row each take its number apart, and have its sums of one another: a lane holds `vector` neighbours of a row.
    """
    lanes = min(WARP, max(1, row.block // vector))
    summed = row.sums * EXCHANGED * math.log2(lanes) * lanes / row.block if row.whole and row.block <= WARP else 0.0
    return (OVERHEAD * (row.wide_reads + row.narrow_reads) + DIVISION * (row.parts - 1)) / vector + summed


def _touched(kernel: Kernel, plan: RowLayout, access: Access, rows: int, columns: int) -> float:
    """Bytes of the sectors that some rows of a tensor touch."""
    atoms, flow = kernel.builder.atoms, flow_of(kernel.builder, access)

    def size(group: tuple[int, ...]) -> int:
        return product((atoms.size(atom) for atom in group), atoms.traces)[0]

    walked = ((plan.row_groups, rows), (plan.col_groups, min(columns, plan.n_cols)))
    steps = [step for groups, extent in walked for step in axis_steps(groups, extent, size, flow.stride) if step[0] != 0]
    return sectors(steps, item(access)) * SECTOR


def _exchange(row: _Row, vector: int) -> tuple[float, float]:
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


@kept
def _levels(kernel: Kernel) -> int:
    """Reductions that wait for one another."""
    depth = _depths(kernel)
    return max(1, max((depth[place] for place in emitted(kernel)), default=1))


@kept
def _before(kernel: Kernel) -> float:
    """Instructions an element that wait for no reduction."""
    depth = _depths(kernel)
    return work_of(kernel.builder.exprs[place].op for place in emitted(kernel) if not depth[place])


def _depths(kernel: Kernel) -> list[int]:
    """Count for each operation the reductions that wait for one another up to it, itself included."""
    depth: list[int] = []
    for expr in kernel.builder.exprs:
        depth.append(max((depth[arg] for arg in expr.args), default=0) + expr.reduces())
    return depth


@kept
def _pairs(kernel: Kernel) -> dict[int, int]:
    builder = kernel.builder
    return online_pairs(builder, [place for place in emitted(kernel) if builder.exprs[place].reduces()])
