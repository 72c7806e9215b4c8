"""Which dimensions a region walks together, and which may not be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tools.codegen.ir.atoms import Atoms, Dims
from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, TensorMeta
from tools.codegen.ir.kernel import Lowered, Output
from tools.codegen.ir.sizes import product


def places_of(operand: Lowered) -> dict[int, int]:
    """Number the dimension of each atom from the last one, as shapes are aligned."""
    return {atom: place for place, dim in enumerate(reversed(operand.dims)) for atom in dim}


def refuse_twice(dims: Dims) -> None:
    """Raise LoweringError where two dimensions of a tensor are the same: only its diagonal would be looked at."""
    every = [atom for dim in dims for atom in dim]
    if len(set(every)) < len(every):
        raise LoweringError("a tensor of the region meets itself along other dimensions")


def check_shape(atoms: Atoms, node: Node, dims: Dims, meta: TensorMeta) -> None:
    """Raise LoweringError where what a rule made has another shape than the operator's result."""
    if len(dims) != len(meta.shape):
        raise LoweringError(f"{node.target} gives another rank than its formula")
    for dim, sizes in zip(dims, meta.shape, strict=True):
        if product((atoms.size(a) for a in atoms.leaves(dim)), atoms.traces) != sizes:
            raise LoweringError(f"{node.target} gives another shape than its formula")


def check_joins(b: Builder, outputs: Sequence[Output], reduced: Sequence[tuple[int, ...]]) -> None:
    """Raise LoweringError where what is joined is walked by itself as well."""
    atoms = b.atoms
    walked = {atom for output in outputs for dim in output.dims for atom in dim}
    walked |= {atom for each in reduced for atom in atoms.leaves(each)}
    for join in b.joins:
        parts = [atoms.leaves(part) for part in join.parts]
        if len(atoms.leaves((join.whole,))) > 1 or any(len(part) > 1 for part in parts):
            raise LoweringError("the dimension of a concatenation is cut into parts")
        if walked & {atom for part in parts for atom in part}:
            raise LoweringError("a piece of a concatenation does not share its kernel with what else is made of the piece")


def common_reduction(atoms: Atoms, reduced: Sequence[tuple[int, ...]], results: Iterable[Dims]) -> tuple[int, ...]:
    """Name the atoms that all reductions of a region run along; raises LoweringError where they differ."""
    _unite_sums(atoms, reduced, results)
    sets = [atoms.leaves(each) for each in reduced]
    if any(frozenset(one) != frozenset(sets[0]) for one in sets):
        raise LoweringError("reductions over different dimensions do not share a kernel")
    return sets[0] if sets else ()


def _unite_sums(atoms: Atoms, reduced: Sequence[tuple[int, ...]], results: Iterable[Dims]) -> None:
    """Walk tensors of one size together, where everything in the region ends as a sum over all of it."""
    sizes = {product((atoms.size(a) for a in atoms.leaves(each)), atoms.traces) for each in reduced}
    if len(sizes) != 1 or any(atoms.leaves(dim) for dims in results for dim in dims):
        return
    for one, two in pairwise(reduced):
        if frozenset(atoms.leaves(one)) != frozenset(atoms.leaves(two)):
            atoms.unify(one, two)
