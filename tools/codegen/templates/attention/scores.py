"""What becomes of an attention's scores before their softmax: biases, masks and positions, of every key that a query looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tools.codegen.ir.builder import Builder
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.attention.layout import attention_layout_of
from tools.codegen.templates.shared.layout_cache import kept
from tools.codegen.templates.shared.work import OVERHEAD, item, work_of

BESIDE = 2
"""Scores of a lane that lie side by side, as products on tensor cores leave them: what is read for each comes two at a time at most."""


class Scores(NamedTuple):
    """One score's share."""

    work: float
    """Instructions of a lane, beside those of every softmax."""
    nbytes: float
    """Bytes that are read for it alone."""
    is_masked: bool
    """Whether a tensor is read for scores at all: a bias, or a mask that is data."""


@kept
def scores_of(kernel: Kernel) -> Scores:
    """Count what is made and read for each score: what varies along the rows only, or the columns only, is made for few of them."""
    attention, contraction, b = kernel.attention, kernel.contraction, kernel.builder
    assert attention is not None
    assert contraction is not None
    rows, cols = (frozenset(b.atoms.leaves(group)) for group in (contraction.rows, contraction.cols))
    products = {each.expr for each in kernel.contractions}
    behind = [b.exprs[expr] for expr in b.behind([attention.logits], products) - products]
    each = [expr for expr in behind if b.leaves_of(expr) & cols and b.leaves_of(expr) & rows]
    accesses = attention_layout_of(kernel).accesses
    read = [accesses[int(expr.extra if expr.op == "load" else expr.extra[0])] for expr in each if expr.op in ("load", "read")]
    work = work_of(expr.op for expr in each) + len(read) * OVERHEAD / BESIDE
    return Scores(work, float(sum(map(item, read))), any(expr.op in ("load", "read") for expr in behind))


def factors_of(b: Builder, expr: int) -> Iterator[int]:
    """Yield what an expression is a product of, or chosen among: what errs there by a share errs by that share in it."""
    yield expr
    record = b.exprs[expr]
    places = {"cast": record.args[:1], "abs": record.args, "neg": record.args, "div": record.args[:1], "mul": record.args}
    for arg in record.args[1:] if record.op == "where" else places.get(record.op, ()):
        yield from factors_of(b, arg)
