"""Sums of what is hardly ever there: a tile in which a condition holds nowhere has nothing to add, and is left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Fold


def skipped_by(b: Builder, level: Sequence[int]) -> int | None:
    """Find a condition that is known to hold at few positions, and without which no reduction of a level changes."""
    found = [_conditions(b, expr) for expr in level]
    return next((expr for expr in found[0] if all(expr in others for others in found)), None) if found else None


def left(b: Builder, condition: int, elements: int) -> float:
    """Part of the tiles of so many elements in which a rare condition holds somewhere."""
    part, run = b.shares[condition]
    return 1.0 - float((1.0 - part) ** max(1.0, elements / run))


def _conditions(b: Builder, expr: int) -> list[int]:
    """List the rare conditions of a sum of elements that are zero elsewhere."""
    record = b.exprs[expr]
    chosen = b.exprs[record.args[0]]
    if record.op != "reduce" or record.kind is not Fold.SUM or chosen.op != "where" or not _is_zero(b, chosen.args[2]):
        return []
    return [each for each in _conjuncts(b, chosen.args[0]) if each in b.shares]


def _conjuncts(b: Builder, expr: int) -> Iterable[int]:
    record = b.exprs[expr]
    return (part for arg in record.args for part in _conjuncts(b, arg)) if record.op == "and" else (expr,)


def _is_zero(b: Builder, expr: int) -> bool:
    record = b.exprs[expr]
    return record.op == "const" and record.extra[1] in ("0", "0.0")
