"""How a reduction is written, whatever template holds it: of a tile along one of its axes, and of two parts as one.

A maximum or minimum of floats is NaN where an element is, as in PyTorch. Triton's own leave it out; those by `larger` and `smaller` are
as many instructions from sm_80 on, max.NaN.f32 in the place of max.f32, except in float64.
"""

from __future__ import annotations

from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.expr import Expr, Fold
from tools.codegen.templates.shared.body import Body

COMBINED = {Fold.PROD: "multiply", Fold.MAX: "larger", Fold.MIN: "smaller"}
"""Device functions that combine two parts of a reduction."""
SIGNS = {Fold.SUM: "+", Fold.PROD: "*"}


def keeps_nan(record: Expr) -> bool:
    """Whether a reduction is a maximum or minimum that is NaN where an element is."""
    return record.kind in (Fold.MAX, Fold.MIN) and is_floating(record.dtype) and not record.skips_nan


def reduction_text(body: Body, record: Expr, text: str, axis: int, *, keep: bool) -> str:
    """Write a reduction of a tile along one of its axes, which stays with one element where it is to be kept."""
    kept = ", keep_dims=True" if keep else ""
    if record.kind is Fold.PROD or keeps_nan(record):
        return f"tl.reduce({text}, {axis}, {_combining(body, record)}{kept})"
    return f"tl.{record.kind}({text}, axis={axis}{kept})"


def joined_text(body: Body, record: Expr, one: str, other: str) -> str:
    """Write two parts of a reduction as one, element by element."""
    if record.kind in SIGNS:
        return f"{one} {SIGNS[record.kind]} {other}"
    return f"{_combining(body, record) if keeps_nan(record) else f'tl.{record.kind}imum'}({one}, {other})"


def _combining(body: Body, record: Expr) -> str:
    """Name the device function that combines two parts, which the kernel then needs."""
    name = COMBINED[record.kind]
    body.helpers[name] = None
    return name
