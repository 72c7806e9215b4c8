"""What the accesses of a region's tiles move: sectors through the L2, bytes from memory, additions in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tools.codegen.ir.kernel import Output, Write
from tools.codegen.templates.shared.sectors import sectors
from tools.codegen.templates.shared.work import SECTOR
from tools.codegen.templates.tile.alike import in_order, merged_share, merging
from tools.codegen.templates.tile.tiling import Tiling
from tools.codegen.templates.tile.touched import Touched
from tools.hardware import rates
from tools.records import HardwareSheet

LINE = 128
"""Bytes of a line of the L2."""
TABLE = 32768.0
"""Bytes of a tensor that the L1 keeps from one program to the next: a codebook that is looked up at positions that
are data took 48 µs with its product, by sectors of the L2 108 (an H100, 2026-11-26; quantised/codebook_linear of the wild suite)."""
HOP = 0.5
"""Part of a trip to memory that a position takes which is read itself, and mostly lies in the L2: an assumption."""
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
        scattered = [o for o in tiling.plan.kernel.outputs if o.scatter]
        self.added = frozenset(o.ref for o in scattered if o.scatter and o.scatter.write is not Write.STORE)
        """Tensors that are added to in memory."""
        self.scattered = frozenset(o.ref for o in scattered)
        known: dict[object, dict[tuple[int, bool], Moved]] = tiling.plan.__dict__.setdefault("_moved", {})
        self._known = known.setdefault((tiling.in_memory, sheet.sms, sheet.l2_mib), {})
        """Of accesses that are alike, as several launches and settings have one."""

    def of(self, each: Touched, again: bool) -> Moved:
        """Each tile's sectors whole; what tiles share comes from memory once where the L2 holds it."""
        name = self.plan.alike[id(each)], again
        if name not in self._known:
            self._known[name] = self._of(each, again)
        return self._known[name]

    def _of(self, each: Touched, again: bool) -> Moved:
        # what a guard leaves out is not read, however small the tensor is
        found, wanted = self.tiling.steps_of(each), each.positions * each.item * each.share
        elements = math.prod(count for _, count in found)
        tile = sectors(found, each.item) * SECTOR
        times = self.tiling.tiles * self.tiling.splits
        passes = 1 if each.access.is_output else self.tiling.passes
        if self.tiling.stepped & each.exprs:
            times *= self.tiling.steps * passes
        if each.access.is_output and each.access.ref not in self.scattered:
            # one of the tiles that have the same stores it
            times = max(1, times // self.tiling.alike(each))
        whole = float(each.access.meta.numel * each.item)
        unique = min(whole, wanted)
        if each.flow.random & each.exprs:
            # sectors of a gather are not shared by neighbours
            asked = wanted * max(1.0, tile / (elements * each.item))
            unique = min(whole, asked)
            if whole > self._held() and not each.sampled and (self.tiling.is_flat or not self.plan.rows_first):
                # what is read again has mostly left the L2
                unique = max(unique, asked * (1 - self._held() / whole))
        if unique > self._held():
            unique *= passes
        elif again and not each.access.is_output:
            unique = 0.0
        l2 = tile * self.tiling.part(each) * times * self.tiling.stores(each)
        if whole <= TABLE and not each.access.is_output:
            l2 = min(l2, whole * self.sheet.sms)
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

    def in_flight(self, touched: Sequence[Touched], traffic: Sequence[Moved], dram: float) -> float:
        """Bytes of a program that are on their way at once; stores wait for nothing: loads in flight carry their part, too.

        A walk waits in each of its steps, whatever was read before it; a loop for those of its loads that come from memory.
        """
        loads = [(each, one) for each, one in zip(touched, traffic, strict=True) if not each.access.is_output]
        loaded = [one for _, one in loads]
        programs = self.tiling.tiles * self.tiling.splits
        stepped = [one.dram / one.l2 for each, one in loads if each.exprs & self.tiling.stepped and one.l2]
        if self.tiling.loop is not None and stepped:
            trips = min(1.0, max(stepped)) * self.tiling.steps * self.tiling.passes
            if self.plan.spanned is not None:
                # runs are short: no step is on its way before the one before it is over
                trips *= 1.0 + HOP * (self.plan.hops - 1)
            return dram / programs / max(1.0, trips)
        found = max(128.0, sum(one.tile for one in loaded)) * dram / max(1.0, sum(one.dram for one in loaded))
        walks = self.tiling.axis and self.tiling.loop is None
        return min(found, dram / (programs * self.tiling.steps)) if walks else found

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
