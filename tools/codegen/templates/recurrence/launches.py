"""What the launch of a loop does, by its algorithm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tools.codegen.ir.expr import Expr
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.ir.values.reach import made_of
from tools.codegen.templates.device.matrices import MATRICES
from tools.codegen.templates.recurrence.forms import matrix_form_of, scan_form_of
from tools.codegen.templates.recurrence.layout import LEAST, RecurrenceLayout, recurrence_layout_of, roots_of
from tools.codegen.templates.recurrence.on_chip import shared_bytes, tile_rows
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.flow import flow_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.sectors import sectors
from tools.codegen.templates.shared.tile_launch import PARTS, SPLIT_WORK, tile_tflops
from tools.codegen.templates.shared.work import COMBINING, OVERHEAD, SECTOR, SLOW_OPS, WARP, item, nbytes_of
from tools.records import HardwareSheet

CHAIN = 0.06
"""Barriers' worth of time of one dependent instruction: about 6 cycles; an assumption."""
SHUFFLES = 5
"""Exchanges in which a warp sums up a tile; an assumption."""
SENT_AHEAD = 4
"""Bytes of a thread that a load has at least where Triton 3.6 sends it off some steps before: narrower ones are waited for in each step, as
256 numbers of bfloat16 in eight warps are and in four are not (read off its code)."""
STEP_WORK, LOAD_WORK = 16.0, 8.0
"""Instructions of a thread in each step, and for each load of it that is sent ahead, besides formulas and addresses: of 58 of a step with
one load, counted (sm_90, Triton 3.6), formulas are 32. With 4 rows in single warps 256 such steps of 16,384 rows take 81 µs, with 16 rows
in two warps 43 (an H100, 2026-11-26)."""
RUN = 8
"""Neighbouring steps whose elements, where they lie side by side, the L1 keeps: an assumption."""
VECTOR = 4
"""Neighbours of a row that a thread has side by side: those of its widest load of float32."""
HANDED, CROSSED = 5.0, 8.0
"""Instructions' time of a result that is handed to another lane, with what adds it up, as in tiles, and by which warps give theirs to one
another. 24 bisections of rows of 1024 have 113 instructions a row in their steps with one warp a row, 148 with two, and 258 with eight
warps for four rows (counted, sm_90, Triton 3.6)."""
ROW_WORK = 10.0
"""Instructions a row of a matrix takes in each of the rows that it is factored or solved with: four masks, three sums and a quotient."""
CHUNK_BARRIERS = 16.0
"""Barriers of one chunk: its products wait for one another, and its running products pass through shared memory; an assumption."""


