"""Lower matrix products: linear, mm, matmul, bmm, addmm, baddbmm become one contraction (a GEMM) over atoms, with an epilogue.

A product with a vector, a single row or a single column is a reduction, one over a single element is pointwise, and a product
with a diagonal matrix scales rows or columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE, is_floating
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Contraction, Lowered, Triangle
from tools.codegen.ir.sizes import is_one
from tools.codegen.lower.cancelling import cancels
from tools.codegen.lower.operands import in_one_piece, operand_of, paired
from tools.codegen.lower.region.lowering import Lowering, Rule
from tools.codegen.lower.scores import summed


def _contract(low: Lowering, node: Node, left: Ref, right: Ref, transposed: bool = False) -> tuple[Value, Dims]:
    """Multiply `[..., m, k]` by `[..., k, n]`, or with `transposed` by `[n, k]`, broadcasting the batch dimensions."""
    scaled = _diagonal(low, left, right, transposed)
    if scaled is not None:
        return scaled
    if low.is_step:
        return _multiply_and_sum(low, node, *low.apart(low.value(left), _transpose(low.value(right), transposed)))
    matrices = all(len(low.graph.meta(ref).shape) > 1 for ref in (left, right))
    if is_vector_product(low, left, right, transposed) and not (matrices and node.name in low.flow.chained):
        return _multiply_and_sum(low, node, low.value(left), _transpose(low.value(right), transposed))
    cancelling = cancels(low.graph, left, right)
    if pairs := paired(low, left, right):
        return summed(low, [_product(low, node, one, _transpose(two, transposed), cancelling) for one, two in pairs])
    one = operand_of(low, low.lefts, left, lambda: in_one_piece(low, left, -1))
    two = operand_of(low, low.rights, right, lambda: in_one_piece(low, right, -1 if transposed else -2))
    return _product(low, node, one, _transpose(two, transposed), cancelling)


def _transpose(value: Lowered, transposed: bool) -> Lowered:
    return Lowered(value.value, tuple(reversed(value.dims))) if transposed else value


def is_vector_product(low: Lowering, left: Ref, right: Ref, transposed: bool) -> bool:
    """Whether a dimension of the product has one element: there is nothing that a tile could share.

    Where the right operand is one matrix for all, every dimension of the left one but the last is of rows: of a decoder's one new token
    in each of 32 sequences, `[32, 1, k]`, there are 32.
    """
    one, two = low.graph.meta(left).shape, low.graph.meta(right).shape
    two = (*two[:-2], *reversed(two[-2:])) if transposed else two
    if len(one) < 2 or len(two) < 2 or any(is_one(sizes) for sizes in (one[-1], *two[-2:])):
        return True
    rows = one[:-1] if all(is_one(sizes) for sizes in two[:-2]) else one[-2:-1]
    return all(is_one(sizes) for sizes in rows)


def _multiply_and_sum(low: Lowering, node: Node, left: Lowered, right: Lowered) -> tuple[Value, Dims]:
    """Multiply and sum along rows: a product with a vector, a single row or column."""
    atoms, dtype = low.b.atoms, COMPUTE[node.outputs[0].dtype]
    if not is_floating(dtype):
        raise LoweringError(f"products of {dtype} are not generated")
    cols = len(right.dims) > 1
    inner = right.dims[-2] if cols else right.dims[-1]
    if left.dims[-1] and inner:
        atoms.unify(left.dims[-1], inner)
    batch = atoms.broadcast(left.dims[:-2], right.dims[:-2])
    low.keep_distinct((*left.dims[-2:], *(right.dims[-1:] if cols else ())))
    value = low.b.compute(left.value, dtype) * low.b.compute(right.value, dtype)
    summed = atoms.leaves(left.dims[-1])
    if summed:
        low.reduced.append(summed)
        value = low.b.reduce(Fold.SUM, value, summed)
    return value, (*batch, *left.dims[-2:-1], *(right.dims[-1:] if cols else ()))


def _diagonal(low: Lowering, left: Ref, right: Ref, transposed: bool) -> tuple[Value, Dims] | None:
    """Scale rows or columns where one operand is a diagonal matrix made in this region."""
    b = low.b
    if left in low.diagonals:
        other = _transpose(low.value(right), transposed)
        vector = low.diagonals[left]
        b.atoms.unify(vector.dims[-1], other.dims[-2])
        return vector.value * other.value, other.dims
    if right in low.diagonals:
        other, vector = low.value(left), low.diagonals[right]
        b.atoms.unify(vector.dims[-1], other.dims[-1])
        return other.value * vector.value, other.dims
    return None


def _diag(low: Lowering, node: Node) -> None:
    """Keep in mind that a value is a diagonal matrix; it is never written out."""
    vector = low.value(node.args[0])
    offset = node.args[1] if len(node.args) > 1 else node.kwargs.get("diagonal", node.kwargs.get("offset", 0))
    if len(vector.dims) != 1 or offset or not vector.dims[0] or len(node.args) > 2:
        raise LoweringError(f"{node.target} is generated for the main diagonal of one matrix, as an operand of a product")
    low.diagonals[Ref(node.name)] = vector


def _triangle(low: Lowering, node: Node) -> None:
    """Keep one triangle of a matrix; of a product, tiles wholly outside it are not computed."""
    contraction, source = low.contraction, low.value(node.args[0])
    offset = node.args[1] if len(node.args) > 1 else node.kwargs.get("diagonal", 0)
    atoms = low.b.atoms
    if not isinstance(offset, int) or len(source.dims) < 2:
        raise LoweringError(f"{node.target} from a diagonal that varies with the sizes is not generated")
    rows, cols = atoms.leaves(source.dims[-2]), atoms.leaves(source.dims[-1])
    row, col = (low.b.index(each) if each else low.b.const(0) for each in (rows, cols))
    edge = row + offset if offset > 0 else row - -offset if offset else row
    inside = col <= edge if node.op == Triangle.LOWER else col >= edge
    if source.value.dtype == "bool":
        low.define(node, low.b.call("and", source.value, inside), source.dims)
        return
    value = low.b.call("where", inside, source.value, 0.0 if is_floating(source.value.dtype) else 0)
    if contraction is not None and source.value.id == contraction.expr and _is_over(low, contraction, rows, cols):
        low.contraction = replace(contraction, triangle=Triangle(node.op), diagonal=offset)
    low.define(node, value, source.dims)


def _is_over(low: Lowering, contraction: Contraction, rows: tuple[int, ...], cols: tuple[int, ...]) -> bool:
    """Whether a product's rows and columns are these."""
    return (low.b.atoms.leaves(contraction.rows), low.b.atoms.leaves(contraction.cols)) == (rows, cols)


