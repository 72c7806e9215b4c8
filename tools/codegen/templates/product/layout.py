"""The iteration space of a region's products: batch, rows, columns, and the sums, each an axis of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Contraction, Kernel
from tools.codegen.ir.sizes import product
from tools.codegen.templates.product.operands import Product, products_of, varies
from tools.codegen.templates.shared.access import Access, accesses_of, coalesce
from tools.codegen.templates.shared.axis_order import kept_apart, positions
from tools.codegen.templates.shared.iteration_space import Axis, Space
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.naming import Names, access_names

SUMS = ("inner", "inner_b", "inner_c", "inner_d")
"""Axes of different sums in one kernel."""
STACKED = "stacked"
"""Axis of what is written out position by position."""
OWN_NAMES = (
    *(f"{side}_{word}" for side in ("left", "right") for word in ("k", "there", "piece")), *(f"acc_{place}" for place in range(8)),
    *(f"n_{name}" for name in SUMS), "parts",
)  # fmt: skip
"""Variables of the template, which no tensor may be called."""


@dataclass(frozen=True)
class ProductLayout:
    """How the products of a region lie in memory."""

    accesses: tuple[Access, ...]
    products: tuple[Product, ...]
    sums: tuple[tuple[str, tuple[int, ...]], ...]
    """Name of each sum's axis, and the products over it by number."""
    axes: tuple[Axis, ...]
    """`outer` (the batch, if any), `rows`, `cols`, the sums, `stacked`."""
    n_batch: int
    """At the sizes as written, like those below."""
    n_rows: int
    n_cols: int
    n_inner: tuple[int, ...]
    """Elements of each product's sum."""

    def space(self, kernel: Kernel) -> Space:
        """Make the space of one emission."""
        return Space(kernel, tuple(replace(axis) for axis in self.axes), self.accesses)

    @property
    def in_float32(self) -> bool:
        """Whether some product multiplies float32, whose precision is a choice."""
        return any(each.dtype == "float32" for each in self.products)


def product_layout(kernel: Kernel) -> ProductLayout:
    """Lay out the products of a region; raises LoweringError with the reason where that cannot be done."""
    if kernel.reduced:
        raise LoweringError("products and a reduction do not share a kernel")
    atoms = kernel.builder.atoms
    refs = [load.ref for load in kernel.builder.loads] + [output.ref for output in kernel.outputs]
    accesses = accesses_of(kernel, access_names(refs, Names(OWN_NAMES)))
    products = products_of(kernel)
    first = _shared(kernel)
    sums: dict[tuple[int, ...], list[int]] = {}
    for number, each in enumerate(products):
        sums.setdefault(each.inner, []).append(number)
    if len(sums) > len(SUMS):
        raise LoweringError("more than four sums do not share a kernel")
    named = (("outer", "batch", first.batch), ("rows", "off_m", first.rows), ("cols", "off_n", first.cols))
    groups = [*named, *((name, "off_k", inner) for name, inner in zip(SUMS, sums, strict=False))]
    like = (*accesses, *kept_apart(kernel, accesses[0]))
    axes = [Axis(name, index, leaves, coalesce(leaves, like)) for name, index, group in groups if (leaves := atoms.leaves(group))]
    stacked = next((each.stacked for each in products if each.stacked is not None), None)
    if stacked is not None:
        axes.append(Axis(STACKED, "0", (stacked,), ((stacked,),)))
    _check(kernel, products, accesses, axes)
    sizes = {axis.name: product((atoms.size(atom) for atom in axis.atoms), atoms.traces)[0] for axis in axes}
    names = {inner: name for name, inner in zip(SUMS, sums, strict=False)}
    counts = tuple(sizes[names[each.inner]] * len(each.left) for each in products)
    return ProductLayout(
        accesses, products, tuple((names[inner], tuple(numbers)) for inner, numbers in sums.items()), tuple(axes),
        sizes.get("outer", 1), sizes["rows"], sizes["cols"], counts,
    )  # fmt: skip


def _shared(kernel: Kernel) -> Contraction:
    """Give the first product; raises LoweringError where another has other rows, columns or batches."""
    leaves = kernel.builder.atoms.leaves
    shared = [[set(leaves(group)) for group in (each.batch, each.rows, each.cols)] for each in kernel.contractions]
    if any(one != shared[0] for one in shared):
        raise LoweringError("two products over other rows and columns do not share a kernel")
    return kernel.contractions[0]


def _check(kernel: Kernel, products: tuple[Product, ...], accesses: tuple[Access, ...], axes: list[Axis]) -> None:
    every = [atom for axis in axes for atom in axis.atoms]
    kept_atoms = {atom for axis in axes if axis.name in ("outer", "rows", "cols") for atom in axis.atoms}
    summed = frozenset(every) - kept_atoms
    if {"rows", "cols"} - {axis.name for axis in axes}:
        raise LoweringError("a product of one row or one column shares no kernel with other products, and its operands are not computed")
    if len(set(every)) < len(every):
        raise LoweringError("two dimensions of the products are the same dimension of one tensor")
    for access in accesses:
        if not set(access.strides) <= set(every):
            raise LoweringError("a tensor of the products' region has a dimension that they lack")
        if access.is_output and set(access.strides) != kept_atoms:
            raise LoweringError("an output of the products' region differs in shape from them")
    if any(varies(kernel.builder, output.expr, summed) for output in kernel.outputs):
        raise LoweringError("what a product sums is read after it, too")
    _check_operands(kernel, products, axes, summed)
    known = {run for axis in axes for run in (axis.atoms, *axis.groups)}
    if any(wanted not in known for wanted in positions(kernel)):
        raise LoweringError("a position along other dimensions than those of the products is not generated")


def _check_operands(kernel: Kernel, products: tuple[Product, ...], axes: list[Axis], summed: frozenset[int]) -> None:
    """Make sure that each operand varies along its own dimensions alone."""
    b = kernel.builder
    of = {axis.name: frozenset(axis.atoms) for axis in axes}
    for each in products:
        own = frozenset((*each.inner, *(() if each.stacked is None else (each.stacked,))))
        for side, others in ((each.left, of["cols"]), (each.right, of["rows"])):
            if any(varies(b, expr, (summed - own) | others) for expr in side):
                raise LoweringError("an operand of a product varies along a dimension that is not its own")
            if not all(b.exprs[expr].dtype in ("float32", "int32", "bool") for expr in side):
                raise LoweringError("an operand of a product is of 64-bit numbers")


def loads_of(kernel: Kernel, exprs: Iterable[int]) -> frozenset[int]:
    """Number the tensors that expressions read."""
    b = kernel.builder
    found, stack, seen = set[int](), list(exprs), set[int]()
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            if b.exprs[expr].op == "load":
                found.add(b.exprs[expr].extra)
            stack += b.exprs[expr].args
    return frozenset(found)


product_layout_of = kept(product_layout)
"""The layout of a kernel, made once."""
