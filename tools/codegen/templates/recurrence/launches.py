"""What the launch of a loop does, by its algorithm."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.reach import made_of
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.recurrence.forms import matrix_form_of, scan_form_of
from tools.codegen.templates.recurrence.layout import LEAST, RecurrenceLayout, recurrence_layout_of, roots_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.tile_launch import PARTS, SPLIT_WORK, tile_tflops
from tools.codegen.templates.shared.work import OVERHEAD, SLOW_OPS, WARP, item, nbytes_of
from tools.records import HardwareSheet

CHAIN = 0.06
"""Barriers' worth of time of one dependent instruction: about 6 cycles; an assumption."""
SHUFFLES = 5
"""Exchanges in which a warp sums up a tile; an assumption."""
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
    work, chain, reductions = _work(kernel, plan, rows)
    across = 2.0 if warps > 1 else 0.0
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=_moved(plan),
        l2_bytes=_passed(plan, programs),
        flight_bytes=max(_a_step(plan, programs) * max(1, stages - 1), float(max(item(a) for a in plan.accesses))),
        steps=float(steps),
        lane_work=float(programs * steps * max(work, threads * chain / 2)),
        registers=32 + 2.0 * rows * plan.largest / threads,
        barriers=chain * CHAIN + reductions * (across + SHUFFLES * CHAIN * 4),
    )


def _scan(kernel: Kernel, plan: RecurrenceLayout, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """A block of steps is loaded at once, and scanned in as many rounds as its length has bits."""
    rows, warps, stages, chunk = (int(parameters[name]) for name in ("ROWS", "num_warps", "num_stages", "CHUNK"))
    programs, threads = plan.size("outer") * math.ceil(plan.size("rows") / rows), warps * WARP
    blocks, states = math.ceil(plan.size("steps") / chunk), len(scan_form_of(kernel))
    work, _, _ = _work(kernel, plan, rows)
    rounds = math.log2(chunk)
    tile = chunk * rows
    return LaunchWork(
        programs=programs,
        warps=warps,
        dram_bytes=_moved(plan),
        l2_bytes=_passed(plan, programs),
        flight_bytes=_a_step(plan, programs) * chunk * max(1, stages - 1),
        steps=float(blocks),
        lane_work=float(programs * blocks * (work * chunk + tile * states * rounds * 3)),
        registers=32 + tile * (4.0 + 2 * len(plan.accesses)) / threads,
        barriers=states * (2.0 + rounds * CHAIN * 4) + 2.0,
    )


def _chunked(kernel: Kernel, plan: RecurrenceLayout, parameters: Settings, sheet: HardwareSheet) -> LaunchWork:
    """Each chunk is a few products of tiles."""
    warps, stages, chunk = (int(parameters[name]) for name in ("num_warps", "num_stages", "CHUNK"))
    rows, inner = max(LEAST, int(parameters["ROWS"])), max(LEAST, power_of_two(plan.size("held_0")))
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
        l2_bytes=_passed(plan, programs),
        flight_bytes=_a_step(plan, programs) * chunk * max(1, stages - 1),
        steps=float(chunks),
        lane_work=float(programs * chunks * (tiles * 6.0 + chunk * chunk * math.log2(chunk) + converted)),
        registers=40 + tiles / (warps * WARP),
        shared_bytes=float(4 * (chunk * (2 * inner + rows + chunk) + inner * rows)),
        barriers=CHUNK_BARRIERS * (1 + reads) / 2,
        product_flops=2.0 * programs * chunks * flops * parts,
        product_tflops=tile_tflops("float32", precision, chunk, rows, warps, sheet),
    )


def _moved(plan: RecurrenceLayout) -> float:
    return float(sum(nbytes_of(a) for a in plan.accesses))


def _passed(plan: RecurrenceLayout, programs: int) -> float:
    """Bytes that leave the L1: tiles of rows read again what has no rows."""
    tiles = programs / plan.size("outer")
    rows = [axis.atoms for axis in plan.axes if axis.name == "rows"]
    again = [1.0 if rows and set(rows[0]) & set(a.strides) else tiles for a in plan.accesses]
    return float(sum(nbytes_of(a) * times for a, times in zip(plan.accesses, again, strict=True)))


def _a_step(plan: RecurrenceLayout, programs: int) -> float:
    """Bytes that one program loads for one step."""
    stepped = [a for a in plan.accesses if plan.step in a.strides and not a.is_output]
    return max(1.0, sum(nbytes_of(a) / plan.size("steps") for a in stepped) / programs)


def _work(kernel: Kernel, plan: RecurrenceLayout, rows: int) -> tuple[float, float, float]:
    """Count a step's instructions of all lanes, the longest chain of them through the states, and its reductions."""
    builder, loop = kernel.builder, kernel.recurrence
    assert loop is not None
    tile = {axis.atoms: (rows if axis.name == "rows" else plan.size(axis.name)) for axis in plan.tile}
    total, depth, sums = 0.0, dict[int, float](), 0
    for place in sorted(made_of(builder, *roots_of(kernel, loop))):
        expr = builder.exprs[place]
        atoms = set(builder.atoms.leaves(tuple(expr.atoms)))
        source = set(builder.atoms.leaves(tuple(builder.exprs[expr.args[0]].atoms))) if expr.op == "reduce" else atoms
        lanes = math.prod(size for own, size in tile.items() if set(own) & source)
        cost = 0.0 if expr.op in ("const", "size", "argument", "state", "last") else OVERHEAD if expr.op in ("load", "turn") else 1.0
        cost = float(SLOW_OPS.get(expr.op, cost))
        total += cost * lanes
        before = [depth[arg] for arg in expr.args if arg in depth]
        if expr.op == "state":
            depth[place] = 0.0
        elif before:
            depth[place] = max(before) + cost
            sums += expr.op in ("reduce", "turn")
    return total, max([1.0, *(depth.get(state.after, 0.0) for state in loop.states)]), float(sums)
