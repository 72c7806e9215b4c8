"""Sums and maxima over the channels of a convolution's result, where one program makes all channels of its positions.

A softmax, a norm or a minimum over channels then needs no pass of its own: what it looks at is in registers.
"""

from __future__ import annotations

from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.body import ALONG_ROWS, Body
from tools.codegen.templates.shared.frame import neutral
from tools.codegen.templates.shared.naming import Scope

MOST_CHANNELS = 256
"""Channels of a tile, at most."""
FOLD = "reduce"


def check_folds(kernel: Kernel, channel: int, groups: int, channels: int) -> None:
    """Raise LoweringError where a region looks along something else than all channels of one program."""
    exprs, atoms = kernel.builder.exprs, kernel.builder.atoms
    if atoms.leaves(kernel.reduced) != (channel,):
        raise LoweringError("a convolution and a reduction over other dimensions than its channels do not share a kernel")
    if groups > 1 or channels > MOST_CHANNELS:
        raise LoweringError(f"a reduction over grouped channels, or more than {MOST_CHANNELS}, does not share a convolution's kernel")
    others = {exprs[place].op for place in kernel.builder.behind(output.expr for output in kernel.outputs)} & (ALONG_ROWS - {FOLD})
    if others:
        raise LoweringError(f"a convolution and a {min(others)} along its channels do not share a kernel")


def folded(body: Body, scope: Scope, expr: int) -> str:
    """Write a reduction over the channels of a tile; those beyond the last count for nothing."""
    record = body.b.exprs[expr]
    kind, arg = record.kind, record.args[0]
    text, dtype = body.text(scope, arg, top=True)[0], body.b.exprs[arg].dtype
    if dtype == "bool":
        text, dtype = f"tl.where({text}, 1, 0)", "int32"
    text = f"tl.where(mask_n, {text}, {neutral(kind, dtype)})"
    if kind is Fold.PROD:
        body.helpers["multiply"] = None
        return body.bind(scope, expr, f"tl.reduce({text}, 1, multiply, keep_dims=True)")
    return body.bind(scope, expr, f"tl.{kind}({text}, axis=1, keep_dims=True)")
