"""The tiles of a region: how much of each axis one holds, what a program steps along, and which neighbours an access meets in one."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import cached_property

from tools.codegen.templates.shared.knob import Settings
from tools.codegen.templates.shared.sectors import Step, axis_steps
from tools.codegen.templates.shared.work import WARP
from tools.codegen.templates.tile.knobs import apart, extents, tile_elements
from tools.codegen.templates.tile.layout import Groups, TileLayout
from tools.codegen.templates.tile.repeats import stepped
from tools.codegen.templates.tile.touched import Touched


class Tiling:
    """The tiles of one region with its parameters."""

    def __init__(self, plan: TileLayout, parameters: Settings) -> None:
        """Cut a layout into tiles."""
        self.plan = plan
        self.is_flat = parameters["algorithm"] == "flat"
        self.walked = walked = stepped(plan, parameters)
        """Which of the layout's `grid` a program walks."""
        self.outer, self.rows, self.cols = plan.placed(self.is_flat, walked)
        self.m, self.n, self.k = extents(plan, parameters)
        self.elements = self.m * self.n * self.k
        self.largest = tile_elements(plan, parameters)
        self.threads = int(parameters["num_warps"]) * WARP
        loop = plan.looped if parameters["reduction"] != "registers" else None
        self.loop = loop
        self.axis: Groups = plan.walked[loop] if loop is not None else () if walked is None else (plan.grid[walked],)
        """What is stepped along: what is reduced, or a dimension that a program walks."""
        self.length = plan.size(self.axis) * plan.runs(self.rows, self.m) * plan.runs(self.cols, self.n)
        most = int(parameters["BLOCK_K"])
        self.step = 1 if loop is None else min(self.length, most) if plan.spanned is None else most
        self.copies = int(parameters.get("COPIES", 1)) if plan.added else 1
        self.split = parameters["reduction"] == "split"
        self.apart = apart(plan, parameters) if loop is not None else frozenset()
        """Reductions whose elements a loop adds up by themselves."""
        self.splits = min(int(parameters["SPLITS"]), math.ceil(self.length / self.step)) if self.split else 1
        if walked is not None:
            self.splits = math.ceil(self.length / int(parameters["STEPS"]))
        self.steps = math.ceil(math.ceil(self.length / self.splits) / self.step)
        self.passes = len(plan.levels[loop]) + plan.written_along if loop is not None and not self.split else 1
        self.tiles = plan.size(self.outer) * math.ceil(plan.size(self.rows) / self.m) * math.ceil(plan.size(self.cols) / self.n)

    @property
    def over_lanes(self) -> Hashable:
        """What decides how a program's values lie over its threads, and what these do in a step: settings that agree in it work alike."""
        held = self.is_flat, self.walked, self.m, self.n, self.k, self.threads, self.largest
        return *held, self.loop, self.step, self.steps, self.passes, self.apart

    @property
    def in_memory(self) -> Hashable:
        """What decides the sectors and bytes of all programs: settings that agree in it move the same."""
        return self.is_flat, self.walked, self.m, self.n, self.loop, self.step, self.steps, self.passes, self.splits, self.copies

    @property
    def once(self) -> float:
        """Steps for which something is made that does not vary along what is stepped along."""
        return float(self.steps * self.passes) if self.axis else 1.0

    @cached_property
    def stepped(self) -> frozenset[int]:
        """Atoms of the axis that a program steps along."""
        return frozenset(atom for group in self.axis for atom in group)

    @cached_property
    def _counts(self) -> list[tuple[int, int]]:
        """The innermost atom of each group, and how many elements a tile has along the group."""
        parts = (axis_steps(groups, extent, self._size, lambda atom: atom) for groups, extent in self._extents)
        return [(atom, count) for part in parts for atom, count in part if atom is not None]

    @cached_property
    def _extents(self) -> list[tuple[Groups, int]]:
        held = [(axis, self.plan.size(axis)) for axis in self.plan.walked if axis is not self.axis]
        return [(self.rows, self.m), (self.cols, self.n), *held, *([(self.axis, self.step)] if self.axis else [])]

    def _size(self, group: tuple[int, ...]) -> int:
        return self.plan.size_of(group)

    def steps_of(self, each: Touched) -> list[Step]:
        """Strides and extents of an access in one tile, group by group."""
        return [(stride, count) for atom, count in self._counts if (stride := self.stride(each, atom)) != 0]

    def alike(self, each: Touched) -> int:
        """Count the tiles along the dimensions over which an access does not vary."""
        found = 1 if self.walked is None or self.stepped & each.exprs else self.splits
        for groups, extent in self._extents[:2]:
            counts = axis_steps(groups, extent, self._size, lambda atom: atom)
            inside = {atom: count for atom, count in counts if atom is not None}
            missing = [group for group in groups if not set(group) & each.exprs]
            found *= math.prod(math.ceil(self._size(group) / inside.get(group[-1], 1)) for group in missing)
        return found

    def stride(self, each: Touched, atom: int) -> int | None:
        """Elements between neighbours along an atom: sampled ones lie side by side along the columns."""
        found = each.stride(atom)
        return 1 if found is None and each.sampled and self.cols and atom == self.cols[-1][-1] else found

    def halved(self, each: Touched) -> bool:
        """Whether an access is half of a read of pairs."""
        return bool(each.pair) and self.cols == (each.pair,) and not self.plan.walked

    def doubled(self, each: Touched) -> bool:
        """Whether an access writes pairs."""
        return self.plan.pairs and each.access.is_output

    def stores(self, each: Touched) -> int:
        """Count the stores that elements made together take: pairs are one."""
        return len(self.plan.both[0]) if self.plan.both and not self.plan.pairs and each.access.is_output else 1

    def part(self, each: Touched) -> float:
        """Part of its positions at which an access reads by itself."""
        return each.share * (0.5 if self.halved(each) else 1.0)
