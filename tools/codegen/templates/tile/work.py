"""What a tile works, by what each thing varies over: formulas, orders, accesses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from tools.codegen.templates.shared.work import SLOW_OPS
from tools.codegen.templates.tile.lanes import COLS, ROWS
from tools.codegen.templates.tile.layout import TileLayout
from tools.codegen.templates.tile.merged import measures_distance, weight_of
from tools.codegen.templates.tile.op_costs import instructions
from tools.codegen.templates.tile.orders import order_work
from tools.codegen.templates.tile.repeats import made_before

RESCALED = SLOW_OPS["exp_fast"] + 7.0
"""Instructions an element by which a sum of exponentials follows its largest one: one of these, counted in the text."""
FOLLOWING, MEASURED = 3.0, 8.0
"""The same of another sum of the same exponentials, times something, and times their own exponents."""
FREE = frozenset({"load", "read", "const", "size", "argument", "index", "cast"})

Kind = tuple[bool, bool, tuple[int, ...], bool]
"""Whether something varies over rows and over columns, over which of the axes that reductions walk, and over what a program walks."""


class Work(NamedTuple):
    """What a tile does, by what it varies over: instructions an element."""

    formulas: dict[Kind, float]
    orders: dict[Kind, float]
    accesses: list[Kind]
    sines: int
    """Sines and cosines of a tile's elements."""
    has_roots: bool
    """Whether square roots are taken, which have branches."""
    kept: list[Kind]
    """What is made before a walk and needed in it."""

    def kept_of(self, held: Callable[[Kind], int]) -> int:
        """Elements of a thread that are kept along a walk."""
        return sum(map(held, self.kept))


@cache
def dims_of(kind: Kind) -> frozenset[int]:
    """List the dimensions of a tile over which something varies."""
    rows, cols, walked, _ = kind
    return frozenset([*([ROWS] if rows else []), *([COLS] if cols else []), *walked])


def work_of(plan: TileLayout, flat: bool, step: int | None) -> Work:
    """Count it, once for all numbers."""
    kept: dict[tuple[bool, int | None], Work] = plan.__dict__.setdefault("_work", {})
    if (flat, step) not in kept:
        _, rows, cols = plan.placed(flat, step)
        along = frozenset(() if step is None else plan.grid[step])
        axes = [frozenset(a for g in groups for a in g) for groups in (rows, cols, *plan.walked)]

        def kind(atoms: frozenset[int]) -> Kind:
            walked = tuple(n for n, axis in enumerate(axes[2:]) if axis & atoms)
            return bool(axes[0] & atoms), bool(axes[1] & atoms), walked, bool(along & atoms)

        formulas: dict[Kind, float] = {}
        orders: dict[Kind, float] = {}
        spared = _made_in_walks(plan)
        for expr in plan.needed:
            record = plan.b.exprs[expr]
            own = kind(plan.b.leaves_of(plan.b.exprs[record.args[0]] if record.along else record))
            if record.op == "order":
                orders[own] = orders.get(own, 0.0) + order_work(plan.b, expr)
            elif record.op not in FREE and expr not in spared:
                formulas[own] = formulas.get(own, 0.0) + (_merged_work(plan, expr) if expr in plan.merged else instructions(plan.b, expr))
        sines = sum(plan.b.exprs[expr].op in ("sin", "cos") and kind(plan.b.leaves_of(plan.b.exprs[expr]))[1] for expr in plan.needed)
        has_roots = any(plan.b.exprs[expr].op == "sqrt" for expr in plan.needed)
        before = [kind(plan.b.leaves_of(plan.b.exprs[expr])) for expr in made_before(plan, along)] if along else []
        kept[flat, step] = Work(formulas, orders, [kind(each.exprs) for each in plan.touched], sines, has_roots, before)
    return kept[flat, step]


def _merged_work(plan: TileLayout, expr: int) -> float:
    """Count what a sum of exponentials takes that follows their largest one: sums that follow the same one share an exponential."""
    if measures_distance(plan.b, expr):
        return MEASURED
    first = next(each for each, peak in plan.merged.items() if peak == plan.merged[expr] and not measures_distance(plan.b, each))
    return RESCALED if expr == first else FOLLOWING


def _made_in_walks(plan: TileLayout) -> set[int]:
    """List the exponentials, their products and the differences they are of, that are written as parts of sums that follow the largest."""
    exprs = plan.b.exprs
    found = set(plan.merged)
    for parts in ([exprs[total].args[0] for total in plan.merged], weights := [weight_of(plan.b, total) for total in plan.merged]):
        read = {arg for expr in plan.needed if expr not in found for arg in exprs[expr].args}
        found |= {*parts} - read
    read = {arg for expr in plan.needed if expr not in found for arg in exprs[expr].args}
    return (found | ({exprs[weight].args[0] for weight in weights if weight in found} - read)) - plan.merged.keys()
