"""Instructions of a tile's formulas, orders and accesses, each made once for what it does not vary over."""

from __future__ import annotations

import math
from typing import NamedTuple

from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.iteration_space import is_fixed_divisor
from tools.codegen.templates.shared.work import DIVISION, FIXED_DIVISION, OVERHEAD, SLOW_OPS, WARP, WIDEST
from tools.codegen.templates.tile.layout import Groups, TileLayout
from tools.codegen.templates.tile.orders import order_work
from tools.codegen.templates.tile.tiling import Tiling

SINE_BYTES, CODE_BYTES = 2000.0, 40e3
"""Machine code of a sine or cosine on sm_90, and what of a program's code runs at full rate: with 8 and 32 elements a thread two rotary
embeddings took 249 and 904 µs, 467 and 1285 µs (an H100, 2026-11-26; rotary_axial and rotary_complex of the wild suite)."""
SHARED_ORDER = 0.1
"""Part by which the work of an order grows with each doubling of the warps that share a row. On an H100 (2026-11-26) two warps take 0.8 to
2.1 times as long as one, four 0.9 to 1.7 times, for six selections and sorts."""
RESCALED = SLOW_OPS["exp"] + 4.0
"""Instructions an element by which a sum of exponentials follows its largest one: one more of these, counted in the text."""
FREE = frozenset({"load", "read", "const", "size", "argument", "index", "cast", "reduce", "order"})

_Kind = tuple[bool, bool, tuple[int, ...], bool]
"""Whether something varies over rows and over columns, over which of the axes that reductions walk, and over what a program walks."""


class _Work(NamedTuple):
    """What a tile does, by what it varies over."""

    formulas: dict[_Kind, float]
    orders: dict[_Kind, float]
    accesses: list[_Kind]
    sines: int
    """Sines and cosines of a tile's elements."""


class Instructions:
    """What the tiles of a region execute."""

    def __init__(self, tiling: Tiling) -> None:
        """Count for tiles."""
        self.plan, self.tiling = tiling.plan, tiling
        self.work = _work_of(tiling.plan, tiling.is_flat, tiling.walked)

    def an_element(self, a_thread: float) -> float:
        """Instructions an element of a tile: its formulas, its accesses, and the numbers that are taken apart."""
        # lanes that hold neighbours of a row take its number apart once for them
        beside_one = max(1.0, min(a_thread, WIDEST / 4, self.tiling.n))
        work = self._divisions(self.tiling.cols) + self._divisions(self.tiling.rows) / beside_one
        work /= self.tiling.once if self.tiling.loop is None else 1.0
        for kind, instructions in self.work.formulas.items():
            work += instructions * self._share(kind)
        for kind, instructions in self.work.orders.items():
            work += instructions * self._share(kind) * (1 + SHARED_ORDER * math.log2(self.tiling.threads / WARP))
        for each, kind in zip(self.plan.touched, self.work.accesses, strict=True):
            paired = not self.tiling.cols or self.tiling.halved(each) or self.tiling.doubled(each)
            beside = paired or each.flow.stride(self.tiling.cols[-1][-1]) == 1
            work += OVERHEAD / (min(a_thread, WIDEST / each.item) if beside else 1.0) * self._share(kind)
        return work

    def _divisions(self, groups: Groups) -> float:
        """Instructions by which a lane takes its number along an axis apart."""
        return sum(FIXED_DIVISION if is_fixed_divisor(self.plan.b.count(group)) else DIVISION for group in groups[1:])

    def crowding(self, a_thread: float) -> float:
        """How much longer instructions take that the cache of instructions does not hold: sines are long, and written for every element."""
        return max(1.0, a_thread * self.work.sines * SINE_BYTES / CODE_BYTES)

    def _share(self, kind: _Kind) -> float:
        """Part of a tile's elements for which something is made: it is the same along the axes that it does not vary over."""
        rows, cols, walked, along = kind
        if not walked or not self.plan.whole:
            # what does not vary along the axis that is stepped along is made once, not in every step
            once = 1.0 if along or (self.tiling.loop is not None and self.tiling.loop in walked) else self.tiling.once
            return 1.0 / (1 if rows else self.tiling.m) / (1 if cols else self.tiling.n) / (1 if walked else self.tiling.k) / once
        held = math.prod(power_of_two(self.plan.size(self.plan.walked[place])) for place in walked)
        return held / self.tiling.k / (1 if rows else self.tiling.m) / (1 if cols else self.tiling.n)


def _work_of(plan: TileLayout, flat: bool, step: int | None) -> _Work:
    kept: dict[tuple[bool, int | None], _Work] = plan.__dict__.setdefault("_work", {})
    if (flat, step) not in kept:
        _, rows, cols = plan.placed(flat, step)
        along = frozenset(() if step is None else plan.grid[step])
        axes = [frozenset(a for g in groups for a in g) for groups in (rows, cols, *plan.walked)]

        def kind(atoms: frozenset[int]) -> _Kind:
            walked = tuple(n for n, axis in enumerate(axes[2:]) if axis & atoms)
            return bool(axes[0] & atoms), bool(axes[1] & atoms), walked, bool(along & atoms)

        formulas: dict[_Kind, float] = {}
        orders: dict[_Kind, float] = {}
        for expr in plan.needed:
            record = plan.b.exprs[expr]
            if record.op not in FREE:
                own = kind(plan.b.leaves_of(record))
                formulas[own] = formulas.get(own, 0.0) + SLOW_OPS.get(record.op, 1)
            elif expr in plan.merged:
                own = kind(plan.b.leaves_of(plan.b.exprs[record.args[0]]))
                formulas[own] = formulas.get(own, 0.0) + RESCALED
            elif record.op == "order":
                own = kind(plan.b.leaves_of(plan.b.exprs[record.args[0]]))
                orders[own] = orders.get(own, 0.0) + order_work(plan.b, expr)
        sines = sum(plan.b.exprs[expr].op in ("sin", "cos") and kind(plan.b.leaves_of(plan.b.exprs[expr]))[1] for expr in plan.needed)
        kept[flat, step] = _Work(formulas, orders, [kind(each.exprs) for each in plan.touched], sines)
    return kept[flat, step]
