"""Comparisons of positions that come out alike everywhere, and choices by them: slices of a padded tensor rarely reach all its borders."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.narrow import ranges_of

YES, NO = ("bool", "True"), ("bool", "False")
WHOLE = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "mod": operator.mod, "floordiv": operator.floordiv}
MOST, SMALL = 2**31, 2**7
"""Whole numbers below which 32 bits hold them, and all dtypes of whole numbers do."""


def settled(b: Builder, op: str, args: tuple[int, ...], dtype: str) -> Value | None:
    """Say what a map of some expressions comes to, where that is known here; None elsewhere."""
    if op in ("lt", "le", "gt", "ge"):
        holds = _compared(b, op, *args)
        return None if holds is None else b.const(holds)
    if op == "sub" and b.exprs[args[0]].op == "add" and b.exprs[args[0]].args[1] == args[1] and not is_floating(dtype):
        kept = b.exprs[args[0]].args[0]
        return Value(b, kept) if b.exprs[kept].dtype == dtype else None
    known = [b.exprs[arg].extra if b.exprs[arg].op == "const" else None for arg in args]
    if op in ("and", "or"):
        return _decided(b, op, args, known)
    if op == "where" and known[0] in (YES, NO):
        return b.compute(Value(b, args[1 if known[0] == YES else 2]), dtype)
    return _whole(b, op, args, dtype)


def _decided(b: Builder, op: str, args: tuple[int, ...], known: Sequence[object]) -> Value | None:
    decides, others = (NO, YES) if op == "and" else (YES, NO)
    if decides in known:
        return b.const(op == "or")
    return next((Value(b, args[1 - place]) for place in (0, 1) if known[place] == others), None)


def _whole(b: Builder, op: str, args: tuple[int, ...], dtype: str) -> Value | None:
    """Work out what whole numbers come to that stand in the text, as positions do of elements that are made one by one."""
    records = [b.exprs[arg] for arg in args]
    if any(record.op != "const" or record.extra[0] != "int" for record in records):
        return None
    numbers = [int(record.extra[1]) for record in records]
    if op == "cast":
        return Value(b, args[0]) if dtype in ("int32", "int64") and 0 <= numbers[0] < SMALL else None
    if op not in WHOLE or (op in ("mod", "floordiv") and (numbers[0] < 0 or numbers[1] <= 0)):
        return None
    found = WHOLE[op](*numbers)
    return b.const(found) if abs(found) < MOST else None


def _compared(b: Builder, op: str, one: int, other: int) -> bool | None:
    """Whether a comparison holds everywhere, or nowhere; None where it depends on the position, or on the sizes."""
    x, y = (ranges_of(b, side) for side in ((other, one) if op in ("gt", "le") else (one, other)))
    if x is None or y is None:
        return None
    # the gap has to be the same at all sizes that were traced: then it is at others
    most = {above[1] - below[0] for above, below in zip(x, y, strict=True)}
    least = {above[0] - below[1] for above, below in zip(x, y, strict=True)}
    if len(most) == 1 and max(most) < 0:
        return op in ("lt", "gt")
    if len(least) == 1 and min(least) >= 0:
        return op in ("ge", "le")
    return None
