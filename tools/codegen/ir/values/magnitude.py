"""How small a floating number can be without being zero: a GPU's fast instructions take subnormal ones for zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import Expr

SMALLEST_NORMAL = 2.0**-126
"""Of float32."""
SMALLEST = {"float16": 2.0**-24, "float8_e4m3fn": 2.0**-9, "float8_e5m2": 2.0**-16}
"""What shorter formats have next to zero; bfloat16 reaches as far down as float32."""
SUBNORMAL = 2.0**-149
CANCELS = 2.0**-25
"""What a sum with a number leaves of it at least, or nothing: half a unit in its last place."""


def is_subnormal_nowhere(b: Builder, expr: int) -> bool:
    """Whether a number is known to be zero, or normal in float32."""
    known: dict[int, float] = b.__dict__.setdefault("_least_magnitudes", {})
    for place in sorted(b.behind([expr], known.keys())):
        if place not in known:
            known[place] = _least(b, b.exprs[place], [known[arg] for arg in b.exprs[place].args])
    return known[expr] >= SMALLEST_NORMAL


def _least(b: Builder, record: Expr, below: Sequence[float]) -> float:
    """Bound the size of what is not zero from below."""
    if not is_floating(record.dtype) and record.dtype != "weak_float":
        return 1.0
    if record.op in ("const", "load", "cast"):
        return _least_given(b, record, below)
    numbers = [float(b.exprs[arg].extra[1]) for arg in record.args if _is_number(b.exprs[arg])]
    if record.op in ("add", "sub"):
        return max((abs(number) * CANCELS for number in numbers), default=0.0)
    least = FOLLOWED[record.op](below) if record.op in FOLLOWED else 0.0
    if record.op in ("maximum", "fmax"):
        return max(least, *numbers, 0.0)
    return max(least, _clamped(b, record)) if record.op == "where" else least


def _least_given(b: Builder, record: Expr, below: Sequence[float]) -> float:
    """Do so by what is written, or by the format of what is loaded or rounded."""
    if record.op == "const":
        return abs(float(record.extra[1])) or 1.0 if _is_number(record) else 1.0
    if record.op == "load":
        return SMALLEST.get(b.loads[int(record.extra)].meta.dtype, 0.0)
    return max(below[0], SMALLEST.get(str(record.extra), 0.0))


FOLLOWED: dict[str, Callable[[Sequence[float]], float]] = {
    **dict.fromkeys(("maximum", "fmax", "minimum", "fmin", "neg", "abs"), min), "where": lambda below: min(below[1:]), "mul": math.prod,
    "sqrt": lambda below: math.sqrt(max(below[0], SUBNORMAL)),
}  # fmt: skip
"""What it is of a map by what it is of its arguments."""


def _is_number(record: Expr) -> bool:
    return record.op == "const" and record.extra[0] in ("int", "float") and math.isfinite(float(record.extra[1]))


def _clamped(b: Builder, record: Expr) -> float:
    """Read the bound off `where(x < bound, bound, x)`."""
    condition, bound = (b.exprs[arg] for arg in record.args[:2])
    is_clamp = condition.op == "lt" and condition.args == (record.args[2], record.args[1]) and _is_number(bound)
    return max(0.0, float(bound.extra[1])) if is_clamp else 0.0