def _product(low: Lowering, node: Node, left: Lowered, right: Lowered, cancelling: bool) -> tuple[Value, Dims]:
    """Record the contraction."""
    atoms = low.b.atoms
    if low.window is not None:
        raise LoweringError("a product and a pooling do not share a kernel")
    if left.dims[-1] and right.dims[-2]:
        atoms.unify(left.dims[-1], right.dims[-2])
    batch = atoms.broadcast(left.dims[:-2], right.dims[:-2])
    rows, inner, cols = atoms.leaves(left.dims[-2]), atoms.leaves(left.dims[-1]), atoms.leaves(right.dims[-1])
    shared = tuple(a for dim in atoms.resolve(right.dims[:-2]) for a in dim)
    flat = tuple(a for dim in batch for a in dim)
    # batch dimensions that only the left operand has are more rows
    if not shared:
        rows, flat = (*flat, *rows), ()
    value = accumulator(low, node, frozenset((*flat, *rows, *cols)))
    low.add_product(Contraction(left, right, flat, rows, cols, inner, value.id, dtype=node.outputs[0].dtype, cancels=cancelling))
    return value, (*batch, left.dims[-2], right.dims[-1])


def accumulator(low: Lowering, node: Node, atoms: frozenset[int]) -> Value:
    """Make the leaf that stands for a product's sum."""
    dtype = node.outputs[0].dtype
    if dtype not in ("float16", "bfloat16", "float32"):
        raise LoweringError(f"products of {dtype} are not generated")
    value = low.b.leaf("product", COMPUTE[dtype], atoms)
    low.b.label(value, "acc")
    return value


def _matmul(low: Lowering, node: Node) -> None:
    value, dims = _contract(low, node, node.args[0], node.args[1])
    low.define(node, value, dims)


def _linear(low: Lowering, node: Node) -> None:
    value, dims = _contract(low, node, node.args[0], node.args[1], transposed=True)
    bias = node.args[2] if len(node.args) > 2 else None
    if bias is not None:
        operand = low.value(bias)
        low.b.atoms.broadcast(dims, operand.dims)
        value = value + low.b.compute(operand.value, value.dtype)
    low.define(node, value, dims)


def _addmm(low: Lowering, node: Node) -> None:
    value, dims = _contract(low, node, node.args[1], node.args[2])
    added = low.value(node.args[0])
    beta, alpha = node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)
    low.b.atoms.broadcast(dims, added.dims)
    term: Any = added.value if beta == 1 else added.value * beta
    value = value if alpha == 1 else value * alpha
    low.define(node, value + term, dims)


PRODUCT_RULES: dict[str, Rule] = {
    "linear": _linear, "mm": _matmul, "matmul": _matmul, "bmm": _matmul, "addmm": _addmm, "baddbmm": _addmm,
    "mv": _matmul, "dot": _matmul,
}  # fmt: skip
"""Products by operator name."""

STRUCTURE_RULES: dict[str, Rule] = {"diag": _diag, "diag_embed": _diag, "tril": _triangle, "triu": _triangle}
"""What says that an operand or a result of a product is diagonal or triangular."""
