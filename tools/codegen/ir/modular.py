"""Remainders of remainders: positions that go round, as in a cross product or a roll, are one remainder of one position."""

from __future__ import annotations

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.narrow import range_of

POSITIONS = frozenset({"int32", "int64"})
"""Dtypes of positions."""


def remainder(b: Builder, x: Value, y: Value) -> Value | None:
    """Write what is left of a position by a number, in as few steps as that takes; None where it is of anything else."""
    if b.exprs[y.id].op == "argument":
        return _of_size(b, x, y)
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


def _of_size(b: Builder, x: Value, y: Value) -> Value | None:
    """The same by a size that is read at run time, of a position that has gone round by no more than that each time: a roll of a roll."""
    sizes, expr, rounds = b.arguments[b.exprs[y.id].extra].values, x.id, 0
    steps: list[int] = []
    while (record := b.exprs[expr]).op in ("add", "mod", "cast"):
        if record.op == "add":
            step = _step(b, record.args[1], y.id)
            if step is None or abs(step) > min(sizes):
                return None
            steps.append(step)
        elif record.dtype not in POSITIONS or (record.op == "mod" and record.args[1] != y.id):
            return None
        rounds += record.op == "mod"
        expr = record.args[0]
    if record.op != "index" or tuple(b.count(record.extra)) != tuple(sizes) or not rounds:
        return None
    base, added = b.compute(Value(b, expr), b.exprs[x.id].dtype), sum(steps)
    if not added:
        return base
    # as many sizes as keep it from being negative, if each step back is no more than one
    back = 1 if -added <= -min(steps) else sum(step < 0 for step in steps)
    return b.call("mod", base + ((y if back == 1 else y * back) - -added if added < 0 else b.const(added)), y)


def _step(b: Builder, expr: int, size: int) -> int | None:
    """Read how far something added moves a position that goes round: a number, or a size less one."""
    record = b.exprs[expr]
    if record.op == "sub" and record.args[0] == size:
        number = _number(b, record.args[1])
        return None if number is None or number < 0 else -number
    number = _number(b, expr)
    return number if number is not None and number >= 0 else None


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
