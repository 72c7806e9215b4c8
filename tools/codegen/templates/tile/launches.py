"""What the launches of a tile region do: their programs, bytes and instructions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from tools.codegen.ir.kernel import Kernel, Output
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.work import SECTOR, WARP
from tools.codegen.templates.tile.instructions import Instructions
from tools.codegen.templates.tile.knobs import COMBINED
from tools.codegen.templates.tile.laid import Laid
from tools.codegen.templates.tile.layout import TileLayout
from tools.codegen.templates.tile.near import NearMemory
from tools.codegen.templates.tile.orders import waits
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.codegen.templates.tile.rare import left, skipped_by
from tools.codegen.templates.tile.tiling import Tiling
from tools.codegen.templates.tile.touched import Touched
from tools.codegen.templates.tile.traffic import ATOMIC_WAYS, Traffic
from tools.hardware import rates
from tools.records import HardwareSheet

MERGING = 20.0
"""Barriers by which several warps find out that rows go to one place, and add them up. On an H100 (2026-11-26) sums of 8,192 segments take
41 µs with 8 rows a program of one warp, 63 of four warps; with 16 rows 49 and 48."""
RUN_BARRIERS = 5.0
"""Barriers by which several warps tell each other where runs are, and which elements: 5 and 9 in four and in two warps for steps of four
elements of 256 columns, none in one (counted, sm_90)."""
COMBINING = 3.0
"""Instructions of a partial result that is read and added up, counted in the text: a quarter of a load's, a mask, an addition."""
ASKING = 0.3
"""Part of a tile's work by which it finds out that there is nothing to add: an assumption."""


