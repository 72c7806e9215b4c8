"""Sums of what a softmax's weights multiply, such as entropies: of undivided weights, so that one walk can make them beside its own sum.

`sum(w / total * y)` is `sum(w * y) / total`, where the total is that of the weights; of `y = log(w / total)`, the logarithms of what is
summed, the total's own is the same for all: `sum(w * log(w)) / total - log(total)`, both of which have one sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import Fold

EXPONENTIAL = "exp_fast"


@dataclass(frozen=True)
class Shares:
    """A softmax: `exp(x - peak) / total`."""

    shifted: int
    """The exponent `x - peak`, in which an infinite peak may count as zero."""
    total: int


def sum_of_shares(b: Builder, value: Value, atoms: Iterable[int]) -> Value | None:
    """Sum what a softmax along these atoms multiplies, without its division; None where it is nothing of the kind."""
    along, sign, factors = set(b.atoms.leaves(tuple(atoms))), *_factors(b, value.id)
    for place, factor in enumerate(factors):
        shares = _shares(b, factor)
        if shares is None or len(factors) == 1 or set(b.atoms.leaves(b.exprs[shares.total].along)) != along:
            continue
        others, shifted, total = [*factors[:place], *factors[place + 1 :]], Value(b, shares.shifted), Value(b, shares.total)
        weight, logarithm = b.call(EXPONENTIAL, shifted), _logarithm(b, others[0]) if len(others) == 1 else None
        if logarithm is not None and origin(b, logarithm.shifted) == origin(b, shares.shifted):
            found = b.reduce(Fold.SUM, weight * shifted, tuple(atoms)) / total - b.call("log", total)
        else:
            product = Value(b, others[0])
            for other in others[1:]:
                product = product * Value(b, other)
            found = b.reduce(Fold.SUM, weight * product, tuple(atoms)) / total
        return -found if sign < 0 else found
    return None


def _factors(b: Builder, expr: int) -> tuple[int, list[int]]:
    """Take a product apart, and its sign."""
    record = b.exprs[expr]
    if record.op == "neg":
        sign, factors = _factors(b, record.args[0])
        return -sign, factors
    if record.op != "mul" or record.dtype not in ("float32", "float64"):
        return 1, [expr]
    (one, left), (other, right) = (_factors(b, arg) for arg in record.args)
    return one * other, [*left, *right]


def _shares(b: Builder, expr: int) -> Shares | None:
    """Find the softmax that a value is: weights over their total, or the exponential of its logarithm."""
    record = b.exprs[expr]
    if record.op in ("exp", EXPONENTIAL):
        return _logarithm(b, record.args[0])
    if record.op != "div" or b.exprs[record.args[0]].op != EXPONENTIAL or not adds_up(b, record.args[1]):
        return None
    same = b.exprs[record.args[1]].args == record.args[:1]
    return Shares(b.exprs[record.args[0]].args[0], record.args[1]) if same else None


def _logarithm(b: Builder, expr: int) -> Shares | None:
    """Find the softmax of which a value is the logarithm: as log_softmax makes it, or less a log-sum-exp.

    That of a softmax itself is another one: of a weight that underflows it is infinite.
    """
    record = b.exprs[expr]
    if record.op != "sub":
        return None
    less = b.exprs[record.args[1]]
    total = less.args[0] if less.op == "log" else b.exprs[less.args[0]].args[0] if _is_log_sum(b, record.args[1]) else None
    if total is None or not adds_up(b, total):
        return None
    shifted = b.exprs[b.exprs[total].args[0]].args[0]
    begun = record.args[:1] == (shifted,) if less.op == "log" else (record.args[0], less.args[1]) == b.exprs[shifted].args
    return Shares(shifted, total) if begun else None


def _is_log_sum(b: Builder, expr: int) -> bool:
    record = b.exprs[expr]
    return record.op == "add" and b.exprs[record.args[0]].op == "log"


def adds_up(b: Builder, expr: int) -> bool:
    """Whether an expression is the sum of exponentials less their peak."""
    record = b.exprs[expr]
    if not record.reduces(Fold.SUM) or b.exprs[record.args[0]].op != EXPONENTIAL:
        return False
    found = origin(b, b.exprs[record.args[0]].args[0])
    return found is not None and b.exprs[found[1]].along == record.along


def origin(b: Builder, shifted: int) -> tuple[int, int] | None:
    """Find `x` and its largest element behind `x - peak`, in which an infinite one may count as zero."""
    record = b.exprs[shifted]
    if record.op != "sub":
        return None
    x, peak = record.args
    peak = b.exprs[peak].args[0] if b.exprs[peak].op == "finite" else peak
    return (x, peak) if b.exprs[peak].reduces(Fold.MAX) and b.exprs[peak].args[0] == x else None
