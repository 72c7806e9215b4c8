"""The iteration space of a row region: rows that are kept, columns that are reduced."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.expressions import LoweringError
from tools.codegen.lowering import Kernel
from tools.codegen.naming import Names, access_names
from tools.codegen.sizes import product
from tools.codegen.spaces import Access, Axis, Space, accesses_of, coalesce, memory_order


@dataclass(frozen=True)
class RowLayout:
    """How a row region lies in memory."""

    accesses: tuple[Access, ...]
    rows: tuple[int, ...]
    row_groups: tuple[tuple[int, ...], ...]
    cols: tuple[int, ...]
    col_groups: tuple[tuple[int, ...], ...]
    n_rows: int
    """At the sizes as written."""
    n_cols: int
    n_inner: int
    """Size of the innermost group of kept dimensions."""
    inner_reduction: bool
    """Whether the reduced dimensions are contiguous; otherwise the kept ones are."""
    scans: bool = False
    """Whether something accumulates along the columns, so that they must be walked in order by one program."""

    def space(self, kernel: Kernel, vector: bool) -> Space:
        """Make the axes; where the kept dimensions are contiguous, whole outer groups become a scalar axis."""
        cols = Axis("cols", "cols", self.cols, self.col_groups)
        if not self.rows:
            return Space(kernel, (cols,), self.accesses)
        if vector and not self.inner_reduction and len(self.row_groups) > 1:
            last = self.row_groups[-1]
            outer = Axis("outer", "outer", self.rows[: -len(last)], self.row_groups[:-1])
            return Space(kernel, (outer, Axis("rows", "rows", last, (last,)), cols), self.accesses)
        rows = Axis("rows", "rows" if vector else "row", self.rows, self.row_groups)
        return Space(kernel, (rows, cols), self.accesses)


def row_layout(kernel: Kernel, names: Names | None = None) -> RowLayout:
    """Order the kept and the reduced dimensions as memory has them."""
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, names or Names()))
    every = {atom for access in accesses for atom in access.strides}
    reduced = set(kernel.reduced)
    if not reduced:
        raise LoweringError("nothing is reduced")
    cols = memory_order(reduced, accesses)
    kept = every - reduced
    rows = memory_order(kept, accesses) if kept else ()
    _check_outputs(accesses, kept)
    main = max(accesses, key=lambda access: (len(set(access.strides) & reduced), access.meta.numel))
    atoms = kernel.builder.atoms
    row_groups, col_groups = coalesce(rows, accesses), coalesce(cols, accesses)
    sizes = {part: product((atoms.size(a) for a in group), atoms.traces)[0] for part, group in (("rows", rows), ("cols", cols))}
    inner = product((atoms.size(a) for a in (row_groups[-1] if row_groups else ())), atoms.traces)[0]
    strided = main.strides[cols[-1]]
    inner_reduction = not strided or not rows or main.strides.get(rows[-1], (0,)) != ()
    scans = any(expr.op.startswith("scan_") for expr in kernel.builder.exprs)
    if scans and len(col_groups) > 1:
        raise LoweringError("a scan along dimensions that are not one in memory is not generated")
    return RowLayout(accesses, rows, row_groups, cols, col_groups, sizes["rows"], sizes["cols"], inner, inner_reduction, scans)


def _check_outputs(accesses: tuple[Access, ...], kept: set[int]) -> None:
    for access in accesses:
        if access.is_output and not kept <= set(access.strides):
            raise LoweringError("an output of a row region lacks some of its rows")
