"""Elementary functions made of the few that kernels have: inverse and hyperbolic ones, error functions, what goes by the sign.

Each is accurate to some units in the last place of a float32.
"""

from __future__ import annotations

import math
from typing import Any

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.operators.formula import Rule

LARGE = 1e9
"""Beyond this one more is less than half of the last digit of a float32."""
ERFC = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368,
)  # fmt: skip
"""Coefficients of a Chebyshev fit, off by 1.2e-7 of the result everywhere: W. H. Press et al., Numerical Recipes, section 6.2."""
CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
TAILS = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip
"""Polynomials of the inverse error function: M. Giles, Approximating the erfinv function, GPU Computing Gems 2 (2011)."""


def _atan2(b: Builder, y: Value, x: Any) -> Value:
    x = b.lift(x)
    angle = b.call("atan", b.call("div", y, x))
    # one over a zero tells which zero it is
    half = b.call("where", b.call("or", y < 0, b.call("div", 1.0, y) < 0), -math.pi, math.pi)
    beside = b.call("where", b.call("eq", y, 0), b.call("where", b.call("div", 1.0, x) < 0, half, y), 0.5 * half)
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


def _acosh(b: Builder, x: Value) -> Value:
    beyond = x - 1.0
    found = b.call("log1p", beyond + b.call("sqrt", beyond * (beyond + 2.0)))
    # the square of what is large enough is infinite; the one is no more than its last digit
    return b.call("where", x > LARGE, b.call("log", x) + math.log(2), found)


def _cosh(b: Builder, x: Value) -> Value:
    half = b.call("exp", b.call("abs", x) - math.log(2))
    return half + 0.25 / half


def _sinh(b: Builder, x: Value) -> Value:
    size = b.call("abs", x)
    half, more = b.call("exp", size - math.log(2)), b.call("expm1", b.call("minimum", size, 1.0))
    found = b.call("where", size < 1, 0.5 * (more + more / (more + 1.0)), half - 0.25 / half)
    return b.call("where", x < 0, -found, found)


def has_minus(b: Builder, x: Any) -> Value:
    """Whether a number is below zero, or the zero that is; whole numbers have no such zero."""
    x = b.lift(x)
    return b.call("or", x < 0, b.call("div", 1.0, x) < 0) if is_floating(x.dtype) else x < 0


def _copysign(b: Builder, x: Value, y: Any) -> Value:
    size = b.call("abs", x)
    return b.call("where", has_minus(b, y), -size, size)


def scaled_tail(b: Builder, size: Value, scale: Value | float = 0.0) -> Value:
    """Give exp(x^2 + scale) erfc(x) of what is not negative: by the square of x less than nothing it is erfc itself."""
    t = b.call("div", 1.0, 1.0 + 0.5 * size)
    power = t * _polynomial(ERFC, t) - 1.26551223
    return t * b.call("exp", power + scale if isinstance(scale, Value) else power)


def _erfc(b: Builder, x: Value) -> Value:
    size = b.call("abs", x)
    tail = scaled_tail(b, size, -(size * size))
    # near zero a difference loses nothing, and is nearer
    return b.call("where", size < 0.5, 1.0 - b.call("erf", x), b.call("where", x < 0, 2.0 - tail, tail))


def _erfinv(b: Builder, x: Value) -> Value:
    found = inverse_of_tail(b, x, -(b.call("log1p", -x) + b.call("log1p", x)))
    return b.call("where", b.call("eq", b.call("abs", x), 1.0), x * math.inf, found)


def inverse_of_tail(b: Builder, x: Value, w: Value) -> Value:
    """Give the inverse error function of `x` by `w`, -log(1 - x^2)."""
    near, far = w - 2.5, b.call("sqrt", w) - 3.0
    centre, tails = (_polynomial(given, at) for given, at in ((CENTRE, near), (TAILS, far)))
    return b.call("where", w < 5.0, centre, tails) * x


def _polynomial(factors: tuple[float, ...], at: Value) -> Value:
    """Evaluate a polynomial, the factor of the highest power first."""
    found = at * factors[0] + factors[1]
    for factor in factors[2:]:
        found = found * at + factor
    return found


ELEMENTARY: dict[str, Rule] = {
    "atan2": _atan2,
    "hypot": _hypot,
    "tan": lambda b, x: b.call("sin", x) / b.call("cos", x),
    "asin": lambda b, x: _atan2(b, x, b.call("sqrt", (1.0 - x) * (1.0 + x))),
    "acos": lambda b, x: _atan2(b, b.call("sqrt", (1.0 - x) * (1.0 + x)), x),
    "angle": lambda b, x: b.call("where", x < 0, math.pi, b.call("where", b.call("eq", x, x), 0.0, x)),
    "sinh": _sinh,
    "cosh": _cosh,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": lambda b, x: 0.5 * (b.call("log1p", x) - b.call("log1p", -x)),
    "erfc": _erfc,
    "erfinv": _erfinv,
    "copysign": _copysign,
}
"""By operator name."""
