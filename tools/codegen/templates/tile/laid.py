"""A region's values and accesses as its tiles lie over the lanes of a program: what a thread makes and asks for in a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.work import WIDEST
from tools.codegen.templates.tile.lanes import COLS, ROWS, Lanes, Side, Spread
from tools.codegen.templates.tile.layout import Groups
from tools.codegen.templates.tile.tiling import Tiling
from tools.codegen.templates.tile.touched import Touched
from tools.codegen.templates.tile.work import Kind, dims_of, work_of


class Accessed(NamedTuple):
    """One access of a tile."""

    each: Touched
    side: Side
    placed: Spread
    taken: int
    """Elements that a lane takes at once."""
    held: int
    """Elements of it that a thread has."""
    asked: float
    """Loads or stores of a thread in a step."""
    turned: float
    """Elements of a thread in a step that go through shared memory to where what is made of them lies."""


class Laid:
    """What the tiles of a region work, over lanes."""

    def __init__(self, tiling: Tiling) -> None:
        """Lay tiles."""
        self.plan, self.tiling = tiling.plan, tiling
        self.work = work_of(tiling.plan, tiling.is_flat, tiling.walked)

    @cached_property
    def dims(self) -> dict[int, Groups]:
        """A tile's dimensions."""
        tiled = {dim: groups for dim, groups in ((ROWS, self.tiling.rows), (COLS, self.tiling.cols)) if groups}
        return tiled | dict(enumerate(self.plan.walked))

    @cached_property
    def atoms(self) -> dict[int, frozenset[int]]:
        """Leaf atoms of each of a tile's dimensions."""
        return {dim: frozenset(atom for group in groups for atom in group) for dim, groups in self.dims.items()}

    @cached_property
    def lanes(self) -> Lanes:
        """How the tile's values lie over lanes and warps, worked out once for all settings that tile alike."""
        tiling = self.tiling
        alike = (tiling.is_flat, tiling.walked, tiling.m, tiling.n, tiling.loop, tiling.step, tiling.threads)
        known: dict[tuple[object, ...], Lanes] = self.plan.__dict__.setdefault("_lanes", {})
        if alike not in known:
            known[alike] = self._lanes()
        return known[alike]

    def _lanes(self) -> Lanes:
        sizes = {ROWS: self.tiling.m, COLS: self.tiling.n}
        sizes |= {place: power_of_two(self.plan.size(axis)) for place, axis in enumerate(self.plan.walked)}
        if self.tiling.loop is not None:
            wide = sizes[self.tiling.loop] if self.plan.spanned is None else self.tiling.step
            sizes[self.tiling.loop] = min(wide, power_of_two(self.tiling.step))
        kinds = {dims_of(kind) for kind in (*self.work.formulas, *self.work.orders, *self.work.accesses)}
        return Lanes({dim: sizes[dim] for dim in self.dims}, kinds, self._sides, self.tiling.threads)

    def held(self, kind: Kind) -> int:
        """Elements of one kind that a thread has."""
        return self.lanes.held(dims_of(kind))

    def made(self, kind: Kind) -> float:
        """Elements of one kind that a thread makes in a step."""
        return self.held(kind) / self._often(kind)

    def _often(self, kind: Kind) -> float:
        """Steps for which something is made: one where it varies along what is stepped along, else all."""
        walked, along = kind[2:]
        return 1.0 if along or (self.tiling.loop is not None and self.tiling.loop in walked) else self.tiling.once

    @cached_property
    def accesses(self) -> list[Accessed]:
        """All accesses, with how they lie and how often a thread makes them in a step."""
        found: list[Accessed] = []
        known: dict[tuple[int, Side], Accessed] = {}
        for each, kind, side in zip(self.plan.touched, self.work.accesses, self._sides, strict=True):
            alike = self.plan.alike[id(each)], side
            if alike in known:
                found.append(known[alike]._replace(each=each))
                continue
            placed = self.lanes.of_access(side)
            taken = 1 if side.dim is None else min(side.wide, max(1, placed.held[side.dim]))
            held = math.prod(placed.held[dim] for dim in side.dims)
            asked = held / taken / self._often(kind) * self.tiling.stores(each)
            known[alike] = Accessed(each, side, placed, taken, held, asked, asked * taken if self.lanes.turns(side) else 0.0)
            found.append(known[alike])
        return found

    def among(self, touched: Sequence[Touched]) -> list[Accessed]:
        """List the accesses of what a launch touches; by identity, as comparing hundreds of records with one another takes seconds."""
        asked = set(map(id, touched))
        return [one for one in self.accesses if id(one.each) in asked]

    @cached_property
    def _sides(self) -> list[Side]:
        """Say of each access along which dimension of a tile it lies side by side in memory, whatever the tile's size."""
        known: dict[tuple[bool, int | None], list[Side]] = self.plan.__dict__.setdefault("_sides", {})
        alike = (self.tiling.is_flat, self.tiling.walked)
        if alike not in known:
            known[alike] = [self._side(each, kind) for each, kind in zip(self.plan.touched, self.work.accesses, strict=True)]
        return known[alike]

    def _side(self, each: Touched, kind: Kind) -> Side:
        dims, wide = dims_of(kind), WIDEST // each.item
        if self.tiling.cols and (self.tiling.halved(each) or self.tiling.doubled(each)):
            return Side(dims | {COLS}, COLS, max(1, wide // 2), each.item, each.access.is_output)
        beside = [dim for dim, groups in self.dims.items() if dim in dims and each.flow.stride(groups[-1][-1]) == 1]
        atoms = {atom for group in self.dims[beside[-1]] for atom in group} if beside else set()
        wide = min(wide, _aligned(each, atoms)) if beside else 1
        return Side(dims, beside[-1] if beside else None, wide, each.item, each.access.is_output)


def _aligned(each: Touched, along: set[int]) -> int:
    """Elements that a lane can read at once by where the rows of a tensor begin: last dimensions that are walked as one are one row."""
    written, dims = each.access.meta.written, each.access.dims
    if len(written) < 2:
        return WIDEST
    last = written[-1]
    # from behind: values that are written to positions have fewer dimensions than what they are written to
    for ours, before in zip(reversed(dims), reversed(written[1:-1]), strict=False):
        if not ours or not set(ours) <= along:
            break
        last *= before
    return last & -last
