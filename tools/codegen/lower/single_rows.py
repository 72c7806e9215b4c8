"""Lower products in which no element is used twice as sums of products of elements, whose operands are read wherever they lie.

Each token's row by its own expert's matrix, a query by its own keys: there is no tile that tensor cores could share, and a kernel that
reads the matrices where a table says need not write them out first.
"""

from __future__ import annotations

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE, is_floating
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.lower.einsum import read_equation
from tools.codegen.lower.matmul import is_vector_product
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule


def _einsum(low: GeneralLowering, node: Node) -> None:
    words, out, refs = read_equation(node)
    ones, twos = set(words[0]), set(words[1])
    summed = [letter for letter in dict.fromkeys(words[0] + words[1]) if letter not in out]
    if ones - twos and twos - ones and ones & twos & set(summed):
        raise LoweringError("a matrix product is no loop nest")
    found = [low.value(ref) for ref in refs]
    by_letter = [dict(zip(word, each.dims, strict=True)) for word, each in zip(words, found, strict=True)]
    operands = [
        Lowered(each.value, tuple(dims.get(letter, ()) for letter in [*out, *summed])) for each, dims in zip(found, by_letter, strict=True)
    ]
    value, dims = _multiply_and_sum(low, node, operands, len(summed))
    low.define(node, value, dims)


def _product(low: GeneralLowering, node: Node) -> None:
    value, dims = _rows_times_matrix(low, node, node.args[0], node.args[1], transposed=False)
    low.define(node, value, dims)


def _linear(low: GeneralLowering, node: Node) -> None:
    value, dims = _rows_times_matrix(low, node, node.args[0], node.args[1], transposed=True)
    if len(node.args) > 2 and isinstance(node.args[2], Ref):
        (one, bias), dims = low.aligned([Lowered(value, dims), low.value(node.args[2])])
        value = one.value + low.b.compute(bias.value, value.dtype)
    low.define(node, value, dims)


def _rows_times_matrix(low: GeneralLowering, node: Node, left: Ref, right: Ref, *, transposed: bool) -> tuple[Value, Dims]:
    if not is_vector_product(low, left, right, transposed):
        raise LoweringError("a matrix product is no loop nest")
    one, two = low.value(left), low.value(right)
    columns = len(two.dims) > 1
    ours, inner = one.dims, two.dims[-1] if transposed or not columns else two.dims[-2]
    cols = two.dims[-2 if transposed else -1] if columns else ()
    rows = ours[-2:-1] if len(ours) > 1 else ((),)
    operands = [Lowered(one.value, (*ours[:-2], *rows, (), ours[-1])), Lowered(two.value, (*two.dims[:-2], (), cols, inner))]
    value, dims = _multiply_and_sum(low, node, operands, 1)
    kept = [*dims[:-2], *(dims[-2:-1] if len(ours) > 1 else ()), *(dims[-1:] if columns else ())]
    return value, tuple(kept)


def _multiply_and_sum(low: GeneralLowering, node: Node, operands: list[Lowered], count: int) -> tuple[Value, Dims]:
    """Multiply what lies under the same dimensions, and sum the last `count` of these."""
    dtype = COMPUTE[node.outputs[0].dtype]
    if not is_floating(dtype):
        raise LoweringError(f"products of {dtype} are not generated")
    (one, two), dims = low.aligned(operands)
    value = low.b.compute(one.value, dtype) * low.b.compute(two.value, dtype)
    kept = len(dims) - count
    summed = low.b.atoms.leaves(atom for dim in dims[kept:] for atom in dim)
    return low.b.reduce(Fold.SUM, value, summed) if summed else value, dims[:kept]


SINGLE_ROW_RULES: dict[str, GeneralRule] = {
    "einsum": _einsum, "linear": _linear, "mm": _product, "matmul": _product, "bmm": _product, "mv": _product, "dot": _product,
}  # fmt: skip
"""Products by operator name."""
