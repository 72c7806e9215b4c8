"""Lower the patches of images, which may overlap or reach beyond the edges: each element is read where it lies."""

from __future__ import annotations

from tools.codegen.ir.builder import Value
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node
from tools.codegen.ir.reindex import flat, spread
from tools.codegen.lower.convolution import numbers_of
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule


def _im2col(low: GeneralLowering, node: Node) -> None:
    """Lay the elements of every patch one after the other, a patch a column; beyond the edges lie zeros."""
    b, atoms, shape = low.b, low.b.atoms, low.graph.meta(node.args[0]).shape
    given = [numbers_of(node.argument(place, name, 1), 2) for place, name in enumerate(("kernel_size", "dilation", "padding", "stride"), 1)]
    sizes, dilation, padding, stride = given
    if len(shape) != 4 or sizes is None or dilation is None or padding is None or stride is None:
        raise LoweringError(f"{node.target} of other than images, or by numbers that vary, is not generated")
    found = low.value(node.args[0])
    at: dict[int, Value] = {}
    inside: Value | None = None
    elements: tuple[int, ...] = found.dims[1]
    places: tuple[int, ...] = ()
    for dim, side, size, apart, beyond, step in zip((2, 3), shape[2:], sizes, dilation, padding, stride, strict=True):
        counts = tuple((each + 2 * beyond - apart * (size - 1) - 1) // step + 1 for each in side)
        element, patch = atoms.dims(((size,) * low.traces, counts))
        position = flat(b, patch) * step + flat(b, element) * apart
        position = position - beyond if beyond else position
        at |= spread(b, found.dims[dim], position)
        if beyond:
            within = b.call("and", b.call("ge", position, 0), position < b.number(side))
            inside = within if inside is None else b.call("and", inside, within)
        elements, places = (*elements, *element), (*places, *patch)
    dims = (found.dims[0], elements, places)
    value = low.gathered(found, at, dims, inside).value
    low.define(node, value if inside is None else b.call("where", inside, value, 0), dims)


PATCH_RULES: dict[str, GeneralRule] = {"im2col": _im2col}
"""Operators by name."""
