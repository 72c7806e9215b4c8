"""What is known of an expression's values: whole numbers within a range, and the short floats that hold each of them exactly."""

from __future__ import annotations

import math
from ast import literal_eval
from collections.abc import Callable

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.expr import Expr

SHORT_FLOATS = ("bfloat16", "float16")
"""Dtypes of a product on tensor cores, the one of the widest range first."""
WHOLE_UP_TO = {"bfloat16": 256, "float16": 2048}
"""Whole numbers up to which each has every one."""
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
RANGES = {"bool": (0, 1), "int8": (-128, 127), "uint8": (0, 255)}
"""Of dtypes whose whole numbers a short float may hold."""
Range = tuple[float, float]


def exact_dtypes(b: Builder, expr: int) -> frozenset[str]:
    """Name the short floats that hold every value of an expression exactly."""
    record = b.exprs[expr]
    held = whole_range(b, expr)
    if held is not None:
        return frozenset(dtype for dtype in SHORT_FLOATS if max(abs(held[0]), abs(held[1])) <= WHOLE_UP_TO[dtype])
    if record.op == "load":
        return _of_dtype(b.loads[record.extra].meta.dtype)
    if record.op == "cast":
        known = exact_dtypes(b, record.args[0])
        return _of_dtype(str(record.extra)) or known
    if record.op in ("neg", "abs"):
        return exact_dtypes(b, record.args[0])
    if record.op in ("where", "maximum", "minimum"):
        return exact_dtypes(b, record.args[-2]) & exact_dtypes(b, record.args[-1])
    return frozenset()


def _of_dtype(dtype: str) -> frozenset[str]:
    if dtype in FLOAT8:
        return frozenset(SHORT_FLOATS)
    return frozenset({dtype} & {*SHORT_FLOATS})


def whole_range(b: Builder, expr: int) -> Range | None:
    """Find the range of an expression whose values are whole numbers; none where they may be others."""
    record = b.exprs[expr]
    if record.op in ("round", "floor", "ceil"):
        return -math.inf, math.inf
    rule = _RULES.get(record.op)
    return rule(b, record) if rule else None


def _load_range(b: Builder, record: Expr) -> Range | None:
    return RANGES.get(b.loads[record.extra].meta.dtype)


def _const_range(_: Builder, record: Expr) -> Range | None:
    number = float(literal_eval(record.extra[1])) if record.extra[0] != "float" else float(record.extra[1])
    return (number, number) if math.isfinite(number) and number == int(number) else None


def _mask_range(b: Builder, record: Expr) -> Range | None:
    """The bits that a constant leaves."""
    masks = [held for held in (whole_range(b, arg) for arg in record.args) if held and held[0] == held[1] >= 0]
    return (0, masks[0][1]) if masks else None


def _shift_range(b: Builder, record: Expr) -> Range | None:
    held, by = (whole_range(b, arg) for arg in record.args)
    known = held and by and held[0] >= 0 and held[1] < math.inf and by[0] == by[1]
    return (0, int(held[1]) >> int(by[0])) if known and held and by else None


def _cast_range(b: Builder, record: Expr) -> Range | None:
    """A cast to a wider dtype keeps whole numbers; one to a short float keeps those that it has."""
    held, target = whole_range(b, record.args[0]), str(record.extra)
    if held is None or target in RANGES or target in FLOAT8:
        return None
    return held if max(abs(held[0]), abs(held[1])) <= WHOLE_UP_TO.get(target, 2**24) else None


def _where_range(b: Builder, record: Expr) -> Range | None:
    """The range of a choice; one that clamps (`x < low` gives `low`, else `x`) is bounded by what it compares with."""
    condition, yes, no = record.args
    one, two = whole_range(b, yes), whole_range(b, no)
    if one is None or two is None:
        return None
    test = b.exprs[condition]
    if test.op in ("lt", "le", "gt", "ge") and test.args[0] == no and _alike(b, test.args[1], yes) and one[0] == one[1]:
        return (max(two[0], one[0]), max(two[1], one[0])) if test.op in ("lt", "le") else (min(two[0], one[0]), min(two[1], one[0]))
    return min(one[0], two[0]), max(one[1], two[1])


def _alike(b: Builder, one: int, two: int) -> bool:
    return one == two or whole_range(b, one) == whole_range(b, two)


def _computed_range(b: Builder, record: Expr) -> Range | None:
    ranges = [whole_range(b, arg) for arg in record.args]
    known = [held for held in ranges if held is not None and math.isfinite(held[0]) and math.isfinite(held[1])]
    if len(known) < len(ranges):
        return None
    if record.op == "neg":
        return -known[0][1], -known[0][0]
    (low, high), (other_low, other_high) = known
    ends = {
        "add": (low + other_low, high + other_high),
        "sub": (low - other_high, high - other_low),
        "mul": (low * other_low, low * other_high, high * other_low, high * other_high),
    }[record.op]
    return min(ends), max(ends)


def _extreme_range(b: Builder, record: Expr) -> Range | None:
    one, other = (whole_range(b, arg) for arg in record.args)
    most = max if record.op == "maximum" else min
    return None if one is None or other is None else (most(one[0], other[0]), most(one[1], other[1]))


_RULES: dict[str, Callable[[Builder, Expr], Range | None]] = {
    "load": _load_range, "const": _const_range, "bitand": _mask_range, "shift_right": _shift_range, "cast": _cast_range,
    "where": _where_range, "maximum": _extreme_range, "minimum": _extreme_range,
    **dict.fromkeys(("add", "sub", "mul", "neg"), _computed_range),
}  # fmt: skip
"""By operation: the range of its whole numbers."""
