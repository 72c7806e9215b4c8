"""The table of losses that are computed element by element, before what `reduction` asks for."""

from __future__ import annotations

from typing import Any

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.operators.formula import Rule


def _smooth(b: Builder, error: Value, beta: float, scale: float) -> Value:
    size = b.call("abs", error)
    return b.call("where", size < beta, 0.5 * error * error * (1 / scale), (size - 0.5 * beta) * (beta / scale))


def _mse(b: Builder, x: Value, y: Value) -> Value:
    error = x - y
    return error * error


def _smooth_l1(b: Builder, x: Value, y: Value, beta: float = 1.0) -> Value:
    return _smooth(b, x - y, beta, beta) if beta else b.call("abs", x - y)


def _huber(b: Builder, x: Value, y: Value, delta: float = 1.0) -> Value:
    return _smooth(b, x - y, delta, 1.0)


def _bce_with_logits(b: Builder, x: Value, y: Value, weight: Any = None, pos_weight: Any = None) -> Value:
    if pos_weight is not None:
        raise LoweringError("binary cross entropy with pos_weight is not generated")
    loss = b.call("fmax", x, 0.0) - x * y + b.call("log1p_unit", b.call("exp_fast", -b.call("abs", x)))
    return loss if weight is None else loss * weight


def _kl_div(b: Builder, x: Value, y: Value, log_target: bool = False) -> Value:
    if log_target:
        return b.call("exp", y) * (y - x)
    return b.call("where", b.call("eq", y, 0), 0.0, y * b.call("log", y)) - y * x


LOSSES: dict[str, tuple[Rule, int, tuple[str, ...]]] = {
    "mse_loss": (_mse, 2, ()),
    "l1_loss": (lambda b, x, y: b.call("abs", x - y), 2, ()),
    "smooth_l1_loss": (_smooth_l1, 2, ("beta",)),
    "huber_loss": (_huber, 2, ("delta",)),
    "kl_div": (_kl_div, 2, ("log_target",)),
    "binary_cross_entropy_with_logits": (_bce_with_logits, 4, ()),
}
"""Element losses: formula, how many arguments stand before `reduction`, and the names of those after it."""
