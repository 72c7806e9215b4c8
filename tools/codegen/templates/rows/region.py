"""A row region as its launches are modelled: its sizes, what it reads, and the instructions of an element."""

from __future__ import annotations

import math
from typing import NamedTuple

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two, product
from tools.codegen.templates.rows.layout import RowLayout, row_layout_of
from tools.codegen.templates.rows.online_pairs import online_pairs
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.flow import flow_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.sectors import axis_steps, sectors
from tools.codegen.templates.shared.work import SECTOR, WARP, WIDEST, converted, emitted, item, nbytes_of, work_of

ALIGNED, WORD = 16, 4
"""Multiples of which Triton knows that a number is one."""
BEFORE_COST = 4.0
"""Time of instructions before a merged reduction over that of others: few programs fit with their registers, and each waits for its own
walk. Fitted on two group norms by `online` over long rows on an H200 (2026-11-21, 6347 and 1452 µs); of other ways to walk a row twice it
is assumed."""
PARTLY_WRITTEN = 2.625
"""Sectors that a run of neighbours costs more where it begins anywhere: seven times in eight it has two that it fills in part, and these
are read before they are written. A softmax over 128 channels laid last whose 16641 results a channel are written side by side, 8, 16, 32
and 64 by a program, took 1862, 1365, 1254 and 970 µs on an H100 (2026-11-26; level 2, problem 91 of KernelBench); by this 1.9 ms, 1.4, 1.1
and 1.0."""
PART_BYTES = 8
"""Bytes of a partial result, at most."""
PART_WORK = 4.0
"""Instructions by which a lane reads a partial result and adds it: an address, a mask, a load, a sum."""


class RowRegion(NamedTuple):
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
    row_ops: float
    """The same of what is made of a row's sums."""
    converted: float
    """Instructions an element by which short numbers become long ones, and results short."""
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
    def read(cls, kernel: Kernel, plan: RowLayout, parameters: Settings) -> RowRegion:
        """Read a region off its kernel, by its layout and parameters."""
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
        once = _shared(kernel) * (1 - 1 / _rows_a_thread(plan, parameters)) if whole else 0.0
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
            ops=_ops(kernel) - once, row_ops=_row_ops(kernel), before=_before(kernel) - once, piece=piece,
            converted=sum(converted(a) for a in plan.accesses if set(a.strides) & reduced),
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
    def lies_across(self) -> bool:
        """Whether several rows are reduced whose neighbours lie side by side in memory: lanes lie along those first."""
        return not self.inner and self.rows > 1 and not self.scans

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


def _touched(kernel: Kernel, plan: RowLayout, access: Access, rows: int, columns: int) -> float:
    """Bytes of the sectors that some rows of a tensor touch."""
    atoms, flow = kernel.builder.atoms, flow_of(kernel.builder, access)

    def size(group: tuple[int, ...]) -> int:
        return product((atoms.size(atom) for atom in group), atoms.traces)[0]

    walked = ((plan.row_groups, rows), (plan.col_groups, min(columns, plan.n_cols)))
    steps = [step for groups, extent in walked for step in axis_steps(groups, extent, size, flow.stride) if step[0] != 0]
    return sectors(steps, item(access)) * SECTOR


@kept
def _levels(kernel: Kernel) -> int:
    """Reductions that wait for one another."""
    depth = _depths(kernel)
    return max(1, max((depth[place] for place in emitted(kernel)), default=1))


@kept
def _ops(kernel: Kernel) -> float:
    """Instructions an element: what is made of a row's sums alone is made once a row."""
    return work_of(kernel.builder.exprs[place].op for place in _along(kernel))


@kept
def _row_ops(kernel: Kernel) -> float:
    """Instructions of a row, beside those of its elements."""
    along = set(_along(kernel))
    return work_of(kernel.builder.exprs[place].op for place in emitted(kernel) if place not in along)


@kept
def _before(kernel: Kernel) -> float:
    """Instructions an element that wait for no reduction."""
    depth = _depths(kernel)
    return work_of(kernel.builder.exprs[place].op for place in _along(kernel) if not depth[place])


@kept
def _shared(kernel: Kernel) -> float:
    """Instructions an element of what is the same for all rows: a thread makes it once for those that it has."""
    b, plan = kernel.builder, row_layout_of(kernel)
    rows = {atom for group in plan.row_groups for atom in group}
    records = (b.exprs[place] for place in _along(kernel))
    return work_of(record.op for record in records if not b.leaves_of(record) & rows and not record.along) if rows else 0.0


def _rows_a_thread(plan: RowLayout, parameters: Settings) -> float:
    """Count the rows of which a thread has elements: warps lie along a row as far as it reaches."""
    rows, threads = int(parameters["ROWS"]), int(parameters["num_warps"]) * WARP
    if not plan.inner_reduction:
        return 1.0
    along = min(threads, max(1, power_of_two(plan.n_cols) // (WIDEST // WORD)))
    return max(1.0, rows * along / threads)


def _along(kernel: Kernel) -> list[int]:
    """List the operations of each element of a row, reductions among them."""
    b, cols = kernel.builder, set(row_layout_of(kernel).cols)
    varies = [bool(b.leaves_of(expr) & cols) for expr in b.exprs]
    return [place for place in emitted(kernel) if varies[place] or any(varies[arg] for arg in b.exprs[place].args)]


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
