"""Lower products over a few elements: sums of products that are written out, in one kernel with what is around them."""

from __future__ import annotations

from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.kernel import Lowered
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule


def _small_product(low: GeneralLowering, node: Node) -> None:
    left, right = low.value(node.args[0]), low.value(node.args[1])
    rows = Lowered(left.value, (*left.dims, ()))
    columns = Lowered(right.value, (*right.dims[:-2], (), *right.dims[-2:]))
    (rows, columns), dims = low.aligned([rows, columns])
    if not dims[-2]:
        raise LoweringError("a product over one element is not generated")
    compute = COMPUTE[node.outputs[0].dtype]
    terms = low.b.compute(rows.value, compute) * low.b.compute(columns.value, compute)
    low.define(node, low.b.reduce(Fold.SUM, terms, dims[-2]), (*dims[:-2], dims[-1]))


SMALL_PRODUCT_RULES: dict[str, GeneralRule] = {"small_product": _small_product}
"""Operators by name."""
