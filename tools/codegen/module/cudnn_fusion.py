"""The text of a convolution with its bias, an addition and a relu as one call of cuDNN."""

from __future__ import annotations

from tools.codegen.ir.graph import OperatorGraph, Ref
from tools.codegen.ir.schedule import Region
from tools.codegen.module.library_calls import Caller

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
    if len(after) == 2:
        other = next(arg for arg in after[0].args if arg != Ref(convolution.name))
        words.append(f"added={caller.text(other)}")
    return f"{HELPER}({', '.join(words)})"
