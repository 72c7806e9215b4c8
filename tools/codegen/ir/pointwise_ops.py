"""The table of pointwise ATen operators: each as a formula over kernel expressions.

Formulas are chosen for accuracy: the evaluator compares errors against float64, so differences of nearly equal numbers are
avoided (`0.5 * (1 + tanh(u))` is written as `sigmoid(2 u)`, softplus through `log1p` of a decaying exponential).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import LoweringError

Rule = Callable[..., Value]
"""Takes the builder and the operator's arguments (values for tensors, numbers for the rest), by position and keyword."""

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""Constants of the SELU paper, as torch has them."""

MOST_DIVISOR = 1e30
"""Numbers of this size and less, down to its reciprocal, have a reciprocal in float32 that is neither denormal nor infinite."""


TWO = 2.0


def _named(op: str) -> Rule:
    return lambda b, x: b.call(op, x)


def _compare(op: str) -> Rule:
    return lambda b, x, y: b.call(op, x, y)


def _add(b: Builder, x: Value, y: Any, alpha: float = 1) -> Value:
    return b.call("add", x, y if alpha == 1 else b.lift(y) * b.lift(alpha))


def _sub(b: Builder, x: Value, y: Any, alpha: float = 1) -> Value:
    return b.call("sub", x, y if alpha == 1 else b.lift(y) * b.lift(alpha))


def _rsub(b: Builder, x: Value, y: Any, alpha: float = 1) -> Value:
    return b.call("sub", y, x if alpha == 1 else x * b.lift(alpha))


def _div(b: Builder, x: Value, y: Any, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return _floor_divide(b, x, y)
    if rounding_mode == "trunc":
        return _trunc(b, b.call("div", x, y)) if is_floating(x.dtype) else b.call("floordiv", x, y)
    if isinstance(y, int | float) and x.dtype == "float32" and 1 / MOST_DIVISOR <= abs(y) <= MOST_DIVISOR:
        # as PyTorch's own kernel does with a number: its reciprocal is rounded to float32, and the multiplication again
        return b.call("mul", x, _single(1.0 / _single(y)))
    return b.call("div", x, y)


def _single(number: float) -> float:
    """Round a number to float32."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _floor_divide(b: Builder, x: Value, y: Any) -> Value:
    x, y = b.lift(x), b.lift(y)
    if is_floating(x.dtype):
        # a quotient that was rounded up to a whole number is one too many
        quotient = b.call("floor", b.call("div", x, y))
        rest = b.call("sub", x, quotient * y)
        return b.call("where", _is_below(b, rest, y), quotient - 1.0, quotient)
    _refuse_floats(x, y)
    quotient = b.call("floordiv", x, y)
    return b.call("where", _is_below(b, x - quotient * y, y), quotient - 1, quotient)


def _remainder(b: Builder, x: Value, y: Any) -> Value:
    x, y = b.lift(x), b.lift(y)
    if is_floating(x.dtype):
        rest = _fmod(b, x, y)
        return b.call("where", _is_below(b, rest, y), rest + y, rest)
    _refuse_floats(x, y)
    rest = b.call("mod", x, y)
    return b.call("where", _is_below(b, rest, y), rest + y, rest)


def _trunc(b: Builder, x: Value) -> Value:
    return b.call("where", x < 0, b.call("ceil", x), b.call("floor", x))


def _fmod(b: Builder, x: Value, y: Any) -> Value:
    x, y = b.lift(x), b.lift(y)
    if not is_floating(x.dtype):
        return b.call("mod", x, y)
    rest, size = b.call("sub", x, _trunc(b, b.call("div", x, y)) * y), b.call("abs", y)
    # a quotient that was rounded to a whole number is one too many, or one too few
    away = b.call("where", x < 0, -size, size)
    opposite = b.call("and", b.call("xor", rest < 0, x < 0), b.call("ne", rest, 0))
    rest = b.call("where", opposite, rest + away, rest)
    return b.call("where", b.call("ge", b.call("abs", rest), size), rest - away, rest)


def _atan2(b: Builder, y: Value, x: Any) -> Value:
    x = b.lift(x)
    angle = b.call("atan", b.call("div", y, x))
    half = b.call("where", y < 0, -math.pi, math.pi)
    beside = b.call("where", b.call("eq", y, 0), b.call("where", x < 0, math.pi, 0.0), 0.5 * half)
    turned = b.call("where", x < 0, angle + half, angle)
    return b.call("where", b.call("eq", x, 0), beside, turned)


