"""Functions of statistics and signal processing: the gamma and Bessel families, and the normal distribution's."""

from __future__ import annotations

import math

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.operators.elementary import inverse_of_tail, scaled_tail
from tools.codegen.ir.operators.formula import Rule, of_one


def _i0(b: Builder, x: Value) -> Value:
    return b.call("i0e", x) * b.call("exp", b.call("abs", x))


def _i1(b: Builder, x: Value) -> Value:
    return b.call("i1e", x) * b.call("exp", b.call("abs", x))


def _mvlgamma(b: Builder, x: Value, p: int) -> Value:
    total = b.lift(0.25 * p * (p - 1) * math.log(math.pi))
    for place in range(p):
        total = total + b.call("lgamma", x - 0.5 * place if place else x)
    return total


def _erfcx(b: Builder, x: Value) -> Value:
    size = b.call("abs", x)
    tail = scaled_tail(b, size)
    return b.call("where", x < 0, 2.0 * b.call("exp", size * size) - tail, tail)


def _log_ndtr(b: Builder, x: Value) -> Value:
    z = x * math.sqrt(0.5)
    below = b.call("log", 0.5 * scaled_tail(b, b.call("abs", z))) - z * z
    tail = scaled_tail(b, b.call("abs", z), -(z * z))
    return b.call("where", x < -1.0, below, b.call("log1p", -0.5 * b.call("where", z < 0, 2.0 - tail, tail)))


def _ndtri(b: Builder, p: Value) -> Value:
    # what is left of one is known better than twice the probability less one
    found = inverse_of_tail(b, 2.0 * p - 1.0, -b.call("log", 4.0 * p * (1.0 - p))) * math.sqrt(2)
    ends = b.call("where", b.call("eq", p, 0), -math.inf, b.call("where", b.call("eq", p, 1), math.inf, math.nan))
    return b.call("where", b.call("and", p > 0, p < 1), found, ends)


SPECIAL: dict[str, Rule] = {
    **dict.fromkeys(("lgamma", "special_gammaln"), of_one("lgamma")),
    **dict.fromkeys(("digamma", "special_digamma", "special_psi"), of_one("digamma")),
    **dict.fromkeys(("mvlgamma", "special_multigammaln"), _mvlgamma),
    **dict.fromkeys(("i0", "special_i0"), _i0),
    "special_i0e": of_one("i0e"), "special_i1": _i1, "special_i1e": of_one("i1e"),
    "special_erfcx": _erfcx, "special_log_ndtr": _log_ndtr, "special_ndtri": _ndtri,
}  # fmt: skip
"""By operator name."""
