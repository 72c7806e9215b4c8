"""Results whose last dimension has few elements, each made by a formula of its own: real and imaginary parts, a turned vector.

Walked one by one, every element asks which of them it is, and makes or reads what the others do, too. Here a program makes all of them for
each column: pairs are written side by side, three or four by a store each.
"""

from __future__ import annotations

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.reindex import reindexed
from tools.codegen.templates.shared.work import WARP

Each = tuple[int, ...]
"""The formulas of the elements, in order."""
PAIR, MOST = 2, 4
SAVED = 0.6
"""Part of the reads of elements made one by one that must be left where three or four are made together: an assumption."""


def twin_of(kernel: Kernel) -> int | None:
    """Find the atom of few elements that all outputs end with, where making them together saves work and columns are wide enough."""
    b = kernel.builder
    ends = {b.atoms.leaves([atom for dim in output.dims for atom in dim]) for output in kernel.outputs}
    if len(ends) != 1 or any(output.scatter for output in kernel.outputs):
        return None
    leaves = ends.pop()
    if len(leaves) < 2 or b.atoms.size(leaves[-2])[0] < WARP:
        return None
    sizes = set(b.atoms.size(leaves[-1]))
    if len(sizes) > 1 or not PAIR <= max(sizes) <= MOST:
        return None
    made = {expr for output in kernel.outputs for expr in b.made_of(Value(b, output.expr))}
    if any(b.exprs[expr].along for expr in made):
        return None
    if sizes == {PAIR}:
        return leaves[-1] if any(_chooses(b, expr, leaves[-1]) for expr in made) else None
    return leaves[-1] if any(b.exprs[expr].op == "read" for expr in made) and _saves(kernel, leaves[-1], made) else None


def both_of(kernel: Kernel, twin: int) -> tuple[Each, ...]:
    """Write each output's formulas."""
    b = kernel.builder
    values = [Value(b, output.expr) for output in kernel.outputs]
    each = ([reindexed(b, value, {twin: b.const(place)}).id for value in values] for place in range(b.atoms.size(twin)[0]))
    return tuple(zip(*each, strict=True))


def _chooses(b: Builder, expr: int, atom: int) -> bool:
    """Whether an expression compares the position along an atom."""
    record = b.exprs[expr]
    of = b.exprs[record.args[0]] if record.op in ("lt", "ge") else record
    return of is not record and of.op == "index" and b.atoms.leaves(of.extra) == (atom,)


def _saves(kernel: Kernel, twin: int, made: set[int]) -> bool:
    """Whether elements that are made together read clearly less than one by one."""
    b = kernel.builder
    try:
        formulas = [Value(b, expr) for each in both_of(kernel, twin) for expr in each]
    except LoweringError:
        return False
    together = {expr for formula in formulas for expr in b.made_of(formula)}
    one_by_one, all_at_once = (sum(b.exprs[expr].op in ("load", "read") for expr in exprs) for exprs in (made, together))
    return all_at_once <= SAVED * one_by_one * b.atoms.size(twin)[0]
