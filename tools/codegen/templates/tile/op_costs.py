"""Instructions behind one operation of an element of a tile."""

from __future__ import annotations

from tools.codegen.ir.builder import Builder
from tools.codegen.templates.shared.work import COMBINING, SLOW_OPS

WIDE, WIDE_MOD = 4, 20
"""The same of whole numbers of 64 bits that are data: two halves with what they carry; a remainder by a number of the text."""
MOD = 5
"""A quotient or a remainder by a number of the text, of 32 bits or of a position: the compiler knows that these are small."""
FOLDED = 2.0
"""An element that is added up or compared: with what masks it off."""
KNOWN = frozenset({"index", "size", "const", "argument"})


def instructions(b: Builder, expr: int) -> float:
    """Count them; of a reduction those of an element of what it reduces."""
    record = b.exprs[expr]
    long = "int64" in (record.dtype, *(b.exprs[arg].dtype for arg in record.args[:1])) and not _of_positions(b, expr)
    if record.op == "reduce":
        return FOLDED * (WIDE - 1 if long else 1)
    if record.is_scan:
        return SLOW_OPS["scan"] / 2 * COMBINING.get(record.kind, 2.0)
    if record.op in ("mod", "floordiv"):
        return WIDE_MOD if long else MOD
    return SLOW_OPS.get(record.op, WIDE if long else 1)


def _of_positions(b: Builder, expr: int) -> bool:
    """Whether nothing that is data is among what an expression is made of."""
    known: dict[int, bool] = b.__dict__.setdefault("_of_positions", {})
    if expr not in known:
        record = b.exprs[expr]
        known[expr] = record.op in KNOWN or (
            bool(record.args) and record.op != "read" and all(_of_positions(b, arg) for arg in record.args)
        )
    return known[expr]
