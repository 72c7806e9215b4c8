"""What the launches of a tile region do: every access counted in sectors of its tile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from tools.codegen.ir.kernel import Kernel, Output, Write
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.sectors import Step, axis_steps, looked_up, sectors
from tools.codegen.templates.shared.work import DIVISION, FIXED_DIVISION, OVERHEAD, SECTOR, SLOW_OPS, WARP, WIDEST
from tools.codegen.templates.tile.alike import merged_share, merging
from tools.codegen.templates.tile.knobs import extents, tile_elements
from tools.codegen.templates.tile.layout import Groups, TileLayout
from tools.codegen.templates.tile.orders import order_work, waits
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.codegen.templates.tile.rare import left, skipped_by
from tools.codegen.templates.tile.repeats import stepped
from tools.codegen.templates.tile.touched import Touched
from tools.hardware import rates
from tools.records import HardwareSheet

LINE = 128
"""Bytes of a line of the L2."""
NEAR = 0.5
"""Lines that positions which are data look up, over one for each: such positions often lie near one another. An assumption. Those of
sampled images lie side by side: two pixels a lane took 247 µs and eight 357 (an H100, 2026-11-26; image/flow_warp of the wild suite)."""
SINE_BYTES, CODE_BYTES = 2000.0, 40e3
"""Machine code of a sine or cosine on sm_90, and what of a program's code runs at full rate: with 8 and 32 elements a thread two rotary
embeddings took 249 and 904 µs, 467 and 1285 µs (an H100, 2026-11-26; rotary_axial and rotary_complex of the wild suite)."""
ATOMIC_WAYS = 2.0
"""Time of an addition in memory over that of a store: an assumption; nothing was measured."""
SHARED_ORDER = 0.1
"""Part by which the work of an order grows with each doubling of the warps that share a row. On an H100 (2026-11-26) two warps take 0.8 to
2.1 times as long as one, four 0.9 to 1.7 times, for six selections and sorts."""
CHAINED = 2.0
"""Clocks from an instruction of an order to the next one of the same warp: an assumption."""
MERGING = 20.0
"""Barriers by which several warps find out that rows go to one place, and add them up. On an H100 (2026-11-26) sums of 8,192 segments take
41 µs with 8 rows a program of one warp, 63 of four warps; with 16 rows 49 and 48."""
ASKING = 0.3
"""Part of a tile's work by which it finds out that there is nothing to add: an assumption."""
RESCALED = SLOW_OPS["exp"] + 4.0
"""Instructions an element by which a sum of exponentials follows its largest one: one more of these, counted in the text."""
FREE = frozenset({"load", "read", "const", "size", "argument", "index", "cast", "reduce", "order"})


