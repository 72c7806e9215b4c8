"""The table of pointwise ATen operators: each as a formula over kernel expressions.

Formulas are chosen for accuracy: the evaluator compares errors against float64, so differences of nearly equal numbers are
avoided (`0.5 * (1 + tanh(u))` is written as `sigmoid(2 u)`, softplus through `log1p` of a decaying exponential).
"""

from __future__ import annotations

import math
import struct
from typing import Any

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.narrow import is_negative_nowhere
from tools.codegen.ir.operators.activations import ACTIVATIONS, clamp
from tools.codegen.ir.operators.elementary import ELEMENTARY, has_minus
from tools.codegen.ir.operators.formula import Rule, of_one, of_two
from tools.codegen.ir.operators.special import SPECIAL

MOST_DIVISOR = 1e30
"""Numbers of this size and less, down to its reciprocal, have a reciprocal in float32 that is neither denormal nor infinite."""


TWO = 2.0


def _add(b: Builder, x: Value, y: Any, alpha: float = 1) -> Value:
    if x.dtype == "bool" and b.lift(y).dtype in ("bool", "weak_bool"):
        return b.call("or", x, y) if alpha else x
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
        rest = _rest(b, x, quotient, y)
        return b.call("where", _is_below(b, rest, y), quotient - 1.0, quotient)
    _refuse_floats(x, y)
    quotient = b.call("floordiv", x, y)
    if is_negative_nowhere(b, x.id) and is_negative_nowhere(b, y.id):
        return quotient
    return b.call("where", _is_below(b, x - quotient * y, y), quotient - 1, quotient)


def _remainder(b: Builder, x: Value, y: Any) -> Value:
    x, y = b.lift(x), b.lift(y)
    if is_floating(x.dtype):
        rest = _fmod(b, x, y)
        return b.call("where", _is_below(b, rest, y), rest + y, rest)
    _refuse_floats(x, y)
    rest = b.call("mod", x, y)
    if is_negative_nowhere(b, x.id) and is_negative_nowhere(b, y.id):
        return rest
    return b.call("where", _is_below(b, rest, y), rest + y, rest)


def _trunc(b: Builder, x: Value) -> Value:
    return b.call("where", x < 0, b.call("ceil", x), b.call("floor", x))


def _fmod(b: Builder, x: Value, y: Any) -> Value:
    x, y = b.lift(x), b.lift(y)
    if not is_floating(x.dtype):
        return b.call("mod", x, y)
    rest, size = _rest(b, x, _trunc(b, b.call("div", x, y)), y), b.call("abs", y)
    # a quotient that was rounded to a whole number is one too many, or one too few
    away = b.call("where", x < 0, -size, size)
    opposite = b.call("and", b.call("xor", rest < 0, x < 0), b.call("ne", rest, 0))
    rest = b.call("where", opposite, rest + away, rest)
    return b.call("where", b.call("ge", b.call("abs", rest), size), rest - away, rest)


def _rest(b: Builder, x: Value, quotient: Value, y: Value) -> Value:
    """What a whole quotient of floats leaves: all of a finite number where the divisor is infinite."""
    rest, divisor = b.call("sub", x, quotient * y), b.exprs[y.id]
    if divisor.op == "const" and math.isfinite(float(divisor.extra[1])):
        return rest
    whole = b.call("and", b.call("eq", b.call("abs", y), math.inf), b.call("ne", b.call("abs", x), math.inf))
    return b.call("where", whole, x, rest)


def _refuse_floats(*values: Value) -> None:
    if any(is_floating(value.dtype) or value.dtype in ("weak_float", "bool") for value in values):
        raise LoweringError("whole quotients and remainders of other than whole numbers are not generated")


def _is_below(b: Builder, rest: Value, divisor: Value) -> Value:
    """Whether what a division toward zero leaves has another sign than the divisor: PyTorch's quotient is one less then."""
    differs = b.call("xor", rest < 0, divisor < 0)
    return b.call("and", b.call("ne", rest, 0), differs)


def _is_two(b: Builder, x: Any) -> bool:
    """Whether a base is 2, or a tensor that holds 2 everywhere, as in ldexp."""
    if not isinstance(x, Value):
        return bool(x == TWO)
    record = b.exprs[x.id]
    if record.op == "cast":
        record = b.exprs[record.args[0]]
    return record.op == "const" and record.extra[0] in ("int", "float") and float(record.extra[1]) == TWO


def _pow(b: Builder, x: Value, exponent: Any) -> Value:
    if _is_two(b, x):
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


def _logaddexp(b: Builder, x: Value, y: Value) -> Value:
    # the larger one, and what the smaller adds; two infinities are equal, and their difference is no number
    most = b.call("maximum", x, y)
    more = b.call("log1p_unit", b.call("exp_fast", -b.call("abs", x - y)))
    return b.call("where", b.call("and", b.call("eq", x, y), b.call("eq", b.call("abs", x), math.inf)), x, most + more)


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
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return b.call("div", b.call("round", x * scale), scale)
    return b.call("round", b.call("div", x, scale)) * scale if decimals else b.call("round", x)


