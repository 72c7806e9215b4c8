"""Lower losses: by row for classes, by element with a reduction for the rest."""

from __future__ import annotations

from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE, is_signed
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.operators.element_losses import LOSSES
from tools.codegen.lower.norm import log_sum_exp
from tools.codegen.lower.region.lowering import Lowering, Rule
from tools.codegen.lower.region.operand import RowOperand


def _row_loss(low: Lowering, node: Node) -> None:
    """Cross entropy or NLL by row: the class's own element is read again; where it is computed, it is found by comparing positions.

    With label smoothing e, each class counts e / n besides: `(1 - e) w[y] (-p[y]) + e / n sum(w[c] (-p[c]))`, p logarithms of shares.
    """
    logits, target, weight = node.args[:3]
    reduction, ignored = node.argument(3, "reduction", 1), node.argument(4, "ignore_index", -100)
    smoothing = float(node.argument(5, "label_smoothing", 0.0)) if node.op == "cross_entropy_loss" else 0.0
    if reduction != 0 or not is_signed(low.graph.meta(target).dtype):
        raise LoweringError(f"{node.target} with class probabilities, or with a reduction of its own, is not generated")
    source, wanted = low.value(logits), low.value(target)
    rows = RowOperand(low, node, source, 1 if len(source.dims) > 1 else 0)
    low.b.atoms.broadcast(rows.kept(keepdim=False), wanted.dims)
    b = low.b
    weights = None if weight is None else _weights(low, weight, rows)
    parts = log_sum_exp(low, rows) if node.op == "cross_entropy_loss" else None
    own = _of_class(rows, rows.x, wanted.value)
    loss = -own if parts is None else parts[0] + (parts[1] - own)
    if weights is not None:
        loss = loss * _of_class(rows, weights, wanted.value)
    if smoothing and parts is not None:
        logarithm, peak = parts
        if weights is not None:
            every = rows.reduce(Fold.SUM, weights * (logarithm + (peak - rows.x))) / rows.count
        else:
            # a mean of what is far from zero loses digits as well, and the class's own is known before the walk where it is read
            near = 0.0 if b.pick(rows.x, wanted.value, rows.atoms) is None else b.call("finite", own)
            every = logarithm + (peak - near) - rows.mean(rows.x - near)
        loss = loss * (1.0 - smoothing) + every * smoothing
    low.define(node, b.call("where", b.call("eq", wanted.value, ignored), 0.0, loss), rows.kept(keepdim=False))


def _weights(low: Lowering, weight: Ref, rows: RowOperand) -> Value:
    """The weight of each class, walked with the classes."""
    found = low.value(weight)
    low.b.atoms.unify(rows.atoms, found.dims[0])
    return low.b.compute(found.value, rows.x.dtype)


def _of_class(rows: RowOperand, values: Value, wanted: Value) -> Value:
    """The one of a row's values that belongs to its class."""
    picked = rows.b.pick(values, wanted, rows.atoms)
    if picked is not None:
        return picked
    hit = rows.b.call("eq", rows.b.index(rows.atoms), wanted)
    return rows.reduce(Fold.SUM, rows.b.call("where", hit, values, 0.0))


def _element_loss(low: Lowering, node: Node) -> None:
    """A loss of elements with its reduction: none, mean or sum."""
    formula, place, names = LOSSES[node.op]
    b = low.b
    extra = dict(zip(("reduction", *names), node.args[place:], strict=False)) | node.kwargs
    reduction = extra.pop("reduction", 1)
    found, dims = low.aligned([low.value(arg) for arg in node.args[:place] if isinstance(arg, Ref)])
    operands = iter(found)
    compute = COMPUTE[node.outputs[0].dtype]
    values = [b.compute(next(operands).value, compute) if isinstance(arg, Ref) else None for arg in node.args[:place]]
    loss = formula(b, *values, **extra)
    if reduction == 0:
        low.define(node, loss, dims)
        return
    rows = RowOperand(low, node, Lowered(loss, dims), None)
    low.define(node, rows.mean() if reduction == 1 else rows.reduce(Fold.SUM), ())


def _triplet(low: Lowering, node: Node) -> None:
    """How much farther the third operand is from the first than the second is, by row, as the margin asks."""
    usual = ((3, "margin", 1.0), (4, "p", 2.0), (5, "eps", 1e-6))
    margin, order, eps = (node.argument(place, name, default) for place, name, default in usual)
    if order not in (1, 2) or node.argument(6, "swap", default=False) or node.argument(7, "reduction", 1) != 0:
        raise LoweringError("triplet_margin_loss of other orders than 1 and 2, or with swap, is not generated")
    b, (anchor, *others) = low.b, [low.value(ref) for ref in node.args[:3]]
    distances = []
    for other in others:
        dims = b.atoms.broadcast(anchor.dims, other.dims)
        rows = RowOperand(low, node, Lowered(b.compute(anchor.value, "float32") - b.compute(other.value, "float32") + float(eps), dims), -1)
        total = rows.reduce(Fold.SUM, rows.x * rows.x if order == 2 else b.call("abs", rows.x))
        distances.append(b.call("sqrt", total) if order == 2 else total)
    excess = distances[0] - distances[1] + float(margin)
    # a comparison keeps NaN, a maximum does not
    low.define(node, b.call("where", excess < 0.0, 0.0, excess), rows.kept(keepdim=False))


def _cosine(low: Lowering, node: Node) -> None:
    """Cosine of the angle between rows: each is brought to length one first, as torch does, so that no product of lengths overflows."""
    one, two = (low.value(ref) for ref in node.args[:2])
    if COMPUTE[node.outputs[0].dtype] != "float32":
        raise LoweringError(f"cosine_similarity of {node.outputs[0].dtype} is not generated")
    b, eps = low.b, float(node.argument(3, "eps", 1e-8))
    dims = b.atoms.broadcast(one.dims, two.dims)
    operands = [RowOperand(low, node, Lowered(each.value, dims), node.argument(2, "dim", 1)) for each in (one, two)]
    scaled = []
    for rows in operands:
        length = b.call("sqrt", rows.reduce(Fold.SUM, rows.x * rows.x))
        scaled.append(rows.x / b.call("where", length < eps, eps, length))
    low.define(node, operands[0].reduce(Fold.SUM, scaled[0] * scaled[1]), operands[0].kept(keepdim=False))


LOSS_RULES: dict[str, Rule] = {
    "cross_entropy_loss": _row_loss, "nll_loss_nd": _row_loss, "triplet_margin_loss": _triplet, "cosine_similarity": _cosine,
    **dict.fromkeys(LOSSES, _element_loss),
}  # fmt: skip
"""Rules by operator name."""
