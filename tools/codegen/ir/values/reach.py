"""What an expression is made of."""

from __future__ import annotations

from collections.abc import Iterator

from tools.codegen.ir.builder import Builder


def made_of(builder: Builder, *roots: int) -> Iterator[int]:
    """Yield expressions and all that they are made of."""
    stack, seen = list(roots), set[int]()
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            yield expr
            stack += builder.exprs[expr].args


def depends_on(builder: Builder, expr: int, op: str) -> bool:
    """Whether an expression is made of one of a kind."""
    return any(builder.exprs[each].op == op for each in made_of(builder, expr))
