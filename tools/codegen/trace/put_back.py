"""What a tensor holds after something was written through a view of it, in operators that write nothing in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.codegen.ir.graph import DType, Node, Raw, Ref, TensorMeta
from tools.codegen.ir.operators.families import CASTS

DIMS = (0, 1)
"""Of a matrix."""
PARTS = {"select": "select_scatter", "slice": "slice_scatter"}
"""Views that take a part of a tensor, and what writes a part of one."""
TURNED = frozenset({"permute", "transpose", "swapaxes", "swapdims", "t", "numpy_T", "mT", "movedim"})
"""Views with the same elements, their dimensions in another order."""
REGROUPED = CASTS | {
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "squeeze", "unsqueeze", "expand", "expand_as",
    "contiguous", "detach", "alias",
}  # fmt: skip
"""Views with the same elements in the same order, where they repeat none and have the same dtype."""


def is_expressible(view: Node, source: TensorMeta) -> bool:
    """Whether what is written through a view can be put back into what it looks at."""
    if view.op in PARTS or view.op in TURNED or view.call == "narrow.default":
        return True
    if view.call == "diagonal.default":
        # which of two sides is shorter may change with the sizes, and no trace would say so
        return len({source.shape[view.argument(place, word, usual)] for place, word, usual in ((2, "dim1", 0), (3, "dim2", 1))}) == 1
    seen = view.outputs[0]
    return view.op in REGROUPED and (seen.numel, seen.dtype) == (source.numel, source.dtype)


def put_back(view: Node, before: Ref, value: Ref, name: str, out: TensorMeta) -> list[Node]:
    """List the operators that put a value where a view looks in what was `before`; the last one, `name`, gives the whole, an `out`."""
    if view.op in PARTS:
        return [Node(name, f"aten.{PARTS[view.op]}.default", (before, value, *view.args[1:]), {}, (out,))]
    if view.op == "narrow":
        dim, start, length = view.args[1:4]
        start = start + out.written[dim] if start < 0 else start
        return [Node(name, "aten.slice_scatter.default", (before, value, dim, start, start + length), {}, (out,))]
    if view.op == "diagonal":
        return _diagonal_put_back(view, before, value, name, out)
    order = _order(view, len(out.shape)) if view.op in TURNED else None
    if order is None:
        return [Node(name, "aten.reshape.default", (value, list(out.written)), {}, (out,))]
    return [Node(name, "aten.permute.default", (value, _inverse(order)), {}, (replace(out, contiguous=False, unit_last=False),))]


def filled_diagonal(call: Node) -> list[Node]:
    """List the operators that give a matrix with a number on its diagonal, as `fill_diagonal_` leaves it; none for any other call."""
    out = call.outputs[0]
    if call.op != "fill_diagonal_" or len(out.shape) != len(DIMS) or call.argument(2, "wrap", False):
        return []
    places = _diagonal(call.name, out, DIMS, 0)
    filled = (call.args[0], Ref(places[-1].name), call.args[1])
    return [*places, Node(call.name, "aten.masked_fill.Scalar", filled, {}, (out,))]


def _diagonal(name: str, out: TensorMeta, dims: tuple[int, int], offset: int) -> list[Node]:
    """List the operators that say where a diagonal along two dimensions is; what the last one gives is broadcast along the others."""
    rank, wanted = len(out.shape), {"dtype": DType("int64"), "device": Raw("device")}
    made = []
    for word, dim in zip(("rows", "columns"), dims, strict=True):
        size = out.written[dim]
        start = offset if word == "rows" else 0
        shape = [size if place == dim else 1 for place in range(rank)]
        count = Node(f"{name}_{word}", "aten.arange.start", (start, start + size), wanted, (TensorMeta(((size,),), "int64"),))
        meta = TensorMeta(tuple((each,) for each in shape), "int64")
        made += [count, Node(f"{name}_{word}_apart", "aten.reshape.default", (Ref(count.name), shape), {}, (meta,))]
    where = TensorMeta(tuple(sizes if place in dims else (1,) for place, sizes in enumerate(out.shape)), "bool")
    return [*made, Node(f"{name}_equal", "aten.eq.Tensor", (Ref(made[1].name), Ref(made[3].name)), {}, (where,))]


def _diagonal_put_back(view: Node, before: Ref, value: Ref, name: str, out: TensorMeta) -> list[Node]:
    """Choose between a diagonal, laid along rows or columns, and what was there before."""
    rank = len(out.shape)
    offset, one, two = (view.argument(place, word, usual) for place, word, usual in ((1, "offset", 0), (2, "dim1", 0), (3, "dim2", 1)))
    one, two = one % rank, two % rank
    places = _diagonal(name, out, (one, two), offset)
    # an element of a diagonal above the main one is that of its row, of one below that of its column
    along, across = (one, two) if offset >= 0 else (two, one)
    rest = [place for place in range(rank) if place not in (one, two)]
    length = out.written[along]
    longer = length - view.outputs[0].written[-1]
    shape = [out.written[place] for place in rest] + [length]
    laid = replace(out, shape=tuple((size,) for size in shape))
    # at all sizes, so that all traces have the same operators
    made = [Node(f"{name}_longer", "aten.constant_pad_nd.default", (value, [0, longer], 0), {}, (laid,))]
    opened = replace(out, shape=(*laid.shape, (1,)))
    made += [Node(f"{name}_open", "aten.unsqueeze.default", (Ref(made[-1].name), -1), {}, (opened,))]
    order = _inverse([*rest, along, across])
    turned = replace(opened, shape=tuple(opened.shape[place] for place in order), contiguous=False, unit_last=False)
    made += [Node(f"{name}_turned", "aten.permute.default", (Ref(made[-1].name), order), {}, (turned,))]
    return [*places, *made, Node(name, "aten.where.self", (Ref(places[-1].name), Ref(made[-1].name), before), {}, (out,))]


def _order(view: Node, rank: int) -> list[int] | None:
    """Say which dimension of the source each of a turned view's is; None where they are all in their places."""
    dims = list(range(rank))
    given = view.args[1:]
    if view.op == "permute":
        return [dim % rank for dim in given[0]]
    if view.op == "movedim":
        here, there = (([end] if isinstance(end, int) else end) for end in given)
        return _moved(here, there, rank)
    if view.op in ("t", "numpy_T"):
        return dims[::-1]
    one, two = (-2, -1) if view.op == "mT" else given
    if not rank:
        return None
    dims[one], dims[two] = dims[two], dims[one]
    return dims


def _moved(before: Any, after: Any, rank: int) -> list[int]:
    placed = {there % rank: here % rank for here, there in zip(before, after, strict=True)}
    rest = iter(dim for dim in range(rank) if dim not in placed.values())
    return [placed[place] if place in placed else next(rest) for place in range(rank)]


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(place) for place in range(len(order))]
