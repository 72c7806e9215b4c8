"""Which atoms an axis takes, in what order, and what keeps some of them apart: positions that are asked for, and concatenations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.access import Access, Stride, multiply

Found = TypeVar("Found")


def memory_order(wanted: Iterable[int], accesses: Sequence[Access]) -> tuple[int, ...]:
    """Order atoms as the tensor that has most of them lays them out."""
    rest = set(wanted)
    order: list[int] = []
    while rest:
        best = max(accesses, key=lambda access: (len(rest & set(access.strides)), access.meta.numel))
        found = [atom for dim in best.dims for atom in dim if atom in rest]
        if not found:
            raise LoweringError("a dimension of the region is not part of any tensor")
        order.extend(found)
        rest -= set(found)
    return tuple(order)


def positions(kernel: Kernel, among: Sequence[int] | None = None) -> tuple[tuple[int, ...], ...]:
    """List the runs of atoms along which something, `among` these expressions or any, asks for its position."""
    b = kernel.builder
    exprs = b.exprs if among is None else [b.exprs[place] for place in among]
    return tuple(dict.fromkeys(b.atoms.leaves(expr.extra) for expr in exprs if expr.op == "index"))


def kept_apart(kernel: Kernel, like: Access, among: Sequence[int] | None = None) -> tuple[Access, ...]:
    """Make an access for each position that is asked for: with them, `coalesce` leaves what they run along a dimension by itself."""
    found = []
    for number, wanted in enumerate(positions(kernel, among)):
        strides: dict[int, Stride] = {}
        running: Stride = (f"apart{number}:0",)
        for atom in reversed(wanted):
            strides[atom] = running
            running = multiply(running, atom)
        found.append(replace(like, name="", strides=strides))
    return tuple(found)


def unjoined(kernel: Kernel, groups: Iterable[tuple[int, ...]], accesses: Iterable[Access]) -> frozenset[int]:
    """Name the atoms of a concatenation's pieces; raises LoweringError where it does not run along a group, or nothing has its pieces."""
    atoms, found = kernel.builder.atoms, set[int]()
    every = {atom for access in accesses for atom in access.strides}
    for join in kernel.builder.joins:
        parts = {atom for part in join.parts for atom in atoms.leaves(part)}
        read = {atom for place, part in enumerate(join.parts) if place not in join.same for atom in atoms.leaves(part)}
        if atoms.leaves((join.whole,)) not in list(groups) or not read <= every:
            raise LoweringError("a concatenation along a dimension that is not walked by itself is not generated")
        found |= parts
    return frozenset(found)


def laid_out_alone(
    kernel: Kernel,
    words: str,
    layout: Callable[[Kernel], Found],
    more: Callable[[Found], Iterable[tuple[int, ...]]] = lambda _: (),
    *,
    folds: bool = False,
) -> Found:
    """Lay out a region whose one heavy operator shares no kernel with reductions, concatenations and most positions.

    Positions may be asked for along the rows or the columns of a product, and along what `more` names. Raises LoweringError, in which
    `words` name the operator. With `folds` it may have reductions, which `layout` looks at.
    """
    if kernel.builder.joins:
        raise LoweringError(f"{words} and a concatenation do not share a kernel")
    if kernel.reduced and not folds:
        raise LoweringError(f"{words} and a reduction do not share a kernel")
    found = layout(kernel)
    product, leaves = kernel.contraction, kernel.builder.atoms.leaves
    known = {leaves(product.rows), leaves(product.cols)} if product is not None else set()
    known |= set(more(found))
    if any(wanted not in known for wanted in positions(kernel)):
        raise LoweringError(f"{words} and a triangle of other dimensions do not share a kernel")
    return found
