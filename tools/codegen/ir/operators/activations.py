"""The table of activations: each as a formula over kernel expressions, chosen for accuracy as those of `pointwise_ops` are."""

from __future__ import annotations

import math
from typing import Any

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.operators.formula import Rule, of_one

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""Constants of the SELU paper, as torch has them."""


def _relu(b: Builder, x: Value) -> Value:
    return b.call("maximum", x, 0)


def clamp(b: Builder, x: Value, low: Any = None, high: Any = None, **named: Any) -> Value:
    """Keep a value between two bounds, each of which may be left away; NaN stays."""
    low, high = named.get("min", low), named.get("max", high)
    if low is not None:
        x = b.call("where", x < low, low, x)
    if high is not None:
        x = b.call("where", x > high, high, x)
    return x


def _gelu(b: Builder, x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        return x * b.call("sigmoid", 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))
    return 0.5 * x * (1.0 + b.call("erf", x * math.sqrt(0.5)))


def _softplus(b: Builder, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    z = x if beta == 1 else x * beta
    soft = b.call("fmax", z, 0.0) + b.call("log1p_unit", b.call("exp_fast", -b.call("abs", z)))
    return b.call("where", z > threshold, x, soft if beta == 1 else soft * (1 / beta))


def _elu(b: Builder, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    inner = x if input_scale == 1 else x * input_scale
    low = b.call("expm1", b.call("fmin", inner, 0.0))
    factor = alpha * scale
    return b.call("where", x > 0, x if scale == 1 else x * scale, low if factor == 1 else low * factor)


def _celu(b: Builder, x: Value, alpha: float = 1.0) -> Value:
    return _elu(b, x, alpha, 1.0, 1.0 / alpha)


def _hardtanh(b: Builder, x: Value, low: float = -1.0, high: float = 1.0) -> Value:
    return clamp(b, x, low, high)


def _softshrink(b: Builder, x: Value, bound: float = 0.5) -> Value:
    return b.call("where", x > bound, x - bound, b.call("where", x < -bound, x + bound, 0.0))


def _hardshrink(b: Builder, x: Value, bound: float = 0.5) -> Value:
    return b.call("where", b.call("and", x <= bound, x >= -bound), 0.0, x)


def _logsigmoid(b: Builder, x: Value) -> Value:
    return b.call("fmin", x, 0.0) - b.call("log1p_unit", b.call("exp_fast", -b.call("abs", x)))


ACTIVATIONS: dict[str, Rule] = {
    "relu": _relu, "relu6": lambda b, x: clamp(b, x, 0, 6), "gelu": _gelu, "silu": lambda b, x: x * b.call("sigmoid", x),
    "softplus": _softplus, "mish": of_one("mish"), "hardtanh": _hardtanh,
    "hardswish": lambda b, x: x * clamp(b, x + 3.0, 0.0, 6.0) * (1 / 6),
    "hardsigmoid": lambda b, x: clamp(b, x + 3.0, 0.0, 6.0) * (1 / 6),
    "elu": _elu, "celu": _celu, "selu": lambda b, x: _elu(b, x, SELU_ALPHA, SELU_SCALE, 1.0),
    "leaky_relu": lambda b, x, slope=0.01: b.call("where", x > 0, x, x * slope),
    "prelu": lambda b, x, slope: b.call("where", x > 0, x, x * slope),
    "softsign": lambda b, x: x / (1.0 + b.call("abs", x)), "log_sigmoid": _logsigmoid,
    "tanhshrink": lambda b, x: x - b.call("tanh", x), "softshrink": _softshrink, "hardshrink": _hardshrink,
    "threshold": lambda b, x, bound, value: b.call("where", x <= bound, value, x),
}  # fmt: skip
