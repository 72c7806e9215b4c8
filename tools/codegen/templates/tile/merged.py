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
    found = {expr: peak for expr in reductions if (peak := _largest_behind(b, expr)) is not None}
    return {expr: peak for expr, peak in found.items() if b.atoms.leaves(b.exprs[expr].along) == b.atoms.leaves(b.exprs[peak].along)}


def _largest_behind(b: Builder, expr: int) -> int | None:
    weight = b.exprs[b.exprs[expr].args[0]]
    if not b.exprs[expr].reduces(Fold.SUM) or weight.op != "exp_fast" or b.exprs[weight.args[0]].op != "sub":
        return None
    x, peak = b.exprs[weight.args[0]].args
    if b.exprs[peak].op == "finite":
        peak = b.exprs[peak].args[0]
    return peak if b.exprs[peak].reduces(Fold.MAX) and b.exprs[peak].args[0] == x else None


def say_shift(b: Builder, scope: Scope, expr: int, name: str, largest: str) -> str:
    """Write what a sum's elements are made less by: the largest one, or nothing where that is infinite as the formula leaves it out."""
    weight = b.exprs[b.exprs[expr].args[0]]
    is_finite = b.exprs[b.exprs[weight.args[0]].args[1]].op == "finite"
    infinite = f'tl.abs({largest}) == float("inf")' if is_finite else f'{largest} == -float("inf")'
    scope.say(f"{name} = tl.where({infinite}, 0.0, {largest})")
    return name
