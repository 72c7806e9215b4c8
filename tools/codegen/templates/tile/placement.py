"""Where a region's dimensions go in a tile: columns, rows and grid by strides, and the axes that its reductions walk.

Columns are what lies side by side in the first output. Rows are what lies side by side in the operands that disagree with that, so that
each is read along its own order and turned in registers; where all agree, rows are the other dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.axis_order import kept_apart
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names
from tools.codegen.templates.tile.layout import Groups, TileLayout, columns_of
from tools.codegen.templates.tile.touched import Touched, reads, writes
from tools.codegen.templates.tile.twins import Each, both_of, twin_of

MOST_WALKED = 3
"""Axes that reductions walk: each is a dimension of the tile."""
MOST_PICKED = 6
"""Axes that reductions and orders walk, those of what is picked among them."""
MOST_ORDERED = 8192
"""Elements of a row that a program puts in order."""


def tile_layout(kernel: Kernel, names: Names | None = None) -> TileLayout:
    """Find the axes; raises LoweringError with the reason where the region is no loop nest over the axes of one output."""
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, names or Names()))
    b, twin = kernel.builder, twin_of(kernel)
    both = () if twin is None else both_of(kernel, twin)
    needed = _needed(kernel, both)
    ordered = any(b.exprs[expr].op == "order" for expr in needed)
    if any(b.exprs[expr].op in ("pick", "join") for expr in needed):
        raise LoweringError("an element at one position and what reads or writes elsewhere do not share a kernel")
    bound = _bound(b, needed)
    picked = {expr: b.atoms.leaves((b.exprs[expr].extra[1],)) for expr in bound if b.exprs[expr].op == "order"}
    walked_atoms = {atom for atoms in (*bound.values(), *picked.values()) for atom in atoms}
    dims = [b.atoms.leaves([atom for dim in output.dims for atom in dim]) for output in kernel.outputs]
    grids = [tuple(atom for atom in each if atom not in walked_atoms and atom != twin) for each in dims]
    main = max(grids, key=lambda each: math.prod(b.atoms.size(atom)[0] for atom in each))
    if any(not set(each) <= set(main) for each in grids):
        raise LoweringError("outputs whose dimensions differ do not share a kernel")
    plain = [*(accesses[b.exprs[expr].extra] for expr in needed if b.exprs[expr].op == "load"), *_written(kernel, accesses)]
    _check_covered(b, needed, {*main, *walked_atoms})
    every = (*plain, *kept_apart(kernel, accesses[0], needed))
    grid = coalesce(main, every)
    walked = tuple(coalesce(axis, every) for axis in _axes(b, bound, picked, plain))
    whole = ordered or any(b.exprs[expr].is_scan for expr in needed)
    if len(walked) > (MOST_PICKED if whole else MOST_WALKED):
        raise LoweringError("reductions over so many sets of dimensions do not share a kernel")
    touched = (*reads(b, needed, accesses), *writes(kernel, accesses))
    turned = _turned(b, grid, touched, 1 if walked else columns_of(b, grid))
    plan = TileLayout(kernel, accesses, needed, touched, grid, walked, turned, twin, both)
    if ordered and plan.held > MOST_ORDERED:
        raise LoweringError(f"rows of more than {MOST_ORDERED} elements are not put in order")
    if not ordered:
        _check_scans(plan)
    if plan.spanned is not None:
        _check_spans(plan, plan.walked[plan.spanned])
    return plan


def _check_spans(plan: TileLayout, axis: Groups) -> None:
    """Make sure that what each row has elements of its own along is one dimension, and that nothing is written along it."""
    runs = {atom for axes in plan.walked for group in axes for atom in group} & plan.b.spans.keys()
    if plan.whole or len(runs) > 1 or {atom for group in axis for atom in group} != runs:
        raise LoweringError("runs along other dimensions, or in order, do not share a kernel")
    if any(plan.atoms_of(output) & runs for output in plan.kernel.outputs):
        raise LoweringError("what has runs and what is made of each do not share a kernel's results")


def _check_scans(plan: TileLayout) -> None:
    """Make sure that what is accumulated along is an axis by itself, in its own order, and that a program can hold it."""
    axes = [tuple(atom for group in axis for atom in group) for axis in plan.walked]
    for expr in plan.needed:
        record = plan.b.exprs[expr]
        if record.is_scan and plan.b.atoms.leaves(record.along) not in axes:
            raise LoweringError("a scan along dimensions that memory orders otherwise is not generated")
        if record.is_scan and len(plan.along(expr)) > 1:
            raise LoweringError("a scan of what another reduction walks as well is not generated")
    if plan.whole and plan.held > MOST_ORDERED:
        raise LoweringError(f"a scan of rows of more than {MOST_ORDERED} elements shares no kernel with what reads or writes elsewhere")


def _needed(kernel: Kernel, both: Sequence[Each]) -> tuple[int, ...]:
    made = [expr for each in both for expr in each] or [output.expr for output in kernel.outputs]
    scatters = [output.scatter for output in kernel.outputs if output.scatter]
    places = [place for each in scatters for place in (*each.positions, *(() if each.guard is None else (each.guard,)))]
    return tuple(sorted(kernel.builder.behind([*made, *places])))


def _bound(b: Builder, needed: Sequence[int]) -> dict[int, tuple[int, ...]]:
    return {expr: b.atoms.leaves(b.exprs[expr].along) for expr in needed if b.exprs[expr].along}


def _check_covered(b: Builder, needed: Sequence[int], axes: set[int]) -> None:
    for expr in needed:
        if not b.leaves_of(b.exprs[expr]) <= axes:
            raise LoweringError("a part of the region varies along a dimension that no output has")


def _written(kernel: Kernel, accesses: Sequence[Access]) -> list[Access]:
    outputs = accesses[len(accesses) - len(kernel.outputs) :]
    return [access for access, output in zip(outputs, kernel.outputs, strict=True) if output.scatter is None]


def _axes(
    b: Builder, bound: dict[int, tuple[int, ...]], picked: dict[int, tuple[int, ...]], plain: Sequence[Access]
) -> list[tuple[int, ...]]:
    """Cut what reductions run over into axes: atoms that the same reductions share, as memory orders them; then what orders make."""
    made = {atom: expr for expr, atoms in picked.items() for atom in atoms}
    found: dict[tuple[int, frozenset[int]], list[int]] = {}
    for atom in dict.fromkeys(atom for atoms in (*bound.values(), *picked.values()) for atom in atoms):
        by = frozenset(expr for expr, atoms in bound.items() if atom in atoms)
        found.setdefault((made.get(atom, -1), by), []).append(atom)
    axes = [_as_in_memory(tuple(atoms), plain) for (maker, _), atoms in found.items() if maker < 0]
    if made:
        # rows that lie in a larger row are the last dimension then, and need not be turned
        order = _as_in_memory(tuple(atom for axis in axes for atom in axis), plain)
        axes.sort(key=lambda axis: order.index(axis[0]))
    return [*axes, *(tuple(found[key]) for key in sorted(found, key=lambda key: key[0]) if key[0] >= 0)]


def _as_in_memory(atoms: tuple[int, ...], plain: Sequence[Access]) -> tuple[int, ...]:
    if not plain:
        # all of it is read and written at positions that are data
        return atoms
    main = max(plain, key=lambda access: (len(set(atoms) & set(access.strides)), access.meta.numel))
    order = [atom for dim in main.dims for atom in dim if atom in atoms]
    return (*order, *(atom for atom in atoms if atom not in order))


def _turned(b: Builder, grid: Groups, touched: Sequence[Touched], columns: int) -> int | None:
    """Find the dimension that lies side by side in most of the bytes which columns do not."""
    if len(grid) < 2:
        return None
    weight: dict[int, int] = {}
    for each in touched:
        if each.access.is_output or each.flow.stride(grid[-1][-1]) in (0, 1, None):
            continue
        if 1 in (each.flow.stride(group[-1]) for group in grid[len(grid) - columns :]):
            continue
        sides = [place for place, group in enumerate(grid[:-1]) if each.flow.stride(group[-1]) == 1]
        for place in sides[-1:]:
            weight[place] = weight.get(place, 0) + each.access.meta.numel * each.item
    return max(weight, key=lambda place: (weight[place], place)) if weight else None


tile_layout_of = kept(tile_layout)
"""The layout of a kernel, made once."""
