"""What the accesses of a region's tiles move: sectors through the L2, bytes from memory, lines looked up in the L1, additions in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tools.codegen.ir.kernel import Output, Write
from tools.codegen.templates.shared.sectors import looked_up, sectors
from tools.codegen.templates.shared.work import SECTOR, WARP, WIDEST
from tools.codegen.templates.tile.alike import in_order, merged_share, merging
from tools.codegen.templates.tile.tiling import Tiling
from tools.codegen.templates.tile.touched import Touched
from tools.hardware import rates
from tools.records import HardwareSheet

LINE = 128
"""Bytes of a line of the L2."""
NEAR = 0.5
"""Lines that positions which are data look up, over one for each: such positions often lie near one another. An assumption. Those of
sampled images lie side by side: two pixels a lane took 247 µs and eight 357 (an H100, 2026-11-26; image/flow_warp of the wild suite)."""
ATOMIC_WAYS = 2.0
"""Time of an addition in memory over that of a store: an assumption; nothing was measured."""


class Moved(NamedTuple):
    """Bytes of one access: from memory, through the L2, and of one tile."""

    dram: float
    l2: float
    tile: float


class Traffic:
    """What each access of the tiles of a region moves."""

    def __init__(self, tiling: Tiling, sheet: HardwareSheet) -> None:
        """Count for tiles on a device."""
        self.plan, self.tiling, self.sheet = tiling.plan, tiling, sheet
        self.added = frozenset(o.ref for o in tiling.plan.kernel.outputs if o.scatter and o.scatter.write is not Write.STORE)
        """Tensors that are added to in memory."""

    def of(self, each: Touched, again: bool) -> Moved:
        """Each tile's sectors whole; what tiles share comes from memory once where the L2 holds it."""
        found, wanted = self.tiling.steps_of(each), each.positions * each.item
        elements = math.prod(count for _, count in found)
        tile = sectors(found, each.item) * SECTOR
        times = self.tiling.tiles * self.tiling.splits
        if self.tiling.stepped & each.exprs:
            times *= self.tiling.steps * self.tiling.passes
        whole = float(each.access.meta.numel * each.item)
        unique = min(whole, float(wanted))
        if each.flow.random & each.exprs:
            # sectors of a gather are not shared by neighbours
            unique = min(whole, wanted * max(1.0, tile / (elements * each.item)))
        if unique > self._held():
            unique *= self.tiling.passes
        elif again and not each.access.is_output:
            unique = 0.0
        unique, tile = unique * each.share, tile * self.tiling.part(each)
        l2 = tile * times
        l2 *= ATOMIC_WAYS * self.merged(each) if each.access.ref in self.added else 1.0
        if self.adds(each) and whole > self._held() and not in_order(self.plan.b, self._output(each)):
            # every sector comes from memory, and goes back
            unique = l2
        return Moved(min(unique, l2), l2, elements * each.item * each.share)

    def from_memory(self, touched: Sequence[Touched], traffic: list[Moved]) -> float:
        """Bytes from memory: of a tensor that is read several times, no more than it has."""
        found: dict[object, tuple[float, float]] = {}
        for one, each in zip(traffic, touched, strict=True):
            whole, sofar = float(each.access.meta.numel * each.item), found.get(each.access.ref, (0.0, 0.0))[1]
            found[each.access.ref] = (max(whole, one.dram), sofar + one.dram)
        return sum(min(pair) for pair in found.values())

    def in_flight(self, loaded: Sequence[Moved], dram: float) -> float:
        """Bytes of a program that are on their way at once; stores wait for nothing: loads in flight carry their part, too.

        A walk waits in each of its steps, whatever was read before it.
        """
        found = max(128.0, sum(one.tile for one in loaded)) * dram / max(1.0, sum(one.dram for one in loaded))
        walks = self.tiling.axis and self.tiling.loop is None
        return min(found, dram / (self.tiling.tiles * self.tiling.splits * self.tiling.steps)) if walks else found

    def lines_looked_up(self, touched: Sequence[Touched]) -> float:
        """Lines that one step of a tile looks up in the L1: an access is made for all positions of each axis that it varies over.

        Each lane has as many neighbours as the widest access takes at once. One that cannot take them together takes them one after the
        other, and looks up about the same lines each time.
        """
        lines, wide = 0.0, self._widest()
        for each in touched:
            varied = [
                extent if not atoms & each.flow.alike else max(1.0, extent / WARP)
                for atoms, extent in self.tiling.held
                if atoms & each.exprs
            ]
            near = NEAR if each.flow.random & each.exprs and not each.sampled else 1.0
            once = 1 if not self.tiling.axis or self.tiling.stepped & each.exprs else self.tiling.steps * self.tiling.passes
            found = looked_up(self.tiling.steps_of(each), each.item, math.prod(varied))
            times = wide if self._is_narrow(each) else 1.0
            lines += near * self.tiling.part(each) * min(found * times, max(found, math.prod(varied))) / once
        return lines

    def _widest(self) -> float:
        """Neighbours along the columns that a lane has: those of its widest access."""
        wide = [WIDEST / each.item for each in self.plan.touched if self.tiling.cols and each.flow.stride(self.tiling.cols[-1][-1]) == 1]
        wide += [WIDEST / each.item / 2 for each in self.plan.touched if self.tiling.doubled(each)]
        return max(1.0, min(max(wide, default=1.0), self.tiling.elements / self.tiling.threads, self.tiling.n))

    def _is_narrow(self, each: Touched) -> bool:
        """Whether an access varies over the columns, and neighbours there do not lie side by side in it."""
        varies = any(each.exprs & set(group) for group in self.tiling.cols) and self.plan.turned is None
        return varies and each.flow.stride(self.tiling.cols[-1][-1]) != 1 and not self.tiling.halved(each) and not self.tiling.doubled(each)

    def adds(self, each: Touched) -> bool:
        """Whether an access adds to a tensor in memory."""
        return each.access.is_output and each.access.ref in self.added

    def lines(self, each: Touched) -> float:
        """Lines of memory that are added to, in all copies."""
        return max(1.0, each.access.meta.numel * each.item * self.tiling.copies / LINE)

    def merged(self, each: Touched) -> float:
        """Part of the additions to a tensor that rows of tiles make which are not added up before."""
        output = self._output(each)
        rows = [atom for group in self.tiling.rows for atom in group]
        if self.tiling.m == 1 or not self.tiling.cols or self.plan.walked or not (places := merging(self.plan.b, output, rows)):
            return 1.0
        ordered = in_order(self.plan.b, output)
        return merged_share(self.plan.size(self.tiling.rows), _targets(output, places), self.tiling.m, ordered=ordered)

    def _output(self, each: Touched) -> Output:
        return next(output for output in self.plan.kernel.outputs if output.ref == each.access.ref)

    def _held(self) -> float:
        """Bytes that the L2 keeps."""
        return self.sheet.l2_mib * 2**20 * rates.L2_RESIDENT


def _targets(output: Output, places: Sequence[int]) -> int:
    """Count the places that positions which are data can name."""
    assert output.scatter is not None
    return math.prod(size for size, position in zip(output.meta.written, output.scatter.positions, strict=True) if position in places)
