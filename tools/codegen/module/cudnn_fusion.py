"""The text of a convolution with its bias, an addition and a relu as one call of cuDNN."""

from __future__ import annotations

from tools.codegen.ir.graph import LaidOut, OperatorGraph, Ref
from tools.codegen.ir.schedule import Region
from tools.codegen.module.library_calls import Caller, as_rows, turned

HELPER = "convolution_relu"
"""Function of the emitted module that makes the call."""
USUAL = ([1, 1], [0, 0], [1, 1], 1)
"""Strides, padding, dilation and groups that a call need not say."""


def call_text(caller: Caller, graph: OperatorGraph, region: Region) -> str:
    """Write the call of such a region."""
    convolution, *after = (graph.by_name[name] for name in region.nodes)
    given = list(convolution.args) + list((None, *USUAL)[len(convolution.args) - 2 :])
    stride, padding, dilation, groups = given[3:7]
    words = [caller.text(argument) for argument in (*given[:3], stride, padding, dilation, groups)]
    last = isinstance(convolution, LaidOut)
    if isinstance(convolution, LaidOut) and convolution.copied:
        words[0] = turned(words[0])
    if len(after) == 2:
        other = caller.text(next(arg for arg in after[0].args if arg != Ref(convolution.name)))
        # with channels last the addition is of rows of channels, the call of images
        words.append(f"added={other}.permute(0, 3, 1, 2)" if last else f"added={other}")
    return f"{HELPER}({', '.join(words)})" + (as_rows(len(convolution.outputs[0].shape)) if last else "")
