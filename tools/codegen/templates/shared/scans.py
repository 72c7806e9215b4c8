"""How a scan of a tile is written, whatever template holds it."""

from __future__ import annotations

from tools.codegen.ir.expr import Expr, Fold
from tools.codegen.templates.shared.body import Body

COMBINED = {Fold.MAX: ("larger",), Fold.MIN: ("smaller",), Fold.LOG_SUM: ("log_of_sum", "log1p_unit")}
"""Device functions that combine two parts of a scan, and what these call."""


def scan_text(body: Body, record: Expr, text: str, axis: int) -> str:
    """Write a scan of a tile along one of its axes, with what it needs."""
    back = ", reverse=True" if record.backwards else ""
    helpers = COMBINED.get(record.kind, ())
    body.helpers |= dict.fromkeys(helpers)
    return f"tl.associative_scan({text}, {axis}, {helpers[0]}{back})" if helpers else f"tl.cum{record.kind}({text}, axis={axis}{back})"
