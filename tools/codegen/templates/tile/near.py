"""What the accesses of a tile cost the L1: the lines and banks that the lanes of each look up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tools.codegen.templates.shared.sectors import Beside, clocks
from tools.codegen.templates.shared.work import WARP, WIDEST
from tools.codegen.templates.tile.laid import Accessed, Laid
from tools.codegen.templates.tile.lanes import COLS, Side
from tools.codegen.templates.tile.loose import spread_out
from tools.codegen.templates.tile.touched import Touched
from tools.hardware import rates

NEAR = 0.5
"""Lines that positions which are data look up, over one for each: such positions often lie near one another. An assumption."""
SPREAD = 0.75
"""Clocks of an element of a tile for a small value that is spread over it through shared memory: six times 8,192 elements made a loss of
128 rows take 43 µs, 8 without (an H200, 2026-11-26; advantages within groups, in the same kernel as what they weigh)."""
ROWS_APART = 3.0
"""Rows of a sampled image in which neighbours side by side lie. An assumption: one pixel a lane took 206 µs, two 241, four 312, eight 357
(an H100, 2026-11-26; image/flow_warp of the wild suite)."""


class NearMemory:
    """The L1 under the tiles of a region."""

    def __init__(self, laid: Laid) -> None:
        """Count for tiles."""
        self.plan, self.tiling, self.laid = laid.plan, laid.tiling, laid

    def clocks(self, touched: Sequence[Touched]) -> float:
        """Clocks for the loads and stores of one step of a tile, and for what is turned between them."""
        return sum(self._each[id(one.each)] for one in self.laid.among(touched)) + self._spread

    @cached_property
    def _each(self) -> dict[int, float]:
        """Clocks of every access, of which several launches have one."""
        alike, found = self.plan.alike, dict[tuple[int, Side], float]()
        for one in self.laid.accesses:
            if (name := (alike[id(one.each)], one.side)) not in found:
                found[name] = self._of(one) + 2 * one.turned * self.tiling.threads / WARP
        return {id(one.each): found[alike[id(one.each)], one.side] for one in self.laid.accesses}

    @cached_property
    def _spread(self) -> float:
        return SPREAD * spread_out(self.laid)

    def _of(self, one: Accessed) -> float:
        """Clocks of one access: a lane's neighbours that it does not take at once are taken one after the other."""
        each, taken = one.each, one.taken
        wide = min(round(self._widest), one.placed.held.get(COLS, 1)) if self._is_narrow(each) else taken
        axes = []
        for dim in sorted(one.side.dims):
            groups, lanes = self.laid.dims[dim], one.placed.lanes[dim]
            if each.flow.alike and any(set(group) & each.flow.alike for group in groups):
                lanes = max(1, lanes // WARP)
            steps = tuple((self.tiling.stride(each, group[-1]), self.plan.size_of(group)) for group in reversed(groups))
            axes.append(Beside(lanes, wide if dim in (COLS, one.side.dim) else 1, steps))
        part = self.tiling.part(each) * one.asked * self.tiling.threads / WARP
        found = clocks(tuple(axes), each.item, taken)
        if each.sampled:
            # no more than a line for each lane
            return part * max(found, min(ROWS_APART * found, WARP / rates.L1_TAGS_PER_CLOCK))
        return part * found * (NEAR if each.flow.random & each.exprs else 1.0)

    @cached_property
    def _widest(self) -> float:
        """Neighbours along the columns that a lane has: those of its widest access."""
        wide = [WIDEST / each.item for each in self.plan.touched if self.tiling.cols and each.flow.stride(self.tiling.cols[-1][-1]) == 1]
        wide += [WIDEST / each.item / 2 for each in self.plan.touched if self.tiling.doubled(each)]
        return max(1.0, min(max(wide, default=1.0), self.tiling.elements / self.tiling.threads, self.tiling.n))

    def _is_narrow(self, each: Touched) -> bool:
        """Whether an access varies over the columns, and neighbours there do not lie side by side in it."""
        varies = any(each.exprs & set(group) for group in self.tiling.cols) and self.plan.turned is None
        return varies and each.flow.stride(self.tiling.cols[-1][-1]) != 1 and not self.tiling.halved(each) and not self.tiling.doubled(each)
