"""Lower depthwise convolutions of few elements as sums of neighbours, each read where it lies: what comes before is not written."""

from __future__ import annotations

import itertools
import math

from tools.codegen.ir.builder import Value
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import LaidOut, Node, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.reindex import flat, spread
from tools.codegen.ir.sizes import is_one
from tools.codegen.lower.convolution import numbers_of, padding_of
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule

FLOATS = ("float16", "bfloat16", "float32")
MOST_TAPS = 9
"""Elements of a kernel: each is a read by itself."""


def _convolution(rank: int) -> GeneralRule:
    def rule(low: GeneralLowering, node: Node) -> None:
        weight, out = low.graph.meta(node.args[1]), node.outputs[0]
        sizes = weight.shape[2:]
        if (
            isinstance(node, LaidOut) or len(out.shape) != rank + 2 or out.dtype not in FLOATS
            or not is_one(weight.shape[1]) or weight.shape[0] != low.graph.meta(node.args[0]).shape[1]
        ):  # fmt: skip
            raise LoweringError(f"{node.target} of other than single channels is not a sum of neighbours")
        if any(len(set(each)) > 1 for each in sizes) or math.prod(each[0] for each in sizes) > MOST_TAPS:
            raise LoweringError(f"{node.target} with a kernel of more than {MOST_TAPS} elements is not a sum of neighbours")
        stride, dilation = (numbers_of(node.argument(place, name, 1), rank) for place, name in ((3, "stride"), (5, "dilation")))
        padding = numbers_of(padding_of(node.argument(4, "padding", 0), sizes, dilation or ()), rank)
        if stride is None or dilation is None or padding is None:
            raise LoweringError(f"{node.target} with more padding at an end than at the other, or numbers that vary, is not generated")
        _sum(low, node, (stride, padding, dilation))

    return rule


def _sum(low: GeneralLowering, node: Node, numbers: tuple[tuple[int, ...], ...]) -> None:
    """Add up the neighbours by the elements of their channel's kernel."""
    b, out = low.b, node.outputs[0]
    sizes = [each[0] for each in low.graph.meta(node.args[1]).shape[2:]]
    found, weight = low.value(node.args[0]), low.value(node.args[1])
    new = b.atoms.dims(out.shape[2:])
    dims = (*found.dims[:2], *new)
    none = ((),) * len(sizes)
    total: Lowered | None = None
    for taps in itertools.product(*map(range, sizes)):
        value = _neighbour(low, node, found, new, taps, numbers)
        at: dict[int, Value] = {}
        for dim, tap in zip(weight.dims[2:], taps, strict=True):
            at |= spread(b, dim, b.const(tap))
        factor = low.take(weight, at, (weight.dims[0], *none))
        (one, two), dims = low.aligned([Lowered(value, dims), factor])
        term = b.compute(one.value, "float32") * b.compute(two.value, "float32")
        total = Lowered(term if total is None else total.value + term, dims)
    bias = node.argument(2, "bias")
    assert total is not None
    if isinstance(bias, Ref):
        added = low.value(bias)
        (total, added), dims = low.aligned([total, Lowered(added.value, (added.dims[0], *none))])
        total = Lowered(total.value + b.compute(added.value, "float32"), dims)
    low.define(node, b.compute(total.value, COMPUTE[out.dtype]), dims)


def _neighbour(
    low: GeneralLowering,
    node: Node,
    found: Lowered,
    new: tuple[tuple[int, ...], ...],
    taps: tuple[int, ...],
    numbers: tuple[tuple[int, ...], ...],
) -> Value:
    """Read the element that one element of the kernel looks at; nothing where it lies in the padding."""
    b, shape = low.b, low.graph.meta(node.args[0]).shape[2:]
    at: dict[int, Value] = {}
    inside: Value | None = None
    for place, (tap, stride, padding, dilation) in enumerate(zip(taps, *numbers, strict=True)):
        position, shift = flat(b, new[place]), tap * dilation - padding
        position = position if stride == 1 else position * stride
        position = position + shift if shift else position
        at |= spread(b, found.dims[2 + place], position)
        if padding:
            within = b.call("and", b.call("ge", position, 0), position < b.number(shape[place]))
            inside = within if inside is None else b.call("and", inside, within)
    value = low.gathered(found, at, (*found.dims[:2], *new), inside).value
    return value if inside is None else b.call("where", inside, value, 0.0)


TAP_RULES: dict[str, GeneralRule] = {f"conv{rank}d": _convolution(rank) for rank in (1, 2, 3)}
"""Operators by name."""
