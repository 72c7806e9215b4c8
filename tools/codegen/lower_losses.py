"""Lower losses: by row for classes, by element with a reduction for the rest."""

from __future__ import annotations

from tools.codegen.atoms import Dims
from tools.codegen.expressions import COMPUTE, LoweringError
from tools.codegen.graph import Node, Ref
from tools.codegen.lower_norms import log_sum_exp
from tools.codegen.lowering import Lowered, Lowering
from tools.codegen.pointwise_ops import LOSSES
from tools.codegen.row_operand import RowOperand, Rule


def _row_loss(low: Lowering, node: Node) -> None:
    """Cross entropy or NLL by row: the class's own element is read again; where it is computed, it is found by comparing positions."""
    logits, target, weight, reduction, ignored = node.args[:5]
    if weight is not None or reduction != 0 or not low.graph.meta(target).dtype.startswith("int"):
        raise LoweringError(f"{node.target} with weights or class probabilities is not generated")
    source, wanted = low.value(logits), low.value(target)
    class_dim = 1 if len(source.dims) > 1 else 0
    rows = RowOperand(low, node, source, class_dim)
    low.b.atoms.broadcast(rows.kept(keepdim=False), wanted.dims)
    b = low.b
    picked = b.pick(rows.x, wanted.value, rows.atoms)
    if picked is None:
        hit = b.call("eq", b.index(rows.atoms), wanted.value)
        picked = rows.reduce("sum", b.call("where", hit, rows.x, 0.0))
    loss = log_sum_exp(low, rows) - picked if node.op == "cross_entropy_loss" else -picked
    low.define(node, b.call("where", b.call("eq", wanted.value, ignored), 0.0, loss), rows.kept(keepdim=False))


def _element_loss(low: Lowering, node: Node) -> None:
    """A loss of elements with its reduction: none, mean or sum."""
    formula, place, names = LOSSES[node.op]
    b = low.b
    extra = dict(zip(("reduction", *names), node.args[place:], strict=False)) | node.kwargs
    reduction = extra.pop("reduction", 1)
    operands = [low.value(arg) if isinstance(arg, Ref) else None for arg in node.args[:place]]
    dims: Dims = ()
    for operand in operands:
        if operand is not None:
            dims = b.atoms.broadcast(dims, operand.dims)
    compute = COMPUTE[node.outputs[0].dtype]
    values = [None if operand is None else b.compute(operand.value, compute) for operand in operands]
    loss = formula(b, *values, **extra)
    if reduction == 0:
        low.define(node, loss, dims)
        return
    rows = RowOperand(low, node, Lowered(loss, dims), None)
    low.define(node, rows.mean() if reduction == 1 else rows.reduce("sum"), ())


LOSS_RULES: dict[str, Rule] = {"cross_entropy_loss": _row_loss, "nll_loss_nd": _row_loss, **dict.fromkeys(LOSSES, _element_loss)}
"""Rules by operator name."""
