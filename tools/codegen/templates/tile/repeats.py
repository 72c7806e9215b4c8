"""The dimension that a program of a tile kernel may walk on its own: what is the same along it is made once, before the walk.

Sines of a position are the same for all heads, a sampled position for all channels, an interpolation's for all images. A program that has a
tile of the other dimensions makes them once, and takes `STEPS` positions of that dimension one after the other.
"""

from __future__ import annotations

from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.work import OVERHEAD, SLOW_OPS
from tools.codegen.templates.tile.layout import TileLayout

LEAST = 4.0
"""Instructions of an element that must be the same along a dimension, so that walking it is offered: those of one access."""
FREE = frozenset({"const", "size", "argument", "index"})
"""Operations that nothing is kept of."""


def repeated(plan: TileLayout) -> int | None:
    """Number the dimension of the grid along which most instructions are the same; none where that is too few."""
    if "_repeated" not in plan.__dict__:
        plan.__dict__["_repeated"] = _repeated(plan)
    found: int | None = plan.__dict__["_repeated"]
    return found


def stepped(plan: TileLayout, parameters: Settings) -> int | None:
    """Number the dimension that programs walk with some parameters; none where they do not."""
    return repeated(plan) if int(parameters.get("STEPS", 1)) > 1 else None


def made_before(plan: TileLayout, atoms: frozenset[int]) -> list[int]:
    """List the expressions that do not vary over `atoms` and that one which does is made of, or that are stored."""
    varies = {expr: bool(plan.b.leaves_of(plan.b.exprs[expr]) & atoms) for expr in plan.needed}
    asked = {arg for expr in plan.needed if varies[expr] for arg in plan.b.exprs[expr].args} | {*plan.stored}
    return [expr for expr in plan.needed if expr in asked and not varies[expr] and plan.b.exprs[expr].op not in FREE]


def _repeated(plan: TileLayout) -> int | None:
    if plan.ordered or any(output.scatter for output in plan.kernel.outputs):
        return None
    written = [{*plan.b.atoms.leaves([atom for dim in output.dims for atom in dim])} for output in plan.kernel.outputs]
    # what is stored as pairs is stored in every step
    stored = all if plan.both else any
    able = [place for place in range(len(plan.grid) - plan.columns) if stored(set(plan.grid[place]) <= each for each in written)]
    saved = {place: _saved(plan, place) for place in able if place != plan.turned and plan.size([plan.grid[place]]) > 1}
    best = max(saved, key=lambda place: (saved[place], place), default=None)
    return best if best is not None and saved[best] >= LEAST else None


def _saved(plan: TileLayout, place: int) -> float:
    """Instructions of an element that are the same along a dimension, where they are not made once for many elements anyway."""
    others = [group for number, group in enumerate(plan.grid) if number != place]
    every = (*others, *(group for axis in plan.walked for group in axis))
    total = 0.0
    for expr in plan.needed:
        record = plan.b.exprs[expr]
        own = plan.b.leaves_of(record)
        if record.op not in FREE and own and not own & set(plan.grid[place]):
            shared = plan.size(group for group in every if not own & set(group))
            total += (OVERHEAD if record.op in ("load", "read") else SLOW_OPS.get(record.op, 1)) / shared
    return total
