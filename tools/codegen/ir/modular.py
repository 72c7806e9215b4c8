"""Remainders of remainders: positions that go round, as in a cross product or a roll, are one remainder of one position."""

from __future__ import annotations

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.narrow import range_of


def remainder(b: Builder, x: Value, y: Value) -> Value | None:
    """Write what is left of a position by a fixed number, in as few steps as that takes; None where it is of anything else."""
    whole, dividend = _number(b, y.id), range_of(b, x.id)
    if whole is None or whole <= 0 or dividend is None or dividend[0] < 0:
        return None
    base, added = _stripped(b, x.id, whole)
    found = range_of(b, base)
    if found is None or found[0] < 0:
        return None
    rest = b.compute(Value(b, base), b.exprs[x.id].dtype)
    if not added % whole and found[1] < whole:
        return rest
    return b.call("mod", rest + added % whole if added % whole else rest, y)


def _stripped(b: Builder, expr: int, whole: int) -> tuple[int, int]:
    """Take numbers that are added, and remainders by the same number, off a position that is nowhere negative."""
    added = 0
    while True:
        record = b.exprs[expr]
        number = _number(b, record.args[1]) if len(record.args) == 2 else None
        known = range_of(b, record.args[0]) if record.args else None
        if record.op == "add" and number is not None:
            added += number
        elif not (record.op == "mod" and number == whole and known and known[0] >= 0) and not (record.op == "cast" and known):
            return expr, added
        expr = record.args[0]


def _number(b: Builder, expr: int) -> int | None:
    record = b.exprs[expr]
    return int(record.extra[1]) if record.op == "const" and record.extra[0] == "int" else None
