"""A row's largest element and the sum of exponentials above it, made in one walk: sums are rescaled wherever a larger element is met.

As in "Online normalizer calculation for softmax" (Milakov, Gimelshein, 2018). A lane that met no number yet has a sum of zero.
"""

from __future__ import annotations

from collections.abc import Iterable

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Fold
from tools.codegen.templates.shared.naming import Scope


def merged_pairs(b: Builder, reductions: Iterable[int]) -> dict[int, int]:
    """Find sums of exponentials that can be made with the largest element they are relative to: by sum, the maximum."""
    chosen = tuple(reductions)
    found = {expr: peak for expr in chosen if (peak := _largest_behind(b, expr)) is not None}
    found = {expr: peak for expr, peak in found.items() if b.atoms.leaves(b.exprs[expr].along) == b.atoms.leaves(b.exprs[peak].along)}
    return {expr: peak for expr, peak in found.items() if not measures_distance(b, expr) or total_beside(b, expr, found) is not None}


def weight_of(b: Builder, expr: int) -> int:
    """The exponential that a sum is of, or of whose products it is."""
    (arg,) = b.exprs[expr].args
    return b.exprs[arg].args[0] if b.exprs[arg].op == "mul" else arg


def factor_of(b: Builder, expr: int) -> int | None:
    """What a sum multiplies its exponentials by; None of a sum of exponentials alone."""
    (arg,) = b.exprs[expr].args
    return b.exprs[arg].args[1] if b.exprs[arg].op == "mul" else None


def measures_distance(b: Builder, expr: int) -> bool:
    """Whether exponentials are multiplied by their own exponents, which are relative to the largest element as well."""
    return factor_of(b, expr) == b.exprs[weight_of(b, expr)].args[0]


def total_beside(b: Builder, expr: int, sums: Iterable[int]) -> int | None:
    """Find the sum of the same exponentials alone."""
    return next((each for each in sums if factor_of(b, each) is None and weight_of(b, each) == weight_of(b, expr)), None)


def _largest_behind(b: Builder, expr: int) -> int | None:
    if not b.exprs[expr].reduces(Fold.SUM):
        return None
    weight, factor = b.exprs[weight_of(b, expr)], factor_of(b, expr)
    if weight.op != "exp_fast" or b.exprs[weight.args[0]].op != "sub":
        return None
    x, peak = b.exprs[weight.args[0]].args
    if factor is not None and factor != weight.args[0] and any(b.exprs[each].along for each in b.behind([factor])):
        return None
    if b.exprs[peak].op == "finite":
        peak = b.exprs[peak].args[0]
    return peak if b.exprs[peak].reduces(Fold.MAX) and b.exprs[peak].args[0] == x else None


def say_shift(b: Builder, scope: Scope, expr: int, name: str, largest: str) -> str:
    """Write what a sum's elements are made less by: the largest one, or nothing where that is infinite as the formula leaves it out."""
    weight = b.exprs[weight_of(b, expr)]
    is_finite = b.exprs[b.exprs[weight.args[0]].args[1]].op == "finite"
    infinite = f'tl.abs({largest}) == float("inf")' if is_finite else f'{largest} == -float("inf")'
    scope.say(f"{name} = tl.where({infinite}, 0.0, {largest})")
    return name