def tile_launches(kernel: Kernel, parameters: Settings, sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
    """One launch; of a split reduction another that combines, and of a scatter one that copies what it writes to."""
    plan = tile_layout_of(kernel)
    count = int(parameters.get("COPIES", 1))
    copies = [
        work for output, item in _copied(plan) for work in _around(output, output.meta.numel * item, count if output in plan.added else 1)
    ]
    later = tile_launches(kernel.then, parameters, sheet) if kernel.then is not None else ()
    return (*copies, *_Launches(Tiling(plan, parameters), sheet).launches(), *later)


def _around(output: Output, nbytes: int, copies: int) -> list[LaunchWork]:
    """What is launched before values are scattered: a copy or a fill; of several copies their fill, their sum and what adds it."""
    assert output.scatter is not None
    if copies == 1:
        return [_copy(nbytes, output.scatter.base is None)]
    return [_copy(nbytes * copies, True), _copy(nbytes * copies, True), *([_copy(nbytes, False)] if output.scatter.base else [])]


def _copied(plan: TileLayout) -> list[tuple[Output, int]]:
    items = [each.item for each in plan.touched[len(plan.touched) - len(plan.kernel.outputs) :]]
    pairs = zip(plan.kernel.outputs, items, strict=True)
    return [(one, item) for one, item in pairs if one.scatter and not one.scatter.in_place and one.scatter.onto is None]


def _copy(nbytes: int, filled: bool) -> LaunchWork:
    moved = float(nbytes * (1 if filled else 2))
    programs = max(1, nbytes // 16384)
    return LaunchWork(programs=programs, warps=4, dram_bytes=moved, l2_bytes=moved, flight_bytes=8192.0, steps=1, lane_work=nbytes / 4)


class _Launches:
    """The launches of one region with its parameters."""

    def __init__(self, tiling: Tiling, sheet: HardwareSheet) -> None:
        self.plan, self.tiling, self.sheet = tiling.plan, tiling, sheet
        self.traffic = Traffic(tiling, sheet)
        self.instructions, self.near = _over_lanes(tiling)

    def launches(self) -> tuple[LaunchWork, ...]:
        """List them."""
        if not self.tiling.split or self.plan.looped is None:
            return (self._main(self.plan.touched),)
        levels = len(self.plan.levels[self.plan.looped])
        read = tuple(each for each in self.plan.touched if not each.access.is_output)
        refs = {output.ref for output in self.plan.early}
        early = tuple(each for each in self.plan.touched if each.access.is_output and each.access.ref in refs)
        partials = tuple(self._partial(read if level else (*read, *early), level) for level in range(levels))
        if self.plan.written_along:
            late = [each for each in self.plan.touched if each not in early]
            last = self._combining(self._main(late, again=True), levels)
            return *partials, last._replace(barriers=2.0 / last.steps)
        results, splits = self.plan.results(levels), self.tiling.splits
        moved, parts = 4.0 * results * (splits + 1), 1
        if self.plan.parted is not None:
            parts = math.ceil(self.plan.size(self.plan.walked[self.plan.parted]) / max(1, COMBINED // power_of_two(splits)))
        programs = self.tiling.tiles * parts
        flight = max(1024.0, moved / programs)
        combine = LaunchWork(
            programs=programs, warps=partials[0].warps, dram_bytes=moved, l2_bytes=moved, flight_bytes=flight, steps=1,
            registers=24 + moved / 4 / programs / self.tiling.threads / 2,
            lane_work=programs * self.tiling.threads * rates.PROGRAM_WORK + moved, barriers=2.0,
        )  # fmt: skip
        return *partials, combine

    def _partial(self, touched: Sequence[Touched], level: int) -> LaunchWork:
        """One launch that makes a level of partial results, from those of the levels before it."""
        return self._combining(self._skipping(self._main(touched, again=level > 0), level), level)

    def _combining(self, work: LaunchWork, levels: int) -> LaunchWork:
        """Add what each program of a launch does that first puts the partial results of some levels together."""
        each = self.plan.results(levels) * self.tiling.splits / self.tiling.tiles
        return work._replace(
            l2_bytes=work.l2_bytes + 4 * each * work.programs,
            lane_work=work.lane_work + COMBINING * each * work.programs,
            registers=max(work.registers, 24 + each / self.tiling.threads / 2),
        )

    def _skipping(self, work: LaunchWork, level: int) -> LaunchWork:
        """Leave out what tiles do in which a rare condition of a level of sums holds nowhere, but for asking."""
        assert self.plan.looped is not None
        condition = skipped_by(self.plan.b, self.plan.levels[self.plan.looped][level])
        if condition is None:
            return work
        part = ASKING + (1 - ASKING) * left(self.plan.b, condition, self.tiling.elements)
        return work._replace(lane_work=work.lane_work * part, barriers=2.0 if self.tiling.threads > WARP else 0.0)

    def _main(self, touched: Sequence[Touched], again: bool = False) -> LaunchWork:
        """One launch that reads and writes what is `touched`; what the L2 holds of it comes from there if it was read just before."""
        programs, steps = self.tiling.tiles * self.tiling.splits, self.tiling.steps * self.tiling.passes
        traffic = [self.traffic.of(each, again) for each in touched]
        dram, l2 = self.traffic.from_memory(touched, traffic), sum(one.l2 for one in traffic)
        loaded = [one for one, each in zip(traffic, touched, strict=True) if not each.access.is_output]
        a_thread = max(1.0, self.tiling.largest / self.tiling.threads)
        return LaunchWork(
            programs=programs,
            warps=self.tiling.threads // WARP,
            dram_bytes=dram,
            l2_bytes=l2,
            flight_bytes=self.traffic.in_flight(touched, traffic, dram),
            steps=steps,
            lane_work=self.tiling.threads * float(steps * programs) * self.instructions.a_step * self.instructions.crowding(a_thread)
            + programs * self.tiling.threads * rates.PROGRAM_WORK,
            registers=self.instructions.registers(touched),
            barriers=self._barriers(touched),
            exchange_cycles=self.near.clocks(touched)
            + self.instructions.crossings
            + sum(one.l2 for one in loaded) / rates.SM_BYTES_PER_CLOCK / programs / steps,
            independent=self.instructions.independent,
            additions=sum(one.l2 / ATOMIC_WAYS / SECTOR for one, each in zip(traffic, touched, strict=True) if self.traffic.adds(each)),
            addition_lines=sum(self.traffic.lines(each) for each in touched if self.traffic.adds(each)),
        )

    def _barriers(self, touched: Sequence[Touched]) -> float:
        """Barriers of a step: those of its reductions, of what is turned, and of rows that are compared and added up before memory is."""
        if self.tiling.threads == WARP and not self.plan.ordered:
            return 0.0
        turned = sum(one.turned > 0 for one in self.instructions.laid.accesses)
        if self.tiling.loop is not None:
            along = {expr for expr in self.tiling.apart if self.plan.bounds[expr] & self.tiling.stepped}
            inside = [expr for expr in self.plan.reductions if self.plan.bounds[expr] - self.tiling.stepped and expr not in along]
            ends = RUN_BARRIERS if self.plan.spanned is not None else 0.0
            return sum(waits(self.plan.b, expr) for expr in inside) + 2.0 * turned + ends
        merged = sum(self.traffic.adds(each) and self.traffic.merged(each) < 1.0 for each in touched)
        return sum(waits(self.plan.b, expr) for expr in self.plan.reductions) + MERGING * merged + 2.0 * turned


def _over_lanes(tiling: Tiling) -> tuple[Instructions, NearMemory]:
    """Count for tiles, once for all settings that work alike."""
    known: dict[Hashable, tuple[Instructions, NearMemory]] = tiling.plan.__dict__.setdefault("_over_lanes", {})
    if tiling.over_lanes not in known:
        laid = Laid(tiling)
        known[tiling.over_lanes] = Instructions(laid), NearMemory(laid)
    return known[tiling.over_lanes]
