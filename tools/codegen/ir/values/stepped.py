"""Quotients that end in whole numbers, which change at once where a quotient changes by little.

What is compared is not among them: a threshold may be the same quotient, found by another kernel, which is then the same number.
"""

from __future__ import annotations

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.dtypes import is_floating

STEPS = frozenset({"floor", "ceil", "round", "trunc"})
"""Maps that jump."""
THROUGH = frozenset({"add", "sub", "mul", "neg", "abs", "maximum", "minimum", "where", "cast", "sqrt", "div"})
"""Maps that hand on what their arguments are off by."""


def stepped_quotients(b: Builder) -> frozenset[int]:
    """Name the float32 quotients of two values of which what a jump sees is made."""
    todo = [arg for record in b.exprs if record.op in STEPS or _truncates(b, record.op, record.dtype, record.args) for arg in record.args]
    found: set[int] = set()
    seen: set[int] = set()
    while todo:
        expr = todo.pop()
        if expr in seen:
            continue
        seen.add(expr)
        record = b.exprs[expr]
        if record.op == "div" and record.dtype == "float32" and not all(b.exprs[arg].op in ("const", "size") for arg in record.args):
            found.add(expr)
        if record.op in THROUGH:
            todo += record.args
    return frozenset(found)


def _truncates(b: Builder, op: str, dtype: str, args: tuple[int, ...]) -> bool:
    return op == "cast" and not is_floating(dtype) and is_floating(b.exprs[args[0]].dtype)
