"""Lower reductions and scans."""

from __future__ import annotations

import math

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import COMPUTE, is_floating
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, OperatorGraph, Ref
from tools.codegen.ir.order import BITS, keys_of, packing, position_in
from tools.codegen.ir.views import is_view
from tools.codegen.lower.pointwise import lower_pointwise
from tools.codegen.lower.positions.order import stored
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule
from tools.codegen.lower.region.lowering import Lowering, Rule
from tools.codegen.lower.region.operand import RowOperand

DIFFERENCES = ("sub", "subtract", "rsub")
NOWHERE = 2**31 - 1
"""Position of an element that is not looked for."""


def _simple(kind: Fold) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        rows = RowOperand(low, node, low.value(node.args[0]), node.argument(1, "dim"))
        low.define(node, rows.reduce(kind), rows.kept(_keeps(node)))

    return rule


def _mean(low: Lowering, node: Node) -> None:
    rows = RowOperand(low, node, low.value(node.args[0]), node.argument(1, "dim"))
    low.define(node, rows.mean(), rows.kept(_keeps(node)))


def _keeps(node: Node) -> bool:
    """Whether the reduced dimensions stay, with one element."""
    return bool(node.argument(2, "keepdim", default=False))


def _extremum(kind: Fold) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        second = node.argument(1, "dim")
        if isinstance(second, Ref) or node.overload == "other":
            lower_pointwise(low, node)
            return
        rows = RowOperand(low, node, low.value(node.args[0]), second)
        keepdim = bool(node.argument(2, "keepdim", default=False))
        low.define(node, rows.reduce(kind), rows.kept(keepdim))
        if len(node.outputs) == 2:
            low.define(node, _position(low, node, rows, kind), rows.kept(keepdim), index=1)

    return rule


def _arg_extremum(kind: Fold) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        source = low.value(node.args[0])
        rows = RowOperand(low, node, source, node.argument(1, "dim"))
        rows.x = source.value
        low.define(node, _position(low, node, rows, kind), rows.kept(bool(node.argument(2, "keepdim", default=False))))

    return rule


def _position(low: Lowering, node: Node, rows: RowOperand, kind: Fold) -> Value:
    """Find the first position that holds the extremum.

    Where it is read at, in tiles, what is no number comes before all numbers, as in PyTorch, and one walk finds both: elements and their
    positions are packed. Elements of 64 bits leave no room for that.
    """
    b = low.b
    if isinstance(low, GeneralLowering) and rows.atoms and (dtype := stored(b, rows.x, low.graph.meta(node.args[0]).dtype)) in BITS:
        packed = packing(dtype, kind is Fold.MAX, max(b.count(rows.atoms)))
        return position_in(b, rows.reduce(Fold.MAX, keys_of(b, rows.x, rows.atoms, packed, unlike=True)), packed)
    hit = b.call("where", _holds(b, rows.x, rows.reduce(kind, rows.x)), b.index(rows.atoms), NOWHERE)
    return b.cast(rows.reduce(Fold.MIN, hit), "int64")


def _holds(b: Builder, x: Value, best: Value) -> Value:
    """Whether an element is the extremum that it is among: what is no number is, and then no other."""
    hit = b.call("eq", x, best)
    return b.call("or", hit, b.call("ne", x, x)) if is_floating(x.dtype) else hit


def _variance(root: bool) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        overload = node.overload
        if overload == "default":
            dims, correction, keepdim = None, float(bool(node.argument(1, "unbiased", default=True))), False
        elif overload == "dim":
            dims, keepdim = node.argument(1, "dim"), bool(node.argument(3, "keepdim", default=False))
            correction = float(bool(node.argument(2, "unbiased", default=True)))
        else:
            dims, keepdim = node.argument(1, "dim"), bool(node.kwargs.get("keepdim", False))
            given = node.kwargs.get("correction")
            correction = 1.0 if given is None else float(given)
        rows = RowOperand(low, node, low.value(node.args[0]), dims)
        value = rows.variance(correction)
        low.define(node, low.b.call("sqrt", value) if root else value, rows.kept(keepdim))

    return rule