def _hypot(b: Builder, x: Value, y: Value) -> Value:
    x, y = b.call("abs", x), b.call("abs", y)
    most, least = b.call("maximum", x, y), b.call("minimum", x, y)
    ratio = b.call("where", b.call("eq", least, most), 1.0, least / most)
    return b.call("where", b.call("eq", most, 0), 0.0, most * b.call("sqrt", 1.0 + ratio * ratio))


def _asinh(b: Builder, x: Value) -> Value:
    size = b.call("abs", x)
    square = size * size
    found = b.call("log1p", size + square / (1.0 + b.call("sqrt", 1.0 + square)))
    return b.call("where", x < 0, -found, found)


def _refuse_floats(*values: Value) -> None:
    if any(is_floating(value.dtype) or value.dtype in ("weak_float", "bool") for value in values):
        raise LoweringError("whole quotients and remainders of other than whole numbers are not generated")


def _is_below(b: Builder, rest: Value, divisor: Value) -> Value:
    """Whether what a division toward zero leaves has another sign than the divisor: PyTorch's quotient is one less then."""
    differs = b.call("xor", rest < 0, divisor < 0)
    return b.call("and", b.call("ne", rest, 0), differs)


def _pow(b: Builder, x: Value, exponent: Any) -> Value:
    if isinstance(x, int | float) and x == TWO:
        power = b.lift(exponent)
        whole = not is_floating(power.dtype)
        return (
            b.call("where", power < 0, 0, b.call("shift_left", b.cast(b.lift(1), power.dtype), power)) if whole else b.call("exp2", power)
        )
    if isinstance(exponent, int | float) and not isinstance(exponent, bool):
        simple = _simple_power(b, x, float(exponent))
        if simple is not None:
            return simple
    return b.call("pow", x, exponent)


def _simple_power(b: Builder, x: Value, exponent: float) -> Value | None:
    if exponent < 0:
        if exponent == -0.5:
            return b.call("rsqrt", x)
        positive = _simple_power(b, x, -exponent)
        return None if positive is None else 1.0 / positive
    if exponent == 0.5:
        return b.call("sqrt", x)
    if exponent not in (1, 2, 3, 4, 5, 6, 8):
        return None
    result, square, rest = None, x, int(exponent)
    while rest:
        if rest & 1:
            result = square if result is None else result * square
        rest >>= 1
        square = square * square if rest else square
    return result


def _relu(b: Builder, x: Value) -> Value:
    # a comparison keeps NaN, a maximum does not
    return b.call("where", x < 0, 0, x)


def _clamp(b: Builder, x: Value, low: Any = None, high: Any = None, **named: Any) -> Value:
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


def _logaddexp(b: Builder, x: Value, y: Value) -> Value:
    # the larger one, and what the smaller adds; two infinities are equal, and their difference is no number
    most = b.call("maximum", x, y)
    more = b.call("log1p", b.call("exp_fast", -b.call("abs", x - y)))
    return b.call("where", b.call("and", b.call("eq", x, y), b.call("eq", b.call("abs", x), math.inf)), x, most + more)