def _logical_not(b: Builder, x: Value) -> Value:
    return b.call("not", _truth(b, x))


def _bitwise_not(b: Builder, x: Value) -> Value:
    return b.call("not", x) if b.lift(x).dtype == "bool" else b.call("bitxor", x, -1)


def _masked_fill(b: Builder, x: Value, mask: Value, value: Any) -> Value:
    return b.call("where", mask, value, x)


def _where(b: Builder, condition: Value, x: Any, y: Any) -> Value:
    return b.call("where", condition, x, y)


def _chosen_number(b: Builder, code: Value, given: list[Any], dtype: Any) -> Value:
    """Choose among numbers by the bits of a code, the lowest first: all that share a bit share its test."""
    place = code if is_negative_nowhere(b, code.id) else b.call("where", code < 0, code + len(given), code)
    left: list[Any] = given
    for bit in range((len(given) - 1).bit_length()):
        is_set = b.call("ne", b.call("bitand", place, 1 << bit), 0)
        pairs = [left[at : at + 2] for at in range(0, len(left), 2)]
        left = [b.call("where", is_set, pair[-1], pair[0]) if len(pair) > 1 else pair[0] for pair in pairs]
    return b.cast(b.lift(left[0]), dtype.name)


ARITHMETIC: dict[str, Rule] = {
    "contiguous": lambda b, x: x,
    "add": _add, "sub": _sub, "rsub": _rsub, "mul": lambda b, x, y: b.call("mul", x, y), "div": _div, "true_divide": _div,
    "neg": lambda b, x: -x, "reciprocal": lambda b, x: 1.0 / x, "square": lambda b, x: x * x, "pow": _pow,
    "abs": of_one("abs"), "sign": _sign, "sgn": _sign, "exp": of_one("exp"), "log": of_one("log"), "sqrt": of_one("sqrt"),
    "rsqrt": of_one("rsqrt"), "sin": of_one("sin"), "cos": of_one("cos"), "erf": of_one("erf"), "tanh": of_one("tanh"),
    "exp2": lambda b, x: b.call("exp", x * math.log(2)), "log2": lambda b, x: b.call("log", x) * (1 / math.log(2)),
    "log1p": of_one("log1p"), "expm1": of_one("expm1"), "sigmoid": of_one("sigmoid"), "floor": of_one("floor"), "ceil": of_one("ceil"),
    "atan": of_one("atan"), **ELEMENTARY, **SPECIAL,
    "log10": lambda b, x: b.call("log", x) * (1 / math.log(10)), "trunc": _trunc, "frac": lambda b, x: x - _trunc(b, x), "fmod": _fmod,
    "fmax": of_two("fmax"), "fmin": of_two("fmin"),
    "round": _round, "floor_divide": _floor_divide, "remainder": _remainder,
    "logaddexp": _logaddexp, **ACTIVATIONS,
    "clamp": clamp, "clip": clamp, "clamp_min": lambda b, x, low: clamp(b, x, low, None),
    "clamp_max": lambda b, x, high: clamp(b, x, None, high),
    "maximum": of_two("maximum"), "minimum": of_two("minimum"), "max": of_two("maximum"), "min": of_two("minimum"),
    "addcmul": _addcmul, "addcdiv": _addcdiv, "lerp": _lerp, "where": _where, "masked_fill": _masked_fill,
}  # fmt: skip
"""Operators computed in the dtype of their result."""

LOGIC: dict[str, Rule] = {
    **{op: of_two(op) for op in ("lt", "le", "gt", "ge", "eq", "ne")},
    "logical_and": _logical("and"), "logical_or": _logical("or"), "logical_xor": _logical("xor"), "logical_not": _logical_not,
    **{name: _bitwise(op) for op in ("and", "or", "xor") for name in (f"bitwise_{op}", f"__{op}__")},
    **dict.fromkeys(("bitwise_right_shift", "__rshift__"), lambda b, x, y: b.call("shift_right", x, y)),
    **dict.fromkeys(("bitwise_left_shift", "__lshift__"), lambda b, x, y: b.call("shift_left", x, y)), "bitwise_not": _bitwise_not,
    "chosen_number": _chosen_number, "sortable": of_one("ordered_bits"), "unsorted": of_one("ordered_float"),
    "signbit": has_minus,
    "isnan": lambda b, x: b.call("ne", x, x), "isinf": lambda b, x: b.call("eq", b.call("abs", x), math.inf),
}  # fmt: skip
"""Operators that give booleans or bits: computed in the promoted dtype of their arguments."""