def recurrence_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch: every program walks all steps, one, a block or a chunk at a time."""
    by = {"sequential": _sequential, "scan": _scan, "chunked": _chunked}
    return (by[str(parameters["algorithm"])](kernel, recurrence_layout_of(kernel), parameters, sheet),)


def _sequential(kernel: Kernel, plan: RecurrenceLayout, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """Each step waits for the one before: its chain of instructions, and its sums across threads."""
    rows, warps, stages = (int(parameters[name]) for name in ("ROWS", "num_warps", "num_stages"))
    programs = plan.size("outer") * math.ceil(plan.size("rows") / rows)
    steps, threads = plan.size("steps"), warps * WARP
    work, once, chain, reductions = _work(kernel, plan, rows, threads)
    work += threads * (STEP_WORK + sum(LOAD_WORK for a in plan.accesses if plan.step in a.strides and not a.is_output))
    across = 2.0 if warps > 1 else 0.0
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=_moved(plan),
        l2_bytes=_passed(kernel, plan, programs, rows, RUN),
        flight_bytes=_in_flight(kernel, plan, programs, rows, 1, threads, stages),
        steps=float(steps),
        lane_work=float(programs * (once + steps * max(work, threads * chain / 2))),
        registers=32 + 2.0 * rows * plan.largest / threads,
        barriers=chain * CHAIN + reductions * (across + SHUFFLES * CHAIN * 4),
    )


def _scan(kernel: Kernel, plan: RecurrenceLayout, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """A block of steps is loaded at once, and scanned in as many rounds as its length has bits."""
    rows, warps, stages, chunk = (int(parameters[name]) for name in ("ROWS", "num_warps", "num_stages", "CHUNK"))
    programs, threads = plan.size("outer") * math.ceil(plan.size("rows") / rows), warps * WARP
    blocks, states = math.ceil(plan.size("steps") / chunk), len(scan_form_of(kernel))
    work, *_ = _work(kernel, plan, rows, math.ceil(threads / chunk))
    rounds = math.log2(chunk)
    tile = chunk * rows
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=_moved(plan),
        l2_bytes=_passed(kernel, plan, programs, rows, chunk),
        flight_bytes=_in_flight(kernel, plan, programs, rows, chunk, threads, stages),
        steps=float(blocks),
        lane_work=float(programs * blocks * (work * chunk + tile * states * rounds * 3)),
        registers=32 + tile * (4.0 + 2 * len(plan.accesses)) / threads,
        barriers=states * (2.0 + rounds * CHAIN * 4) + 2.0,
    )


def _chunked(kernel: Kernel, plan: RecurrenceLayout, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """Each chunk is a few products of tiles."""
    warps, stages, chunk = (int(parameters[name]) for name in ("num_warps", "num_stages", "CHUNK"))
    rows, inner = tile_rows(parameters), max(LEAST, power_of_two(plan.size("held_0")))
    form, precision = matrix_form_of(kernel), str(parameters["precision"])
    reads = len(form.reads) if form else 1
    programs, chunks = plan.size("outer") * math.ceil(plan.size("rows") / rows), math.ceil(plan.size("steps") / chunk)
    parts = PARTS.get(precision, 1)
    flops = reads * (chunk * chunk * (inner + rows) + chunk * inner * rows) + chunk * inner * rows
    tiles = chunk * (chunk * 2 + inner * (1 + reads) + rows * 2) + inner * rows
    converted = tiles * SPLIT_WORK if parts > 1 else 0.0
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=_moved(plan),
        l2_bytes=_passed(kernel, plan, programs, rows, chunk),
        flight_bytes=_in_flight(kernel, plan, programs, rows, chunk, warps * WARP, stages),
        steps=float(chunks),
        lane_work=float(programs * chunks * (tiles * 6.0 + chunk * chunk * math.log2(chunk) + converted)),
        registers=40 + tiles / (warps * WARP),
        shared_bytes=float(shared_bytes(plan, parameters)),
        barriers=CHUNK_BARRIERS * (1 + reads) / 2,
        product_flops=2.0 * programs * chunks * flops * parts,
        product_tflops=tile_tflops("float32", precision, chunk, rows, warps, sheet),
    )


def _moved(plan: RecurrenceLayout) -> float:
    return float(sum(nbytes_of(a) for a in plan.accesses))


def _passed(kernel: Kernel, plan: RecurrenceLayout, programs: int, rows: int, chunk: int) -> float:
    """Bytes that leave the L1, in whole sectors: few rows of a step may be a part of one."""
    total = 0.0
    for each in plan.accesses:
        times = programs * (math.ceil(plan.size("steps") / chunk) if plan.step in each.strides else 1)
        total += max(float(nbytes_of(each)), sectors(_strides(kernel, plan, each, rows, chunk), item(each)) * SECTOR * times)
    return total


def _strides(kernel: Kernel, plan: RecurrenceLayout, each: Access, rows: int, chunk: int) -> list[tuple[int | None, int]]:
    """Elements between neighbours, and how many there are, of what a program takes of a tensor in some steps."""
    flow = flow_of(kernel.builder, each)
    inner = [(axis.name, [atom for atom in axis.atoms if atom in each.strides]) for axis in plan.tile]
    found = [(flow.stride(atoms[-1]), min(rows, plan.size(name)) if name == "rows" else plan.size(name)) for name, atoms in inner if atoms]
    return [*found, (flow.stride(plan.step), chunk)] if plan.step in each.strides else found


def _in_flight(kernel: Kernel, plan: RecurrenceLayout, programs: int, rows: int, chunk: int, threads: int, stages: int) -> float:
    """Bytes of a program that are on their way at once: those of some steps, or of one where a load is too narrow to be sent ahead.

    Stores wait for nothing: loads in flight carry their part, too.
    """
    loads = [each for each in plan.accesses if plan.step in each.strides and not each.is_output]
    narrow = any(_width(_strides(kernel, plan, each, rows, chunk), threads) * item(each) < SENT_AHEAD for each in loads)
    return max(1.0, chunk * (1 if narrow else max(1, stages - 1)) * _moved(plan) / plan.size("steps") / programs)


def _width(steps: Sequence[tuple[int | None, int]], threads: int) -> float:
    """Elements side by side that a thread takes of a tile at once."""
    beside = max((count for stride, count in steps if stride == 1), default=1)
    return min(float(beside), max(1.0, math.prod(count for _, count in steps) / threads))


def _work(kernel: Kernel, plan: RecurrenceLayout, rows: int, threads: int) -> tuple[float, float, float, float]:
    """Count instructions of all lanes, idle ones too, of a step and of what is made once, a step's longest chain, and its reductions.

    Once is made what neither the step nor what is carried decides, and what is made of the last states.
    """
    loop = kernel.recurrence
    assert loop is not None
    sizes = {axis.name: (rows if axis.name == "rows" else plan.size(axis.name)) for axis in plan.tile}
    total, once, depth, sums = 0.0, 0.0, dict[int, float](), 0
    for each in _instructions_of(kernel):
        expr = each.expr
        lanes = max(threads, math.prod([sizes[name] for name in each.along]))
        cost = _scanning(lanes, threads) * COMBINING.get(expr.kind, 2.0) if expr.is_scan else each.cost
        lanes = threads if expr.is_scan else lanes
        handed = _handed(plan, each.along, lanes, threads, rows) * threads if expr.op == "reduce" else 0.0
        if each.changes:
            total += cost * lanes + handed
        else:
            once += cost * lanes + handed
        before = [depth[arg] for arg in expr.args if arg in depth]
        if expr.op == "state":
            depth[each.place] = 0.0
        elif before:
            depth[each.place] = max(before) + cost
            sums += expr.op in ("reduce", "scan", "turn")
    return total, once, max([1.0, *(depth.get(state.after, 0.0) for state in loop.states)]), float(sums)


class _Instruction(NamedTuple):
    """What an expression takes, whatever the parameters."""

    place: int
    expr: Expr
    cost: float
    along: tuple[str, ...]
    """The tile's axes over which it is made, of a reduction those of what it reduces."""
    changes: bool
    """Whether every step makes it anew."""