def _softplus(b: Builder, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    z = x if beta == 1 else x * beta
    soft = b.call("fmax", z, 0.0) + b.call("log1p", b.call("exp_fast", -b.call("abs", z)))
    return b.call("where", z > threshold, x, soft if beta == 1 else soft * (1 / beta))


def _elu(b: Builder, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    inner = x if input_scale == 1 else x * input_scale
    low = b.call("expm1", b.call("fmin", inner, 0.0))
    factor = alpha * scale
    return b.call("where", x > 0, x if scale == 1 else x * scale, low if factor == 1 else low * factor)


def _celu(b: Builder, x: Value, alpha: float = 1.0) -> Value:
    return _elu(b, x, alpha, 1.0, 1.0 / alpha)


def _hardtanh(b: Builder, x: Value, low: float = -1.0, high: float = 1.0) -> Value:
    return _clamp(b, x, low, high)


def _softshrink(b: Builder, x: Value, bound: float = 0.5) -> Value:
    return b.call("where", x > bound, x - bound, b.call("where", x < -bound, x + bound, 0.0))


def _hardshrink(b: Builder, x: Value, bound: float = 0.5) -> Value:
    return b.call("where", b.call("and", x <= bound, x >= -bound), 0.0, x)


def _logsigmoid(b: Builder, x: Value) -> Value:
    return b.call("fmin", x, 0.0) - b.call("log1p", b.call("exp_fast", -b.call("abs", x)))


def _sign(b: Builder, x: Value) -> Value:
    return b.call("where", x > 0, 1, b.call("where", x < 0, -1, 0))


def _addcmul(b: Builder, x: Value, y: Value, z: Value, value: float = 1) -> Value:
    return x + (y * z if value == 1 else y * z * value)


def _addcdiv(b: Builder, x: Value, y: Value, z: Value, value: float = 1) -> Value:
    return x + (y / z if value == 1 else y / z * value)


def _lerp(b: Builder, start: Value, end: Value, weight: Any) -> Value:
    w = b.lift(weight)
    return b.call("where", b.call("abs", w) < 0.5, start + w * (end - start), end - (end - start) * (1.0 - w))


def _truth(b: Builder, x: Any) -> Value:
    value = b.lift(x)
    return value if value.dtype == "bool" else b.call("ne", value, 0)


def _logical(op: str) -> Rule:
    return lambda b, x, y: b.call(op, _truth(b, x), _truth(b, y))


def _bitwise(op: str) -> Rule:
    def rule(b: Builder, x: Value, y: Any) -> Value:
        logical = b.lift(x).dtype == "bool" and b.lift(y).dtype in ("bool", "weak_bool")
        return b.call(op if logical else f"bit{op}", x, y)

    return rule


def _round(b: Builder, x: Value, decimals: int = 0) -> Value:
    if decimals:
        raise LoweringError("rounding to decimals is not generated")
    return b.call("round", x)


def _logical_not(b: Builder, x: Value) -> Value:
    return b.call("not", _truth(b, x))


def _bitwise_not(b: Builder, x: Value) -> Value:
    if b.lift(x).dtype != "bool":
        raise LoweringError("bitwise not of integers is not generated")
    return b.call("not", x)


def _maximum(op: str) -> Rule:
    return lambda b, x, y: b.call(op, x, y)


def _masked_fill(b: Builder, x: Value, mask: Value, value: Any) -> Value:
    return b.call("where", mask, value, x)


def _where(b: Builder, condition: Value, x: Any, y: Any) -> Value:
    return b.call("where", condition, x, y)


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
    loss = b.call("fmax", x, 0.0) - x * y + b.call("log1p", b.call("exp_fast", -b.call("abs", x)))
    return loss if weight is None else loss * weight


def _kl_div(b: Builder, x: Value, y: Value, log_target: bool = False) -> Value:
    if log_target:
        return b.call("exp", y) * (y - x)
    return b.call("where", b.call("eq", y, 0), 0.0, y * b.call("log", y)) - y * x


def _hinge(b: Builder, x: Value, y: Value, margin: float = 1.0) -> Value:
    return b.call("where", b.call("eq", y, 1), x, b.call("fmax", margin - x, 0.0))


ARITHMETIC: dict[str, Rule] = {
    "contiguous": lambda b, x: x,
    "add": _add, "sub": _sub, "rsub": _rsub, "mul": lambda b, x, y: b.call("mul", x, y), "div": _div, "true_divide": _div,
    "neg": lambda b, x: -x, "reciprocal": lambda b, x: 1.0 / x, "square": lambda b, x: x * x, "pow": _pow,
    "abs": _named("abs"), "sign": _sign, "sgn": _sign, "exp": _named("exp"), "log": _named("log"), "sqrt": _named("sqrt"),
    "rsqrt": _named("rsqrt"), "sin": _named("sin"), "cos": _named("cos"), "erf": _named("erf"), "tanh": _named("tanh"),
    "exp2": lambda b, x: b.call("exp", x * math.log(2)), "log2": lambda b, x: b.call("log", x) * (1 / math.log(2)),
    "log1p": _named("log1p"), "expm1": _named("expm1"), "sigmoid": _named("sigmoid"), "floor": _named("floor"), "ceil": _named("ceil"),
    "atan": _named("atan"), "atan2": _atan2, "hypot": _hypot, "tan": lambda b, x: b.call("sin", x) / b.call("cos", x),
    "asin": lambda b, x: _atan2(b, x, b.call("sqrt", (1.0 - x) * (1.0 + x))),
    "acos": lambda b, x: _atan2(b, b.call("sqrt", (1.0 - x) * (1.0 + x)), x),
    "asinh": _asinh, "atanh": lambda b, x: 0.5 * (b.call("log1p", x) - b.call("log1p", -x)),
    "log10": lambda b, x: b.call("log", x) * (1 / math.log(10)), "trunc": _trunc, "frac": lambda b, x: x - _trunc(b, x), "fmod": _fmod,
    "fmax": _maximum("fmax"), "fmin": _maximum("fmin"),
    "round": _round, "floor_divide": _floor_divide, "remainder": _remainder,
    "relu": _relu, "relu6": lambda b, x: _clamp(b, x, 0, 6), "gelu": _gelu, "silu": lambda b, x: x * b.call("sigmoid", x),
    "logaddexp": _logaddexp, "softplus": _softplus, "mish": _named("mish"), "hardtanh": _hardtanh,
    "hardswish": lambda b, x: x * _clamp(b, x + 3.0, 0.0, 6.0) * (1 / 6),
    "hardsigmoid": lambda b, x: _clamp(b, x + 3.0, 0.0, 6.0) * (1 / 6),
    "elu": _elu, "celu": _celu, "selu": lambda b, x: _elu(b, x, SELU_ALPHA, SELU_SCALE, 1.0),
    "leaky_relu": lambda b, x, slope=0.01: b.call("where", x > 0, x, x * slope),
    "prelu": lambda b, x, slope: b.call("where", x > 0, x, x * slope),
    "softsign": lambda b, x: x / (1.0 + b.call("abs", x)), "log_sigmoid": _logsigmoid,
    "tanhshrink": lambda b, x: x - b.call("tanh", x), "softshrink": _softshrink, "hardshrink": _hardshrink,
    "threshold": lambda b, x, bound, value: b.call("where", x <= bound, value, x),
    "clamp": _clamp, "clip": _clamp, "clamp_min": lambda b, x, low: _clamp(b, x, low, None),
    "clamp_max": lambda b, x, high: _clamp(b, x, None, high),
    "maximum": _maximum("maximum"), "minimum": _maximum("minimum"), "max": _maximum("maximum"), "min": _maximum("minimum"),
    "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp": _lerp, "where": _where, "masked_fill": _masked_fill,
}  # fmt: skip
"""Operators computed in the dtype of their result."""

LOGIC: dict[str, Rule] = {
    **{op: _compare(op) for op in ("lt", "le", "gt", "ge", "eq", "ne")},
    "logical_and": _logical("and"), "logical_or": _logical("or"), "logical_xor": _logical("xor"), "logical_not": _logical_not,
    **{name: _bitwise(op) for op in ("and", "or", "xor") for name in (f"bitwise_{op}", f"__{op}__")},
    **dict.fromkeys(("bitwise_right_shift", "__rshift__"), lambda b, x, y: b.call("shift_right", x, y)),
    **dict.fromkeys(("bitwise_left_shift", "__lshift__"), lambda b, x, y: b.call("shift_left", x, y)), "bitwise_not": _bitwise_not,
    "sortable": _named("ordered_bits"), "unsorted": _named("ordered_float"),
    "isnan": lambda b, x: b.call("ne", x, x), "isinf": lambda b, x: b.call("eq", b.call("abs", x), math.inf),
}  # fmt: skip
"""Operators that give booleans or bits: computed in the promoted dtype of their arguments."""

LOSSES: dict[str, tuple[Rule, int, tuple[str, ...]]] = {
    "mse_loss": (_mse, 2, ()),
    "l1_loss": (lambda b, x, y: b.call("abs", x - y), 2, ()),
    "smooth_l1_loss": (_smooth_l1, 2, ("beta",)),
    "huber_loss": (_huber, 2, ("delta",)),
    "kl_div": (_kl_div, 2, ("log_target",)),
    "binary_cross_entropy_with_logits": (_bce_with_logits, 4, ()),
}
"""Element losses: formula, how many arguments stand before `reduction`, and the names of those after it."""
