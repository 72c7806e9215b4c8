"""What a formula of a pointwise operator is: a function that makes kernel expressions."""

from __future__ import annotations

from collections.abc import Callable

from tools.codegen.ir.builder import Value

Rule = Callable[..., Value]
"""Takes the builder and the operator's arguments (values for tensors, numbers for the rest), by position and keyword."""


def of_one(op: str) -> Rule:
    """Give the formula that is one operation on one value."""
    return lambda b, x: b.call(op, x)


def of_two(op: str) -> Rule:
    """Give the formula that is one operation on two values."""
    return lambda b, x, y: b.call(op, x, y)
