"""One operand of a row operator: which of its dimensions are reduced, and the formulas that need that."""

from __future__ import annotations

from typing import Any

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE, is_floating
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.kernel import Lowered
from tools.codegen.lower.region.lowering import Lowering
from tools.codegen.lower.region.softmax_sums import sum_of_shares


class RowOperand:
    """A value seen as rows."""

    def __init__(self, low: Lowering, node: Node, source: Lowered, dims: Any) -> None:
        self.low, self.b = low, low.b
        rank = len(source.dims)
        if dims is None or dims == []:
            dims = range(rank)
        chosen = {dim % rank for dim in ([dims] if isinstance(dims, int) else dims)} if rank else set()
        self.dims = source.dims
        self.places = frozenset(chosen)
        self.atoms = tuple(atom for place in sorted(chosen) for atom in source.dims[place])
        if not self.atoms:
            raise LoweringError(f"{node.target} reduces over one element")
        low.reduced.append(self.atoms)
        out = node.outputs[0].dtype
        compute = COMPUTE[out]
        self.x = self.b.compute(source.value, compute) if is_floating(compute) else source.value

    def kept(self, keepdim: bool) -> Dims:
        """Shape of a reduction's result."""
        if keepdim:
            return tuple(() if place in self.places else dim for place, dim in enumerate(self.dims))
        return tuple(dim for place, dim in enumerate(self.dims) if place not in self.places)

    def reduce(self, kind: Fold, value: Value | None = None) -> Value:
        """Reduce over the chosen dimensions."""
        chosen = self.x if value is None else value
        found = sum_of_shares(self.b, chosen, self.atoms) if kind is Fold.SUM else None
        return self.b.reduce(kind, chosen, self.atoms) if found is None else found

    def peak(self) -> Value:
        """The largest element, which exponents are relative to: what is no number shows in their sum, and may be left out here."""
        return self.named(self.b.reduce(Fold.MAX, self.x, self.atoms, skips_nan=True), "row_max")

    @property
    def count(self) -> Value:
        """Elements reduced."""
        return self.b.size(self.atoms)

    def mean(self, value: Value | None = None) -> Value:
        """Mean over the chosen dimensions."""
        return self.reduce(Fold.SUM, value) / self.count

    def deviations(self) -> Value:
        """Sum of squared differences from the mean: two passes, nothing cancels."""
        centred = self.x - self.named(self.mean(), "mean")
        return self.reduce(Fold.SUM, centred * centred)

    def variance(self, correction: float) -> Value:
        """Variance with `count - correction` degrees of freedom."""
        degrees = self.count - correction if correction else self.count
        return self.deviations() / degrees

    def named(self, value: Value, name: str) -> Value:
        """Suggest a variable name."""
        self.b.label(value, name)
        return value
