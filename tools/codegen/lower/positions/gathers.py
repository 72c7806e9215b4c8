"""Lower what reads at positions that are data: gathers, embeddings, advanced indexing."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.atoms import Dims
from tools.codegen.ir.builder import Value
from tools.codegen.ir.constant_tensors import flat_numbers
from tools.codegen.ir.dtypes import COMPUTE, is_signed
from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.kernel import Lowered
from tools.codegen.ir.reindex import flat, spread
from tools.codegen.ir.sizes import Sizes, Varying
from tools.codegen.lower.region.general import GeneralLowering, GeneralRule
from tools.codegen.lower.region.lowering import Lowering


def index_of(low: GeneralLowering, ref: object, sizes: Sizes | None = None) -> Lowered:
    """Find positions that are data; where `sizes` are given, negative ones count from the end."""
    if not isinstance(ref, Ref) or not is_signed(low.graph.meta(ref).dtype):
        raise LoweringError("an index that is no tensor of whole numbers is not generated")
    found = low.value(ref)
    if sizes is None:
        return found
    wrapped = low.b.call("where", found.value < 0, found.value + low.b.number(sizes), found.value)
    low.b.label(wrapped, f"{ref.name}_wrapped")
    return Lowered(wrapped, found.dims)


def _index_select(low: GeneralLowering, node: Node) -> None:
    found, index = low.value(node.args[0]), index_of(low, node.args[2])
    place = int(node.args[1]) % len(found.dims)
    rest = (*found.dims[:place], (), *found.dims[place + 1 :])
    index = low.unshared(index, rest)
    dims = (*found.dims[:place], *index.dims, *found.dims[place + 1 :])
    taken = low.gathered(found, spread(low.b, found.dims[place], index.value), dims)
    low.define(node, taken.value, taken.dims)


def _embedding(low: GeneralLowering, node: Node) -> None:
    table, index = low.value(node.args[0]), index_of(low, node.args[1])
    index = low.unshared(index, table.dims[1:])
    taken = low.gathered(table, spread(low.b, table.dims[0], index.value), (*index.dims, table.dims[1]))
    low.define(node, taken.value, taken.dims)


def _gather(low: GeneralLowering, node: Node) -> None:
    """Along one dimension by an index of the result's shape."""
    found, index = low.value(node.args[0]), index_of(low, node.args[2] if node.op == "gather" else node.args[1])
    where = node.args[1] if node.op == "gather" else node.argument(2, "dim")
    if where is None or len(index.dims) != len(found.dims):
        raise LoweringError(f"{node.target} of a tensor as one row is not generated")
    place, at = int(where) % len(found.dims), dict[int, Value]()
    low.unite(found, index, [other for other in range(len(found.dims)) if other != place])
    found, index = (Lowered(each.value, low.b.atoms.resolve(each.dims)) for each in (found, index))
    for other, (own, wanted) in enumerate(zip(found.dims, index.dims, strict=True)):
        if other == place:
            at |= spread(low.b, own, index.value)
        elif own and own != wanted:
            at |= spread(low.b, own, flat(low.b, wanted))
    taken = low.gathered(found, at, index.dims)
    low.define(node, taken.value, taken.dims)


def indexed(
    low: GeneralLowering, node: Node, found_dims: Dims, indices: Sequence[object], sizes: Sequence[Sizes]
) -> tuple[dict[int, Value], Dims]:
    """Positions that several index tensors give along the dimensions they stand for, and the dimensions of what lies there."""
    places = [place for place, index in enumerate(indices) if index is not None]
    given = [index_of(low, indices[place], sizes[place]) for place in places]
    rest = tuple(dim for place, dim in enumerate(found_dims) if place not in places)
    found, dims = low.aligned([low.unshared(index, rest) for index in given])
    at: dict[int, Value] = {}
    for place, index in zip(places, found, strict=True):
        at |= spread(low.b, found_dims[place], index.value)
    front = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    return at, (*rest[:front], *dims, *rest[front:])


def _index(low: GeneralLowering, node: Node) -> None:
    found = low.value(node.args[0])
    at, dims = indexed(low, node, found.dims, node.args[1], low.graph.meta(node.args[0]).shape)
    taken = low.gathered(found, at, dims)
    low.define(node, taken.value, taken.dims)


def _arange(low: Lowering, node: Node) -> Lowered:
    """Numbers one after the other: no tensor is needed."""
    given: list[float | Varying] = [arg for arg in node.args if isinstance(arg, int | float | Varying)]
    start, step = (given[0] if len(given) > 1 else 0), (given[2] if len(given) > 2 else 1)
    dims = low.b.atoms.dims(node.outputs[0].shape)
    value = flat(low.b, dims[0])
    value = value if step == 1 else value * low.b.lift(step)
    value = value if start == 0 else value + low.b.lift(start)
    return Lowered(low.b.cast(value, COMPUTE[node.outputs[0].dtype]), dims)


def _numbers(low: Lowering, node: Node) -> Lowered:
    """Given numbers, few enough for a kernel to choose among: by their order where they are a line, else one after the other."""
    out, b = node.outputs[0], low.b
    dims, given = b.atoms.dims(out.shape), flat_numbers(node.args[0])
    place, value = flat(b, tuple(atom for dim in dims for atom in dim)), b.lift(given[-1])
    step = given[1] - given[0] if len(given) > 1 and out.dtype == "int64" else None
    if step is not None and all(number == given[0] + step * at for at, number in enumerate(given)):
        return Lowered(b.cast(place * step + given[0], COMPUTE[out.dtype]), dims)
    for at, number in reversed([*enumerate(given)][:-1]):
        value = b.call("where", b.call("eq", place, at), number, value)
    return Lowered(b.cast(value, out.dtype), dims)


def _one_hot(low: GeneralLowering, node: Node) -> None:
    found = index_of(low, node.args[0])
    new = low.b.atoms.dims((node.outputs[0].shape[-1],))
    value = low.b.call("where", low.b.call("eq", found.value, flat(low.b, new[0])), 1, 0)
    low.define(node, low.b.cast(value, "int64"), (*found.dims, *new))


GATHER_RULES: dict[str, GeneralRule] = {
    "index_select": _index_select, "embedding": _embedding, "gather": _gather, "take_along_dim": _gather, "index": _index,
    "one_hot": _one_hot,
}  # fmt: skip
"""Operators by name."""
SOURCES = {"arange": _arange, "numbers": _numbers}
"""Operators that read no tensor."""
