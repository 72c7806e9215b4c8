"""What the launch of a loop does."""

from __future__ import annotations

import math

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.reach import made_of
from tools.codegen.templates.recurrence.layout import RecurrenceLayout, recurrence_layout_of, roots_of
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.work import OVERHEAD, SLOW_OPS, WARP, item, nbytes_of
from tools.records import HardwareSheet

CHAIN = 0.06
"""Barriers' worth of time of one dependent instruction: about 6 cycles; an assumption."""
SHUFFLES = 5
"""Exchanges in which a warp sums up a tile; an assumption."""


def recurrence_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch: every program walks all steps, each of which waits for the one before."""
    plan = recurrence_layout_of(kernel)
    rows, warps, stages = (int(parameters[name]) for name in ("ROWS", "num_warps", "num_stages"))
    programs = plan.size("outer") * math.ceil(plan.size("rows") / rows)
    steps, threads = plan.size("steps"), warps * WARP
    work, chain, reductions = _work(kernel, plan, rows)
    moved = float(sum(nbytes_of(a) for a in plan.accesses))
    across = 2.0 if warps > 1 else 0.0
    stepped = [a for a in plan.accesses if plan.step in a.strides]
    a_step = sum(nbytes_of(a) / plan.size("steps") for a in stepped if not a.is_output) / programs
    tile = rows * plan.largest
    return (
        LaunchWork(
            programs=programs,
            warps=warps,
            dram_bytes=moved,
            l2_bytes=float(sum(max(nbytes_of(a), programs * item(a)) for a in plan.accesses)),
            flight_bytes=max(a_step * max(1, stages - 1), float(max(item(a) for a in plan.accesses))),
            steps=float(steps),
            lane_work=float(programs * steps * max(work, threads * chain / 2)),
            registers=32 + 2.0 * tile / threads,
            barriers=chain * CHAIN + reductions * (across + SHUFFLES * CHAIN * 4),
        ),
    )


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