def tile_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch; of a split reduction another that combines, and of a scatter one that copies what it writes to."""
    plan = tile_layout_of(kernel)
    count = int(parameters.get("COPIES", 1))
    copies = [
        work for output, item in _copied(plan) for work in _around(output, output.meta.numel * item, count if output in plan.added else 1)
    ]
    return (*copies, *_Tiles(plan, parameters, sheet).launches())


def _around(output: Output, nbytes: int, copies: int) -> list[LaunchWork]:
    """What is launched before values are scattered: a copy or a fill; of several copies their fill, their sum and what adds it."""
    assert output.scatter is not None
    if copies == 1:
        return [_copy(nbytes, output.scatter.base is None)]
    return [_copy(nbytes * copies, True), _copy(nbytes * copies, True), *([_copy(nbytes, False)] if output.scatter.base else [])]


def _copied(plan: TileLayout) -> list[tuple[Output, int]]:
    items = [each.item for each in plan.touched[len(plan.touched) - len(plan.kernel.outputs) :]]
    return [(output, item) for output, item in zip(plan.kernel.outputs, items, strict=True) if output.scatter]


def _copy(nbytes: int, filled: bool) -> LaunchWork:
    moved = float(nbytes * (1 if filled else 2))
    programs = max(1, nbytes // 16384)
    return LaunchWork(programs=programs, warps=4, dram_bytes=moved, l2_bytes=moved, flight_bytes=8192.0, steps=1, lane_work=nbytes / 4)


class _Tiles:
    """The tiles of one region with its parameters."""

    def __init__(self, plan: TileLayout, parameters: Settings, sheet: HardwareSheet) -> None:
        self.plan, self.sheet = plan, sheet
        flat = parameters["algorithm"] == "flat"
        walked = stepped(plan, parameters)
        self.outer, self.rows, self.cols = plan.placed(flat, walked)
        self.work = _work_of(plan, flat, walked)
        self.m, self.n, self.k = extents(plan, parameters)
        self.largest = tile_elements(plan, parameters)
        self.threads = int(parameters["num_warps"]) * WARP
        loop = plan.looped if parameters["reduction"] != "registers" else None
        self.loop = loop
        self.axis: Groups = plan.walked[loop] if loop is not None else () if walked is None else (plan.grid[walked],)
        """What is stepped along: what is reduced, or a dimension that a program walks."""
        self.length = plan.size(self.axis)
        self.step = min(self.length, int(parameters["BLOCK_K"])) if loop is not None else 1
        self.copies = int(parameters.get("COPIES", 1)) if plan.added else 1
        self.split = parameters["reduction"] == "split"
        self.splits = min(int(parameters["SPLITS"]), math.ceil(self.length / self.step)) if self.split else 1
        if walked is not None:
            self.splits = math.ceil(self.length / int(parameters["STEPS"]))
        self.steps = math.ceil(math.ceil(self.length / self.splits) / self.step)
        self.passes = len(plan.levels[loop]) + plan.written_along[loop] if loop is not None and not self.split else 1
        self.tiles = plan.size(self.outer) * math.ceil(plan.size(self.rows) / self.m) * math.ceil(plan.size(self.cols) / self.n)

    def launches(self) -> tuple[LaunchWork, ...]:
        """List them."""
        if not self.split or self.plan.looped is None:
            return (self._main(self.plan.touched),)
        levels, written = len(self.plan.levels[self.plan.looped]), self.plan.written_along[self.plan.looped]
        results = self.plan.size(self.plan.grid) * len(self.plan.reductions) * 4
        read = tuple(each for each in self.plan.touched if not each.access.is_output)
        partials = tuple(self._skipping(self._main(read, again=level > 0), level) for level in range(levels))
        if written:
            last = self._main(self.plan.touched, again=True)
            return *partials, replace(last, l2_bytes=last.l2_bytes + results * self.splits**2, barriers=2.0 / last.steps)
        moved = float(results * self.splits + results)
        combine = LaunchWork(
            programs=self.tiles, warps=partials[0].warps, dram_bytes=moved, l2_bytes=moved, flight_bytes=1024.0, steps=1,
            lane_work=self.tiles * self.threads * rates.PROGRAM_WORK + moved, barriers=2.0,
        )  # fmt: skip
        return *partials, combine

    def _skipping(self, work: LaunchWork, level: int) -> LaunchWork:
        """Leave out what tiles do in which a rare condition of a level of sums holds nowhere, but for asking."""
        assert self.plan.looped is not None
        condition = skipped_by(self.plan.b, self.plan.levels[self.plan.looped][level])
        if condition is None:
            return work
        tile = self.m * self.n * self.k
        part = ASKING + (1 - ASKING) * left(self.plan.b, condition, tile)
        return replace(work, lane_work=work.lane_work * part, barriers=2.0 if self.threads > WARP else 0.0)

    def _main(self, touched: Sequence[Touched], again: bool = False) -> LaunchWork:
        """One launch that reads and writes what is `touched`; what the L2 holds of it comes from there if it was read just before."""
        plan, programs = self.plan, self.tiles * self.splits
        tile = self.m * self.n * self.k
        traffic = [self._traffic(each, again) for each in touched]
        dram, l2 = self._from_memory(touched, traffic), sum(one.l2 for one in traffic)
        loaded = [one for one, each in zip(traffic, touched, strict=True) if not each.access.is_output]
        a_thread = max(1.0, self.largest / self.threads)
        kept = sum(each.share for each in touched) + len(plan.reductions)
        return LaunchWork(
            programs=programs,
            warps=self.threads // WARP,
            dram_bytes=dram,
            l2_bytes=l2,
            flight_bytes=self._in_flight(loaded, dram),
            steps=self.steps * self.passes,
            lane_work=max(tile, self.threads)
            * float(self.steps * self.passes * programs)
            * self._ops(a_thread)
            * self._crowding(a_thread)
            * self._waiting(programs)
            + programs * self.threads * rates.PROGRAM_WORK,
            registers=24 + a_thread * kept,
            barriers=self._barriers(touched),
            exchange_cycles=self._turning(tile) + self._lines_looked_up(touched) / rates.L1_LINES_PER_CLOCK,
            additions=sum(one.l2 / ATOMIC_WAYS / SECTOR for one, each in zip(traffic, touched, strict=True) if self._adds(each)),
            addition_lines=sum(self._lines(each) for each in touched if self._adds(each)),
        )

    def _barriers(self, touched: Sequence[Touched]) -> float:
        """Barriers of a step: those of reductions, and of rows that are compared and added up before memory is."""
        if self.threads == WARP or self.loop is not None:
            return 0.0
        merged = sum(self._adds(each) and self._merged(each) < 1.0 for each in touched)
        return sum(waits(self.plan.b, expr) for expr in self.plan.reductions) + MERGING * merged

    def _in_flight(self, loaded: Sequence[_Traffic], dram: float) -> float:
        """Bytes of a program that are on their way at once; stores wait for nothing: loads in flight carry their part, too.

        A walk waits in each of its steps, whatever was read before it.
        """
        found = max(128.0, sum(one.tile for one in loaded)) * dram / max(1.0, sum(one.dram for one in loaded))
        walks = self.axis and self.loop is None
        return min(found, dram / (self.tiles * self.splits * self.steps)) if walks else found

    def _lines_looked_up(self, touched: Sequence[Touched]) -> float:
        """Lines that one step of a tile looks up in the L1: an access is made for all positions of each axis that it varies over.

        Each lane has as many neighbours as the widest access takes at once. One that cannot take them together takes them one after the
        other, and looks up about the same lines each time.
        """
        lines, wide = 0.0, self._widest()
        for each in touched:
            varied = [
                extent if not atoms & each.flow.alike else max(1.0, extent / WARP) for atoms, extent in self._held if atoms & each.exprs
            ]
            near = NEAR if each.flow.random & each.exprs and not each.sampled else 1.0
            once = 1 if not self.axis or self._stepped & each.exprs else self.steps * self.passes
            found = looked_up(self._steps_of(each), each.item, math.prod(varied))
            times = wide if self._is_narrow(each) else 1.0
            lines += near * self._part(each) * min(found * times, max(found, math.prod(varied))) / once
        return lines

    def _widest(self) -> float:
        """Neighbours along the columns that a lane has: those of its widest access."""
        wide = [WIDEST / each.item for each in self.plan.touched if self.cols and each.flow.stride(self.cols[-1][-1]) == 1]
        wide += [WIDEST / each.item / 2 for each in self.plan.touched if self._doubled(each)]
        return max(1.0, min(max(wide, default=1.0), self.m * self.n * self.k / self.threads, self.n))

    def _is_narrow(self, each: Touched) -> bool:
        """Whether an access varies over the columns, and neighbours there do not lie side by side in it."""
        varies = any(each.exprs & set(group) for group in self.cols) and self.plan.turned is None
        return varies and each.flow.stride(self.cols[-1][-1]) != 1 and not self._halved(each) and not self._doubled(each)

    def _adds(self, each: Touched) -> bool:
        return each.access.is_output and each.access.ref in self.work.added

    def _lines(self, each: Touched) -> float:
        """Lines of memory that are added to, in all copies."""
        return max(1.0, each.access.meta.numel * each.item * self.copies / LINE)

    def _from_memory(self, touched: Sequence[Touched], traffic: list[_Traffic]) -> float:
        """Bytes from memory: of a tensor that is read several times, no more than it has."""
        found: dict[object, tuple[float, float]] = {}
        for one, each in zip(traffic, touched, strict=True):
            whole, sofar = float(each.access.meta.numel * each.item), found.get(each.access.ref, (0.0, 0.0))[1]
            found[each.access.ref] = (max(whole, one.dram), sofar + one.dram)
        return sum(min(pair) for pair in found.values())

    def _traffic(self, each: Touched, again: bool) -> _Traffic:
        """Each tile's sectors whole; what tiles share comes from memory once where the L2 holds it."""
        found, wanted = self._steps_of(each), each.positions * each.item
        elements = math.prod(count for _, count in found)
        tile = sectors(found, each.item) * SECTOR
        times = self.tiles * self.splits
        if self._stepped & each.exprs:
            times *= self.steps * self.passes
        whole = float(each.access.meta.numel * each.item)
        unique = min(whole, float(wanted))
        if each.flow.random & each.exprs:
            # sectors of a gather are not shared by neighbours
            unique = min(whole, wanted * max(1.0, tile / (elements * each.item)))
        if unique > self.sheet.l2_mib * 2**20 * rates.L2_RESIDENT:
            unique *= self.passes
        elif again and not each.access.is_output:
            unique = 0.0
        unique, tile = unique * each.share, tile * self._part(each)
        l2 = tile * times
        l2 *= ATOMIC_WAYS * self._merged(each) if each.access.ref in self.work.added else 1.0
        return _Traffic(min(unique, l2), l2, elements * each.item * each.share)

    def _merged(self, each: Touched) -> float:
        """Part of the additions to a tensor that rows of tiles make which are not added up before."""
        output = next(output for output in self.plan.kernel.outputs if output.ref == each.access.ref)
        rows = [atom for group in self.rows for atom in group]
        if self.m == 1 or not self.cols or self.plan.walked or not (places := merging(self.plan.b, output, rows)):
            return 1.0
        return merged_share(self.plan.size(self.rows), _targets(output, places), self.m)

    def _halved(self, each: Touched) -> bool:
        """Whether an access is half of a read of pairs."""
        return bool(each.pair) and self.cols == (each.pair,) and not self.plan.walked

    def _doubled(self, each: Touched) -> bool:
        """Whether an access writes pairs."""
        return self.plan.twin is not None and each.access.is_output

    def _part(self, each: Touched) -> float:
        """Part of its positions at which an access reads by itself."""
        return each.share * (0.5 if self._halved(each) else 1.0)

    def _steps_of(self, each: Touched) -> list[Step]:
        """Strides and extents of an access in one tile, group by group."""
        return [(stride, count) for atom, count in self._counts if (stride := self._stride(each, atom)) != 0]

    def _stride(self, each: Touched, atom: int) -> int | None:
        """Elements between neighbours along an atom: sampled ones lie side by side along the columns."""
        found = each.stride(atom)
        return 1 if found is None and each.sampled and self.cols and atom == self.cols[-1][-1] else found

    def _size(self, group: tuple[int, ...]) -> int:
        return self.plan.size([group])

    @cached_property
    def _counts(self) -> list[tuple[int, int]]:
        """The innermost atom of each group, and how many elements a tile has along the group."""
        parts = (axis_steps(groups, extent, self._size, lambda atom: atom) for groups, extent in self._extents)
        return [(atom, count) for part in parts for atom, count in part if atom is not None]

    @cached_property
    def _held(self) -> list[tuple[frozenset[int], int]]:
        """Atoms of each axis of a tile, and its extent."""
        return [(frozenset(atom for group in groups for atom in group), extent) for groups, extent in self._extents]

    @cached_property
    def _stepped(self) -> frozenset[int]:
        """Atoms of the axis that a program steps along."""
        return frozenset(atom for group in self.axis for atom in group)

    @cached_property
    def _extents(self) -> list[tuple[Groups, int]]:
        held = [(axis, self.plan.size(axis)) for axis in self.plan.walked if axis is not self.axis]
        return [(self.rows, self.m), (self.cols, self.n), *held, *([(self.axis, self.step)] if self.axis else [])]

    @property
    def _once(self) -> float:
        """Steps for which something is made that does not vary along what is stepped along."""
        return float(self.steps * self.passes) if self.axis else 1.0

    def _ops(self, a_thread: float) -> float:
        """Instructions an element of a tile: its formulas, its accesses, and the numbers that are taken apart."""
        # lanes that hold neighbours of a row take its number apart once for them
        beside_one = max(1.0, min(a_thread, WIDEST / 4, self.n))
        work = self._divisions(self.cols) + self._divisions(self.rows) / beside_one
        work /= self._once if self.loop is None else 1.0
        for kind, instructions in self.work.formulas.items():
            work += instructions * self._share(kind)
        for kind, instructions in self.work.orders.items():
            work += instructions * self._share(kind) * (1 + SHARED_ORDER * math.log2(self.threads / WARP))
        for each, kind in zip(self.plan.touched, self.work.accesses, strict=True):
            beside = each.flow.stride(self.cols[-1][-1]) == 1 or self._halved(each) or self._doubled(each) if self.cols else True
            work += OVERHEAD / (min(a_thread, WIDEST / each.item) if beside else 1.0) * self._share(kind)
        return work

    def _divisions(self, groups: Groups) -> float:
        """Instructions by which a lane takes its number along an axis apart."""
        return sum(DIVISION if len(set(self.plan.b.count(group))) > 1 else FIXED_DIVISION for group in groups[1:])

    def _crowding(self, a_thread: float) -> float:
        """How much longer instructions take that the cache of instructions does not hold: sines are long, and written for every element."""
        return max(1.0, a_thread * self.work.sines * SINE_BYTES / CODE_BYTES)

    def _waiting(self, programs: int) -> float:
        """How much longer orders take whose multiprocessors have few warps: each instruction of one waits for that before it."""
        warps = math.ceil(programs / self.sheet.sms) * self.threads / WARP
        return max(1.0, rates.ISSUES_PER_CLOCK * CHAINED / warps) if self.plan.ordered else 1.0

    def _share(self, kind: _Kind) -> float:
        """Part of a tile's elements for which something is made: it is the same along the axes that it does not vary over."""
        rows, cols, walked, along = kind
        if not walked or not self.plan.whole:
            # what does not vary along the axis that is stepped along is made once, not in every step
            once = 1.0 if along or (self.loop is not None and self.loop in walked) else self._once
            return 1.0 / (1 if rows else self.m) / (1 if cols else self.n) / (1 if walked else self.k) / once
        held = math.prod(power_of_two(self.plan.size(self.plan.walked[place])) for place in walked)
        return held / self.k / (1 if rows else self.m) / (1 if cols else self.n)

    def _turning(self, tile: int) -> float:
        """Cycles of shared memory by which operands are turned that lie side by side along the rows."""
        if self.plan.turned is None or not self.rows or (not self.outer and len(self.rows) > 1):
            return 0.0
        turned = sum(each.flow.stride(self.rows[-1][-1]) == 1 and not each.access.is_output for each in self.plan.touched)
        return 2.0 * tile / WARP * turned


