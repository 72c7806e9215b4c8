"""Logarithms of sums of exponentials beside an attention: its softmax makes their sum, and a softmax may be written with them."""

from __future__ import annotations

from dataclasses import replace

from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Attention, Lowered
from tools.codegen.lower.region.lowering import Lowering
from tools.codegen.lower.scores import is_made_of_scores, kept_of, keys_of

ACCUMULATED = "float32"


def absorb_log_sum(low: Lowering, node: Node) -> bool:
    """Take a log-sum-exp of the scores along the keys as a part of an attention; False where it is none."""
    source = node.args[0] if node.args else None
    if node.op != "logsumexp" or low.contraction is None or not low.flow.chained:
        return False
    if not isinstance(source, Ref) or not low.flow.is_internal(source) or not is_made_of_scores(low, low.value(source).value):
        return False
    found, dims = low.value(source), node.argument(1, "dim")
    places, last = [dims] if isinstance(dims, int) else list(dims or ()), len(found.dims) - 1
    if [place % len(found.dims) for place in places] != [last] or low.b.atoms.leaves(found.dims[last]) != keys_of(low):
        raise LoweringError("a log-sum-exp of scores over another dimension than the keys is not generated")
    if low.log_sum is not None or node.outputs[0].dtype != ACCUMULATED:
        raise LoweringError("two log-sum-exps of one attention's scores, or one in another precision, are not generated")
    leaf = low.b.leaf("log_sum", ACCUMULATED, frozenset(kept_of(low)))
    low.b.label(leaf, "log_sum")
    low.log_sum = (leaf.id, low.b.compute(found.value, ACCUMULATED).id)
    if low.attention is not None:
        low.attention = with_log_sum(low, low.attention)
    low.define(node, leaf, (*found.dims[:last], ()) if node.argument(2, "keepdim", default=False) else found.dims[:last])
    return True


def with_log_sum(low: Lowering, attention: Attention) -> Attention:
    """Have an attention make the log-sum-exp that the region takes of its logits; raises LoweringError of others."""
    if low.log_sum is None:
        return attention
    leaf, logits = low.log_sum
    if not attention.softmax or attention.logits != logits or attention.sink is not None:
        raise LoweringError("a log-sum-exp of other scores than an attention's softmax is taken of is not generated")
    return replace(attention, log_sum=leaf)


def exponent_of(low: Lowering, weights: Lowered) -> Lowered | None:
    """Find the logits of which weights are the softmax, written as `exp(logits - log_sum)`."""
    b, record = low.b, low.b.exprs[weights.value.id]
    while record.op == "cast":
        record = b.exprs[record.args[0]]
    if low.log_sum is None or record.op != "exp" or b.exprs[record.args[0]].op != "sub":
        return None
    logits, subtracted = b.exprs[record.args[0]].args
    return Lowered(Value(b, logits), weights.dims) if (subtracted, logits) == low.log_sum else None
