"""Rows of a few elements in order: each element's place is how many stand before it, which every element of a result finds by itself.

Nothing passes between threads, and what reads a row in order elsewhere reads this formula: the first two of each four, in their old order,
and what stands at these are one kernel.
"""

from __future__ import annotations

from tools.codegen.ir.builder import Builder, Value
from tools.codegen.ir.dtypes import is_floating
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.order import BITS
from tools.codegen.ir.reindex import spread
from tools.codegen.ir.sizes import Sizes
from tools.codegen.lower.region.general import GeneralLowering

FEW = 4
"""Elements of a row that are compared with each other, at most; an assumption."""
FEW_WHOLE = 8
"""The same of whole numbers of 64 bits, which have no key of their own."""


def are_few(low: GeneralLowering, source: Value, atoms: tuple[int, ...], dtype: str) -> bool:
    """Whether a row is so short at all sizes; what a reduction of this region makes is not made again for each element."""
    lengths, most = low.b.count(atoms), FEW if dtype in BITS else FEW_WHOLE if dtype == "int64" else 0
    return len(set(lengths)) == 1 and lengths[0] <= most and low.reduces_over(source) == 1


def in_order(low: GeneralLowering, source: Lowered, place: int, largest: bool, count: Sizes) -> tuple[Value, Value, int]:
    """Return the elements of a row along a dimension in order, their positions, and the atom of both; equal ones keep theirs."""
    b, atoms, picked = low.b, source.dims[place], low.b.atoms.new(count)
    dims = (*source.dims[:place], (picked,), *source.dims[place + 1 :])
    elements = [low.take(source, spread(b, atoms, b.const(at)), dims).value for at in range(b.count(atoms)[0])]
    keys = [_key(b, each) for each in elements]
    before = {(one, two): b.call("ge" if largest else "le", keys[one], keys[two]) for two in range(len(keys)) for one in range(two)}
    index = b.index((picked,))
    element, position = elements[-1], b.const(len(keys) - 1)
    for own in reversed(range(len(keys) - 1)):
        earlier = [b.call("where", before[other, own], 1, 0) for other in range(own)]
        later = [b.call("where", before[own, other], 0, 1) for other in range(own + 1, len(keys))]
        rank = sum(earlier[1:] + later, earlier[0]) if earlier else sum(later[1:], later[0])
        here = b.call("eq", rank, index)
        element, position = b.call("where", here, elements[own], element), b.call("where", here, own, position)
    return element, b.compute(position, "int64"), picked


def _key(b: Builder, element: Value) -> Value:
    """Make whole numbers of what is compared: of floats those in which no number is above all, and both zeros are alike."""
    if is_floating(element.dtype):
        return b.call("ordered_bits", b.compute(element, "float32"))
    return b.cast(element, "int32") if element.dtype == "bool" else element