@kept
def _instructions_of(kernel: Kernel) -> tuple[_Instruction, ...]:
    """List what a loop computes, each after what it is made of."""
    builder, loop, plan = kernel.builder, kernel.recurrence, recurrence_layout_of(kernel)
    assert loop is not None
    found, changing = list[_Instruction](), set[int]()
    for place in sorted(made_of(builder, *roots_of(kernel, loop), *(state.initial for state in loop.states))):
        expr = builder.exprs[place]
        atoms = builder.leaves_of(expr)
        source = builder.leaves_of(builder.exprs[expr.args[0]]) if expr.op == "reduce" else atoms
        along = tuple(axis.name for axis in plan.tile if not source.isdisjoint(axis.atoms))
        cost = 0.0 if expr.op in ("const", "size", "argument", "state", "last") else OVERHEAD if expr.op in ("load", "turn") else 1.0
        cost = ROW_WORK * builder.count(expr.extra[:1])[0] if expr.op in MATRICES else cost
        changes = expr.op == "state" or plan.step in atoms or not changing.isdisjoint(expr.args)
        changing |= {place} if changes else set()
        found.append(_Instruction(place, expr, float(SLOW_OPS.get(expr.op, cost)), along, changes))
    return tuple(found)


def _handed(plan: RecurrenceLayout, axes: Sequence[str], elements: int, threads: int, rows: int) -> float:
    """Count instructions by which a thread gets the sums of a tile's last dimension: along it lanes lie, then warps."""
    if not axes or axes[-1] == "rows":
        return 0.0
    beside = power_of_two(plan.size(axes[-1]))
    along = min(threads, max(1, beside // min(VECTOR, max(1, elements // threads))))
    results = max(1.0, elements / beside * along / threads)
    return results * (HANDED * math.log2(min(WARP, along)) + (CROSSED if along > WARP else 0.0))


def _scanning(elements: int, threads: int) -> float:
    """Count how often a thread combines two parts of a scan, one after the other: its own, its warp's, those of the warps before.

    Each element meets what is before it once more at the end.
    """
    return 2 * elements / threads + math.log2(WARP) + threads / WARP
