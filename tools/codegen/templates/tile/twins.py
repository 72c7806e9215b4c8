"""Results whose last dimension has two elements, each made by a formula of its own, such as real and imaginary parts.

Walked one by one, every element asks which of the two it is, and both formulas are made for each. Here a program makes both for each pair,
and writes them side by side.
"""

from __future__ import annotations

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.reindex import reindexed
from tools.codegen.templates.shared.work import WARP

Both = tuple[int, int]
"""The formulas of the first and of the second element."""


def twin_of(kernel: Kernel) -> int | None:
    """Find the atom of two that all outputs end with, where something is chosen by it and columns of pairs are wide enough."""
    b = kernel.builder
    ends = {b.atoms.leaves([atom for dim in output.dims for atom in dim]) for output in kernel.outputs}
    if len(ends) != 1 or any(output.scatter for output in kernel.outputs):
        return None
    leaves = ends.pop()
    if len(leaves) < 2 or set(b.atoms.size(leaves[-1])) != {2} or b.atoms.size(leaves[-2])[0] < WARP:
        return None
    made = {expr for output in kernel.outputs for expr in b.made_of(Value(b, output.expr))}
    if any(b.exprs[expr].along for expr in made) or not any(_chooses(b, expr, leaves[-1]) for expr in made):
        return None
    return leaves[-1]


def both_of(kernel: Kernel, twin: int) -> tuple[Both, ...]:
    """Write each output's two formulas."""
    b = kernel.builder
    values = [Value(b, output.expr) for output in kernel.outputs]
    first, second = ([reindexed(b, value, {twin: b.const(place)}).id for value in values] for place in (0, 1))
    return tuple(zip(first, second, strict=True))


def _chooses(b: Builder, expr: int, atom: int) -> bool:
    """Whether an expression compares the position along an atom."""
    record = b.exprs[expr]
    of = b.exprs[record.args[0]] if record.op in ("lt", "ge") else record
    return of is not record and of.op == "index" and b.atoms.leaves(of.extra) == (atom,)