def _moments(low: Lowering, node: Node) -> None:
    """Variance and mean of each channel, from one walk."""
    rows = RowOperand(low, node, low.value(node.args[0]), node.args[1])
    mean = rows.named(rows.mean(), "mean")
    for place, value in enumerate((rows.variance(float(node.kwargs["correction"])), mean)):
        low.define(node, value, rows.kept(keepdim=False), index=place)


def _norm(low: Lowering, node: Node) -> None:
    order = node.argument(1, "ord" if node.op == "linalg_vector_norm" else "p", 2)
    order = 2 if order is None else order
    rows = RowOperand(low, node, low.value(node.args[0]), node.argument(2, "dim"))
    keepdim = bool(node.argument(3, "keepdim", default=False))
    b, size = low.b, low.b.call("abs", rows.x)
    if order == 2:
        value = b.call("sqrt", rows.reduce(Fold.SUM, rows.x * rows.x))
    elif order == 1:
        value = rows.reduce(Fold.SUM, size)
    elif order in (math.inf, -math.inf):
        value = rows.reduce(Fold.MAX if order > 0 else Fold.MIN, size)
    else:
        raise LoweringError(f"the norm of order {order} is not generated")
    low.define(node, value, rows.kept(keepdim))


def _scan(kind: Fold, backwards: bool = False) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        rows = RowOperand(low, node, low.value(node.args[0]), node.args[1])
        stored_as = node.outputs[0].dtype
        dtype = COMPUTE[stored_as]
        # in a tree two sums differ by a rounding where only zeros lie between them, by much where they are large
        exact = kind is Fold.SUM and stored_as == "float32" and subtracted_from_itself(low.graph, node)
        value = low.b.compute(rows.x, "float64" if exact else dtype)
        low.define(node, low.b.cast(low.b.scan(kind, value, rows.atoms, backwards), dtype), rows.dims)

    return rule


def subtracted_from_itself(graph: OperatorGraph, node: Node) -> bool:
    """Whether elements of a node's result are subtracted from one another, as running sums are for what lies between."""
    seen, waiting = {node.name}, [node]
    while waiting:
        for user in graph.users.get(waiting.pop().name, ()):
            if is_view(user) and user.name not in seen:
                seen.add(user.name)
                waiting.append(user)
    differences = (one.args[:2] for one in graph.nodes if one.op in DIFFERENCES)
    return any(all(isinstance(arg, Ref) and arg.name in seen for arg in args) for args in differences)


def _running_extremum(kind: Fold) -> GeneralRule:
    """The largest or smallest element so far, and the last position that holds it."""

    def rule(low: GeneralLowering, node: Node) -> None:
        b, rows = low.b, RowOperand(low, node, low.value(node.args[0]), node.args[1])
        best = b.scan(kind, rows.x, rows.atoms)
        low.define(node, best, rows.dims)
        last = b.scan(Fold.MAX, b.call("where", _holds(b, rows.x, best), b.index(rows.atoms), -1), rows.atoms)
        low.define(node, b.cast(last, "int64"), rows.dims, index=1)

    return rule


LOGS_RULES: dict[str, Rule] = {"logcumsumexp": _scan(Fold.LOG_SUM)}
"""Scans whose parts a function combines, as tiles and loops write them."""
RUNNING_RULES: dict[str, GeneralRule] = {
    "cummax": _running_extremum(Fold.MAX), "cummin": _running_extremum(Fold.MIN), **LOGS_RULES,
}  # fmt: skip
"""Scans that tiles alone hold."""

REDUCTION_RULES: dict[str, Rule] = {
    "sum": _simple(Fold.SUM), "mean": _mean, "amax": _simple(Fold.MAX), "amin": _simple(Fold.MIN),
    "prod": _simple(Fold.PROD),
    "max": _extremum(Fold.MAX), "min": _extremum(Fold.MIN), "argmax": _arg_extremum(Fold.MAX), "argmin": _arg_extremum(Fold.MIN),
    "var": _variance(root=False), "std": _variance(root=True), "var_mean": _moments,
    "norm": _norm, "linalg_vector_norm": _norm,
    "cumsum": _scan(Fold.SUM), "cumprod": _scan(Fold.PROD),
    "cumsum_reversed": _scan(Fold.SUM, backwards=True), "cumprod_reversed": _scan(Fold.PROD, backwards=True),
}  # fmt: skip
"""Rules by operator name; `max` and `min` of two tensors are told apart by their arguments."""
