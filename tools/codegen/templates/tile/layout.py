"""A region as a loop nest: which dimensions are columns, rows and grid, and which are walked by the reductions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.kernel import Kernel, Output, Write
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.work import WARP
from tools.codegen.templates.tile.merged import merged_pairs
from tools.codegen.templates.tile.touched import Touched, alike
from tools.codegen.templates.tile.twins import PAIR, Each

Groups = tuple[tuple[int, ...], ...]
MOST_LEVELS = 3
"""Reductions that wait for one another in a region whose rows several programs share."""
WIDE = 256
"""Elements of one dimension that a tile holds without more ado."""


@dataclass(frozen=True)
class TileLayout:
    """A region as a loop nest."""

    kernel: Kernel
    accesses: tuple[Access, ...]
    """Of all loads, then of all outputs."""
    needed: tuple[int, ...]
    """Expressions that an output needs, in order."""
    touched: tuple[Touched, ...]
    grid: Groups
    """Dimensions of the outputs that no reduction walks, in memory's order."""
    walked: tuple[Groups, ...]
    """Dimensions that reductions walk, an axis for each set of reductions that share it."""
    turned: int | None
    """Which of `grid` lies side by side in operands that disagree with the outputs; none where all agree."""
    twin: int | None = None
    """The atom of few elements that a program makes together for each of its columns."""
    both: tuple[Each, ...] = ()
    """Each output's formulas of those."""

    @property
    def b(self) -> Builder:
        """The region's expressions."""
        return self.kernel.builder

    @cached_property
    def alike(self) -> dict[int, int]:
        """Numbers of the accesses, by identity: of those that run through memory alike one."""
        return alike(self.touched, [output.ref for output in self.kernel.outputs])

    @property
    def pairs(self) -> bool:
        """Whether a program makes two elements together for each of its columns, and writes them side by side."""
        return any(len(each) == PAIR for each in self.both)

    @property
    def stored(self) -> tuple[int, ...]:
        """List what is stored."""
        return tuple(expr for each in self.both for expr in each) or tuple(output.expr for output in self.kernel.outputs)

    @cached_property
    def _sizes(self) -> dict[tuple[int, ...], int]:
        groups = (*self.grid, *(group for axis in self.walked for group in axis))
        spans = self.b.spans
        return {group: math.prod(spans[atom].mean if atom in spans else self.b.atoms.size(atom)[0] for atom in group) for group in groups}

    def size(self, groups: Iterable[tuple[int, ...]]) -> int:
        """Elements of groups at the sizes as written; of which each row has its own, those of one row on average."""
        return math.prod([self._sizes[group] for group in groups])

    def size_of(self, group: tuple[int, ...]) -> int:
        """Elements of one of them."""
        return self._sizes[group]

    def placed(self, flat: bool, without: int | None = None) -> tuple[Groups, Groups, Groups]:
        """Say what is grid alone, what is rows and what is columns, `without` a dimension that programs walk."""
        if flat or not self.has_rows:
            return (), (), tuple(group for place, group in enumerate(self.grid) if place != without)
        numbered, columns = list(enumerate(self.grid))[: -self.columns], self.grid[-self.columns :]
        if self.turned is None:
            return (), tuple(group for place, group in numbered if place != without), columns
        others = tuple(group for place, group in numbered if place not in (self.turned, without))
        return others, (self.grid[self.turned],), columns

    @cached_property
    def rows_first(self) -> bool:
        """Whether neighbouring programs have the same columns and other rows.

        So it is where rows say which part of a large tensor is read, and several say the same one: all of these read it at about one time.
        """
        if self.columns == 0 or not self.has_rows or self.turned is not None:
            return False
        rows = {atom for group in self.grid[: -self.columns] for atom in group}
        cols = {atom for group in self.grid[-self.columns :] for atom in group}
        return any(
            bool(each.flow.random & rows) and not each.flow.random & cols and bool(each.exprs & cols) and each.is_repeated
            for each in self.touched
        )

    @cached_property
    def columns(self) -> int:
        """Count the dimensions that are columns: the last one, and those before it as long as a warp is wider than they are together.

        Where something is reduced, what is walked lies in a warp, too: the last one is enough.
        """
        return min(1, len(self.grid)) if self.walked else columns_of(self.b, self.grid)

    @property
    def has_rows(self) -> bool:
        """Whether the outputs have dimensions besides their columns."""
        return len(self.grid) > self.columns

    @cached_property
    def reductions(self) -> tuple[int, ...]:
        """Reductions, and orders and scans with them, that an output needs."""
        return tuple(expr for expr in self.needed if self.b.exprs[expr].along)

    @cached_property
    def added(self) -> tuple[Output, ...]:
        """Outputs whose values are added to positions of a copy of another tensor."""
        return tuple(output for output in self.kernel.outputs if output.scatter and output.scatter.write is Write.ADD)

    @cached_property
    def ordered(self) -> bool:
        """Whether rows are put in order: then all that is walked is held."""
        return any(self.b.exprs[expr].op == "order" for expr in self.reductions)

    @cached_property
    def joined(self) -> bool:
        """Whether what is put in order lies along several walked axes, which are made one for that.

        Triton 3.6 may then lay warps along that one, along rows, and along it again. Two rows of 509 elements in chunks of 64 came out
        wrong where it did, by 8 warps and more, and right by 4, or one row at a time (an H100, 2026-11-27).
        """
        orders = (expr for expr in self.reductions if self.b.exprs[expr].op == "order")
        return any(sum(not self.bounds[expr].isdisjoint(_atoms_of(axis)) for axis in self.walked) > 1 for expr in orders)

    @cached_property
    def whole(self) -> bool:
        """Whether a program holds all that is walked: rows in order, and what is accumulated along."""
        return self.ordered or any(self.b.exprs[expr].is_scan for expr in self.reductions)

    @cached_property
    def held(self) -> int:
        """Elements of walked axes that the largest value of a region which is held whole has, at powers of two."""
        return max(map(self.held_of, self.needed), default=1)

    def held_of(self, expr: int) -> int:
        """Elements of walked axes that one value has, at powers of two."""
        return math.prod(power_of_two(self.size(self.walked[place])) for place in self.along(expr))

    def wider(self, place: int) -> tuple[int, ...]:
        """Number the axes of what is picked along a walked axis where that may have fewer elements than are picked."""
        atoms, found = {atom for group in self.walked[place] for atom in group}, []
        for expr in self.reductions:
            record = self.b.exprs[expr]
            if record.op == "order" and self.bounds[expr] <= atoms:
                few = zip(self.b.count(record.along), self.b.count((record.extra[1],)), strict=True)
                if any(length < picked for length, picked in few):
                    made = {*self.b.atoms.leaves((record.extra[1],))}
                    found += [other for other, axis in enumerate(self.walked) if made & {atom for group in axis for atom in group}]
        return tuple(found)

    @cached_property
    def leaves(self) -> dict[int, frozenset[int]]:
        """Leaf atoms over which each expression varies, as all are lowered when a region is laid out."""
        return {expr: self.b.leaves_of(self.b.exprs[expr]) for expr in self.needed}

    @cached_property
    def _places(self) -> dict[int, tuple[int, ...]]:
        axes = [_atoms_of(axis) for axis in self.walked]
        return {expr: tuple(place for place, axis in enumerate(axes) if own & axis) for expr, own in self.leaves.items()}

    def along(self, expr: int) -> tuple[int, ...]:
        """Number the walked axes over which an expression varies."""
        return self._places[expr]

    @cached_property
    def bounds(self) -> dict[int, frozenset[int]]:
        """Atoms that each reduction runs over."""
        return {expr: frozenset(self.b.atoms.leaves(self.b.exprs[expr].along)) for expr in self.reductions}

    @cached_property
    def repeats(self) -> int:
        """How often a reduction is made again, at most: for each tile of the outputs along a dimension that it does not vary over."""
        tiles = [(set(group), math.ceil(self.size([group]) / WIDE)) for group in self.grid]
        each = [math.prod(count for group, count in tiles if not group & self.leaves[expr]) for expr in self.reductions]
        return max(each, default=1)

    @cached_property
    def levels(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """List for each walked axis its reductions, those that wait for none first."""
        return tuple(self._levels(frozenset(atom for group in axis for atom in group)) for axis in self.walked)

    @cached_property
    def merged(self) -> dict[int, int]:
        """Sums of exponentials that a walk makes with the largest element they are relative to: by sum, the maximum."""
        found = {} if self.ordered else merged_pairs(self.b, self.reductions)
        alone = {place for place, axis in enumerate(self.walked) if all(self.bounds[e] == _atoms_of(axis) for e in self._along(axis))}
        return {expr: peak for expr, peak in found.items() if any(self.bounds[expr] == _atoms_of(self.walked[place]) for place in alone)}

    def _along(self, axis: Groups) -> tuple[int, ...]:
        """List the reductions that walk an axis."""
        return tuple(expr for expr in self.reductions if self.bounds[expr] & _atoms_of(axis))

    def _levels(self, atoms: frozenset[int]) -> tuple[tuple[int, ...], ...]:
        depth: dict[int, int] = {}
        for expr in self.needed:
            own = expr in self.bounds and bool(self.bounds[expr] & atoms)
            depth[expr] = max((depth[arg] for arg in self.b.exprs[expr].args), default=0) + own
            if own and expr in self.merged:
                depth[expr] = depth[self.merged[expr]]
        wanted = [expr for expr in self.reductions if self.bounds[expr] & atoms]
        return tuple(tuple(expr for expr in wanted if depth[expr] == level) for level in range(1, max(depth[e] for e in wanted) + 1))

    def atoms_of(self, output: Output) -> frozenset[int]:
        """Atoms over which an output varies."""
        return frozenset(self.b.atoms.leaves([atom for dim in output.dims for atom in dim]))

    @cached_property
    def early(self) -> tuple[Output, ...]:
        """Outputs that vary along the axis that is stepped along and wait for no reduction along it: the first walk writes them."""
        if self.looped is None or self.both:
            return ()
        waited = {expr for level in self.levels[self.looped] for expr in level}
        along = (output for output in self.kernel.outputs if self.atoms_of(output) & _atoms_of(self.walked[self.looped]))
        return tuple(output for output in along if not waited & self.b.behind([output.expr]))

    @cached_property
    def written_along(self) -> bool:
        """Whether an output varies along the axis that is stepped along, and waits for a reduction along it."""
        if self.looped is None:
            return False
        late = (output for output in self.kernel.outputs if output not in self.early)
        return any(self.atoms_of(output) & _atoms_of(self.walked[self.looped]) for output in late)

    def results(self, levels: int) -> int:
        """Count what the first reductions along the axis that is stepped along come to, at the sizes as written."""
        if self.looped is None:
            return 0
        others = (*self.grid, *(group for place, axis in enumerate(self.walked) if place != self.looped for group in axis))
        made = [self.leaves[expr] for level in self.levels[self.looped][:levels] for expr in level]
        return sum(self.size(group for group in others if own & set(group)) for own in made)

    @cached_property
    def parted(self) -> int | None:
        """Number the walked axis along which several programs put partial results together; none where one does.

        All that is written then varies along it, and is made without another reduction along it.
        """
        late = [output for output in self.kernel.outputs if output not in self.early]
        if self.looped is None or self.written_along or not late:
            return None
        summed = {expr for level in self.levels[self.looped] for expr in level}
        after = self.b.behind([output.expr for output in late], summed) - summed
        reduced = {atom for expr in after for atom in self.bounds.get(expr, ())}
        able = [
            place
            for place, axis in enumerate(self.walked)
            if place != self.looped and not reduced & _atoms_of(axis) and all(self.atoms_of(output) & _atoms_of(axis) for output in late)
        ]
        return max(able, key=lambda place: self.size(self.walked[place]), default=None)

    @cached_property
    def looped(self) -> int | None:
        """Which walked axis a program can step along: the one whose reductions come last; none where rows are held whole."""
        if self.whole:
            return None
        if self.spanned is not None:
            return self.spanned
        last = [max(self.needed.index(expr) for level in levels for expr in level) for levels in self.levels]
        return max(range(len(last)), key=lambda place: (last[place], place)) if last else None

    @cached_property
    def spanned(self) -> int | None:
        """Number the walked axis along which each row has elements of its own."""
        return next((place for place, axis in enumerate(self.walked) if _atoms_of(axis) & self.b.spans.keys()), None)

    @cached_property
    def hops(self) -> int:
        """Count the reads that wait for one another, at most."""
        depth: dict[int, int] = {}
        for expr in self.needed:
            record = self.b.exprs[expr]
            waits = record.op in ("load", "read")
            depth[expr] = waits + max((depth[arg] for arg in record.args if not self.b.exprs[arg].along), default=0)
        return max(depth.values(), default=0)

    def runs(self, groups: Groups, extent: int) -> int:
        """Count the rows with elements of their own, one behind the other, that so many positions along dimensions have."""
        own = {atom for span in self.b.spans.values() for atom in self.b.leaves_of(self.b.exprs[span.begin])}
        beside = self.size(group for group in groups if not own & set(group))
        return max(1, -(-extent // beside)) if any(own & set(group) for group in groups) else 1

    @cached_property
    def splits(self) -> bool:
        """Whether several programs can share the axis that is stepped along: each level of reductions is a launch."""
        return self.spanned is None and self.looped is not None and len(self.levels[self.looped]) <= MOST_LEVELS

    @property
    def sums_only(self) -> bool:
        """Whether one level of reductions along that axis is all that is made along it."""
        return self.looped is not None and len(self.levels[self.looped]) == 1 and not self.written_along


def _atoms_of(axis: Groups) -> frozenset[int]:
    return frozenset(atom for group in axis for atom in group)


def columns_of(b: Builder, grid: Groups) -> int:
    """Count the last dimensions that are together as wide as a warp."""
    count, width = 0, 1
    while count < len(grid) and width < WARP:
        count += 1
        width *= math.prod(b.atoms.size(atom)[0] for atom in grid[-count])
    return count