def _targets(output: Output, places: Sequence[int]) -> int:
    """Count the places that positions which are data can name."""
    assert output.scatter is not None
    return math.prod(size for size, position in zip(output.meta.written, output.scatter.positions, strict=True) if position in places)


_Kind = tuple[bool, bool, tuple[int, ...], bool]
"""Whether something varies over rows and over columns, over which of the axes that reductions walk, and over what a program walks."""


class _Traffic(NamedTuple):
    """Bytes of one access: from memory, through the L2, and of one tile."""

    dram: float
    l2: float
    tile: float


class _Work(NamedTuple):
    """What a tile does, by what it varies over."""

    formulas: dict[_Kind, float]
    orders: dict[_Kind, float]
    accesses: list[_Kind]
    added: frozenset[object]
    """Tensors that are added to in memory."""
    sines: int
    """Sines and cosines of a tile's elements."""


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
        added = frozenset(o.ref for o in plan.kernel.outputs if o.scatter and o.scatter.write is not Write.STORE)
        sines = sum(plan.b.exprs[expr].op in ("sin", "cos") and kind(plan.b.leaves_of(plan.b.exprs[expr]))[1] for expr in plan.needed)
        kept[flat, step] = _Work(formulas, orders, [kind(each.exprs) for each in plan.touched], added, sines)
    return kept[flat, step]
