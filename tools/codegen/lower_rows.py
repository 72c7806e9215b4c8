"""Lower reductions, softmax, norms and losses: operators that reduce over dimensions of a region."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tools.codegen.atoms import Dims
from tools.codegen.expressions import COMPUTE, LoweringError, Value
from tools.codegen.graph import Node, Ref
from tools.codegen.lowering import Lowered, Lowering
from tools.codegen.pointwise_ops import LOSSES
from tools.codegen.sizes import Varying

Rule = Callable[[Lowering, Node], None]

EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""Machine epsilon as torch.finfo has it."""


def argument(node: Node, place: int, name: str, default: Any = None) -> Any:
    """Read an argument given by position or by name."""
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


class _Rows:
    """One operand seen as rows: which dimensions are reduced, and the formulas that need that."""

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
        self.x = self.b.compute(source.value, compute) if compute.startswith("float") else source.value

    def kept(self, keepdim: bool) -> Dims:
        """Shape of a reduction's result."""
        if keepdim:
            return tuple(() if place in self.places else dim for place, dim in enumerate(self.dims))
        return tuple(dim for place, dim in enumerate(self.dims) if place not in self.places)

    def reduce(self, kind: str, value: Value | None = None) -> Value:
        """Reduce over the chosen dimensions."""
        return self.b.reduce(kind, self.x if value is None else value, self.atoms)

    @property
    def count(self) -> Value:
        """Elements reduced."""
        return self.b.size(self.atoms)

    def mean(self, value: Value | None = None) -> Value:
        """Mean over the chosen dimensions."""
        return self.reduce("sum", value) / self.count

    def deviations(self) -> Value:
        """Sum of squared differences from the mean: two passes, nothing cancels."""
        centred = self.x - self.named(self.mean(), "mean")
        return self.reduce("sum", centred * centred)

    def variance(self, correction: float) -> Value:
        """Variance with `count - correction` degrees of freedom."""
        degrees = self.count - correction if correction else self.count
        return self.deviations() / degrees

    def named(self, value: Value, name: str) -> Value:
        """Suggest a variable name."""
        self.b.label(value, name)
        return value


def _simple(kind: str) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        rows = _Rows(low, node, low.value(node.args[0]), argument(node, 1, "dim"))
        keepdim = bool(argument(node, 2, "keepdim", default=False))
        low.define(node, rows.mean() if kind == "mean" else rows.reduce(kind), rows.kept(keepdim))

    return rule


def _extremum(kind: str) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        second = argument(node, 1, "dim")
        if isinstance(second, Ref) or node.target.endswith(".other"):
            from tools.codegen.lowering import lower_pointwise

            lower_pointwise(low, node)
            return
        rows = _Rows(low, node, low.value(node.args[0]), second)
        keepdim = bool(argument(node, 2, "keepdim", default=False))
        best = rows.reduce(kind)
        low.define(node, best, rows.kept(keepdim))
        if len(node.outputs) == 2:
            low.define(node, _position(low, rows, best), rows.kept(keepdim), index=1)

    return rule


def _arg_extremum(kind: str) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        source = low.value(node.args[0])
        rows = _Rows(low, node, source, argument(node, 1, "dim"))
        rows.x = source.value
        low.define(node, _position(low, rows, rows.reduce(kind)), rows.kept(bool(argument(node, 2, "keepdim", default=False))))

    return rule


def _position(low: Lowering, rows: _Rows, best: Value) -> Value:
    """Find the first position that holds the extremum."""
    b = low.b
    index = b.index(rows.atoms)
    hit = b.call("where", b.call("eq", rows.x, best), index, 2**31 - 1)
    return b.cast(rows.reduce("min", hit), "int64")


def _variance(root: bool) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        overload = node.target.split(".")[2]
        if overload == "default":
            dims, correction, keepdim = None, float(bool(argument(node, 1, "unbiased", default=True))), False
        elif overload == "dim":
            dims, keepdim = argument(node, 1, "dim"), bool(argument(node, 3, "keepdim", default=False))
            correction = float(bool(argument(node, 2, "unbiased", default=True)))
        else:
            dims, keepdim = argument(node, 1, "dim"), bool(node.kwargs.get("keepdim", False))
            given = node.kwargs.get("correction")
            correction = 1.0 if given is None else float(given)
        rows = _Rows(low, node, low.value(node.args[0]), dims)
        value = rows.variance(correction)
        low.define(node, low.b.call("sqrt", value) if root else value, rows.kept(keepdim))

    return rule


