"""One sum of exponentials for a softmax and a log-sum-exp of the same numbers.

They differ where the largest element is infinite: a log-sum-exp then takes it for zero, and a softmax is no number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import Expr, Fold
from tools.codegen.ir.kernel import Output
from tools.codegen.lower.region.softmax_sums import EXPONENTIAL, adds_up, origin

LAID = frozenset({"pick", "join", "order", "turn"})
"""What is more than a map of what it is made of."""


def with_shared_totals(b: Builder, outputs: Sequence[Output]) -> tuple[Output, ...]:
    """Have a softmax's sums be those of a log-sum-exp besides, and no number where the largest element is infinite."""
    needed = sorted(b.behind(output.expr for output in outputs))
    peaks, totals = dict[int, int](), dict[int, int]()
    sums = {_exponent(b, expr): expr for expr in needed if adds_up(b, expr)}
    for exponent, total in sums.items():
        x, peak = b.exprs[exponent].args
        for other, shared in sums.items():
            if b.exprs[other].args[0] == x and other != exponent and origin(b, other) == (x, peak):
                peaks[peak], totals[total] = b.exprs[other].args[1], shared
    if not totals:
        return tuple(outputs)
    made = {total: _none_of_infinity(b, shared, peak) for (total, shared), peak in zip(totals.items(), peaks, strict=True)}
    for expr in needed:
        if expr not in made and (found := _weighed(b, expr)) in peaks:
            made[expr] = _rewritten(b, expr, {found: peaks[found]})
    if any(b.exprs[expr].op in LAID for expr in needed if b.behind([expr]) & made.keys()):
        return tuple(outputs)
    return tuple(replace(output, expr=_rewritten(b, output.expr, made)) for output in outputs)


def _none_of_infinity(b: Builder, total: int, peak: int) -> int:
    """Have a sum be no number where the largest element is infinite."""
    found = Value(b, total) + (Value(b, peak) - Value(b, peak))
    b.label(found, "softmax_sum")
    return found.id


def _exponent(b: Builder, total: int) -> int:
    return b.exprs[b.exprs[total].args[0]].args[0]


def _weighed(b: Builder, expr: int) -> int | None:
    """Find the largest element that the weights of a sum are relative to: such a sum is divided by the sum of its weights."""
    record = b.exprs[expr]
    product = b.exprs[record.args[0]] if record.reduces(Fold.SUM) else record
    weight = b.exprs[product.args[0]] if product.op == "mul" and product is not record else record
    shifted = b.exprs[weight.args[0]] if weight.op == EXPONENTIAL and weight is not record else record
    return shifted.args[1] if shifted.op == "sub" and shifted is not record else None


def _rewritten(b: Builder, expr: int, made: Mapping[int, int]) -> int:
    """Put other expressions in the place of some that one is made of."""
    known = dict(made)
    for each in sorted(b.behind([expr])):
        if each not in known:
            record = b.exprs[each]
            args = tuple(known[arg] for arg in record.args)
            known[each] = each if args == record.args else _with_args(b, record, args)
            if each in b.labels and known[each] != each:
                b.label(Value(b, known[each]), b.labels[each])
    return known[expr]


def _with_args(b: Builder, record: Expr, args: tuple[int, ...]) -> int:
    if record.reduces():
        return b.reduce(record.kind, Value(b, args[0]), record.extra, skips_nan=record.skips_nan).id
    if record.is_scan:
        return b.scan(record.kind, Value(b, args[0]), record.extra, record.backwards).id
    return b.apply(record, args).id
