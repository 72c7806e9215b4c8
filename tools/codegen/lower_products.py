"""Lower matrix products: linear, mm, matmul, bmm, addmm, baddbmm become one contraction over atoms, with an epilogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.codegen.atoms import Dims
from tools.codegen.expressions import COMPUTE, Expr, LoweringError, Value
from tools.codegen.graph import Node, Ref
from tools.codegen.lowering import Contraction, Lowered, Lowering

Rule = Callable[[Lowering, Node], None]


def _contract(low: Lowering, node: Node, left: Lowered, right: Lowered) -> tuple[Value, Dims]:
    """Multiply `[..., m, k]` by `[..., k, n]`, broadcasting the batch dimensions."""
    atoms = low.b.atoms
    if low.window is not None:
        raise LoweringError("a product and a pooling do not share a kernel")
    if len(left.dims) < 2 or len(right.dims) < 2:
        raise LoweringError(f"{node.target} of a vector is not generated")
    if left.dims[-1] and right.dims[-2]:
        atoms.unify(left.dims[-1], right.dims[-2])
    batch = atoms.broadcast(left.dims[:-2], right.dims[:-2])
    rows, inner, cols = atoms.leaves(left.dims[-2]), atoms.leaves(left.dims[-1]), atoms.leaves(right.dims[-1])
    if not inner or not cols:
        raise LoweringError(f"{node.target} with a dimension of size one is not generated")
    shared = tuple(a for dim in atoms.resolve(right.dims[:-2]) for a in dim)
    flat = tuple(a for dim in batch for a in dim)
    # batch dimensions that only the left operand has are more rows
    if not shared:
        rows, flat = (*flat, *rows), ()
    if not rows:
        raise LoweringError(f"{node.target} with a single row is not generated")
    value = _accumulator(low, node, frozenset((*flat, *rows, *cols)))
    low.contraction = Contraction(left, right, flat, rows, cols, inner, value.id)
    return value, (*batch, left.dims[-2], right.dims[-1])


def _accumulator(low: Lowering, node: Node, atoms: frozenset[int]) -> Value:
    dtype = node.outputs[0].dtype
    if dtype not in ("float16", "bfloat16", "float32"):
        raise LoweringError(f"products of {dtype} are not generated")
    low.b.exprs.append(Expr("product", (), COMPUTE[dtype], atoms))
    value = Value(low.b, len(low.b.exprs) - 1)
    low.b.label(value, "acc")
    return value


def _operands(low: Lowering, left: Ref, right: Ref) -> tuple[Lowered, Lowered]:
    """Read both operands apart from anything else that reads the same tensors."""
    return low.read_again(left), low.read_again(right)


def _matmul(low: Lowering, node: Node) -> None:
    value, dims = _contract(low, node, *_operands(low, node.args[0], node.args[1]))
    low.define(node, value, dims)


def _linear(low: Lowering, node: Node) -> None:
    source, weight = _operands(low, node.args[0], node.args[1])
    turned = Lowered(weight.value, tuple(reversed(weight.dims)))
    value, dims = _contract(low, node, source, turned)
    bias = node.args[2] if len(node.args) > 2 else None
    if bias is not None:
        operand = low.value(bias)
        low.b.atoms.broadcast(dims, operand.dims)
        value = value + low.b.compute(operand.value, value.dtype)
    low.define(node, value, dims)


def _addmm(low: Lowering, node: Node) -> None:
    value, dims = _contract(low, node, *_operands(low, node.args[1], node.args[2]))
    added = low.value(node.args[0])
    beta, alpha = node.kwargs.get("beta", 1), node.kwargs.get("alpha", 1)
    low.b.atoms.broadcast(dims, added.dims)
    term: Any = added.value if beta == 1 else added.value * beta
    value = value if alpha == 1 else value * alpha
    low.define(node, value + term, dims)


PRODUCTS: dict[str, Rule] = {
    "linear": _linear, "mm": _matmul, "matmul": _matmul, "bmm": _matmul, "addmm": _addmm, "baddbmm": _addmm,
}  # fmt: skip
"""Products by operator name."""
