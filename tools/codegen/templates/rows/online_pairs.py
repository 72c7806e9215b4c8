"""Pairs of reductions that one pass over a row can compute: online softmax, Welford's variance, an extremum and where it is.

A softmax's maximum and sum, a variance's sum and deviations, an extremum and the first position that holds it.
"""

from __future__ import annotations

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import Fold

NOWHERE = str(2**31 - 1)
"""Position of an extremum that no element of a lane is yet."""


def online_pairs(b: Builder, reductions: list[int]) -> dict[int, int]:
    """Find pairs that one pass can compute: maximum and sum of exponentials, sum and squared deviations, extremum and its position."""
    pairs: dict[int, int] = {}
    for second in reductions:
        record = b.exprs[second]
        if not record.reduces(Fold.SUM, Fold.MIN):
            continue
        if record.reduces(Fold.MIN):
            first = _extremum_first(b, record.args[0])
        elif b.exprs[record.args[0]].op in ("exp_fast", "exp"):
            first = _softmax_first(b, record.args[0])
        else:
            first = _variance_first(b, record.args[0])
        if first is not None and first in reductions and first not in pairs:
            pairs[first] = second
    return pairs


def merges(b: Builder) -> bool:
    """Whether one pass can compute any two of a region's reductions; where none can, `online` writes the same kernel as `looped`."""
    return bool(online_pairs(b, [number for number, record in enumerate(b.exprs) if record.reduces()]))


def _softmax_first(b: Builder, weight: int) -> int | None:
    shifted = b.exprs[b.exprs[weight].args[0]]
    if shifted.op != "sub":
        return None
    x, peak = shifted.args
    if b.exprs[peak].op == "finite":
        peak = b.exprs[peak].args[0]
    record = b.exprs[peak]
    return peak if record.reduces(Fold.MAX) and record.args[0] == x else None


def _variance_first(b: Builder, square: int) -> int | None:
    record = b.exprs[square]
    if record.op != "mul" or record.args[0] != record.args[1]:
        return None
    centred = b.exprs[record.args[0]]
    if centred.op != "sub":
        return None
    x, mean = centred.args
    total = b.total_of_mean(mean)
    return total if total is not None and b.exprs[total].args[0] == x else None


def _extremum_first(b: Builder, hit: int) -> int | None:
    if b.exprs[hit].op != "where":
        return None
    test, place, beyond = (b.exprs[arg] for arg in b.exprs[hit].args)
    equal = b.exprs[test.args[0]] if test.op == "or" else test
    if equal.op != "eq" or place.op != "index" or (beyond.op, beyond.extra) != ("const", ("int", NOWHERE)):
        return None
    x, best = equal.args
    record = b.exprs[best]
    if not record.reduces(Fold.MAX, Fold.MIN) or record.args[0] != x or record.dtype == "bool":
        return None
    # of floats what is no number is an extremum, too
    others = [(b.exprs[arg].op, b.exprs[arg].args) for arg in test.args[1:]] if test is not equal else []
    return best if others == ([("ne", (x, x))] if is_floating(record.dtype) else []) else None
