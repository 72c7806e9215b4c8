"""Lower what writes elsewhere: values go to positions that are data, in a copy of the tensor that held something there before."""

from __future__ import annotations

from typing import NamedTuple

from tools.codegen.ir.builder import Value
from tools.codegen.ir.constant_tensors import fill_number
from tools.codegen.ir.dtypes import COMPUTE
from tools.codegen.ir.expr import Fold, LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Lowered, Scatter, Write
from tools.codegen.ir.reindex import flat
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.lower.positions.gathers import index_of, indexed
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule

ATOMIC = frozenset({"float32", "int32", "int64"})
"""Dtypes that are added to in memory; others would need a copy in one of these."""


MOST_COMPARED = 4096
"""Pairs of an element of a row and a position in it that are compared, at most; beyond that memory is written."""


class _Picks(NamedTuple):
    """Positions of which no two are alike in a row, and the number that the row holds before they are written."""

    position: Lowered
    picked: int
    base: bool | float


def _scattered(low: GeneralLowering, node: Node, source: Lowered, positions: list[Value], write: Write) -> None:
    """Write values to positions of a copy of the node's first operand."""
    base, out = node.args[0], node.outputs[0]
    if write is not Write.STORE and (out.dtype not in ATOMIC or (write is not Write.ADD and out.dtype == "float32")):
        raise LoweringError(f"{node.target} of {out.dtype} by {write} is not generated: memory adds {', '.join(sorted(ATOMIC))}")
    value = low.b.compute(source.value, COMPUTE[out.dtype])
    places = tuple(each.id for each in positions)
    if low.flow.is_internal(base):
        low.scatter(node, Lowered(value, source.dims), low.continued(node, base, places, write))
        return
    number = fill_number(low.graph.by_name.get(base.name))
    if number is None:
        low.b.load(base, low.graph.meta(base), again=True, parameter=base.name in low.graph.parameters)
    else:
        # the host makes the result: where what is read does not tell its sizes, forward must
        for size in out.shape:
            low.b.number(size)
    target = Scatter(base if number is None else None, float(number or 0), places, None, write)
    low.scatter(node, Lowered(value, source.dims), target)


def _source(low: GeneralLowering, given: Ref | float) -> Lowered:
    return low.value(given) if isinstance(given, Ref) else Lowered(low.b.lift(given), ())


def _along_one(low: GeneralLowering, node: Node, write: Write, scale: float = 1) -> None:
    """Rows of a source to the rows that an index of one dimension names."""
    index, source = index_of(low, node.args[2]), low.value(node.args[3])
    place = int(node.args[1]) % len(node.outputs[0].shape)
    opened = Lowered(index.value, (*index.dims, *((),) * (len(source.dims) - 1 - place)))
    (source, opened), dims = low.aligned([source, opened])
    positions = [opened.value if other == place else flat(low.b, dim) for other, dim in enumerate(dims)]
    _scattered(low, node, Lowered(source.value if scale == 1 else source.value * scale, dims), positions, write)


def _index_add(low: GeneralLowering, node: Node) -> None:
    _along_one(low, node, Write.ADD, node.argument(4, "alpha", 1))


def _index_copy(low: GeneralLowering, node: Node) -> None:
    _along_one(low, node, Write.STORE)


REDUCTIONS = {"sum": Write.ADD, "add": Write.ADD, "amax": Write.MAX, "amin": Write.MIN}


def _scatter(low: GeneralLowering, node: Node) -> None:
    """Each element to where an index of its shape says along one dimension."""
    given = node.argument(4, "reduce") if node.op in ("scatter", "scatter_reduce") else "sum"
    if (given is not None and given not in REDUCTIONS) or not node.kwargs.get("include_self", True):
        raise LoweringError(f"{node.target} by {given}, or without what was there before, is not generated")
    write = Write.STORE if given is None else REDUCTIONS[given]
    place = int(node.args[1]) % len(node.outputs[0].shape)
    index, source = index_of(low, node.args[2]), _source(low, node.args[3])
    own = low.graph.meta(node.args[2]).shape
    if write is Write.STORE and (picks := _picks(low, node, index, place)):
        _chosen(low, node, source, place, picks)
        return
    if isinstance(node.args[3], Ref) and low.graph.meta(node.args[3]).shape != own:
        raise LoweringError(f"{node.target} of a part of its source is not generated")
    (index, source), dims = low.aligned([index, source])
    positions = [index.value if other == place else flat(low.b, dim) for other, dim in enumerate(dims)]
    _scattered(low, node, Lowered(source.value, dims), positions, write)


def _picks(low: GeneralLowering, node: Node, index: Lowered, place: int) -> _Picks | None:
    """Find out whether no two positions of a row are alike, and the row is a number before: then it can be written as a formula."""
    base, picked = fill_number(low.graph.by_name.get(node.args[0].name)), low.distinct.get(index.value.id)
    if base is None or picked is None or low.b.atoms.leaves((picked,)) != low.b.atoms.leaves(index.dims[place]):
        return None
    shape, own = node.outputs[0].shape, low.graph.meta(node.args[2]).shape
    along = power_of_two(shape[place][0]) * power_of_two(own[place][0])
    others = all(a == b for at, (a, b) in enumerate(zip(shape, own, strict=True)) if at != place)
    return _Picks(index, picked, base) if others and along <= MOST_COMPARED else None


def _chosen(low: GeneralLowering, node: Node, source: Lowered, place: int, picks: _Picks) -> None:
    """Define what is scattered as a formula: each element looks whether one of the row's positions is its own."""
    b, (index, picked, base) = low.b, picks
    (index, source), dims = low.aligned([index, source])
    whole = b.atoms.dims((node.outputs[0].shape[place],))[0]
    hit = b.call("eq", index.value, flat(b, whole))
    value = b.compute(source.value, COMPUTE[node.outputs[0].dtype])
    here = b.reduce(Fold.MAX, b.call("where", hit, 1, 0), (picked,))
    if frozenset(b.atoms.leaves((picked,))) & b.leaves_of(b.exprs[value.id]):
        value = b.reduce(Fold.SUM, b.call("where", hit, value, 0), (picked,))
    low.define(node, b.call("where", here > 0, value, base), (*dims[:place], whole, *dims[place + 1 :]))


def _index_put(low: GeneralLowering, node: Node) -> None:
    """Values to where several index tensors say together."""
    shape = node.outputs[0].shape
    indices = [*node.args[1], *(None,) * (len(shape) - len(node.args[1]))]
    own = low.b.atoms.dims(shape)
    at, dims = indexed(low, node, own, indices, shape)
    (source,), _ = low.aligned([low.value(node.args[2])])
    like = Lowered(low.b.const(0), dims)
    (like, source), dims = low.aligned([like, source])
    positions = [at[dim[0]] if dim and dim[0] in at else flat(low.b, dim) for dim in own]
    _scattered(low, node, Lowered(source.value, dims), positions, Write.ADD if node.argument(3, "accumulate", False) else Write.STORE)


SCATTER_RULES: dict[str, GeneralRule] = {
    "index_add": _index_add, "index_copy": _index_copy, "index_put": _index_put, "_unsafe_index_put": _index_put,
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), _scatter),
}  # fmt: skip
"""Operators by name."""
