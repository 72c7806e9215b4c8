"""Lower softmax, log-sum-exp and the normalisations."""

from __future__ import annotations

from typing import Any

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, Ref, Statistics
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.sizes import Varying
from tools.codegen.lower.region.lowering import Lowering, Rule
from tools.codegen.lower.region.operand import RowOperand

EPS = {"float16": 2.0**-23, "bfloat16": 2.0**-23, "float32": 2.0**-23, "float64": 2.0**-52}
"""Machine epsilon of the type that a norm of the dtype is computed in, which PyTorch adds where none is given."""


def _softmax(log: bool) -> Rule:
    def rule(low: Lowering, node: Node) -> None:
        rows = RowOperand(low, node, low.value(node.args[0]), node.args[1])
        peak = rows.peak()
        shifted = rows.x - peak
        weight = low.b.call("exp_fast", shifted)
        total = rows.named(rows.reduce(Fold.SUM, weight), "row_sum")
        low.define(node, shifted - low.b.call("log", total) if log else weight / total, rows.dims)

    return rule


def log_sum_exp(low: Lowering, rows: RowOperand) -> tuple[Value, Value]:
    """Logarithm of the sum of exponentials as two summands, the second the maximum; infinite maxima included.

    What is near the maximum is taken from the second first: far from zero their sum would lose digits.
    """
    b = low.b
    peak = rows.peak()
    safe = b.call("finite", peak)
    total = rows.named(rows.reduce(Fold.SUM, b.call("exp_fast", rows.x - safe)), "row_sum")
    return b.call("log", total), safe


def _logsumexp(low: Lowering, node: Node) -> None:
    rows = RowOperand(low, node, low.value(node.args[0]), node.args[1])
    keepdim = bool(node.argument(2, "keepdim", default=False))
    logarithm, peak = log_sum_exp(low, rows)
    low.define(node, logarithm + peak, rows.kept(keepdim))


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
    rows = RowOperand(low, node, source, list(range(len(source.dims) - rank, len(source.dims))))
    b = low.b
    mean = rows.named(rows.mean(), "mean")
    variance = rows.named(rows.variance(0), "variance")
    scale = rows.named(b.call("rsqrt", variance + float(node.argument(4, "eps", 1e-5))), "inverse_std")
    value = _affine(low, (rows.x - mean) * scale, source.dims, node.argument(2, "weight"), node.argument(3, "bias"))
    low.define(node, value, source.dims)


def _rms_norm(low: Lowering, node: Node) -> None:
    source = low.value(node.args[0])
    rank = len(node.args[1])
    rows = RowOperand(low, node, source, list(range(len(source.dims) - rank, len(source.dims))))
    eps = node.argument(3, "eps")
    eps = EPS[low.graph.meta(node.args[0]).dtype] if eps is None else eps
    scale = rows.named(low.b.call("rsqrt", rows.mean(rows.x * rows.x) + float(eps)), "inverse_rms")
    low.define(node, _affine(low, rows.x * scale, source.dims, node.argument(2, "weight"), None), source.dims)


def _group_norm(low: Lowering, node: Node) -> None:
    source = low.value(node.args[0])
    groups = node.args[1]
    out = node.result
    channels = out.shape[1]
    count = groups.values if isinstance(groups, Varying) else (groups,) * low.graph.traces
    within = tuple(int(c // g) for c, g in zip(channels, count, strict=True))
    split_shape = [out.shape[0], tuple(int(c) for c in count), within, *out.shape[2:]]
    split = low.b.atoms.regroup(source.dims, split_shape)
    grouped = Lowered(source.value, (split[0], split[1], tuple(a for dim in split[2:] for a in dim)))
    _normalise_channels(
        low, node, grouped, [2], (node.argument(2, "weight"), node.argument(3, "bias")), float(node.argument(4, "eps", 1e-5))
    )


def _instance_norm(low: Lowering, node: Node) -> None:
    if not node.args[5]:
        raise LoweringError("instance_norm with running statistics is not generated")
    source = low.value(node.args[0])
    spatial = list(range(2, len(source.dims)))
    _normalise_channels(low, node, source, spatial, (node.args[1], node.args[2]), float(node.args[7]))


def _normalise_channels(low: Lowering, node: Node, grouped: Lowered, dims: list[int], affine: tuple[Any, Any], eps: float) -> None:
    rows = RowOperand(low, node, grouped, dims)
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
    """Batch norm: with running statistics a pointwise operator, else with those of the batch."""
    source, weight, bias, mean, variance, training = node.args[:6]
    if training:
        _batch_statistics(low, node)
        return
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


def _batch_statistics(low: Lowering, node: Node) -> None:
    """Batch norm by the statistics of the batch; outputs 1 to 4 are mean and inverse deviation, and the running statistics after it."""
    source, weight, bias, mean_before, variance_before, _, momentum, eps = node.args[:8]
    x, b = low.value(source), low.b
    if momentum is None or not x.dims[1]:
        raise LoweringError("batch_norm with a cumulative average or a single channel is not generated")
    rows = RowOperand(low, node, x, [0, *range(2, len(x.dims))])
    mean = rows.named(rows.mean(), "batch_mean")
    # both variances before any operand is aligned with the input, so that they share one sum of squares
    variance, unbiased = rows.named(rows.variance(0), "batch_variance"), rows.variance(1)
    scale = rows.named(b.call("rsqrt", variance + float(eps)), "inverse_std")
    kept, dims = rows.kept(keepdim=False), b.atoms.resolve(x.dims)
    if isinstance(node, Statistics):
        for place, value in ((1, mean), (2, scale)):
            low.define(node, value, b.atoms.resolve(kept), index=place)
    else:
        low.define(node, _per_channel(low, (rows.x - mean) * scale, dims, (weight, bias)), dims)
    for place, before, now in ((3, mean_before, mean), (4, variance_before, unbiased)):
        if before is not None and len(node.outputs) > place:
            old = low.value(before)
            b.atoms.broadcast(kept, old.dims)
            low.define(node, old.value * (1.0 - momentum) + now * float(momentum), b.atoms.resolve(kept), index=place)


NORM_RULES: dict[str, Rule] = {
    "softmax": _softmax(log=False), "log_softmax": _softmax(log=True), "logsumexp": _logsumexp, "layer_norm": _layer_norm,
    "rms_norm": _rms_norm, "group_norm": _group_norm, "instance_norm": _instance_norm, "batch_norm": _batch_norm,
    "_native_batch_norm_legit_functional": _batch_norm,
}  # fmt: skip
"""Rules by operator name."""
