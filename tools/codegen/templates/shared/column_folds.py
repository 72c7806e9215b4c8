"""Sums and maxima along the columns of a tile, where one program makes all columns of its rows.

A softmax, a norm or a minimum over the features of a product, or the channels of a convolution, then needs no pass of its own: what it
looks at is in registers.
"""

from __future__ import annotations

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.body import ALONG_ROWS, Body
from tools.codegen.templates.shared.frame import neutral
from tools.codegen.templates.shared.naming import Scope
from tools.codegen.templates.shared.reductions import reduction_text

MOST_COLUMNS = 256
"""Columns of a tile, at most."""
FOLD = "reduce"


def check_folds(kernel: Kernel, columns: tuple[int, ...], size: int, words: str) -> None:
    """Raise LoweringError where a region looks along something else than all columns of one program, which `words` name."""
    exprs, atoms = kernel.builder.exprs, kernel.builder.atoms
    if frozenset(atoms.leaves(kernel.reduced)) != frozenset(columns):
        raise LoweringError(f"{words} and a reduction over other dimensions than its last do not share a kernel")
    if size > MOST_COLUMNS:
        raise LoweringError(f"{words} and a reduction over more than {MOST_COLUMNS} elements do not share a kernel")
    others = {exprs[place].op for place in kernel.builder.behind(output.expr for output in kernel.outputs)} & (ALONG_ROWS - {FOLD})
    if others:
        raise LoweringError(f"{words} and a {min(others)} do not share a kernel")


def held_lines(folds: bool, columns: int) -> list[str]:
    """Write the host's test that a tile of so many columns has all there are, where something looks along them."""
    return [f'assert n_cols <= {columns}, "a tile has at most {columns} columns"'] if folds else []


def folded(body: Body, scope: Scope, expr: int) -> str:
    """Write a reduction over the columns of a tile; those beyond the last count for nothing."""
    record = body.b.exprs[expr]
    arg = record.args[0]
    text, dtype = body.text(scope, arg, top=True)[0], body.b.exprs[arg].dtype
    if dtype == "bool":
        text, dtype = f"tl.where({text}, 1, 0)", "int32"
    text = f"tl.where(mask_n, {text}, {neutral(record.kind, dtype)})"
    return body.bind(scope, expr, reduction_text(body, record, text, 1, keep=True))