def _norm(low: Lowering, node: Node) -> None:
    order = argument(node, 1, "ord" if node.op == "linalg_vector_norm" else "p", 2)
    order = 2 if order is None else order
    rows = _Rows(low, node, low.value(node.args[0]), argument(node, 2, "dim"))
    keepdim = bool(argument(node, 3, "keepdim", default=False))
    b, size = low.b, low.b.call("abs", rows.x)
    if order == 2:
        value = b.call("sqrt", rows.reduce("sum", rows.x * rows.x))
    elif order == 1:
        value = rows.reduce("sum", size)
    elif order in (math.inf, -math.inf):
        value = rows.reduce("max" if order > 0 else "min", size)
    else:
        raise LoweringError(f"the norm of order {order} is not generated")
    low.define(node, value, rows.kept(keepdim))


def _softmax(log: bool) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        rows = _Rows(low, node, low.value(node.args[0]), node.args[1])
        peak = rows.named(rows.reduce("max"), "row_max")
        shifted = rows.x - peak
        weight = low.b.call("exp_fast", shifted)
        total = rows.named(rows.reduce("sum", weight), "row_sum")
        low.define(node, shifted - low.b.call("log", total) if log else weight / total, rows.dims)

    return rule


def _log_sum_exp(low: Lowering, rows: _Rows) -> Value:
    """Logarithm of the sum of exponentials, infinite maxima included."""
    b = low.b
    peak = rows.named(rows.reduce("max"), "row_max")
    safe = b.call("finite", peak)
    total = rows.named(rows.reduce("sum", b.call("exp_fast", rows.x - safe)), "row_sum")
    return b.call("log", total) + safe


def _logsumexp(low: Lowering, node: Node) -> None:
    rows = _Rows(low, node, low.value(node.args[0]), node.args[1])
    keepdim = bool(argument(node, 2, "keepdim", default=False))
    low.define(node, _log_sum_exp(low, rows), rows.kept(keepdim))


def _affine(low: Lowering, value: Value, dims: Dims, scale: Any, shift: Any) -> Value:
    for factor, op in ((scale, "mul"), (shift, "add")):
        if factor is not None:
            operand = low.value(factor)
            low.b.atoms.broadcast(dims, operand.dims)
            value = low.b.call(op, value, low.b.compute(operand.value, value.dtype))
    return value


def _layer_norm(low: Lowering, node: Node) -> None:
    source = low.value(node.args[0])
    rank = len(node.args[1])
    rows = _Rows(low, node, source, list(range(len(source.dims) - rank, len(source.dims))))
    b = low.b
    mean = rows.named(rows.mean(), "mean")
    variance = rows.named(rows.variance(0), "variance")
    scale = rows.named(b.call("rsqrt", variance + float(argument(node, 4, "eps", 1e-5))), "inverse_std")
    value = _affine(low, (rows.x - mean) * scale, source.dims, argument(node, 2, "weight"), argument(node, 3, "bias"))
    low.define(node, value, source.dims)


def _rms_norm(low: Lowering, node: Node) -> None:
    source = low.value(node.args[0])
    rank = len(node.args[1])
    rows = _Rows(low, node, source, list(range(len(source.dims) - rank, len(source.dims))))
    eps = argument(node, 3, "eps")
    eps = EPS[low.graph.meta(node.args[0]).dtype] if eps is None else eps
    scale = rows.named(low.b.call("rsqrt", rows.mean(rows.x * rows.x) + float(eps)), "inverse_rms")
    low.define(node, _affine(low, rows.x * scale, source.dims, argument(node, 2, "weight"), None), source.dims)


