"""The iteration space of a row region: rows that are kept, columns that are reduced."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import product
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.axis_order import kept_apart, memory_order, unjoined
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names


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
    n_piece: int = 1
    """Columns that lie in one piece: the size of the innermost group of reduced dimensions."""
    scans: bool = False
    """Whether something accumulates along the columns, so that a program must walk them in order."""
    backwards: bool = False
    """Whether that order is from the end."""
    chained: bool = False
    """Whether something along the row waits for a scan, so that one program must walk all of it."""
    early: bool = False
    """Whether what is written along the columns waits for no reduction, so that the first walk writes it: a loss with its gradient."""

    @property
    def fits_two_pass(self) -> bool:
        """Whether rows, one behind the other in memory, are read again to be written, after a reduction that is no scan."""
        wide = any(access.is_output and set(access.strides) & set(self.cols) for access in self.accesses)
        return wide and not self.early and self.inner_reduction and bool(self.rows) and not self.scans

    def in_pieces(self, vector: bool, looped: bool) -> bool:
        """Whether a program walks its row piece by piece, because the row is not one in memory."""
        return looped and not vector and len(self.col_groups) > 1

    def space(self, kernel: Kernel, vector: bool, looped: bool = False) -> Space:
        """Make the axes; where the kept dimensions are contiguous, whole outer groups become a scalar axis.

        A long row that is not one in memory gets an axis over its pieces, `steps`, besides the one along them.
        """
        cols: tuple[Axis, ...] = (Axis("cols", "cols", self.cols, self.col_groups),)
        if self.in_pieces(vector, looped):
            last = self.col_groups[-1]
            cols = (Axis("steps", "steps", self.cols[: -len(last)], self.col_groups[:-1]), Axis("cols", "cols", last, (last,)))
        if not self.rows:
            return Space(kernel, cols, self.accesses)
        if vector and not self.inner_reduction and len(self.row_groups) > 1:
            last = self.row_groups[-1]
            outer = Axis("outer", "outer", self.rows[: -len(last)], self.row_groups[:-1])
            return Space(kernel, (outer, Axis("rows", "rows", last, (last,)), *cols), self.accesses)
        rows = Axis("rows", "rows" if vector else "row", self.rows, self.row_groups)
        return Space(kernel, (rows, *cols), self.accesses)


def row_layout(kernel: Kernel, names: Names | None = None) -> RowLayout:
    """Order the kept and the reduced dimensions as memory has them."""
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, names or Names()))
    joined = frozenset(atom for join in kernel.builder.joins for part in join.parts for atom in kernel.builder.atoms.leaves(part))
    every = {atom for access in accesses for atom in access.strides} - joined
    reduced = set(kernel.reduced)
    if not reduced:
        raise LoweringError("nothing is reduced")
    cols = memory_order(reduced, accesses)
    kept = every - reduced
    rows = memory_order(kept, accesses) if kept else ()
    _check_outputs(accesses, kept)
    main = max(accesses, key=lambda access: (cols[-1] in access.strides, len(set(access.strides) & reduced), access.meta.numel))
    atoms = kernel.builder.atoms
    apart = (*accesses, *kept_apart(kernel, main))
    row_groups, col_groups = coalesce(rows, apart), coalesce(cols, apart)
    unjoined(kernel, (*row_groups, *col_groups), accesses)
    sizes = {part: product((atoms.size(a) for a in group), atoms.traces)[0] for part, group in (("rows", rows), ("cols", cols))}
    inner = product((atoms.size(a) for a in (row_groups[-1] if row_groups else ())), atoms.traces)[0]
    strided = main.strides[cols[-1]]
    piece = product((atoms.size(a) for a in col_groups[-1]), atoms.traces)[0]
    inner_reduction = not strided or not rows or main.strides.get(rows[-1], (0,)) != ()
    found = {expr.backwards for expr in kernel.builder.exprs if expr.is_scan}
    forwards, backwards = False in found, True in found
    if forwards and backwards:
        raise LoweringError("scans from both ends do not share a kernel")
    scans = forwards or backwards
    if scans and len(col_groups) > 1:
        raise LoweringError("a scan along dimensions that are not one in memory is not generated")
    _check_positions(kernel, cols, (rows, *row_groups))
    n_rows, n_cols = sizes["rows"], sizes["cols"]
    return RowLayout(
        accesses, rows, row_groups, cols, col_groups, n_rows, n_cols, inner, inner_reduction, piece, scans, backwards,
        _is_chained(kernel), _is_early(kernel, accesses, reduced),
    )  # fmt: skip


def _is_chained(kernel: Kernel) -> bool:
    """Whether a scan or a reduction rests on a scan."""
    scanned: list[bool] = []
    for expr in kernel.builder.exprs:
        below, is_scan = any(scanned[arg] for arg in expr.args), expr.is_scan
        if below and (is_scan or expr.reduces()):
            return True
        scanned.append(below or is_scan)
    return False


def _is_early(kernel: Kernel, accesses: tuple[Access, ...], reduced: set[int]) -> bool:
    """Whether no output along the columns rests on a reduction or a scan."""
    waiting: list[bool] = []
    for expr in kernel.builder.exprs:
        waiting.append(any(waiting[arg] for arg in expr.args) or expr.reduces() or expr.is_scan)
    written = zip(kernel.outputs, (access for access in accesses if access.is_output), strict=True)
    wide = [out.expr for out, access in written if set(access.strides) & reduced]
    return bool(wide) and not any(waiting[expr] for expr in wide)


def _check_positions(kernel: Kernel, cols: tuple[int, ...], kept: tuple[tuple[int, ...], ...]) -> None:
    """Make sure that positions along the row count as memory does, and that others are of a kept dimension by itself."""
    atoms = kernel.builder.atoms
    for expr in kernel.builder.exprs:
        if expr.op == "index" and atoms.leaves(expr.extra) in kept:
            continue
        if expr.op in ("index", "pick") and atoms.leaves(expr.extra) != cols:
            raise LoweringError("a position along dimensions that memory orders otherwise is not generated")


def _check_outputs(accesses: tuple[Access, ...], kept: set[int]) -> None:
    for access in accesses:
        if access.is_output and not kept <= set(access.strides):
            raise LoweringError("an output of a row region lacks some of its rows")


row_layout_of = kept(row_layout)
"""The layout of a kernel, made once."""
