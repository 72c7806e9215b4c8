"""Lower searches of a sorted row, `bucketize` and `searchsorted`, as the steps of a binary search, each of which reads an element."""

from __future__ import annotations

from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.reindex import spread
from tools.codegen.ir.sizes import Sizes
from tools.codegen.lower.general import GeneralLowering, GeneralRule

LONGEST = 2**16
"""Elements of a row that is searched: each step waits for the one before it."""


def _bucketize(low: GeneralLowering, node: Node) -> None:
    _search(low, node, node.args[1], node.args[0])


def _searchsorted(low: GeneralLowering, node: Node) -> None:
    if node.kwargs.get("sorter") is not None:
        raise LoweringError(f"{node.target} by a sorter is not generated")
    _search(low, node, node.args[0], node.args[1])


def _search(low: GeneralLowering, node: Node, row: object, wanted: object) -> None:
    """Count the elements of a sorted row that stand before each value; numbers that are none stand at its end."""
    if not isinstance(row, Ref) or not isinstance(wanted, Ref) or len(low.graph.meta(row).shape) != 1:
        raise LoweringError(f"{node.target} in other than one row is not generated")
    b, edges, found = low.b, low.value(row), low.value(wanted)
    after = bool(node.kwargs.get("right")) or node.kwargs.get("side") == "right"
    place = b.const(0)
    for step in _steps(node, low.graph.meta(row).shape[0]):
        last = place + (step - 1)
        inside = last < _length(low, row)
        edge = low.take(edges, spread(b, edges.dims[0], last), found.dims, inside).value
        # written so that what compares with nothing goes on to the end
        stays = b.call("or", b.call("not", inside), b.call("gt" if after else "ge", edge, found.value))
        place = b.call("where", stays, place, place + step)
    dtype = node.outputs[0].dtype
    low.define(node, b.cast(place, COMPUTE[dtype]), found.dims)


def _steps(node: Node, sizes: Sizes) -> tuple[int, ...]:
    """List the powers of two that add up to any number of elements."""
    if len(set(sizes)) > 1 or not 0 < sizes[0] <= LONGEST:
        raise LoweringError(f"{node.target} in a row whose length varies, or in a very long one, is not generated")
    return tuple(2**power for power in reversed(range(sizes[0].bit_length())))


def _length(low: GeneralLowering, row: Ref) -> int:
    return low.graph.meta(row).shape[0][0]


SEARCH_RULES: dict[str, GeneralRule] = {"bucketize": _bucketize, "searchsorted": _searchsorted}
"""Operators by name."""