def _group_norm(low: Lowering, node: Node) -> None:
    source = low.value(node.args[0])
    groups = node.args[1]
    out = node.outputs[0]
    channels = out.shape[1]
    count = groups.values if isinstance(groups, Varying) else (groups,) * low.graph.traces
    shape = (out.shape[0], count, tuple(c // g for c, g in zip(channels, count, strict=True)), *out.shape[2:])
    split = low.b.atoms.regroup(source.dims, shape)
    grouped = Lowered(source.value, (split[0], split[1], tuple(a for dim in split[2:] for a in dim)))
    _normalise_channels(
        low, node, grouped, [2], (argument(node, 2, "weight"), argument(node, 3, "bias")), float(argument(node, 4, "eps", 1e-5))
    )


def _instance_norm(low: Lowering, node: Node) -> None:
    if not node.args[5]:
        raise LoweringError("instance_norm with running statistics is not generated")
    source = low.value(node.args[0])
    spatial = list(range(2, len(source.dims)))
    _normalise_channels(low, node, source, spatial, (node.args[1], node.args[2]), float(node.args[7]))


def _normalise_channels(low: Lowering, node: Node, grouped: Lowered, dims: list[int], affine: tuple[Any, Any], eps: float) -> None:
    rows = _Rows(low, node, grouped, dims)
    mean = rows.named(rows.mean(), "mean")
    scale = rows.named(low.b.call("rsqrt", rows.named(rows.variance(0), "variance") + eps), "inverse_std")
    dims_out = low.b.atoms.resolve(low.value(node.args[0]).dims)
    value = _per_channel(low, (rows.x - mean) * scale, dims_out, affine)
    low.define(node, value, dims_out)


def _per_channel(low: Lowering, value: Value, dims: Dims, affine: tuple[Any, Any]) -> Value:
    for factor, op in zip(affine, ("mul", "add"), strict=True):
        if factor is not None:
            operand = low.value(factor)
            low.b.atoms.broadcast(dims, (operand.dims[0], *((),) * (len(dims) - 2)))
            value = low.b.call(op, value, low.b.compute(operand.value, value.dtype))
    return value


def _batch_norm(low: Lowering, node: Node) -> None:
    """Batch norm with running statistics: a pointwise operator; in training mode it writes to buffers and stays with the library."""
    source, weight, bias, mean, variance, training = node.args[:6]
    if training:
        raise LoweringError("batch_norm in training mode updates its running statistics")
    x = low.value(source)
    dims = x.dims
    b = low.b

    def channel(ref: Ref) -> Value:
        operand = low.value(ref)
        b.atoms.broadcast(dims, (operand.dims[0], *((),) * (len(dims) - 2)))
        return operand.value

    scale = b.call("rsqrt", channel(variance) + float(node.args[7]))
    value = (x.value - channel(mean)) * scale
    low.define(node, _per_channel(low, value, b.atoms.resolve(dims), (weight, bias)), dims)


def _row_loss(low: Lowering, node: Node) -> None:
    """Cross entropy or NLL by row: the class is picked by comparing positions, so nothing is gathered."""
    logits, target, weight, reduction, ignored = node.args[:5]
    if weight is not None or reduction != 0 or not low.graph.meta(target).dtype.startswith("int"):
        raise LoweringError(f"{node.target} with weights or class probabilities is not generated")
    source, wanted = low.value(logits), low.value(target)
    class_dim = 1 if len(source.dims) > 1 else 0
    rows = _Rows(low, node, source, class_dim)
    low.b.atoms.broadcast(rows.kept(keepdim=False), wanted.dims)
    b = low.b
    hit = b.call("eq", b.index(rows.atoms), wanted.value)
    picked = rows.reduce("sum", b.call("where", hit, rows.x, 0.0))
    loss = _log_sum_exp(low, rows) - picked if node.op == "cross_entropy_loss" else -picked
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
    rows = _Rows(low, node, Lowered(loss, dims), None)
    low.define(node, rows.mean() if reduction == 1 else rows.reduce("sum"), ())


ROWS: dict[str, Rule] = {
    "sum": _simple("sum"), "mean": _simple("mean"), "amax": _simple("max"), "amin": _simple("min"),
    "max": _extremum("max"), "min": _extremum("min"), "argmax": _arg_extremum("max"), "argmin": _arg_extremum("min"),
    "var": _variance(root=False), "std": _variance(root=True), "logsumexp": _logsumexp,
    "norm": _norm, "linalg_vector_norm": _norm, "softmax": _softmax(log=False), "log_softmax": _softmax(log=True),
    "layer_norm": _layer_norm, "rms_norm": _rms_norm, "group_norm": _group_norm, "instance_norm": _instance_norm,
    "batch_norm": _batch_norm, "cross_entropy_loss": _row_loss, "nll_loss_nd": _row_loss,
    **dict.fromkeys(LOSSES, _element_loss),
}  # fmt: skip
"""Operators by name; those also in the pointwise table are told apart by their arguments."""
