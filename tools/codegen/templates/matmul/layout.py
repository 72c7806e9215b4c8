"""The iteration space of a matrix product: batch, rows, columns and the summed dimension, and where its operands lie in them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import product
from tools.codegen.templates.shared.access import Access, Stride, accesses_of, coalesce, contiguous_strides
from tools.codegen.templates.shared.column_folds import check_folds
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names


@dataclass(frozen=True)
class MatmulLayout:
    """How a product region lies in memory."""

    accesses: tuple[Access, ...]
    left: Access
    right: Access
    axes: tuple[Axis, ...]
    """`outer` (the batch, if any), `rows`, `cols`, `inner`."""
    dtype: str
    n_batch: int
    """At the sizes as written, like those below."""
    n_rows: int
    n_cols: int
    n_inner: int
    right_is_k_major: bool
    """Whether the right operand is contiguous along the summed dimension."""
    folds: bool
    """Whether something looks along all columns of a row, which one program then makes."""

    @property
    def left_is_k_major(self) -> bool:
        """Whether the left operand is contiguous along the summed dimension."""
        inner = next(axis for axis in self.axes if axis.name == "inner")
        return self.left.strides[inner.atoms[-1]] == ()

    @property
    def right_turns(self) -> bool:
        """Whether the right operand lies along the summed dimension once its last two dimensions are exchanged."""
        inner = next(axis for axis in self.axes if axis.name == "inner")
        return len(self.right.dims) > 1 and self.right.dims[-2][-1:] == inner.atoms[-1:]

    def space(self, kernel: Kernel) -> Space:
        """Make the space of one emission."""
        return Space(kernel, tuple(replace(axis) for axis in self.axes), self.accesses)

    def stride(self, access: Access, name: str) -> Stride:
        """Return an operand's stride along the summed dimension."""
        axis = next(axis for axis in self.axes if axis.name == name)
        return access.strides[axis.atoms[-1]]


def matrix_order(layout: MatmulLayout, access: Access) -> tuple[str, str] | None:
    """Name the axes along which an operand is a matrix in memory, the last one contiguous; None where it is none, or one of a batch."""
    order = tuple(atom for dim in access.dims for atom in dim)
    axes = {axis.name: axis.atoms for axis in layout.axes}
    side = "cols" if access is layout.right else "rows"
    if "outer" in axes or not access.meta.contiguous:
        return None
    return next((names for names in ((side, "inner"), ("inner", side)) if order == (*axes[names[0]], *axes[names[1]])), None)


def matmul_layout(kernel: Kernel, k_major: bool = False) -> MatmulLayout:
    """Lay out a product; with `k_major` as if its right operand had been copied to be contiguous along the summed dimension."""
    contraction = kernel.contraction
    if contraction is None:
        raise LoweringError("there is no product")
    atoms, exprs = kernel.builder.atoms, kernel.builder.exprs
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = list(accesses_of(kernel, access_names(refs, Names())))
    places = [exprs[side.value.id].extra for side in (contraction.left, contraction.right)]
    inner = atoms.leaves(contraction.inner)
    if k_major:
        accesses[places[1]] = _transposed(accesses[places[1]])
    found = tuple(accesses)
    left, right = (found[place] for place in places)
    named = (("outer", "batch", contraction.batch), ("rows", "off_m", contraction.rows), ("cols", "off_n", contraction.cols))
    axes = []
    for name, index, group in (*named, ("inner", "off_k", inner)):
        leaves = atoms.leaves(group)
        if leaves:
            axes.append(Axis(name, index, leaves, coalesce(leaves, found)))
    sizes = {axis.name: product((atoms.size(atom) for atom in axis.atoms), atoms.traces)[0] for axis in axes}
    if kernel.reduced:
        check_folds(kernel, atoms.leaves(contraction.cols), sizes.get("cols", 1), "a product")
    _check(found, axes, left, right, frozenset(atoms.leaves(kernel.reduced)))
    return MatmulLayout(
        found, left, right, tuple(axes), left.meta.dtype,
        sizes.get("outer", 1), sizes["rows"], sizes["cols"], sizes["inner"], right.strides[inner[-1]] == (), bool(kernel.reduced),
    )  # fmt: skip


def _transposed(access: Access) -> Access:
    dims = (*access.dims[:-2], access.dims[-1], access.dims[-2])
    return replace(access, dims=dims, strides=contiguous_strides(dims))


def _check(accesses: tuple[Access, ...], axes: list[Axis], left: Access, right: Access, folded: frozenset[int]) -> None:
    every = {atom for axis in axes for atom in axis.atoms}
    kept = {atom for axis in axes if axis.name != "inner" for atom in axis.atoms}
    for axis in axes:
        if axis.name == "inner" and len(axis.groups) != 1:
            raise LoweringError("the summed dimension of the product is not one dimension in memory")
    for access in accesses:
        if not set(access.strides) <= every:
            raise LoweringError("a tensor of the product's region has a dimension that the product lacks")
        if access.is_output and set(access.strides) not in (kept, kept - folded):
            raise LoweringError("an output of the product's region differs in shape from the product")
    if left.meta.dtype != right.meta.dtype:
        raise LoweringError("the operands of the product differ in dtype")


matmul_layout_of = kept(matmul_layout)
"""The layout of a kernel, made once."""
