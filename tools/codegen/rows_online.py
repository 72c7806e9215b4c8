"""Pairs of reductions that one pass over a row can compute: a softmax's maximum and sum, a variance's sum and deviations."""

from __future__ import annotations

from tools.codegen.expressions import Builder


def online_pairs(b: Builder, reductions: list[int]) -> dict[int, int]:
    """Find pairs that one pass can compute: a row's maximum with its sum of exponentials, its sum with its squared deviations."""
    pairs: dict[int, int] = {}
    for second in reductions:
        record = b.exprs[second]
        if record.op != "reduce_sum":
            continue
        first = (
            _softmax_first(b, record.args[0]) if b.exprs[record.args[0]].op in ("exp_fast", "exp") else _variance_first(b, record.args[0])
        )
        if first is not None and first in reductions and first not in pairs:
            pairs[first] = second
    return pairs


def _softmax_first(b: Builder, weight: int) -> int | None:
    shifted = b.exprs[b.exprs[weight].args[0]]
    if shifted.op != "sub":
        return None
    x, peak = shifted.args
    if b.exprs[peak].op == "finite":
        peak = b.exprs[peak].args[0]
    record = b.exprs[peak]
    return peak if record.op == "reduce_max" and record.args[0] == x else None


def _variance_first(b: Builder, square: int) -> int | None:
    record = b.exprs[square]
    if record.op != "mul" or record.args[0] != record.args[1]:
        return None
    centred = b.exprs[record.args[0]]
    if centred.op != "sub":
        return None
    x, mean = centred.args
    ratio = b.exprs[mean]
    if ratio.op != "div" or b.exprs[ratio.args[1]].op != "size":
        return None
    total = b.exprs[ratio.args[0]]
    return ratio.args[0] if total.op == "reduce_sum" and total.args[0] == x else None
