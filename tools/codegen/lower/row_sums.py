"""Sums of an attention's scores along its keys: what divides the weights of a row, where no softmax does.

A weight that is a score's own share times a factor of its row is summed without that factor, which the result is multiplied by instead:
so one walk along the keys finds both sums, as RetNet's parallel form and other attention without softmax want it.
"""

from __future__ import annotations

from dataclasses import replace

from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Attention
from tools.codegen.lower.region.lowering import Lowering
from tools.codegen.lower.scores import is_made_of_scores, kept_of, keys_of

Factor = tuple[str, Value]
"""A row's factor: `mul` or `div`, and by what."""
ACCUMULATED = "float32"
SUMMED = ("bfloat16", "float16", "float32")
DIMS = {"sum": 1, "linalg_vector_norm": 2, "norm": 2}
"""Which argument of each operator that sums names dimensions."""


def absorb_row_sum(low: Lowering, node: Node) -> bool:
    """Take a sum of what came of the scores along the keys, or their norm, as a part of an attention; False where it is none."""
    contraction, place, source = low.contraction, DIMS.get(node.op), node.args[0] if node.args else None
    if contraction is None or place is None or not low.flow.chained or not isinstance(source, Ref) or not low.flow.is_internal(source):
        return False
    found, dims, atoms = low.value(source), node.argument(place, "dim"), low.b.atoms
    if not is_made_of_scores(low, found.value):
        return False
    places = [dims] if isinstance(dims, int) else list(dims or ())
    last = len(found.dims) - 1
    if [place % len(found.dims) for place in places] != [last] or atoms.leaves(found.dims[last]) != keys_of(low):
        raise LoweringError("a sum of scores over another dimension than the keys is not generated")
    if low.summed is not None or node.outputs[0].dtype not in SUMMED:
        raise LoweringError("two sums of one attention's scores, or one in double precision, are not generated")
    kept = kept_of(low)
    total = low.b.leaf("summed", ACCUMULATED, kept)
    low.b.label(total, "total")
    each = low.b.compute(found.value, ACCUMULATED)
    order = _order(node)
    low.summed = (total.id, (low.b.call("abs", each) if order == 1 else each * each if order == 2 else each).id)
    if low.attention is not None:
        low.attention = _summing(low.attention, low.summed)
    keepdim = bool(node.argument(place + 1, "keepdim", default=False))
    result = low.b.call("sqrt", total) if order == 2 else total
    low.define(node, result, (*found.dims[:last], ()) if keepdim else found.dims[:last])
    return True


def _order(node: Node) -> int | None:
    """Say of which order a norm is, one or two; None of a plain sum."""
    if node.op == "sum":
        return None
    order = node.argument(1, "ord" if node.op == "linalg_vector_norm" else "p", 2)
    if order not in (None, 1, 2):
        raise LoweringError("norms of scores but of orders one and two are not generated")
    return 2 if order is None else int(order)


def _summing(attention: Attention, summed: tuple[int, int]) -> Attention:
    """Have an attention whose product came before the sum make it, too."""
    if attention.softmax:
        raise LoweringError("a sum of scores beside their softmax is not generated")
    return replace(attention, summed=summed)


def without_factors(low: Lowering, weights: Value, dtype: str) -> tuple[Value, list[Factor]]:
    """Part weights, which are multiplied in `dtype`, into what varies along the keys without the rows' sums, and factors of the rows.

    Raises LoweringError where the sum is used otherwise, or where what is left may exceed the format.
    """
    if low.summed is None or low.summed[0] not in low.b.made_of(weights):
        return weights, []
    if dtype == "float16":
        raise LoweringError("weights of half precision that are divided by their sum are not summed undivided: they may exceed it")
    return _parted(low, weights)


def multiplied(value: Value, factors: list[Factor]) -> Value:
    """Put factors on a value, one after the other."""
    for op, other in factors:
        value = value * other if op == "mul" else value / other
    return value


def _parted(low: Lowering, value: Value) -> tuple[Value, list[Factor]]:
    b, (total, _) = low.b, low.summed or (-1, -1)
    if total not in b.made_of(value):
        return value, []
    record = b.exprs[value.id]
    args = [Value(b, arg) for arg in record.args]
    if record.op == "cast":
        left, factors = _parted(low, args[0])
        return b.cast(left, record.dtype), factors
    if record.op in ("mul", "div"):
        for place, one in enumerate(args[: 2 if record.op == "mul" else 1]):
            other = args[1 - place]
            if not _varies(low, other):
                left, factors = _parted(low, one)
                return left, [*factors, (record.op, other)]
    raise LoweringError("a sum of scores that is no factor of its row is not generated")


def _varies(low: Lowering, value: Value) -> bool:
    """Whether a value differs from key to key."""
    return bool(low.b.leaves_of(low.b.exprs[value.id]) & {*keys_of(low)})
